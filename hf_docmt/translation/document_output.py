"""Where translated documents with markup go: a file or folder that is written when all of it is translated."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

from hf_docmt.files import STDOUT, check_new_folder, check_writable_file, display_path, mode_of_file
from hf_docmt.formats.document_file import WrittenFile
from hf_docmt.formats.document_folder import DocumentFolder
from hf_docmt.store import sync
from hf_docmt.translation.corpus import json_line
from hf_docmt.translation.job_input import JobInput, content_digest
from hf_docmt.translation.job_output import FINISHED, FileOutput
from hf_docmt.translation.progress import JobSummary


def check_document_output(path: str, documents: JobInput, resume: bool = False) -> None:
    """Raise `ValueError` where the translated documents cannot be written there.

    With `resume` a folder may be there: a job that was killed in its last steps has written it.
    """
    if path == STDOUT:
        raise ValueError(f"{display_path(documents.path)} is written as a file again; give -o and a name")
    if isinstance(documents.reader, DocumentFolder):
        folder = Path(path)
        if not (resume and folder.is_dir() and folder.with_name(f"{folder.name}.journal").exists()):
            check_new_folder(path)
        folder = folder.resolve()
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
        self.whole = Path(path).resolve().with_name(f".{Path(path).resolve().name}.whole")  # until it is moved
        super().__init__(path, identity, lambda document, result: json_line(result), resume)

    def finish(self) -> None:
        """Write the documents beside their place, look at them, move them there; delete what was kept.

        What is to be told of them stands in the journal before the last rows are deleted.
        """
        self._close()
        try:
            if not self._is_finished:
                with self.partial.open(encoding="utf-8") as lines:
                    results = {row["doc_id"]: row for row in map(json.loads, lines)}
                remove(self.whole)  # of a job that was killed here
                written = write_documents(self.documents, results, self.whole)
                report = {"written": [written.text()], "problems": len(written.problems)}
                self.journal.append(FINISHED | report | {"digest": content_digest(str(self.whole))})
            if self.whole.exists():
                if self.whole.is_file():
                    os.chmod(self.whole, mode_of_file(self.path))
                os.replace(self.whole, self.path)
                sync(self.path.parent)
            self._check_moved()
            self.partial.unlink(missing_ok=True)
            self.summary.add(JobSummary(**{name: self.journal.items[-1][name] for name in ("written", "problems")}))
            self.journal.delete()
        except OSError as error:
            raise self._cannot_write(error) from error

    def _is_moved(self) -> bool:
        return self._is_finished

    def _check_moved(self) -> None:
        """Raise `ValueError` where the output of a finished job is neither under its name nor beside it."""
        found = self.whole if self.whole.exists() else self.path
        if self.journal.items[-1].get("digest") != content_digest(str(found)):
            problem = "is not as the job wrote it" if self.path.exists() else "is gone"
            raise ValueError(
                f"{self.path} {problem}, though {self.journal.path} says that the job was finished: bring it back, or "
                f"delete {self.journal.path} to translate again"
            )


def write_documents(documents: JobInput, results: dict[str, dict], path: Path) -> WrittenFile:
    """Write the files of the input with the translations of these result rows, by document id; all are on the disk."""
    written, is_folder = WrittenFile(), isinstance(documents.reader, DocumentFolder)
    try:
        for document in documents.document_files():
            data, own = document.translated(results)
            file = path / document.name if is_folder else path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch(0o666 if is_folder else 0o600)  # a file gets the mode of the one that it replaces
            file.write_bytes(data)
            written.add(own)
        for file in (path, *path.rglob("*")):
            sync(file)
    except BaseException:
        remove(path)
        raise
    return written


def remove(path: Path) -> None:
    """Delete a file or folder, if there is one."""
    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
