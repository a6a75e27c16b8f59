"""COMET and document-level COMET: what is scored, and the result from the scores (`comet_files` has the way there)."""

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass

from hf_docmt import __version__
from hf_docmt.evaluation.metrics.segments import check_aligned
from hf_docmt.evaluation.report import make_result
from hf_docmt.evaluation.resampling import document_details

MT_CONTEXTS = ("reference", "hypothesis")
LONG = ("refuse", "chunk")

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class CometInput:
    """What COMET is to score, {"src", "mt", "ref"} for every sentence, how it was made, and where context was cut."""

    items: tuple[dict[str, str], ...]
    ids: tuple[str, ...]
    lengths: tuple[int, ...]  # sentences of each document
    context: int
    signature: str
    shortened: int  # sentences with less context than the document has for them


def comet_input(
    sources: Sequence[Sequence[str]],
    hypotheses: Sequence[Sequence[str]],
    references: Sequence[Sequence[str]],
    *,
    doc_ids: Sequence[str] | None = None,
    context: int = 0,
    separator: str = "</s>",
    mt_context: str = "reference",
    limit: int = 510,
    long: str = "refuse",
    tokenizer=None,
) -> CometInput:
    """The items of all documents, each side with up to `context` sentences before the current one.

    Document-level COMET is that of Vernikos et al. (2022): sentences joined by `separator` between blanks, as many on
    each side; before a hypothesis stands the context of the `reference`, as there, or of the `hypothesis` itself.
    COMET drops what is beyond its encoder's reach without a word, so a side of more than `limit` subwords, special
    ones included, is refused, or with `long="chunk"` context is taken away on all sides, the farthest first, which is
    counted, logged and reported. Subwords are counted by a Hugging Face `tokenizer`, else estimated as 3 bytes of UTF-8
    each, upwards, and 2 special ones. ValueError: sides that do not line up, an unknown choice, a sentence that is too
    long even without context.
    """
    for name, value, allowed in (("mt_context", mt_context, MT_CONTEXTS), ("long", long, LONG)):
        if value not in allowed:
            raise ValueError(f"unknown {name} {value!r}: expected {' or '.join(allowed)}")
    if context < 0 or limit < 1:
        raise ValueError(f"context is {context} and limit {limit}: expected 0 or more sentences, 1 or more subwords")
    check_aligned(hypotheses, references, doc_ids)
    ids = [str(number) for number in range(1, len(references) + 1)] if doc_ids is None else list(doc_ids)
    _check_sources(sources, references, ids)
    items, shortened, counter = [], 0, _counter(tokenizer)
    for doc_id, *sides in zip(ids, sources, hypotheses, references):
        before = [sides[0], sides[2] if mt_context == "reference" else sides[1], sides[2]]
        for place in range(len(sides[0])):
            wanted = min(context, place)
            for size in range(wanted, -1, -1):
                item = _item(sides, before, place, size, f" {separator} ")
                count = max(map(counter, item.values()))
                if count <= limit:
                    break
                if long == "refuse" or size == 0:
                    raise ValueError(_too_long(doc_id, place, size, count, limit))
            shortened += size < wanted
            items.append(item)
    if shortened:
        _logger.warning("COMET: %d of %d sentences got less context, %d subwords", shortened, len(items), limit)
    counted = "bytes/3" if tokenizer is None else tokenizer.name_or_path
    signature = f"context:{context}|separator:{separator}|mt-context:{mt_context}|" if context else "context:0|"
    signature += f"limit:{limit}|counted:{counted}|long:{long}"
    return CometInput(tuple(items), tuple(ids), tuple(map(len, references)), context, signature, shortened)


def comet_result(
    prepared: CometInput,
    found: dict,
    *,
    dataset: str,
    split: str,
    strategy: str | None = None,
    beams: int | None = None,
    samples: int = 1000,
    seed: int = 1,
) -> dict:
    """The mean score as a report result, times 100: `COMET`, or `doc-COMET` with context."""
    name = "doc-COMET" if prepared.context else "COMET"
    rest, rows = iter(found["scores"]), []
    for length in prepared.lengths:
        rows.append([math.fsum(next(rest) for _ in range(length)), length])
    details = {"shortened": prepared.shortened, **document_details(name, prepared.ids, rows, samples, seed)}
    return make_result(
        task="translation",
        dataset=dataset,
        split=split,
        metric=name,
        value=100 * math.fsum(found["scores"]) / len(found["scores"]),
        signature=f"model:{found['model']}|scale:100|{prepared.signature}|comet:{found['comet']}|version:{__version__}",
        n=len(found["scores"]),
        strategy=strategy,
        beams=beams,
        details=details,
    )


def _check_sources(sources: Sequence[Sequence[str]], references: Sequence[Sequence[str]], ids: Sequence[str]) -> None:
    if len(sources) != len(references):
        raise ValueError(f"{len(sources)} source documents for {len(references)} references; give the same documents")
    for doc_id, source, reference in zip(ids, sources, references):
        if len(source) != len(reference):
            raise ValueError(
                f"document {doc_id!r}: {len(source)} source sentences for {len(reference)} reference sentences; give "
                "one for each"
            )


def _item(sides: Sequence, before: Sequence, place: int, size: int, joiner: str) -> dict[str, str]:
    texts = [joiner.join([*old[place - size : place], side[place]]) for side, old in zip(sides, before)]
    return dict(zip(("src", "mt", "ref"), texts))


def _counter(tokenizer):
    if tokenizer is None:
        return lambda text: 2 + -(-len(text.encode("utf-8")) // 3)
    return lambda text: len(tokenizer(text)["input_ids"])


def _too_long(doc_id: str, place: int, size: int, count: int, limit: int) -> str:
    remedy = "give less context, or long='chunk' to shorten it where it is too long" if size else "cut the sentence"
    return (
        f"document {doc_id!r}, sentence {place + 1}: {count} subwords with {size} sentences of context, COMET reads "
        f"{limit}; {remedy}"
    )
