"""ContraPro (Müller et al. 2018): German pronouns, as JSON that points into documents, or as the text made from it."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from hf_docmt.evaluation.suites.contrapro_documents import Surroundings
from hf_docmt.evaluation.suites.items import SuiteItem, field_of, same_text
from hf_docmt.evaluation.suites.pronouns import pronoun_of
from hf_docmt.evaluation.suites.texts import Block, context_of, nearest, read_contexts, read_texts
from hf_docmt.files import DataError, stem

LINES = 3  # of an item in the text files: the reference and two errors
PRONOUNS = ("er", "sie", "es")
LANGUAGES = ("en", "de")
TEXT = re.compile(r"(.+)\.text\.(en|de)")


def contrapro_items(
    entries: list[dict],
    path: str | Path,
    around: Callable[[str, int, str, str], Surroundings],
    languages: tuple[str | None, str | None],
) -> Iterator[SuiteItem]:
    """`around` gives the sentences before and after (document id, segment id, source text, place for messages)."""
    counts: set[int] = set()
    for number, entry in enumerate(entries, 1):
        place = f"{path}, item {number}"
        doc_id, source = field_of(entry, "document id", str, place), field_of(entry, "src segment", str, place)
        segment = field_of(entry, "segment id", int, place)
        errors = field_of(entry, "errors", list, place)
        wrong = [field_of(error, "contrastive", str, f"{place}, error {i}") for i, error in enumerate(errors, 1)]
        counts.add(len(wrong))
        if not wrong or len(counts) > 1:
            raise DataError(
                f"{place}: {len(wrong)} contrastive translations, expected "
                f"{'at least one' if not wrong else f'{min(counts - {len(wrong)})} as in the items before'}; "
                "the file seems to be cut or altered"
            )
        found = around(doc_id, segment, source, place)
        pronouns = [entry.get("src pronoun"), entry.get("ref pronoun")]
        inside = field_of(entry, "intrasegmental", bool, place, optional=True)
        yield SuiteItem(
            item_id=f"{stem(path)}:{number}",
            source=(*found.source, source),
            target_context=found.target,
            candidates=(field_of(entry, "ref segment", str, place), *wrong),
            correct=0,
            phenomenon=":".join(pronouns).lower() if all(isinstance(name, str) for name in pronouns) else stem(path),
            distance=field_of(entry, "ante distance", int, place, optional=True),
            labels={} if inside is None else {"intrasegmental": "yes" if inside else "no"},
            index=segment - 1,
            source_after=found.source_after,
            target_after=found.target_after,
            group=doc_id,
            format="contrapro",
            languages=(languages[0], languages[1] or _ending(doc_id)),
            place=place,
        )


def contrapro_text_items(path: Path, context: int, records: list[SuiteItem] | None) -> Iterator[SuiteItem]:
    """Items of `NAME.text.en` and `.de`, parallel files with the reference and its two errors as the lines of an item.

    The context is in `NAME.context.en` and `.de`, as many lines for each line of text; empty lines stand for sentences
    that were not there. The pronoun is read from the translations, all else about an item from `records`, those of the
    JSON, where they are given.
    """
    name = TEXT.fullmatch(path.name)[1]
    texts = [path.with_name(f"{name}.text.{language}") for language in LANGUAGES]
    current = read_texts(*texts)
    blocks = current.equal_blocks(LINES) if records is None else current.blocks([len(r.candidates) for r in records])
    files = [path.with_name(f"{name}.context.{language}") for language in LANGUAGES]
    contexts = read_contexts(*files, current) if context else [((), ())] * len(current.source)
    for number, block in enumerate(blocks, 1):
        whole = context_of(block, contexts, files[0])
        source, target = nearest(whole, context)
        record = {
            "item_id": f"{name}:{number}",
            "source": (*source, block.source),
            "target_context": target,
            "candidates": tuple(block.candidates),
            "correct": 0,
            "format": "contrapro",
            "languages": LANGUAGES,
            "place": block.place,
        }
        yield SuiteItem(**record, **_told(block, len(whole[0]), records[number - 1] if records else None))


def _told(block: Block, before: int, record: SuiteItem | None) -> dict:
    """What is known about an item besides its texts."""
    if record is None:
        pronoun = pronoun_of(block.candidates[0], block.candidates[1:], PRONOUNS, block.place)
        return {"phenomenon": f"it:{pronoun}", "distance": None, "index": before}
    for text, other in zip((block.source, *block.candidates), (record.source[-1], *record.candidates)):
        if not same_text(text, other):
            raise DataError(f"{block.place}: {text!r} is not {other!r}, {record.place}; the files are not of one suite")
    return {name: getattr(record, name) for name in ("phenomenon", "distance", "labels", "index", "group")}


def _ending(doc_id: str) -> str | None:
    """The language that ends a document id such as `1999_1_2.de`."""
    found = re.search(r"\.([a-z]{2})$", doc_id)
    return found[1] if found else None
