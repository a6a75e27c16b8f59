"""Agreement of attention with the words that annotators marked in SCAT (Yin et al. 2021)."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from hf_docmt.analysis.attention_share import check_joined
from hf_docmt.analysis.model_runs import first_characters, forward, on_device
from hf_docmt.data.readers.reader import parallel_lines
from hf_docmt.evaluation.suites import check_languages
from hf_docmt.loading import registry
from hf_docmt.messages import __version__, check_known
from hf_docmt.reports.report import Report
from hf_docmt.reports.result import PartScore, Result
from hf_docmt.reports.signature import Signature
from hf_docmt.reports.statistics import document_details
from hf_docmt.systems.forced_decoding import ForcedDecoding, check_lengths
from hf_docmt.systems.model_system import UNBROKEN, WORD, evaluation_mode, piece_ids, word_spans

ATTENTIONS = {"encoder": "encoder_attentions", "cross": "cross_attentions", "decoder": "decoder_attentions"}
STEPS = ("writes", "reads")

Span = tuple[int, int]

_TAG = re.compile(r"(<p>|</p>|<hon>|</?hoff>)")
_NO_BLANK_AFTER = re.compile(r"(?:['’`(\[{«]|\w-)$")  # ends of texts that no blank follows
_NO_BLANK_BEFORE = re.compile(r"[.,;:!?…)\]}»'’`]|-\w")


@dataclass(frozen=True)
class MarkedText:
    """A text without its tags, and (start, end) characters of marked supporting words and of marked pronouns."""

    text: str
    rationale: tuple[Span, ...] = ()
    pronouns: tuple[Span, ...] = ()


@dataclass(frozen=True)
class ScatExample:
    """A sentence pair and its past context; each context is one text, without sentence borders."""

    example_id: str
    source_context: MarkedText
    source: MarkedText
    target_context: MarkedText
    target: MarkedText


@dataclass(frozen=True)
class Scat:
    """The examples, the number of lines, and that of skipped lines by reason, the first one of each line."""

    examples: tuple[ScatExample, ...]
    lines: int
    reasons: dict[str, int]


class Word(NamedTuple):
    """Positions of a word's tokens in a segment, and whether annotators marked it as context or as pronoun."""

    positions: tuple[int, ...]
    marked: bool
    pronoun: bool


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
) -> Report:
    """The report of `rationale_agreement` on the files of SCAT in a folder (see `read_scat`).

    `only` is (first, last) line, from 1: the rest may be in the training data. The report's `data` has the number of
    lines, and of lines that could not be read, by reason. ValueError: no example between the lines, other languages
    than the system's.
    """
    scat = read_scat(folder, split, source_lang, target_lang)
    check_languages(str(folder), (source_lang, target_lang), *system.languages)
    first, last = only or (1, scat.lines)
    examples = [example for example in scat.examples if first <= int(example.example_id.rpartition(":")[2]) <= last]
    if not examples:
        reasons = ", ".join(f"{count} with {reason}" for reason, count in scat.reasons.items()) or "none"
        raise ValueError(
            f"no example can be read in lines {first}-{last}, {folder} has {scat.lines} (skipped: {reasons}); "
            "give others"
        )
    part = split if only is None else f"{split}, lines {first}-{last}"
    results = rationale_agreement(system, examples, split=part, attention=attention, step=step)
    data = {"lines": scat.lines, "examples": len(examples), "skipped": scat.reasons}
    return Report(model=system.describe(), data=data, results=results)


