"""Where translated documents with markup go: a file or folder that is written when all of it is translated."""

import json
from pathlib import Path
from typing import Any

from hf_docmt.files import STDOUT, atomic_folder, check_new_folder, check_writable_file, replaced_file
from hf_docmt.formats.document_file import WrittenFile
from hf_docmt.formats.document_folder import DocumentFolder
from hf_docmt.formats.document_format import DocumentFormat
from hf_docmt.translation.corpus import json_line
from hf_docmt.translation.job_input import JobInput
from hf_docmt.translation.job_output import FINISHED, FileOutput


def check_document_output(path: str, documents: JobInput) -> None:
    """Raise `ValueError` where the translated documents cannot be written there."""
    if path == STDOUT:
        raise ValueError(f"{documents.path} is written as a file again; give -o and a name")
    if isinstance(documents.reader, DocumentFolder):
        folder = check_new_folder(path).resolve()
        if documents.path.resolve() in (folder, *folder.parents):
            raise ValueError(f"the output {path} lies in the folder that is read; choose another place")
        return
    check_writable_file(path, documents.paths)
    endings = documents.reader.endings
    if Path(path).suffix.lower() not in endings:
        names = ", ".join(endings)
        raise ValueError(f"{path}: {documents.path} is written in its own format, so that the output ends in {names}")


class DocumentOutput(FileOutput):
    """The result rows of a job, kept as `FileOutput` keeps them, of which the file or folder is made at the end."""

    def __init__(self, path: str, identity: dict[str, Any], documents: JobInput, resume: bool = False):
        self.documents = documents
        super().__init__(path, identity, lambda document, result: json_line(result), resume)

    def finish(self) -> None:
        """Write the documents beside their place, look at them, move them there; delete what was kept."""
        try:
            if self.partial.exists():
                if self.journal.items[-1] != FINISHED:
                    self.journal.append(FINISHED)
                with self.partial.open(encoding="utf-8") as lines:
                    results = {row["doc_id"]: row for row in map(json.loads, lines)}
                written = write_documents(self.documents, results, self.path)
                self.summary.written, self.summary.problems = [written.text()], len(written.problems)
                self.partial.unlink()
            self.journal.delete()
        except OSError as error:
            raise self._cannot_write(error) from error

    def _check_moved(self) -> None:
        """Raise `ValueError` where the output of a finished job is not under its name."""
        if not self.path.exists():
            raise ValueError(
                f"{self.path} is gone, though {self.journal.path} says that the job was finished: bring it back, or "
                f"delete {self.journal.path} to translate again"
            )


def write_documents(documents: JobInput, results: dict[str, dict], path: Path) -> WrittenFile:
    """Write the files of the input with the translations of these result rows, by document id."""
    reader, written = documents.reader, WrittenFile()
    arguments = {name: value for name, value in documents.files.items() if value is not None}
    if isinstance(reader, DocumentFormat):
        (document,) = reader.files([documents.source_lang], **arguments)
        data, written = document.translated(results)
        with replaced_file(path) as file:
            file.write(data)
    elif isinstance(reader, DocumentFolder):
        with atomic_folder(path) as folder:
            for document in reader.files([documents.source_lang], **arguments):
                data, own = document.translated(results)
                (folder / document.name).parent.mkdir(parents=True, exist_ok=True)
                (folder / document.name).write_bytes(data)
                written.add(own)
    return written
