"""Contrastive suites: items with one right and some wrong translations, from the published file formats."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from hf_docmt.data.documents import DataError, sentences
from hf_docmt.data.readers import read_documents
from hf_docmt.data.readers.files import parse_json, read_lines, stem

FORMATS = ("contrapro", "voita")


@dataclass(frozen=True)
class SuiteItem:
    """One choice between translations of the last sentence of `source`; the same context stands before each of them."""

    item_id: str
    source: tuple[str, ...]  # context, oldest first, then the current sentence
    target_context: tuple[str, ...]  # len(source) - 1 sentences
    candidates: tuple[str, ...]  # translations of the current sentence
    correct: int  # which candidate is right
    phenomenon: str
    distance: int | None  # sentences back to what decides; 0 = within the current one
    labels: dict = field(default_factory=dict)  # further properties that accuracy is broken down by
    index: int | None = None  # place of the current sentence in its document, from 0; None: `source` is all of it


def read_suite(
    path: str | Path, format: str = "auto", *, documents: str | Path | None = None, context: int = 3
) -> list[SuiteItem]:
    """Items of a suite in file order, each with at most `context` sentences before the current one.

    `contrapro` (Müller et al. 2018): JSON with `segment id` counted from 1; the context is taken from `documents`, JSON
    lines with the source language first in every sentence pair, by default `documents.jsonl` beside the suite. `voita`
    (Voita et al. 2019): JSON with sentences joined by `_eos`. `auto` tells them apart by their keys. DataError (a
    ValueError) names file and item.
    """
    if format not in ("auto", *FORMATS):
        raise ValueError(f"unknown suite format {format!r}: expected auto, {' or '.join(FORMATS)}")
    if context < 0:
        raise ValueError(f"context is {context}, expected the number of sentences before the current one, 0 or more")
    text = "\n".join(line for _, line in read_lines(path))
    entries = parse_json(text, path)
    if not isinstance(entries, list) or not entries:
        raise DataError(f"{path}: a suite is a JSON list of at least one item, got {type(entries).__name__}")
    for number, entry in enumerate(entries, 1):
        if not isinstance(entry, dict):
            raise DataError(f"{path}, item {number}: expected an object, got {type(entry).__name__}")
    if format == "auto":
        format = _format(entries[0], path)
    if format == "voita":
        return list(_voita_items(entries, path, context))
    return list(_contrapro_items(entries, path, Path(path).with_name("documents.jsonl"), documents, context))


def _format(entry: dict, path: str | Path) -> str:
    for name, key in (("contrapro", "src segment"), ("voita", "dst")):
        if key in entry:
            return name
    raise DataError(f"{path}: neither ContraPro ('src segment') nor Voita ('dst') items, got keys {sorted(entry)}")


def _contrapro_items(
    entries: list[dict], path: str | Path, beside: Path, documents: str | Path | None, context: int
) -> Iterator[SuiteItem]:
    texts = _Documents(beside if documents is None else Path(documents), path) if context else None
    counts: set[int] = set()
    for number, entry in enumerate(entries, 1):
        place = f"{path}, item {number}"
        doc_id, source = _get(entry, "document id", str, place), _get(entry, "src segment", str, place)
        segment = _get(entry, "segment id", int, place)
        errors = _get(entry, "errors", list, place)
        wrong = [_get(error, "contrastive", str, f"{place}, error {i}") for i, error in enumerate(errors, 1)]
        counts.add(len(wrong))
        if not wrong or len(counts) > 1:
            raise DataError(
                f"{place}: {len(wrong)} contrastive translations, expected "
                f"{'at least one' if not wrong else f'{min(counts - {len(wrong)})} as in the items before'}; "
                "the file seems to be cut or altered"
            )
        before = texts.before(doc_id, segment, source, context, place) if texts else ((), ())
        pronouns = [entry.get("src pronoun"), entry.get("ref pronoun")]
        inside = _get(entry, "intrasegmental", bool, place, optional=True)
        yield SuiteItem(
            item_id=f"{stem(path)}:{number}",
            source=(*before[0], source),
            target_context=before[1],
            candidates=(_get(entry, "ref segment", str, place), *wrong),
            correct=0,
            phenomenon=":".join(pronouns).lower() if all(isinstance(name, str) for name in pronouns) else stem(path),
            distance=_get(entry, "ante distance", int, place, optional=True),
            labels={} if inside is None else {"intrasegmental": "yes" if inside else "no"},
            index=segment - 1,
        )


def _voita_items(entries: list[dict], path: str | Path, context: int) -> Iterator[SuiteItem]:
    phenomenon = re.sub(r"[_-](dev|valid|validation|test|train)$", "", stem(path))
    for number, entry in enumerate(entries, 1):
        place = f"{path}, item {number}"
        source = _split_eos(_get(entry, "src", str, place))
        candidates = _get(entry, "dst", list, place)
        correct = _get(entry, "true_ind", int, place)
        if len(candidates) < 2 or not 0 <= correct < len(candidates):
            raise DataError(
                f"{place}: true_ind is {correct} with {len(candidates)} candidates in 'dst'; expected two or more "
                "candidates and the place, from 0, of the right one"
            )
        for which, candidate in enumerate(candidates):
            if not isinstance(candidate, str):
                raise DataError(f"{place}: candidate {which} is {candidate!r}, expected text")
        targets = [_split_eos(candidate) for candidate in candidates]
        for which, target in enumerate(targets):
            if len(target) != len(source):
                raise DataError(
                    f"{place}: candidate {which} has {len(target)} sentences, the source has {len(source)}; "
                    "both need the same number, joined by ' _eos '"
                )
            if target[:-1] != targets[0][:-1]:
                raise DataError(f"{place}: candidate {which} has another context; only the last sentence may differ")
        start = max(0, len(source) - 1 - context)
        yield SuiteItem(
            item_id=f"{stem(path)}:{number}",
            source=source[start:],
            target_context=targets[0][start:-1],
            candidates=tuple(target[-1] for target in targets),
            correct=correct,
            phenomenon=phenomenon,
            distance=_get(entry, "ctx_dist", int, place, optional=True),
            index=len(source) - 1,
        )


class _Documents:
    """The documents that the context of a ContraPro suite is taken from."""

    def __init__(self, path: Path, suite: str | Path):
        if not path.is_file():
            raise DataError(
                f"{suite}: its context is needed, but {path} is not there; give the documents (JSON lines) that the "
                "suite was made from, or context=0"
            )
        self.path = path
        self.languages = _languages(path)
        source_lang, target_lang = self.languages
        rows = read_documents("jsonl", source_lang=source_lang, target_lang=target_lang, path=path)
        self.sides = {row["doc_id"]: tuple(sentences(row, lang) for lang in self.languages) for row in rows}

    def before(self, doc_id: str, segment: int, current: str, context: int, place: str) -> tuple[tuple, tuple]:
        """(source, target) sentences before a segment (from 1), which must hold the text `current`."""
        found = self.sides.get(doc_id) or self.sides.get(doc_id.removesuffix(f".{self.languages[1]}"))
        if found is None:
            raise DataError(f"{place}: document {doc_id!r} is not in {self.path}; give the suite's own documents")
        source, target = found
        if not 1 <= segment <= len(source):
            raise DataError(
                f"{place}: no segment {segment} in document {doc_id!r}, which has 1 to {len(source)} in {self.path}"
            )
        if _letters(source[segment - 1]) != _letters(current):
            raise DataError(
                f"{place}: 'src segment' is {current!r}, but segment {segment} of document {doc_id!r} is "
                f"{source[segment - 1]!r} in {self.path}; give the suite's own documents, source language first"
            )
        start = max(0, segment - 1 - context)
        return tuple(source[start : segment - 1]), tuple(target[start : segment - 1])


def _languages(path: Path) -> tuple[str, str]:
    """Source and target language of the first document: those of its first pair, in the order written."""
    number, line = next(read_lines(path))
    row = parse_json(line, path, number)
    pairs = row.get("translation") if isinstance(row, dict) else None
    if isinstance(pairs, list) and pairs and isinstance(pairs[0], dict) and len(pairs[0]) == 2:
        source_lang, target_lang = pairs[0]
        return source_lang, target_lang
    raise DataError(f"{path}, line {number}: a suite's documents need 'translation', a list of pairs in two languages")


def _get(entry: object, key: str, kind: type, place: str, optional: bool = False):
    """The value of a key, of the right type; None where it is absent or null and may be."""
    value = entry.get(key) if isinstance(entry, dict) else None
    if value is None and optional:
        return None
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        got = "it is missing" if value is None else f"got {value!r}"
        raise DataError(f"{place}: {key!r} must be of type {kind.__name__}, {got}")
    return value


def _split_eos(text: str) -> tuple[str, ...]:
    return tuple(sentence.strip() for sentence in text.split("_eos"))


def _letters(text: str) -> str:
    """What stays of a text when case, spaces and punctuation are left aside."""
    return "".join(filter(str.isalnum, text.casefold()))