def rationale_agreement(
    system: ForcedDecoding,
    examples: Sequence[ScatExample],
    *,
    split: str = "train",
    attention: str = "decoder",
    step: str = "writes",
    at: Sequence[int] = (1, 5),
    batch_size: int = 8,
) -> list[Result]:
    """Attention from marked pronouns to marked words, with forced references: its share, and the precision at each k.

    Results are in percent, means over examples, for averaged weights and for each head in the breakdown. `details`
    holds the 95 % bootstrap interval over examples, `chance` (the values of equal weights and a random order), and the
    reasons why examples have no value.

    `attention` is that of the `encoder` (source pronoun to source), `cross` (target pronoun to source) or of the
    `decoder` (target pronoun to the target before it); in the published files nearly all marked words are on the target
    side. In the decoder `step` is the step that `writes` the pronoun, or the one that `reads` it. A whole context line
    is one context sentence, since its sentence borders are lost; a system without past context gets none.

    For every marked pronoun the weights of its tokens are averaged. The share is of all weight, special tokens
    included; for the precision words are ranked by the sum of their tokens' weights. The pronoun's own word is neither
    marked nor ranked. The value of an example is the mean over its pronouns.
    ValueError: a system that gives no attention weights, no example with a marked pronoun and a marked word in reach,
    an example with more tokens than the model has positions.
    """
    check_known(attention, ATTENTIONS, "attention", "expected one of")
    check_known(step, STEPS, "step", "expected one of")
    check_attention(system)
    if attention == "decoder" and getattr(system.model.config, "decoder_autoregression", None) == "ssru":
        raise ValueError(f"{system.name}: a recurrent decoder (ssru) has no self-attention; choose attention cross")
    ids, values, unused, heads = [], [], Counter(), ()
    for example, weights, queries, keys, length in forced_attention(system, examples, attention, step, batch_size):
        heads = tuple(f"layer={layer + 1} head={head + 1}" for layer, head in np.ndindex(weights.shape[:2]))
        pronouns = [number for number, word in enumerate(queries) if word.pronoun]
        agreements = []
        for number in pronouns:
            positions = list(queries[number].positions)
            seen = positions[-1] + 1 if attention == "decoder" else length
            words = [key for index, key in enumerate(keys) if attention == "cross" or index != number]
            words = [word for word in words if word.positions[-1] < seen]
            of_query = weights[:, :, positions].mean(axis=2)  # (layers, heads, keys)
            of_query = np.vstack([of_query.mean(axis=(0, 1)), of_query.reshape(-1, of_query.shape[-1])])
            agreements.append(attention_on_marked_words(of_query, words, seen, at))
        useful = [value for value in agreements if value is not None]
        if useful:
            ids.append(example.example_id)
            values.append(np.mean(useful, axis=0))
        else:
            unused["no marked word in reach" if pronouns else "no marked pronoun"] += 1
    if not values:
        raise ValueError(
            f"no example has a marked pronoun from which {attention} attention could go to a marked word: "
            f"{dict(unused)}; choose another attention, or give other examples"
        )
    signature = {
        "attention": attention,
        "step": "reads" if attention == "encoder" else step,
        "words": "letters" if system.tokenizer.is_fast else "between blanks",
        "context": "one sentence" if system.past_context else "none",
        "version": __version__,
    }
    table, results = np.array(values), []  # (examples, 1 + heads + chance, 1 + len(at))
    for column, metric in enumerate(["attention on marked words", *(f"precision@{k}" for k in at)]):
        value, *by_head, chance = (100 * table[:, :, column].mean(axis=0)).tolist()
        rows = [[example, 1] for example in table[:, 0, column].tolist()]
        details = {"chance": chance, "unused": dict(unused)} | document_details(metric, ids, rows, unit="example")
        result = Result(
            task="context use",
            dataset="scat",
            split=split,
            metric=metric,
            value=value,
            signature=Signature.of(signature),
            n=len(ids),
            breakdown={name: PartScore(head, len(ids)) for name, head in zip(heads, by_head)},
            details=details,
        )
        results.append(result)
    return results


def check_attention(system: ForcedDecoding) -> None:
    """ValueError unless the system joins context and sentence, and its model runs with eager attention."""
    if not isinstance(system, ForcedDecoding):
        raise ValueError(f"{system.name}: attention can be compared for encoder-decoder systems only")
    if registry.is_ours(system.model.config.model_type):
        check_joined(system.model)
    implementation = system.model.config._attn_implementation
    if implementation != "eager":
        raise ValueError(
            f"{system.name}: attn_implementation is {implementation!r}, which gives no weights; load the system with "
            "attn_implementation='eager', or call model.set_attn_implementation('eager')"
        )


