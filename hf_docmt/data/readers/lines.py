"""Plain lines to be translated: one sentence a line, each file one document."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from hf_docmt.data.documents import make_row
from hf_docmt.data.readers.evidence import Sample
from hf_docmt.data.readers.reader import Reader
from hf_docmt.files import DataError, display_path, file_stem, read_lines

Paths = str | Path | Sequence[str | Path]


class LinesReader(Reader):
    """One document a file; blank lines stay, as empty sentences, and so do blanks. The id is the file's name."""

    name = "lines"
    several_files = True
    plain = True

    def recognize_lines(self, sample: Sample) -> bool:
        return sample.argument == "path"

    def read(self, languages: list[str], path: Paths) -> Iterator[tuple[str, dict]]:
        for file in source_files(languages, path, self.name):
            sentences = [line for _, line in read_lines(file)]
            yield display_path(file), make_row(display_path(file), file_stem(file), sentences, None, languages)


def source_files(languages: list[str], path: Paths, format: str) -> list[str | Path]:
    """The files of a format that has no target side."""
    if len(languages) > 1:
        raise DataError(
            f"the format {format!r} has no target side, got target language {languages[1]!r}; leave it out, or use tsv "
            "or jsonl for parallel documents"
        )
    return [path] if isinstance(path, str | Path) else list(path)
