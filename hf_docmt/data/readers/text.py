"""Raw running text to be translated, cut into sentences by sentencex; each file one document."""

from collections.abc import Iterator

from hf_docmt.data.documents import make_row
from hf_docmt.data.readers.lines import Paths, source_files
from hf_docmt.files import DataError, read_lines, shown, stem


def read_text(languages: list[str], path: Paths) -> Iterator[tuple[str, dict]]:
    """One row a file. Blank lines part paragraphs, other line ends are blanks, runs of white space become one blank.

    sentencex knows the abbreviations of many languages and treats others by general rules. DataError if it is not
    installed or a file has no text.
    """
    try:
        from sentencex import segment
    except ImportError as error:
        raise DataError(
            "raw text needs the sentence splitter sentencex: pip install 'hf-docmt[text]', or give one sentence a line "
            "with the format 'lines'"
        ) from error
    for file in source_files(languages, path, "text"):
        cut = (segment(languages[0], paragraph) for paragraph in _paragraphs(file))
        sentences = [" ".join(sentence.split()) for some in cut for sentence in some if sentence.strip()]
        if not sentences:
            raise DataError(f"{shown(file)}: document {stem(file)!r} is empty; there is white space only, give it text")
        yield shown(file), make_row(shown(file), stem(file), sentences, None, languages)


def _paragraphs(file) -> Iterator[str]:
    lines: list[str] = []
    for _, line in read_lines(file):
        if line.strip():
            lines.append(line.strip())
        elif lines:
            yield " ".join(lines)
            lines = []
    if lines:
        yield " ".join(lines)
