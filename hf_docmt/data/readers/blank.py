"""Two line-parallel files in which one blank line stands between documents."""

from collections.abc import Iterator
from pathlib import Path

from hf_docmt.data.readers.parallel_files import ParallelFilesReader, SideDocument
from hf_docmt.data.readers.reader import Sample
from hf_docmt.files import DataError, location_of, read_lines


class BlankReader(ParallelFilesReader):
    """The format cannot hold empty sentences. Blanks inside and after a sentence stay."""

    name = "blank"

    def recognize_lines(self, sample: Sample) -> bool:
        if sample.argument != "source" or sample.path is None:
            return False
        return any(not line.strip() for _, line in read_lines(sample.path))

    def side_documents(self, path: str | Path) -> Iterator[SideDocument]:
        begin, sentences, documents = 1, [], 1
        for number, line in read_lines(path):
            if line.strip():
                sentences.append(line)
            elif not sentences:
                raise DataError(
                    f"{location_of(path, number)}: document {documents} is empty (a blank line at the "
                    "start or after another); put one blank line between documents, and use tsv or jsonl for empty "
                    "sentences"
                )
            else:
                yield begin, sentences
                begin, sentences, documents = number + 1, [], documents + 1
        if sentences:  # one blank line may end the file
            yield begin, sentences
