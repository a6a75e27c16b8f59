"""Text to be translated, each file one document: plain lines, one per sentence, or running text."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, islice, pairwise
from pathlib import Path
from textwrap import TextWrapper
from typing import Any

from hf_docmt.data.documents import make_row, plain_lines
from hf_docmt.data.readers.reader import Reader, Sample
from hf_docmt.data.readers.running_text import clean_sentences, join_sentences, sentence_splitter
from hf_docmt.files import DataError, data_name, display_path, file_stem, read_lines
from hf_docmt.modeling.text_splitting import sentence_ends

TEXT_LAYOUT = "text_layout"  # column of a text: its lines around the sentences
Paths = str | Path | Sequence[str | Path]


class LinesReader(Reader):
    """Blank lines stay, as empty sentences, and so do blanks. See `source_files`."""

    name = "lines"
    output_format = "lines"
    several_files = True

    def recognize_lines(self, sample: Sample) -> bool:
        return sample.argument == "path"

    def read(self, languages: list[str], path: Paths) -> Iterator[tuple[str, dict]]:
        for doc_id, file in source_files(languages, path, self.name):
            sentences = [line for _, line in read_lines(file)]
            yield display_path(file), make_row(display_path(file), doc_id, sentences, None, languages)

    def render(self, document: dict, result: dict) -> str:
        return plain_lines(result)


class TextReader(Reader):
    """Sentences may continue in the next line; runs of white space become one blank (`split_blocks`, `source_files`).

    sentencex splits each block into sentences; the column `text_layout` has the layout around them: paragraphs,
    line ends, items of lists. DataError if sentencex is not installed. The format must be named, since any text could
    also be one sentence per line.
    """

    name = "text"
    output_format = "text"
    several_files = True

    def read(self, languages: list[str], path: Paths) -> Iterator[tuple[str, dict]]:
        split = sentence_splitter(languages[0])
        for doc_id, file in source_files(languages, path, self.name):
            location = display_path(file)
            sentences, blocks = split_blocks((line for _, line in read_lines(file)), split)
            yield location, make_row(location, doc_id, sentences, None, languages, **{TEXT_LAYOUT: blocks})

    def render(self, document: dict, result: dict) -> str:
        """The text file again with translated sentences; where there are more or fewer, a line for each."""
        if len(result["translation"]) != len(document["translation"]):
            return plain_lines(result)
        return join_blocks(result["translation"], document[TEXT_LAYOUT])


def source_files(languages: list[str], path: Paths, format: str) -> list[tuple[str, str | Path]]:
    """The files of a format that has no target side, each with the id of its document.

    Ids are names without folder and endings; where two are the same, without the last ending, or that with the folder.
    Files of one folder that differ in the last ending alone have the same: they may be sides of one document.
    """
    if len(languages) > 1:
        raise DataError(
            f"the format {format!r} has no target side, but target language {languages[1]!r} was requested: give "
            "parallel documents (tsv, jsonl), or omit the language"
        )
    files = [path] if isinstance(path, str | Path) else list(path)
    for name in (file_stem, data_name, lambda file: display_path(Path(file).with_name(data_name(file)))):
        ids = [name(file) for file in files]
        if len(set(ids)) == len(ids):
            return list(zip(ids, files))
    return [(file_stem(file), file) for file in files]


BULLET = re.compile(r"[-–—*•‣◦·]\s")
LIST_ITEM = re.compile(r"(?:[-–—*•‣◦·]|\(?(?:\d{1,3}|[A-Za-z])\)|\d{1,3}\.)\s+(?=\S)")
LINE_END = re.compile(r"[.!?…:;。！？：；؟।][\"'”’»)\]}」』]*$")  # after which a line may end on purpose
WRAPPED = 40  # characters that lines have at least which are filled up to a width
TEXT_SHARE = 0.1  # of lines: if more hold several sentences, lines are not sentences

Block = dict[str, Any]  # of lines that go together: prefix, indent, number of sentences, width (0: one line)


def split_blocks(lines: Iterable[str], split: Callable[[str], Iterable[str]]) -> tuple[list[str], list[Block]]:
    """The sentences of the lines of a text, and its blocks in their order; a blank line is a block without sentences.

    A line goes on in the next one, as in text that is wrapped at a width, unless that one is blank or begins an item of
    a list, or this one ends as a sentence does. A number or letter (9. November) begins an item where the line before
    ends a sentence, ends in a colon or belongs to an item. Where the lines of a paragraph are filled, each as far as
    the next word lets it, sentences end inside lines and at their ends by chance.
    """
    sentences: list[str] = []
    blocks: list[Block] = []
    for block in _blocks([line.rstrip() for line in lines], split):
        first = block[0].lstrip()
        marker = LIST_ITEM.match(first)
        text = first[marker.end() :] if marker else first
        indents = [line[: len(line) - len(line.lstrip())] for line in block]
        own = clean_sentences(split(" ".join([text, *(line.strip() for line in block[1:])]))) if text else []
        prefix = indents[0] + (marker[0] if marker else "")
        width = max(map(len, block)) if len(block) > 1 else 0
        blocks.append({"prefix": prefix, "indent": indents[-1], "sentences": len(own), "width": width})
        sentences += own
    return sentences, blocks


def join_blocks(sentences: Iterable[str], blocks: Iterable[Block]) -> str:
    """The text with these sentences in the places of those that `split_blocks` gave; every line has its end."""
    rest = iter(sentences)
    lines: list[str] = []
    for block in blocks:
        line = block["prefix"] + join_sentences(islice(rest, block["sentences"]))
        if block["width"]:
            wrapper = TextWrapper(block["width"], break_long_words=False, break_on_hyphens=False)
            wrapper.expand_tabs = wrapper.replace_whitespace = False
            wrapper.subsequent_indent = block["indent"]
            lines += wrapper.wrap(line) or [""]
        else:
            lines.append(line.rstrip())
    return "".join(f"{line}\n" for line in lines)


def share_of_several(lines: Iterable[str]) -> float:
    """The share of the lines with text in which a sentence ends before the line does, as far as punctuation tells."""
    shown = [line for line in lines if line.strip()]
    return sum(any(sentence_ends(line.strip())) for line in shown) / max(len(shown), 1)


def is_wrapped(lines: list[str]) -> bool:
    """Whether lines hold several sentences, and a long one goes on in the next, with a small letter."""
    return share_of_several(lines) >= TEXT_SHARE and any(
        len(line.rstrip()) >= WRAPPED and not LINE_END.search(line.rstrip()) and following.lstrip()[:1].islower()
        for line, following in pairwise(lines)
    )


def _blocks(lines: list[str], split: Callable[[str], Iterable[str]]) -> Iterator[list[str]]:
    for is_blank, group in groupby(lines, key=lambda line: not line.strip()):
        some = list(group)
        yield from [[""]] * len(some) if is_blank else _paragraph_blocks(some, split)


def _paragraph_blocks(lines: list[str], split: Callable[[str], Iterable[str]]) -> Iterator[list[str]]:
    """The lines between two blank ones, those together that go on."""
    width = max(map(len, lines), default=0)
    is_filled = width >= WRAPPED and all(
        len(line) + 1 + len(following.split()[0]) > width for line, following in pairwise(lines)
    )
    block = lines[:1]
    for line, following in pairwise(lines):
        ends, text = _ends(line, following, split), following.lstrip()
        in_list = ends or LIST_ITEM.match(block[0].lstrip()) or line.endswith(":")
        is_item = LIST_ITEM.match(text) and (in_list or BULLET.match(text) and not is_filled)
        if is_item or ends and not is_filled:
            yield block
            block = []
        block.append(following)
    if block:
        yield block


def _ends(line: str, following: str, split: Callable[[str], Iterable[str]]) -> bool:
    """Whether a line ends as a sentence does, and not in an abbreviation before the following one."""
    if not LINE_END.search(line):
        return False
    last = line.split()[-1]
    first = next(iter(clean_sentences(split(f"{last} {following}"))), "")
    return not last.endswith(".") or len(first) <= len(last)
