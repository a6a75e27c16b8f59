"""Does attention go where people looked? Attention weights against the marked words of SCAT (Yin et al. 2021)."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from hf_docmt import __version__
from hf_docmt.analysis.scat import MarkedText, Scat, ScatExample, read_marks, read_scat
from hf_docmt.analysis.word_attention import Word, attended, segment_words
from hf_docmt.data.examples import check_choices
from hf_docmt.evaluation.suites import check_languages
from hf_docmt.evaluation.systems.forced import ForcedDecoding, evaluation_mode
from hf_docmt.evaluation.systems.interface import system_languages
from hf_docmt.evaluation.systems.log_probabilities import check_lengths
from hf_docmt.evaluation.systems.token_texts import piece_ids
from hf_docmt.reports.report import build_report, make_result
from hf_docmt.reports.significance import bootstrap_interval
from hf_docmt.reports.statistics import scorer

ATTENTIONS = {"encoder": "encoder_attentions", "cross": "cross_attentions", "decoder": "decoder_attentions"}
STEPS = ("writes", "reads")


@dataclass(frozen=True)
class Agreement:
    """What attention has in common with people's marks, a part of 1 in every cell.

    `values` (examples, 1 + heads, 1 + len(at)): averaged weights and every head; share of weight on marked words and
    precision at each k. `chance` (examples, 1 + len(at)) is what equal weights or a random order give.
    """

    ids: tuple[str, ...]
    values: np.ndarray
    chance: np.ndarray
    at: tuple[int, ...]
    heads: tuple[str, ...]
    unused: dict[str, int]  # examples without a value, by reason
    signature: str


def rationale_agreement(
    system: ForcedDecoding,
    examples: Sequence[ScatExample],
    *,
    attention: str = "decoder",
    step: str = "writes",
    at: Sequence[int] = (1, 5),
    batch_size: int = 8,
) -> Agreement:
    """Attention from marked pronouns to marked words, in the references forced through the model.

    `attention` is that of the `encoder` (source pronoun to source), `cross` (target pronoun to source) or of the
    `decoder` (target pronoun to the target before it); in the published files nearly all marks are on the target side.
    In the decoder `step` is the one that `writes` the pronoun, or the one that `reads` it. A whole context line is one
    context sentence, as its sentence borders are lost; a system without past context gets none.

    For every marked pronoun the weights of its tokens are averaged. The share is of all weight, special tokens
    included; for the precision words are ranked by the sum of their tokens' weights. The pronoun's own word is neither
    marked nor ranked. The value of an example is the mean over its pronouns.
    ValueError: a system whose weights cannot be had, no example with a marked pronoun and a marked word in reach, one
    of more tokens than the model has positions for.
    """
    check_choices(attention=(attention, tuple(ATTENTIONS)), step=(step, STEPS))
    _check_system(system)
    ids, found, unused, heads = [], [], Counter(), ()
    for example, forced in _forced(system, examples, attention, step, batch_size):
        heads = forced.heads()
        values = [forced.pronoun(number, attention, at) for number, word in enumerate(forced.queries) if word.pronoun]
        useful = [value for value in values if value is not None]
        if useful:
            ids.append(example.example_id)
            found.append(np.mean(useful, axis=0))
        else:
            unused["no marked word in reach" if values else "no marked pronoun"] += 1
    if not found:
        raise ValueError(
            f"no example has a marked pronoun from which {attention} attention could go to a marked word: "
            f"{dict(unused)}; choose another attention, or give other examples"
        )
    values = np.array(found)
    signature = (
        f"attention:{attention}|step:{'reads' if attention == 'encoder' else step}|"
        f"words:{'letters' if system.tokenizer.is_fast else 'between blanks'}|"
        f"context:{'one sentence' if system.past_context else 'none'}|version:{__version__}"
    )
    return Agreement(tuple(ids), values[:, :-1], values[:, -1], tuple(at), heads, dict(unused), signature)


def rationale_results(
    found: Agreement, *, dataset: str = "scat", split: str = "train", samples: int = 1000, seed: int = 1
) -> list[dict]:
    """Share and precisions as report results in percent: means over examples, for each head in the breakdown.

    `details` holds the 95 % bootstrap interval over examples, `chance`, and why examples have no value.
    """
    results = []
    for column, metric in enumerate(["attention on marked words", *(f"precision@{k}" for k in found.at)]):
        values, n = 100 * found.values[:, :, column].mean(axis=0), len(found.ids)
        rows = [[float(value), 1] for value in found.values[:, 0, column]]
        details = {"chance": float(100 * found.chance[:, column].mean()), "unused": found.unused}
        details["statistics"] = {"unit": "example", "ids": list(found.ids), "rows": rows}
        interval = bootstrap_interval(rows, scorer(metric, 2), samples, seed)
        results.append(
            make_result(
                task="context use",
                dataset=dataset,
                split=split,
                metric=metric,
                value=float(values[0]),
                signature=found.signature,
                n=n,
                breakdown={name: {"value": float(value), "n": n} for name, value in zip(found.heads, values[1:])},
                details=details if interval is None else details | {"interval": list(interval)},
            )
        )
    return results


@dataclass(frozen=True)
class _Forced:
    """Weights (layers, heads, queries, keys) of one example, and its words, their places those of queries or keys."""

    weights: np.ndarray
    queries: list[Word]
    keys: list[Word]
    length: int  # keys that are not padding

    def heads(self) -> tuple[str, ...]:
        layers, heads = self.weights.shape[:2]
        return tuple(f"layer={i} head={j}" for i in range(1, layers + 1) for j in range(1, heads + 1))

    def pronoun(self, number: int, attention: str, at: Sequence[int]) -> np.ndarray | None:
        """What `attended` gives for a query word, over the keys that it sees; row 0 is that of averaged weights."""
        places = list(self.queries[number].places)
        weights = self.weights[:, :, places].mean(axis=2)  # (layers, heads, keys)
        weights = np.vstack([weights.mean(axis=(0, 1)), weights.reshape(-1, weights.shape[-1])])
        seen = places[-1] + 1 if attention == "decoder" else self.length
        others = [key for place, key in enumerate(self.keys) if attention == "cross" or place != number]
        return attended(weights, [key for key in others if key.places[-1] < seen], seen, at)


def _forced(
    system: ForcedDecoding, examples: Sequence[ScatExample], attention: str, step: str, batch_size: int
) -> Iterator[tuple[ScatExample, _Forced]]:
    """The examples, forced through the model; the decoder reads at place t + 1 what it writes at place t."""
    rows = [_row(system, example) for example in examples]
    check_lengths(system.model, system.collate, [[row] for row in rows])
    for start in range(0, len(examples), batch_size):
        some = examples[start : start + batch_size]
        batch = system.collate(rows[start : start + batch_size])
        labels, _ = batch.pop("labels"), batch.pop("label_weights", None)
        device = next(system.model.parameters()).device
        with evaluation_mode(system.model), torch.inference_mode():
            output = system.model(**{name: value.to(device) for name, value in batch.items()}, output_attentions=True)
        weights = torch.stack(getattr(output, ATTENTIONS[attention])).float().cpu().numpy()  # (layers, B, H, Q, K)
        for row, example in enumerate(some):
            segment = batch["input_ids"][row][batch["attention_mask"][row] == 1].tolist()
            source = segment_words(segment, _texts(system, example, "source"), system.tokenizer, is_target=False)
            segment, length = labels[row][labels[row] != -100].tolist(), len(segment)
            target = segment_words(segment, _texts(system, example, "target"), system.tokenizer, is_target=True)
            read = [word.shifted(1) for word in target]
            queries = source if attention == "encoder" else read if step == "reads" else target
            keys = read if attention == "decoder" else source
            yield example, _Forced(weights[:, row], queries, keys, length)


def _row(system: ForcedDecoding, example: ScatExample) -> dict:
    """The example as a training view has it; the current sentence does not begin its document."""
    context, missing = bool(system.past_context), [[]] * system.future_context
    sides = {}
    for side in ("source", "target"):
        texts = [getattr(example, f"{side}_context")] * context + [getattr(example, side)]
        sides[side] = [piece_ids(system.tokenizer, text.text, is_target=side == "target") for text in texts] + missing
    place = {"doc_id": example.example_id, "index": 1, "current": int(context), "document_start": False}
    return place | sides


def _texts(system: ForcedDecoding, example: ScatExample, side: str) -> list[MarkedText]:
    """The texts of a side that the model reads."""
    context = system.past_context and (side == "source" or system.collate.context_sides == "both")
    return [getattr(example, f"{side}_context")] * bool(context) + [getattr(example, side)]


def _check_system(system: ForcedDecoding) -> None:
    if not isinstance(system, ForcedDecoding):
        raise ValueError(f"{system.name}: attention can be compared for encoder-decoder systems only")
    if getattr(system, "carries_state", False):
        raise ValueError(
            f"{system.name} reads one sentence at a time, so no attention goes from one to another; docmt analyze "
            "memory-maps shows what its memory does"
        )
    if getattr(system, "separate_context", False):
        raise ValueError(
            f"{system.name} reads context sentences apart, so that they are not in the segment that attention is "
            "measured in; compare a model that joins them"
        )
    implementation = system.model.config._attn_implementation
    if implementation != "eager":
        raise ValueError(
            f"{system.name}: attn_implementation is {implementation!r}, which gives no weights; load the system with "
            "attn_implementation='eager', or call model.set_attn_implementation('eager')"
        )


__all__ = [
    "Agreement",
    "MarkedText",
    "Scat",
    "ScatExample",
    "rationale_agreement",
    "rationale_results",
    "read_marks",
    "read_scat",
]


def rationales_files(
    system: ForcedDecoding,
    folder: str | Path,
    *,
    split: str = "train",
    source_lang: str = "en",
    target_lang: str = "fr",
    only: tuple[int, int] | None = None,
    attention: str = "decoder",
    step: str = "writes",
) -> dict:
    """The report of `rationale_agreement` on the files of SCAT in a folder (see `read_scat`).

    `only` is (first, last) line, from 1: the rest may be in the training data. `data` tells how many lines there are,
    and how many could not be read, by reason. ValueError: no example between the lines, other languages than the
    system's.
    """
    scat = read_scat(folder, split, source_lang, target_lang)
    check_languages(str(folder), (source_lang, target_lang), *system_languages(system))
    first, last = only or (1, scat.lines)
    examples = [one for one in scat.examples if first <= int(one.example_id.rpartition(":")[2]) <= last]
    if not examples:
        raise ValueError(f"no example can be read in lines {first}-{last}, {folder} has {scat.lines}; give others")
    found = rationale_agreement(system, examples, attention=attention, step=step)
    part = split if only is None else f"{split}, lines {first}-{last}"
    data = {"lines": scat.lines, "examples": len(examples), "skipped": scat.reasons}
    return build_report(model=system.describe(), data=data, results=rationale_results(found, split=part))
