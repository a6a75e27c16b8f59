"""How long a translation job takes, from a sample of its groups drawn over the lengths of its documents."""

import math
import random
import resource
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import zip_longest

import torch

from hf_docmt.messages import counted
from hf_docmt.translation.group_translation import GroupTranslator, TranslationSettings
from hf_docmt.translation.job_input import Group, document_groups
from hf_docmt.translation.progress import duration

SECONDS = 60.0  # that the sample takes, for each number of processes
UNITS = 8  # parts of the sample that are to fit into the time
MIN_UNITS = 3  # whatever time they take
KEPT = 16  # groups of each stratum that the sample is drawn from
MACHINE = 0.05  # share by which the same work takes more or less time on the same machine
T_QUANTILES = (12.7, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23)  # of 95 %, by degrees of freedom from 1


@dataclass
class Stratum:
    """Groups whose longest document has about so many sentences; `sample` is a random one of them."""

    groups: int = 0
    characters: int = 0
    sample: list[Group] = field(default_factory=list)
    times: list[tuple[int, float]] = field(default_factory=list)  # characters and seconds of what was translated


@dataclass
class Estimate:
    """What a job takes. `seconds` is (estimate, lower, upper) by number of processes."""

    documents: int
    sentences: int
    tokens: float
    sampled_sentences: int
    load_seconds: float
    seconds: dict[int, tuple[float, float, float]]
    memory: float  # bytes of one process
    device: str

    def text(self) -> str:
        """The lines of `docmt translate --estimate`."""
        lines = [
            f"{counted(self.documents, 'document')}, {counted(self.sentences, 'sentence')}, about {self.tokens:.3g} "
            "source tokens",
            f"sample of {counted(self.sampled_sentences, 'sentence')} on {self.device}; 95 % ranges in brackets",
        ]
        for count, (middle, low, high) in self.seconds.items():
            name = "1 process" if count == 1 else f"{count} processes"
            rates = [self.sentences / max(value - self.load_seconds, 1e-9) for value in (middle, high, low)]
            lines.append(
                f"{name}: {duration(middle)} ({middle / 3600:.3g} h) [{duration(low)} to {duration(high)}], "
                f"{rates[0]:.3g} sentences/s [{rates[1]:.3g} to {rates[2]:.3g}], "
                f"{self.memory * count / 2**30:.2g} GiB at most"
            )
        return "\n".join(lines)


