"""Raw running text to be translated, cut into sentences by sentencex; each file one document."""

from collections.abc import Iterator
from pathlib import Path

from hf_docmt.data.documents import make_row
from hf_docmt.data.readers.lines import Paths, source_files
from hf_docmt.data.readers.reader import Reader
from hf_docmt.data.readers.running_text import clean_sentences, sentence_splitter
from hf_docmt.files import DataError, display_path, read_lines


class TextReader(Reader):
    """One document a file. Blank lines separate paragraphs, other line ends and runs of white space become one blank.

    sentencex knows the abbreviations of many languages and treats others by general rules. DataError if it is not
    installed or a file has no text. The format must be named, since every text is one of lines as well.
    """

    name = "text"
    several_files = True
    plain = True

    def read(self, languages: list[str], path: Paths) -> Iterator[tuple[str, dict]]:
        split = sentence_splitter(languages[0])
        for doc_id, file in source_files(languages, path, self.name):
            sentences = [one for paragraph in _paragraphs(file) for one in clean_sentences(split(paragraph))]
            location = display_path(file)
            if not sentences:
                raise DataError(f"{location}: document {doc_id!r} is empty; there is white space only, give it text")
            yield location, make_row(location, doc_id, sentences, None, languages)


def _paragraphs(file: str | Path) -> Iterator[str]:
    lines: list[str] = []
    for _, line in read_lines(file):
        if line.strip():
            lines.append(line.strip())
        elif lines:
            yield " ".join(lines)
            lines = []
    if lines:
        yield " ".join(lines)
