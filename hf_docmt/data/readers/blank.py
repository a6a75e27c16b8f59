"""Two line-parallel files in which one blank line stands between documents."""

from collections.abc import Iterator
from pathlib import Path

from hf_docmt.data.readers.pairs import Document, paired_rows
from hf_docmt.files import DataError, read_lines, shown


def read_blank(
    languages: list[str], source: str | Path, target: str | Path | None = None
) -> Iterator[tuple[str, dict]]:
    """Rows; the format cannot hold empty sentences. Blanks inside and after a sentence stay."""
    theirs = _documents(target) if target is not None else []
    yield from paired_rows(languages, source, _documents(source), target, theirs)


def _documents(path: str | Path) -> list[Document]:
    documents: list[Document] = [(1, [])]
    for number, line in read_lines(path):
        if line.strip():
            documents[-1][1].append(line)
        elif not documents[-1][1]:
            raise DataError(
                f"{shown(path)}, line {number}: document {len(documents)} is empty (a blank line at the start or after "
                "another); put one blank line between documents, and use tsv or jsonl for empty sentences"
            )
        else:
            documents.append((number + 1, []))
    return documents if documents[-1][1] else documents[:-1]  # one blank line may end the file
