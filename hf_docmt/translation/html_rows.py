"""Rows whose texts or sentences are HTML: read without their tags, which the translation contains again.

The software texts of WMT's general task are JSON in a fence, of which the strings are translated.
"""

import re
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Mapping

from hf_docmt.data.readers.running_text import HTML, JSON_FENCE, TEXT_LINES, is_html
from hf_docmt.files import DataError
from hf_docmt.formats.document_file import MARKUP, DocumentFile, marked_translations, with_markup
from hf_docmt.formats.document_format import FormatOptions
from hf_docmt.formats.html import HtmlFormat
from hf_docmt.formats.json_strings import JsonStringsFormat
from hf_docmt.formats.segment_sentences import SegmentSentences
from hf_docmt.modeling.opaque_runs import COMMON, CarriedSentence
from hf_docmt.systems import System

LINE_END = re.compile(r"\n(?![^<>]*>)")  # of a text, unless inside a tag
BREAK = "<br\n/>"  # replaces it, so that no sentence crosses it
LAST_COMMA = re.compile(r'("(?:[^"\\]|\\.)*")|,(?=\s*[\]}])')  # strings, and commas that JSON does not allow
Languages = tuple[str, str | None]


def html_rows(located: Iterable[tuple[str, dict]], languages: Languages) -> Iterator[tuple[str, dict]]:
    """Locations and rows; those with HTML have sentences without tags, and what they were in the column `MARKUP`."""
    for location, row in located:
        text = row.pop(HTML, None)
        yield location, _sentence_row(row, languages) if text is None else _text_row(row, text, languages)


def translated_html(system: System, row: dict, result: dict, carried: Mapping[int, CarriedSentence]) -> dict:
    """The result of a row with what places its markup; of one with HTML with the tags in place, and its problems."""
    marked, markup = with_markup(system, row, result, carried), row.get(MARKUP, {})
    if "text" in markup:
        before, document, after = _document(row["doc_id"], markup["text"], markup["languages"])
        data, written = document.translated({row["doc_id"]: marked})
        text = before + data.decode("utf-8-sig").replace(BREAK, "\n") + after
        return result | {"text": text} | ({"problems": written.problems} if written.problems else {})
    if "sentences" not in markup:
        return marked
    source, translation = [*result["source"]], [*result["translation"]]
    read = list(marked_translations(marked))
    for number, html in markup["sentences"].items():
        source[number] = html
        format, own = _sentence(html, markup["languages"])
        pieces = own.translated(*zip(read[number]))
        translation[number] = format.write([pieces]).decode("utf-8-sig")
    result = result | {"source": source, "translation": translation}
    if "candidates" in result:  # in which tags have no place
        others = enumerate(result["candidates"])
        candidates = [[translation[n]] if n in markup["sentences"] else texts for n, texts in others]
        result["candidates"] = candidates
    return result


def _text_row(row: dict, text: str, languages: Languages) -> dict:
    try:
        _, document, _ = _document(row["doc_id"], text, languages)
    except DataError:  # of invalid JSON
        return row
    (own,) = (own for _, own in document.rows([languages[0]]))
    if not own["translation"]:
        return row
    lines = [len(own["translation"]), *[0] * text.count("\n")]  # of a translation that fails
    return row | own | {TEXT_LINES: lines, MARKUP: own[MARKUP] | {"text": text, "languages": languages}}


def _document(name: str, text: str, languages: Languages) -> tuple[str, DocumentFile, str]:
    """A text as a page, of which each line ends a sentence, or JSON in a fence as a file of strings; what is around."""
    options = FormatOptions(*languages)
    if fenced := JSON_FENCE.fullmatch(text):
        text = LAST_COMMA.sub(lambda match: match[1] or "", fenced[2])
        return fenced[1], DocumentFile(text.encode(), name, JsonStringsFormat(), options), fenced[3]
    data = BOM_UTF8 + LINE_END.sub(BREAK, text).encode()  # UTF-8, whatever it declares
    return "", DocumentFile(data, name, HtmlFormat(), options), ""


def _sentence_row(row: dict, languages: Languages) -> dict:
    """A row of sentences, of which those with tags are read without them."""
    sentences = row["translation"] if isinstance(row["translation"], list) else ()
    texts = [pair.get(languages[0]) if isinstance(pair, dict) else None for pair in sentences]
    marked = {n: text for n, text in enumerate(texts) if isinstance(text, str) and is_html(text)}
    read = {number: _sentence(text, languages)[1].sentences for number, text in marked.items()}
    inner = {number: own[0] for number, own in read.items() if len(own) == 1}
    if not inner:
        return row
    runs = [[number, *span] for number, sentence in inner.items() for span in sentence.runs]
    markup = {"file": row["doc_id"], "tagged": list(inner), "runs": runs, "languages": languages}
    markup["sentences"] = {number: marked[number] for number in inner}
    pairs = [{languages[0]: inner[n].text} if n in inner else pair for n, pair in enumerate(sentences)]
    return row | {"translation": pairs, MARKUP: markup}


def _sentence(text: str, languages: Languages) -> tuple[HtmlFormat, SegmentSentences]:
    """A sentence as a page of one, cut nowhere; without a sentence where tags cut it."""
    format = HtmlFormat()
    segments = format.parse(BOM_UTF8 + text.encode("utf-8", "replace"), FormatOptions(*languages))
    pieces = segments[0].pieces if len(segments) == 1 else []
    return format, SegmentSentences(pieces, lambda text: [text], [COMMON])
