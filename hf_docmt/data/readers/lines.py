"""Text to be translated, each file one document: plain lines, one a sentence, or running text."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from hf_docmt.data.documents import make_row, plain_lines
from hf_docmt.data.readers.reader import Reader, Sample
from hf_docmt.data.readers.running_text import sentence_splitter
from hf_docmt.data.readers.text_layout import join_blocks, split_blocks
from hf_docmt.files import DataError, data_name, display_path, file_stem, read_lines

TEXT_LAYOUT = "text_layout"  # column of a text: its lines around the sentences
Paths = str | Path | Sequence[str | Path]


class LinesReader(Reader):
    """Blank lines stay, as empty sentences, and so do blanks. See `source_files`."""

    name = "lines"
    output_format = "lines"
    several_files = True

    def recognize_lines(self, sample: Sample) -> bool:
        return sample.argument == "path"

    def read(self, languages: list[str], path: Paths) -> Iterator[tuple[str, dict]]:
        for doc_id, file in source_files(languages, path, self.name):
            sentences = [line for _, line in read_lines(file)]
            yield display_path(file), make_row(display_path(file), doc_id, sentences, None, languages)

    def render(self, document: dict, result: dict) -> str:
        return plain_lines(result)


class TextReader(Reader):
    """Lines go on in the next one, and runs of white space become one blank, see `split_blocks` and `source_files`.

    sentencex cuts what goes together into sentences; the column `text_layout` has what stands around them: paragraphs,
    line ends, items of lists. DataError if sentencex is not installed. The format must be named, since every text is
    one of lines as well.
    """

    name = "text"
    output_format = "text"
    several_files = True

    def read(self, languages: list[str], path: Paths) -> Iterator[tuple[str, dict]]:
        split = sentence_splitter(languages[0])
        for doc_id, file in source_files(languages, path, self.name):
            location = display_path(file)
            sentences, blocks = split_blocks((line for _, line in read_lines(file)), split)
            yield location, make_row(location, doc_id, sentences, None, languages, **{TEXT_LAYOUT: blocks})

    def render(self, document: dict, result: dict) -> str:
        """The text file again with translated sentences; where there are more or fewer, a line for each."""
        if len(result["translation"]) != len(document["translation"]):
            return plain_lines(result)
        return join_blocks(result["translation"], document[TEXT_LAYOUT])


def source_files(languages: list[str], path: Paths, format: str) -> list[tuple[str, str | Path]]:
    """The files of a format that has no target side, each with the id of its document.

    Ids are names without folder and endings; where two are the same, without the last ending, or that with the folder.
    Files of one folder that differ in the last ending alone have the same: they may be sides of one document.
    """
    if len(languages) > 1:
        raise DataError(
            f"the format {format!r} has no target side, but target language {languages[1]!r} is asked for: give "
            "parallel documents (tsv, jsonl), or leave the language out"
        )
    files = [path] if isinstance(path, str | Path) else list(path)
    for name in (file_stem, data_name, lambda file: display_path(Path(file).with_name(data_name(file)))):
        ids = [name(file) for file in files]
        if len(set(ids)) == len(ids):
            return list(zip(ids, files))
    return [(file_stem(file), file) for file in files]
