"""TED talks of the IWSLT evaluations, one file a side: XML test sets and `train.tags` (Cettolo et al. 2012)."""

import re
from collections.abc import Iterator, Sequence
from html import unescape
from pathlib import Path

from hf_docmt.data.readers.marked import METADATA, MarkedDocument, Side, marked_documents, marked_rows
from hf_docmt.data.readers.markup import BARE_AMPERSAND, xml_events
from hf_docmt.files import DataError, read_lines, shown

Paths = str | Path | Sequence[str | Path]
TAG = re.compile(r"\s*<(/?)(doc|seg|" + "|".join(METADATA) + r")\b([^>]*)>(.*)", re.IGNORECASE)
ATTRIBUTE = re.compile(r"""([\w-]+)\s*=\s*["']?([^"'\s>]*)""")


def read_iwslt(languages: list[str], source: Paths, target: Paths | None = None) -> Iterator[tuple[str, dict]]:
    """Rows, one talk a document; several source files go with as many target files, in the same order.

    A file whose name ends in .xml has `<doc docid>` and `<seg id>`, and sides are matched by these ids. Another is
    `train.tags`: a line `<doc docid>`, or `<url>` where there is no `<doc>`, begins a talk; every line is a sentence,
    plain or in `<seg id>`; lines of `<url>`, `<title>` and the like are none. Entities are resolved, and blanks at the
    ends of a sentence are no part of it. The id of a document is its `<talkid>`, or its docid where it has none.
    """
    sources, targets = _files(source), _files(target)
    if target is not None and len(sources) != len(targets):
        raise DataError(f"{len(sources)} source files but {len(targets)} target files; give each source its target")
    for number, file in enumerate(sources):
        other = targets[number] if targets else None
        yield from marked_rows(languages, file, _talks(file), other, _talks(other) if other is not None else [])


def _files(paths: Paths | None) -> list[str | Path]:
    return [] if paths is None else [paths] if isinstance(paths, str | Path) else list(paths)


def _talks(path: str | Path) -> list[MarkedDocument]:
    is_xml = str(path).removesuffix(".gz").endswith(".xml")
    return marked_documents(path, xml_events(path)) if is_xml else _tagged_talks(path)


def _tagged_talks(path: str | Path) -> list[MarkedDocument]:
    """The talks of `train.tags`, in which each tag has a line of its own."""
    talks: list[MarkedDocument] = []
    doc_line = None  # where the <doc> begins that is open
    has_docs = False
    for number, line in read_lines(path):
        place, tag = f"{shown(path)}, line {number}", TAG.match(line)
        closing, name, attributes, rest = (tag[1], tag[2].lower(), tag[3], tag[4].rstrip()) if tag else ("", "", "", "")
        if name == "doc":
            if bool(closing) != (doc_line is not None):
                raise DataError(f"{place}: </doc> and <doc> must take turns; begin and end each talk once")
            doc_line, has_docs = None if closing else number, True
        if (name == "doc" and not closing) or (name == "url" and not has_docs):
            talks.append(MarkedDocument(dict(ATTRIBUTE.findall(attributes)), [Side(path, number)]))
        if name == "doc":
            continue
        if not talks or (has_docs and doc_line is None):
            if not line.strip():
                continue
            raise DataError(f"{place}: text outside a talk; begin every talk with <doc docid=...> or <url>")
        end = f"</{name}>"
        if closing or (name and not rest.lower().endswith(end)):
            raise DataError(f"{place}: a line <{name}>...{end} is needed, got {line.strip()[:60]!r}; repair the line")
        text = unescape(BARE_AMPERSAND.sub("&amp;", rest[: -len(end)] if name else line)).strip()
        if name in METADATA:
            talks[-1].metadata[name] = text
            continue
        side = talks[-1].sides[0]
        seg = str(len(side.sentences) + 1)
        if name == "seg":
            seg = dict(ATTRIBUTE.findall(attributes)).get("id")
            if not seg:
                raise DataError(f"{place}: seg id is missing; every <seg> needs one")
        side.add(seg, number, text)
    if doc_line is not None:
        raise DataError(f"{shown(path)}, line {doc_line}: <doc> is never closed, the file is cut; fetch it again")
    if not talks:
        raise DataError(f"{shown(path)}: blank lines only; is it of another format?")
    return talks