def forced_attention(
    system: ForcedDecoding, examples: Sequence[ScatExample], attention: str, step: str, batch_size: int
) -> Iterator[tuple[ScatExample, np.ndarray, list[Word], list[Word], int]]:
    """Each example with forced references: weights (layers, heads, queries, keys), the words, the number of keys.

    Words are given by their positions as queries and as keys, which are counted without padding. The decoder reads at
    position t + 1 what it writes at position t.
    """
    rows = [_row(system, example) for example in examples]
    check_lengths(system.model, system.collate, [[row] for row in rows])
    for start in range(0, len(examples), batch_size):
        batch = system.collate(rows[start : start + batch_size])
        with evaluation_mode(system.model), torch.inference_mode():
            output = forward(system.model, on_device(system.model, batch), output_attentions=True)
        weights = torch.stack(getattr(output, ATTENTIONS[attention])).float().cpu().numpy()  # (layers, B, H, Q, K)
        for row, example in enumerate(examples[start : start + batch_size]):
            segments = {"source": batch["input_ids"][row][batch["attention_mask"][row] == 1].tolist()}
            segments["target"] = [token for token in batch["labels"][row].tolist() if token != -100]
            words = {}
            for side, segment in segments.items():
                texts = _texts(system, example, side)
                words[side] = segment_words(segment, texts, system.tokenizer, is_target=side == "target")
            read = [word._replace(positions=tuple(p + 1 for p in word.positions)) for word in words["target"]]
            queries = words["source"] if attention == "encoder" else read if step == "reads" else words["target"]
            keys = read if attention == "decoder" else words["source"]
            yield example, weights[:, row], queries, keys, len(segments["source"])


def segment_words(segment: Sequence[int], texts: Sequence[MarkedText], tokenizer, *, is_target: bool) -> list[Word]:
    """The words of texts whose tokens follow each other in a segment; the last occurrence of each text counts.

    A token belongs to the word of its first character. Words are runs of letters and digits, or of punctuation; with a
    tokenizer that gives no character offsets, runs of characters other than blanks. A word is marked if a part of it
    is. ValueError: a text whose tokens are not in the segment.
    """
    words, end = [], len(segment)
    for text in reversed(texts):
        ids = piece_ids(tokenizer, text.text, is_target=is_target)
        start = next((s for s in range(end - len(ids), -1, -1) if list(segment[s : s + len(ids)]) == ids), None)
        if start is None:
            raise ValueError(f"the tokens of {text.text!r} are not in the segment {list(segment)}")
        spans = word_spans(text.text, WORD if tokenizer.is_fast else UNBROKEN)
        firsts = list(enumerate(first_characters(tokenizer, text.text, is_target=is_target), start))
        of_text = []
        for left, right in spans:
            own = tuple(position for position, first in firsts if left <= first < right)
            marks = [any(begin < right and left < stop for begin, stop in of) for of in (text.rationale, text.pronouns)]
            of_text += [Word(own, *marks)] if own else []
        words[:0] = of_text
        end = start
    return words


def attention_on_marked_words(
    weights: np.ndarray, words: Sequence[Word], keys: int, at: Sequence[int]
) -> np.ndarray | None:
    """Attention of one query to marked words: weights (heads, at least `keys`) -> (heads + 1, 1 + len(at)).

    Columns: the share of the weight on the first `keys` tokens that falls on marked words, then for each k of `at` the
    precision at k: the share of marked words among the k words (all, if fewer) with the largest sums of weights; of
    equal ones the first counts. The last row is chance: equal weights (share), a random order (precision). None where
    no word is marked.
    """
    marked = np.array([word.marked for word in words], dtype=bool)
    if not marked.any():
        return None
    sums = np.stack([weights[:, list(word.positions)].sum(axis=1) for word in words], axis=1)  # (heads, words)
    columns = [sums[:, marked].sum(axis=1) / weights[:, :keys].sum(axis=1)]
    order = np.argsort(-sums, axis=1, kind="stable")
    columns += [marked[order[:, :k]].mean(axis=1) for k in at]
    tokens = sum(len(word.positions) for word in words if word.marked)
    chance = [tokens / keys] + [marked.mean()] * len(at)
    return np.vstack([np.stack(columns, axis=1), chance])


def _row(system: ForcedDecoding, example: ScatExample) -> dict:
    """The example in the form of training examples; the current sentence does not begin its document."""
    context, missing = bool(system.past_context), [[]] * system.future_context
    sides = {}
    for side in ("source", "target"):
        texts = [getattr(example, f"{side}_context")] * context + [getattr(example, side)]
        sides[side] = [piece_ids(system.tokenizer, text.text, is_target=side == "target") for text in texts] + missing
    position = {"doc_id": example.example_id, "index": 1, "current": int(context), "document_start": False}
    return position | sides


