"""Splits running text into sentences and joins it again; line ends are kept in addition to the sentences.

sentencex splits the text of files. The pipeline in a model's folder does not need it and splits less often in doubt
(`hf_docmt.modeling.text_splitting`); both join sentences by the same rule.
"""

import re
from collections.abc import Callable, Iterable
from functools import partial
from itertools import accumulate, islice, pairwise

from hf_docmt.data.language_codes import primary_language
from hf_docmt.files import DataError
from hf_docmt.messages import install_command
from hf_docmt.modeling.text_splitting import FULL_WIDTH_ENDS, blank_behind, goes_on, sentence_ends

TEXT_LINES = "text_lines"  # column of documents that were running text: sentences on each line
# column of those whose text is HTML, or JSON in a fence: the text; `iterate_documents` drops it
HTML = "docmt_html"
PIECE = 8192  # characters that sentencex reads at once; its time grows with their square
JSON_FENCE = re.compile(r"(\s*```json\s*\n)(.*)(\n```\s*)", re.DOTALL)
START, END = re.compile(r"<([A-Za-z][A-Za-z0-9]*)(?:\s[^<>]*)?/?>"), re.compile(r"</([A-Za-z][A-Za-z0-9]*)\s*>")
MEANT = frozenset("br hr li p".split())  # elements whose end tags are optional
ELEMENTS = frozenset(
    "a abbr b bdi big blockquote cite code del dfn div em font h1 h2 h3 h4 h5 h6 i ins kbd label li mark ol p q s samp "
    "small span strike strong sub sup table td tr tt u ul var".split()
)


def sentence_splitter(lang: str) -> Callable[[str], Iterable[str]]:
    """The sentence splitter of a language (de, deu_Latn); DataError if sentencex is not installed.

    Languages whose abbreviations sentencex does not know are treated by general rules. Numbers of list items and
    abbreviations before a number stay with what follows, in any language; a sentence in brackets is one.
    """
    try:
        from sentencex import segment
    except ImportError as error:
        raise DataError(
            f"running text needs the sentence splitter sentencex: {install_command('text')}, or give sentences (the "
            "format 'lines' for one per line)"
        ) from error
    language = primary_language(lang)
    return lambda text: _corrected(text, _in_pieces(text, partial(segment, language)))


def _in_pieces(text: str, split: Callable[[str], Iterable[str]]) -> list[str]:
    """The sentences of a text: the last one of a piece is read again with the next, a longer one in parts."""
    sentences, part, start = [], "", 0  # `part` has no end yet
    while start < len(text):
        piece = text[start : start + PIECE]
        found = list(split(piece))
        is_last = start + PIECE >= len(text)
        if len(found) > 1 and not is_last and "".join(found) == piece:
            piece = piece.removesuffix(found.pop())
        found[:1] = [part + "".join(found[:1])]
        part = "" if is_last or len(found) > 1 or len(piece) < PIECE else found.pop()
        sentences += found
        start += len(piece)
    return sentences


def _corrected(text: str, sentences: list[str]) -> list[str]:
    """The sentences of a text as `sentencex` cuts it, or better ones where general rules know them."""
    if "".join(sentences) != text:
        return sentences
    ends = {end for end in sentence_ends(text) if text[end - 1] in ")]}）】*_"}
    for end, sentence in zip(accumulate(map(len, sentences)), sentences):
        stop = end - len(sentence) + len(sentence.rstrip())
        is_inside = stop == end < len(text) and text[end - 1] not in FULL_WIDTH_ENDS
        if not is_inside and not (text[stop - 1 : stop] == "." and goes_on(text, stop - 1)):
            ends.add(stop)
    places = [0, *sorted(ends - {0, len(text.rstrip())}), len(text)]
    return [text[start:end] for start, end in pairwise(places)]


def clean_sentences(parts: Iterable[str]) -> list[str]:
    """Sentences without the white space around them, each run of white space in them as one blank."""
    return [" ".join(part.split()) for part in parts if part.strip()]


def split_lines(text: str, split: Callable[[str], Iterable[str]]) -> tuple[list[str], list[int]]:
    """The sentences of a text, and their number on each of its lines; a blank text is one empty sentence.

    Every line is split separately, so that no sentence crosses a line end.
    """
    lines = [clean_sentences(split(line)) if line.strip() else [] for line in text.split("\n")]
    sentences = [sentence for line in lines for sentence in line]
    return (sentences, [len(line) for line in lines]) if sentences else ([""], [1])


def join_lines(sentences: list[str], text_lines: list[int]) -> str:
    """The text that `split_lines` split into these numbers of sentences per line; ValueError for another sum."""
    if sum(text_lines) != len(sentences):
        raise ValueError(f"{len(sentences)} sentences for a text of {sum(text_lines)}; omit repairs='none'")
    rest = iter(sentences)
    return "\n".join(join_sentences(islice(rest, count)) for count in text_lines)


def lines_of(text: str) -> list[str]:
    """The lines of a document, which are its sentences: blank ones stay, a line end at the end begins none."""
    return [line.strip() for line in text.removesuffix("\n").split("\n")]


def sides_of(texts: Iterable[str]) -> list[list[str]]:
    """The lines of a text and its translation; each text as one segment if the numbers of lines differ."""
    sides = [lines_of(text) for text in texts]
    return sides if len({*map(len, sides)}) == 1 else [["\n".join(side)] for side in sides]


def html_column(text: str) -> dict[str, str]:
    """The column `HTML` of a text, if it needs one."""
    return {HTML: text} if is_html(text) or JSON_FENCE.fullmatch(text) else {}


def is_html(text: str) -> bool:
    """Whether a text has elements of HTML, not only placeholders such as <name>."""
    if "<" not in text:
        return False
    started, ended = ({name.lower() for name in tag.findall(text)} for tag in (START, END))
    return bool(started & MEANT or started & ended & ELEMENTS)


def document_text(document: dict, result: dict) -> str:
    """The translation of running text, with the lines of the text; of other lengths than the text's, as one line."""
    if "text" in result:  # of HTML
        return result["text"]
    translation = result["translation"]
    is_one_to_one = len(translation) == len(result["source"])
    return join_lines(translation, document[TEXT_LINES] if is_one_to_one else [len(translation)])


def join_sentences(sentences: Iterable[str]) -> str:
    """Sentences as one line, with blanks between them, but none after full-width punctuation."""
    line = ""
    for sentence in filter(None, (" ".join(sentence.split()) for sentence in sentences)):
        line += (blank_behind(line) if line else "") + sentence
    return line
