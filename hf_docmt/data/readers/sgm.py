"""Source and reference sets in SGML, one file a side, as in the newstest sets of WMT up to 2020."""

from collections.abc import Iterator
from pathlib import Path

from hf_docmt.data.readers.reader import Evidence, Reader, Sample
from hf_docmt.data.readers.tag_events import sgm_events
from hf_docmt.data.readers.tagged_documents import SET_TAG, matched_rows, tagged_documents


class SgmReader(Reader):
    """`<srcset>` and `<refset>` with `<doc docid>`, `<p>` and `<seg id>`; sides are matched by these ids.

    It is no XML: names of tags in any case, ampersands that begin no entity are text, paragraphs are left out.
    """

    name = "sgm"
    first_line_mark = "a tag of a set of documents"

    def recognize(self, sample: Sample) -> Evidence:
        found = sample.ending != ".xml" and SET_TAG.match(sample.head)
        return Evidence.FIRST_BYTES if found else Evidence.NONE

    def read(
        self, languages: list[str], source: str | Path, target: str | Path | None = None
    ) -> Iterator[tuple[str, dict]]:
        theirs = tagged_documents(target, sgm_events(target)) if target is not None else []
        yield from matched_rows(languages, source, tagged_documents(source, sgm_events(source)), target, theirs)
