"""Plain lines to be translated: one sentence a line, each file one document."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from hf_docmt.data.documents import make_row
from hf_docmt.files import DataError, read_lines, shown, stem

Paths = str | Path | Sequence[str | Path]


def read_lines_files(languages: list[str], path: Paths) -> Iterator[tuple[str, dict]]:
    """One row a file; blank lines stay, as empty sentences, and so do blanks. The id is the file's name."""
    for file in source_files(languages, path, "lines"):
        yield shown(file), make_row(shown(file), stem(file), [line for _, line in read_lines(file)], None, languages)


def source_files(languages: list[str], path: Paths, format: str) -> list[str | Path]:
    """The files of a format that has no target side."""
    if len(languages) > 1:
        raise DataError(
            f"the format {format!r} has no target side, got target language {languages[1]!r}; leave it out, or use tsv "
            "or jsonl for parallel documents"
        )
    return [path] if isinstance(path, str | Path) else list(path)