def _texts(system: ForcedDecoding, example: ScatExample, side: str) -> list[MarkedText]:
    """The texts of a side that the model reads."""
    context = system.past_context and (side == "source" or system.collate.context_sides == "both")
    return [getattr(example, f"{side}_context")] * bool(context) + [getattr(example, side)]


def read_scat(folder: str | Path, split: str = "train", source_lang: str = "en", target_lang: str = "fr") -> Scat:
    """Examples of the line-parallel files `highlighted.SPLIT.LANG` and `highlighted.SPLIT.context.LANG` of a folder.

    A line is skipped, and counted, if the tags of one of its four texts cannot be read, see `parse_marked_text`.
    DataError: a file that is missing or not UTF-8, files of different numbers of lines.
    """
    names = [f"highlighted.{split}.{part}{lang}" for lang in (source_lang, target_lang) for part in ("context.", "")]
    examples, reasons, number = [], Counter(), 0
    for number, row in parallel_lines([Path(folder) / name for name in names]):
        try:
            examples.append(ScatExample(f"scat-{split}:{number}", *map(parse_marked_text, row)))
        except ValueError as error:
            reasons[str(error)] += 1
    return Scat(tuple(examples), number, dict(reasons.most_common()))


def parse_marked_text(line: str) -> MarkedText:
    """A line with `<p>…</p>` around pronouns and `<hon>…<hoff>` (or `</hoff>`) around supporting words.

    The annotation added a blank before many `<hon>` and after many `<hoff>`. One of two blanks is removed, and a
    single one where none belongs (after an apostrophe, an opening bracket or a hyphen, before punctuation). Pronoun
    tags inside a word are ignored. The message of a ValueError is the reason why tags cannot be read: `tag cut in two`,
    `nested tags`, `tag not opened`, `tag not closed`, `mark without a word`, `mark that cuts a word` (`robb<hoff>ers`),
    or `unclear word border` (`t <hon>he`, `the <hon>men`: was the blank added inside a word, or between two?).
    """
    pieces = _TAG.split(line)  # text, tag, text, tag, …, text
    if any("<" in text or ">" in text for text in pieces[::2]):
        raise ValueError("tag cut in two")
    text, start, pronoun = pieces[0], None, None
    rationale: list[Span] = []
    pronouns: list[Span] = []
    for index in range(1, len(pieces), 2):
        tag, after = pieces[index], pieces[index + 1]
        following = after or next((later for later in pieces[index + 3 :: 2] if later), "")
        if tag == "<p>":
            _check(pronoun is None, "nested tags")
            pronoun = len(text)
        elif tag == "</p>":
            _check(pronoun is not None, "tag not opened")
            pronouns.append((pronoun, len(text)))
            pronoun = None
        elif tag == "<hon>":
            _check(start is None, "nested tags")
            text = text[: len(text) - _added(text.rstrip(), len(text) - len(text.rstrip()), following)]
            start = len(text)
        else:
            _check(start is not None, "tag not opened")
            inside = text[start:]
            _check(any(map(str.isalnum, inside)), "mark without a word")
            rationale.append((start + len(inside) - len(inside.lstrip()), len(text.rstrip())))
            start, blanks = None, len(following) - len(following.lstrip())
            if after:
                after = after[_added(text, blanks, following.lstrip()) :]
        text += after
    _check(start is None and pronoun is None, "tag not closed")
    whole = [
        (begin, end)
        for begin, end in pronouns
        if not (text[:begin][-1:].isalnum() or text[end:][:1].isalnum())  # inside a word
    ]
    lead = len(text) - len(text.lstrip())
    spans = [tuple((begin - lead, end - lead) for begin, end in marked) for marked in (rationale, whole)]
    return MarkedText(text.strip(), *spans)


def _check(holds: bool, fault: str) -> None:
    if not holds:
        raise ValueError(fault)


def _added(before: str, blanks: int, after: str) -> int:
    """How many of the blanks at a tag, between two texts, the annotation added: 0 or 1."""
    last, first = before[-1:], after[:1]
    if blanks > 1 or not last:
        return min(blanks, 1)
    if last.isalnum() and first.isalnum():
        raise ValueError("unclear word border" if blanks else "mark that cuts a word")
    return int(blanks == 1 and bool(_NO_BLANK_AFTER.search(before) or _NO_BLANK_BEFORE.match(after)))