def estimate_job(
    settings: TranslationSettings, rows: Iterable[dict], processes: int = 1, seconds: float = SECONDS
) -> Estimate:
    """Estimate the job of these documents on one process, and on so many.

    The groups of the job, all of which are read, are the units: strata by the longest document, a random sample of each
    translated for about so many `seconds`, smaller ones where the model is slow. The time of a stratum is that of its
    sample by characters (ratio estimator); the range is that of Student's t over the groups, and at least 5 %, by which
    machines vary. Several processes of a CPU are measured as one with its share of the threads, those of GPUs as so
    many times one; what slows processes beside each other is not seen.
    """
    strata, counts = read_strata(document_groups(rows, batch_size=settings.batch_size))
    start = time.perf_counter()
    translator = GroupTranslator(settings)
    load_seconds = time.perf_counter() - start
    size = unit_size(translator, strata, seconds)
    threads = torch.get_num_threads()
    results: dict[int, tuple[float, float, float]] = {}
    for count in sorted({1, processes}):
        if settings.device == "cpu":
            torch.set_num_threads(max(1, threads // count))
        if count == 1 or settings.device == "cpu":
            sampled, tokens = translate_sample(translator, strata, size, seconds)
            total = total_seconds(list(strata.values()))
        middle, low, high = (load_seconds + value / count for value in total)
        results[count] = middle, low, high
    torch.set_num_threads(threads)
    translated = sum(n for stratum in strata.values() for n, _ in stratum.times)
    return Estimate(
        documents=counts[0],
        sentences=counts[1],
        tokens=tokens / max(translated, 1) * sum(stratum.characters for stratum in strata.values()),
        sampled_sentences=sampled,
        load_seconds=load_seconds,
        seconds=results,
        memory=peak_memory(settings.device),
        device=settings.device,
    )


def read_strata(groups: Iterable[Group], seed: int = 0) -> tuple[dict[int, Stratum], tuple[int, int]]:
    """The strata of the groups, with a sample of each; numbers of documents and sentences."""
    generator = random.Random(seed)
    strata: dict[int, Stratum] = {}
    documents = sentences = 0
    for group in groups:
        longest = max(len(row["translation"]) for row in group.rows)
        stratum = strata.setdefault(longest.bit_length(), Stratum())
        stratum.groups += 1
        stratum.characters += group.characters
        documents, sentences = documents + len(group.rows), sentences + group.sentences
        if len(stratum.sample) < KEPT:
            stratum.sample.append(group)
        elif (place := generator.randrange(stratum.groups)) < KEPT:  # reservoir sampling
            stratum.sample[place] = group
    for stratum in strata.values():
        generator.shuffle(stratum.sample)
    return strata, (documents, sentences)


def unit_size(translator: GroupTranslator, strata: dict[int, Stratum], seconds: float) -> int:
    """Sentences of a group that are translated, such that several groups fit into the time; warms the model up."""
    largest = max(strata.values(), key=lambda stratum: stratum.characters)
    rate = 0.0
    for sentences in (32, 128):  # the first one is slower
        part = parts_of(largest.sample[0], sentences)[0]
        start = time.perf_counter()
        translator(part)
        rate = part.sentences / (time.perf_counter() - start)
    return max(32, int(rate * seconds / UNITS))


def translate_sample(
    translator: GroupTranslator, strata: dict[int, Stratum], size: int, seconds: float
) -> tuple[int, int]:
    """Translate groups, or parts of `size` sentences, for so many seconds; how many sentences and source tokens."""
    whole = sum(stratum.characters for stratum in strata.values())
    for stratum in strata.values():
        stratum.times = []
    start, sentences, tokens = time.perf_counter(), 0, 0
    units = {key: units_of(stratum, size) for key, stratum in strata.items()}
    while True:
        left = [key for key in strata if len(strata[key].times) < len(units[key])]
        done = sum(len(stratum.times) for stratum in strata.values())
        if not left or done >= MIN_UNITS and time.perf_counter() - start > seconds:
            return sentences, tokens
        # the stratum whose share of the characters is largest beside its part of the sample
        key = max(left, key=lambda key: strata[key].characters / whole / (len(strata[key].times) + 0.5))
        part = units[key][len(strata[key].times)]
        begin = time.perf_counter()
        translator(part)
        strata[key].times.append((part.characters, time.perf_counter() - begin))
        sentences += part.sentences
        texts = [text for source in part.sources(translator.source_lang) for text in source]
        tokens += sum(map(len, translator.tokenizer(texts, split_special_tokens=True)["input_ids"]))


def units_of(stratum: Stratum, size: int) -> list[Group]:
    """Parts of the groups of a stratum: the first one of each group, then the second ones, and so on."""
    rounds = zip_longest(*(parts_of(group, size) for group in stratum.sample))
    return [part for parts in rounds for part in parts if part is not None]


def total_seconds(strata: list[Stratum]) -> tuple[float, float, float]:
    """The time of all groups by those that were translated: estimate, and the ends of its 95 % range."""
    timed = [stratum for stratum in strata if stratum.times]
    pairs = [pair for stratum in timed for pair in stratum.times]
    is_pooled = len(pairs) < len(timed) + 2  # too few to tell the spread inside strata
    overall = _ratio(pairs)
    total = sum(one.characters * (_ratio(one.times) if one.times else overall) for one in strata)
    expected = [overall if is_pooled else _ratio(one.times) for one in timed for _ in one.times]
    freedom = max(len(pairs) - (1 if is_pooled else len(timed)), 1)
    deviation = math.sqrt(sum((t / n - mean) ** 2 for (n, t), mean in zip(pairs, expected)) / freedom)
    variance = 0.0
    for stratum in strata:
        unseen = 1 - sum(n for n, _ in stratum.times) / max(stratum.characters, 1)
        variance += (stratum.characters * deviation) ** 2 / max(len(stratum.times), 0.5) * unseen
    quantile = T_QUANTILES[min(freedom, len(T_QUANTILES)) - 1]
    half = math.hypot(quantile * math.sqrt(variance), MACHINE * total)
    return total, max(total - half, 0.0), total + half


def parts_of(group: Group, sentences: int) -> list[Group]:
    """The documents of a group, in a random order, in parts of at most so many sentences or one document."""
    order = random.Random(group.number).sample(group.rows, len(group.rows))
    return [replace(part, number=group.number) for part in document_groups(order, sentences, sys.maxsize)]


def peak_memory(device: str) -> float:
    """Bytes that this process has held at most: of the GPU, or resident ones."""
    if device.startswith("cuda"):
        return torch.cuda.max_memory_allocated(device)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _ratio(times: list[tuple[int, float]]) -> float:
    return sum(seconds for _, seconds in times) / max(sum(n for n, _ in times), 1)
