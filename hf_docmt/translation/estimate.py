"""How long a translation job takes, from a sample of its groups over the lengths of their documents."""

import math
import random
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import zip_longest

import torch
from scipy.special import stdtrit  # of Student's t

from hf_docmt.messages import counted
from hf_docmt.translation.group_translation import GroupTranslator, TranslationSettings
from hf_docmt.translation.job_input import Group, document_groups
from hf_docmt.translation.progress import duration

if sys.platform != "win32":
    import resource

SECONDS = 60.0  # that the sample takes, for each number of processes
UNITS = 8  # parts of the sample that are to fit into the time
MIN_UNITS = 3  # whatever time they take
KEPT = 128  # groups that the sample is drawn from
MACHINE = 0.05  # share by which the same work takes more or less time on the same machine


@dataclass
class Estimate:
    """The cost of a job. `seconds` is (estimate, lower, upper) by number of processes."""

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
    """Estimate the job of these documents on one process, and on `processes`.

    All groups of the job are read, and a random sample of them is translated for about `seconds`, smaller parts of
    them if the model is slow. The time of the job is that of the sample by characters (ratio estimator);
    the range is that of Student's t over the parts, and at least 5 %, by which machines vary. Several processes of a
    CPU are measured as one with its share of the threads, those of GPUs as multiples of one; the estimate ignores that
    processes slow each other down. ValueError: no document has a sentence.
    """
    sample = read_sample(document_groups(rows, batch_size=settings.batch_size))
    if not sample.sentences:
        raise ValueError("there is nothing to translate, so there is no time to estimate; omit --estimate")
    start = time.perf_counter()
    translator = GroupTranslator(settings)
    load_seconds = time.perf_counter() - start
    rate = 0.0
    for sentences in (32, 128):  # warms the model up: the first one is slower
        part = next(sample.parts(sentences))
        rate = part.sentences / timed(translator, part)
    threads = torch.get_num_threads()
    results: dict[int, tuple[float, float, float]] = {}
    for count in sorted({1, processes}):
        if settings.device == "cpu":
            torch.set_num_threads(max(1, threads // count))
        if count == 1 or settings.device == "cpu":
            parts, times, begin = [], [], time.perf_counter()
            for part in sample.parts(max(32, int(rate * seconds / UNITS))):
                if len(parts) >= MIN_UNITS and time.perf_counter() - begin > seconds:
                    break
                times.append((part.characters, timed(translator, part)))
                parts.append(part)
            total = total_seconds(times, sample.characters)
        middle, low, high = (load_seconds + value / count for value in total)
        results[count] = middle, low, high
    torch.set_num_threads(threads)
    texts = [text for part in parts for source in part.sources(translator.source_lang) for text in source]
    tokens = sum(map(len, translator.tokenizer(texts, split_special_tokens=True)["input_ids"]))
    return Estimate(
        documents=sample.documents,
        sentences=sample.sentences,
        tokens=tokens * sample.characters / max(sum(part.characters for part in parts), 1),
        sampled_sentences=len(texts),
        load_seconds=load_seconds,
        seconds=results,
        memory=peak_memory(settings.device),
        device=settings.device,
    )


@dataclass
class Sample:
    """Random groups of a job, and the size of all of them."""

    groups: list[Group] = field(default_factory=list)
    documents: int = 0
    sentences: int = 0
    characters: int = 0

    def parts(self, size: int) -> Iterator[Group]:
        """Parts of the groups, of `size` sentences or one document: the first of each, the second ones, and so on.

        The groups come in an order in which any first few are spread over the lengths of the documents (multiples of
        the golden ratio), the documents of a group in a random one.
        """
        by_length = sorted(self.groups, key=lambda group: max(len(row["translation"]) for row in group.rows))
        golden, parts_of_groups = (math.sqrt(5) - 1) / 2, []
        for rank in sorted(range(len(by_length)), key=lambda rank: (rank + 1) * golden % 1):
            group = by_length[rank]
            rows = random.Random(group.number).sample(group.rows, len(group.rows))
            parts_of_groups.append([replace(p, number=group.number) for p in document_groups(rows, size, sys.maxsize)])
        for parts in zip_longest(*parts_of_groups):
            yield from filter(None, parts)


def read_sample(groups: Iterable[Group], seed: int = 0) -> Sample:
    """A sample of the groups, all of which are read."""
    generator, sample = random.Random(seed), Sample()
    for number, group in enumerate(groups):
        sample.documents += len(group.rows)
        sample.sentences += group.sentences
        sample.characters += group.characters
        if number < KEPT:
            sample.groups.append(group)
        elif (place := generator.randrange(number + 1)) < KEPT:  # reservoir sampling
            sample.groups[place] = group
    return sample


def timed(translator: GroupTranslator, part: Group) -> float:
    """Seconds that a part takes."""
    start = time.perf_counter()
    translator(part)
    return time.perf_counter() - start


def total_seconds(times: list[tuple[int, float]], characters: int) -> tuple[float, float, float]:
    """The time for a number of characters, from the parts translated: estimate, and the ends of its 95 % range."""
    translated, count = max(sum(n for n, _ in times), 1), len(times)
    rate = sum(seconds for _, seconds in times) / translated
    total, freedom = rate * characters, max(count - 1, 1)
    deviation = math.sqrt(sum((seconds - rate * n) ** 2 for n, seconds in times) / freedom)
    unseen = 1 - min(translated / max(characters, 1), 1)
    error = characters / translated * count * deviation * math.sqrt(unseen / count)
    half = math.hypot(stdtrit(freedom, 0.975) * error, MACHINE * total)
    return total, max(total - half, 0.0), total + half


def peak_memory(device: str) -> float:
    """Bytes that this process has held at most: of the GPU, or resident ones."""
    if device.startswith("cuda"):
        return torch.cuda.max_memory_allocated(device)
    if sys.platform == "win32":
        import psutil  # which accelerate requires

        return psutil.Process().memory_info().peak_wset
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
