"""Lopes et al. (2020): French pronouns il, elle, ils and elles, as text files with context in files beside them.

`NAME.current.src` and `.trg` have two lines an item, the correct translation, then the contrastive one.
`NAME.cN.context.src` and `.trg` have N lines of context for each line of `current`, all of them empty where fewer than
N sentences go before: only such an item may begin its film (with all N, one more is taken to go before them). Items are
fixed blocks of two lines, so that 14,000 are read: to join neighbours with the same source makes 13,971 of them.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from hf_docmt.evaluation.suites.items import SuiteItem
from hf_docmt.evaluation.suites.pronouns import pronoun_of
from hf_docmt.evaluation.suites.texts import Sides, context_of, nearest, read_contexts, read_texts
from hf_docmt.files import DataError

PRONOUNS = ("il", "elle", "ils", "elles")
CURRENT = ".current.src"


def lopes_items(path: Path, context: int, context_file: int | None) -> Iterator[SuiteItem]:
    """`context_file`: N of the context files to read; by default `context`, else the next one that is there.

    That is the next larger, of which the nearest sentences are taken, or the largest, which has fewer than `context`.
    The group of an item are those with one context in the largest files, whichever are read; None without files.
    """
    path = _current(path)
    name = path.name.removesuffix(CURRENT)
    current = read_texts(path, path.with_name(f"{name}.current.trg"))
    blocks = current.equal_blocks(2)
    size = _context_size(path, name, context, context_file) if context else 0
    files = _context_files(path, name, size)
    contexts = read_contexts(*files, current, size) if size else [((), ())] * len(current.source)
    largest, groups = max(_sizes(path, name), default=0), {}
    whole = contexts
    if largest != size:
        whole = read_contexts(*_context_files(path, name, largest), current, largest)
    for number, block in enumerate(blocks, 1):
        before = context_of(block, contexts, files[0])
        _check_sides(before, block.place, files)
        source, target = nearest(before, context)
        item_id = f"{name}:{number}"
        shared = whole[block.line][0] or item_id  # what has no context has none in common
        yield SuiteItem(
            item_id=item_id,
            source=(*source, block.source),
            target_context=target,
            candidates=tuple(block.candidates),
            correct=0,
            phenomenon=pronoun_of(block.candidates[0], block.candidates[1:], PRONOUNS, block.place),
            distance=None,
            index=len(before[0]) + (len(before[0]) == size),
            group=groups.setdefault(shared, item_id) if largest else None,
            format="lopes",
            languages=("en", "fr"),
            place=block.place,
        )


def _current(path: Path) -> Path:
    """The file of the source lines, given it, its other side, or the folder."""
    if path.is_dir():
        found = sorted(path.glob(f"*{CURRENT}"))
        if len(found) != 1:
            names = ", ".join(file.name for file in found) or "none"
            raise DataError(f"{path}: expected one file *{CURRENT} in the folder, found {names}; give the file itself")
        return found[0]
    if path.name.endswith(".current.trg"):
        return path.with_name(path.name.removesuffix("trg") + "src")
    if not path.name.endswith(CURRENT):
        raise DataError(f"{path}: expected the folder of the suite or its file *{CURRENT}")
    return path


def _context_size(path: Path, name: str, context: int, asked: int | None) -> int:
    there = _sizes(path, name)
    if asked is not None and asked not in there or not there:
        wanted = f"{name}.c{asked or context}.context.src"
        names = ", ".join(f"c{size}" for size in there) or "no context files"
        raise DataError(f"{path}: {wanted} and .trg are needed beside it, found {names}; add them, or take context=0")
    return asked or next((size for size in there if size >= context), there[-1])


def _sizes(path: Path, name: str) -> list[int]:
    """N of the context files that are there."""
    pattern = re.compile(re.escape(name) + r"\.c([1-9]\d*)\.context\.src")
    matches = [pattern.fullmatch(file.name) for file in path.parent.iterdir()]
    return sorted(int(match[1]) for match in matches if match)


def _context_files(path: Path, name: str, size: int) -> list[Path]:
    return [path.with_name(f"{name}.c{size}.context.{side}") for side in ("src", "trg")]


def _check_sides(context: Sides, place: str, files: list[Path]) -> None:
    """A context that is empty on one side only was lost there."""
    for side, other, path in zip(context, reversed(context), files):
        if any(other) and not any(sentence.strip() for sentence in side):
            raise DataError(f"{place}: {path.name} has only empty lines as its context, the other side has text")
