"""Termbases (TBX) and term lists (UTX) as documents: a sentence pair for each term and translation."""

from collections.abc import Iterator
from pathlib import Path

from hf_docmt.data.documents import make_row
from hf_docmt.data.readers.reader import Reader, numbered_id
from hf_docmt.files import DataError, display_path


class TermbaseReader(Reader):
    """One document of all terms with their translations, without forbidden ones (see `glossary_files`)."""

    name = "termbase"
    endings = (".tbx", ".utx")
    document_ids = False

    def read(self, languages: list[str], path: str | Path) -> Iterator[tuple[str, dict]]:
        from hf_docmt.data.glossary_files import read_entries  # which needs a module of this folder

        if len(languages) < 2:
            raise DataError(f"{display_path(path)}: terms have a translation; give the target language, too")
        entries = [entry for entry in read_entries(path, *languages) if not entry.is_forbidden]
        sources, targets = [entry.source for entry in entries], [entry.target for entry in entries]
        location = display_path(path)
        yield location, make_row(location, numbered_id(path, 1), sources, targets, languages)
