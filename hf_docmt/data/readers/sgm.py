"""Source and reference sets in SGML, one file a side, as in the newstest sets of WMT up to 2020."""

from collections.abc import Iterator
from pathlib import Path

from hf_docmt.data.readers.marked import marked_documents, marked_rows
from hf_docmt.data.readers.markup import sgm_events


def read_sgm(languages: list[str], source: str | Path, target: str | Path | None = None) -> Iterator[tuple[str, dict]]:
    """Rows of `<srcset>` and `<refset>` with `<doc docid>`, `<p>` and `<seg id>`; sides are matched by these ids.

    It is no XML: names of tags in any case, ampersands that begin no entity are text, paragraphs are left out.
    """
    theirs = marked_documents(target, sgm_events(target)) if target is not None else []
    yield from marked_rows(languages, source, marked_documents(source, sgm_events(source)), target, theirs)
