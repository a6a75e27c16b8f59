"""Sets of documents in tags, one file per side: SGML of WMT, XML and `train.tags` of IWSLT (Cettolo et al. 2012)."""

import re
from collections.abc import Iterable, Iterator, Sequence
from html import unescape
from pathlib import Path

from hf_docmt.data.readers.reader import Evidence, Reader, Sample
from hf_docmt.data.readers.tagged_documents import (
    BARE_AMPERSAND,
    METADATA,
    SET_TAG,
    Event,
    TaggedDocument,
    matched_rows,
    sgm_events,
    tagged_documents,
    xml_events,
)
from hf_docmt.files import DataError, location_of, read_lines

Paths = str | Path | Sequence[str | Path]
TAG = re.compile(r"\s*<(/?)(doc|seg|" + "|".join(METADATA) + r")\b([^>]*)>(.*)", re.IGNORECASE)
TALK_LINE = re.compile(rb"\s*(<doc docid[^>\n]*>|<url>[^\n]*</url>)\s*(\n|$)", re.IGNORECASE)
ATTRIBUTE = re.compile(r"""(?<![\w-])([\w-]+)\s*=\s*["']?([^"'\s>]*)""")


class IwsltReader(Reader):
    """One talk a document; several source files need the same number of target files, in the same order.

    A file whose name ends in .xml has `<doc docid>` and `<seg id>`, and sides are matched by these ids. Another is
    `train.tags`: a line `<doc docid>`, or `<url>` without a `<doc>`, begins a talk; every line is a sentence, plain or
    in `<seg id>`; lines of `<url>`, `<title>` and similar tags are skipped. Entities are resolved, and blanks at the
    ends of a sentence are removed. The id of a document is its `<talkid>`, or its docid where it has none.
    """

    name = "iwslt"
    several_files = True
    first_line_mark = "a tag of a set of documents"

    def recognize(self, sample: Sample) -> Evidence:
        if sample.argument == "source" and sample.path is None:
            return Evidence.GUESS  # several files
        is_xml_set = sample.ending == ".xml" and SET_TAG.match(sample.head)
        return Evidence.FIRST_BYTES if is_xml_set or TALK_LINE.match(sample.head) else Evidence.NONE

    def read(self, languages: list[str], source: Paths, target: Paths | None = None) -> Iterator[tuple[str, dict]]:
        sources, targets = _files(source), _files(target)
        if target is not None and len(sources) != len(targets):
            raise DataError(f"{len(sources)} source files but {len(targets)} target files; give each source its target")
        for number, file in enumerate(sources):
            other = targets[number] if targets else None
            yield from matched_rows(languages, file, _talks(file), other, _talks(other) if other is not None else [])


class SgmReader(Reader):
    """`<srcset>` and `<refset>` with `<doc docid>`, `<p>` and `<seg id>`, as in the newstest sets of WMT up to 2020.

    Sides are matched by these ids. It is not XML: tag names are in any case, ampersands that begin no entity are text,
    paragraphs are ignored.
    """

    name = "sgm"
    first_line_mark = "a tag of a set of documents"

    def recognize(self, sample: Sample) -> Evidence:
        is_set = sample.ending != ".xml" and SET_TAG.match(sample.head)
        return Evidence.FIRST_BYTES if is_set else Evidence.NONE

    def read(
        self, languages: list[str], source: str | Path, target: str | Path | None = None
    ) -> Iterator[tuple[str, dict]]:
        theirs = tagged_documents(target, sgm_events(target)) if target is not None else []
        yield from matched_rows(languages, source, tagged_documents(source, sgm_events(source)), target, theirs)


def _files(paths: Paths | None) -> list[str | Path]:
    return [] if paths is None else [paths] if isinstance(paths, str | Path) else list(paths)


def _talks(path: str | Path) -> Iterable[TaggedDocument]:
    is_xml = str(path).removesuffix(".gz").endswith(".xml")
    return tagged_documents(path, xml_events(path) if is_xml else _train_tags_events(path))


def _train_tags_events(path: str | Path) -> Iterator[Event]:
    """Events of `train.tags`, in which each tag has a line of its own; its plain lines are `<seg>` by their number."""
    has_docs, is_open, number, sentences = False, False, 0, 0
    for number, line in read_lines(path):
        location, tag = location_of(path, number), TAG.match(line)
        closing, name, attributes, rest = (tag[1], tag[2].lower(), tag[3], tag[4].rstrip()) if tag else ("", "", "", "")
        fields = dict(ATTRIBUTE.findall(attributes))
        has_docs = has_docs or name == "doc"
        if name == "doc" or (name == "url" and not has_docs):
            if name == "url" and is_open:
                yield Event(number, "end", "doc", {})
            yield Event(number, "end" if closing else "start", "doc", fields)
            is_open, sentences = not closing, 0
        if name == "doc":
            continue
        if not is_open:
            if not line.strip():
                continue
            raise DataError(f"{location}: text outside a talk; begin every talk with <doc docid=...> or <url>")
        end = f"</{name}>"
        if closing or (name and not rest.lower().endswith(end)):
            raise DataError(f"{location}: a line <{name}>...{end} is needed, got {line.strip()[:60]!r}; repair it")
        text = unescape(BARE_AMPERSAND.sub("&amp;", rest[: -len(end)] if name else line))
        sentences += name in ("", "seg")
        name, fields = (name, fields) if name else ("seg", {"id": str(sentences)})
        yield from (
            Event(number, kind, value, fields) for kind, value in (("start", name), ("text", text), ("end", name))
        )
    if is_open and not has_docs:
        yield Event(number, "end", "doc", {})
