"""The output of a job that survives its end: written group by group beside its place, to which it moves when whole.

Beside `FILE` lie `FILE.partial`, to which the text of each group is appended, and `FILE.journal`, with a line for each
group that is on the disk. A job that was killed goes on behind the last of them.
"""

import gzip
import os
import zlib
from pathlib import Path
from typing import Any, BinaryIO

from hf_docmt.files import mode_of_file
from hf_docmt.messages import counted
from hf_docmt.store import open_private, sync, write_durably
from hf_docmt.translation.job_identity import changes
from hf_docmt.translation.job_summary import JobSummary
from hf_docmt.translation.journal import Journal

FINISHED = {"finished": True}  # the line of the journal behind the last group


class JournaledFile:
    """A file that is written group by group and appears whole at the end; a context manager.

    `groups` is the number of groups that it holds, `summary` counts them, `damaged` were held and are lost. Where the
    block ends by an error before the first group is written, nothing is left.
    """

    is_kept = True

    def __init__(self, path: str | os.PathLike, identity: dict[str, Any], resume: bool = False):
        """Open it for a job with this `identity`, a dict of JSON values; with `resume` go on with the job before.

        Raises `ValueError` where another job writes the same file, where an unfinished one lies there and is not to be
        resumed, or is one of another identity, and where a name is taken by another file. `OSError`: nothing can be
        written.
        """
        path = Path(path).resolve()  # a link stays, what it points to is replaced
        self.path, self.partial = path, path.with_name(f"{path.name}.partial")
        self.summary, self.groups, self.damaged, self.is_resumable = JobSummary(), 0, 0, identity["input"] is not None
        self.journal = Journal(path.with_name(f"{path.name}.journal"))
        self._holds_work = len(self.journal.lines) > 1
        self._file: BinaryIO | None = None
        self._bytes = 0  # of the groups
        try:
            self._open(identity, resume)
        except OSError as error:
            self.__exit__(True)
            raise self._cannot_write(error) from error
        except BaseException:
            self.__exit__(True)
            raise

    def __enter__(self) -> "JournaledFile":
        return self

    def __exit__(self, *error) -> None:
        """Close the files; after an error before the first group was written, delete them."""
        if self._file is not None:
            self._file.close()
        if error[0] and not self._holds_work:
            if self._file is not None:
                self.partial.unlink(missing_ok=True)
            self.journal.delete()
        self.journal.close()

    def _open(self, identity: dict, resume: bool) -> None:
        if not self.journal.lines and self.partial.exists():
            raise ValueError(f"{self.partial} is in the way, of which there is no journal; move or delete it")
        if self._holds_work and (resume or self.partial.exists()):
            self._check(identity, resume)
            self._go_on()
        self._holds_work = self.groups > 0
        if not self.groups:
            self.partial.unlink(missing_ok=True)  # before its journal, without which it would be a file of others
            self.journal.begin(identity)
        if not self._is_moved():
            self._file = open_private(self.partial)
            self._file.truncate(self._bytes)
            self._file.seek(self._bytes)
            sync(self.path.parent)

    def _check(self, identity: dict, resume: bool) -> None:
        """Raise `ValueError` where the job that lies there is not to be resumed by this one."""
        way_out = f"delete {self.partial} and {self.journal.path} to start anew"
        before = self.journal.lines[0]["identity"]
        if before["input"] is None:
            raise ValueError(
                f"the job in {self.partial} read its documents from a pipe, which cannot be read again: translate a "
                f"file instead, and {way_out}"
            )
        if not resume:
            raise ValueError(f"an unfinished job lies in {self.partial}: give --resume to go on with it, or {way_out}")
        if changed := changes(before, identity):
            raise ValueError(
                f"the job in {self.partial} cannot be resumed, since something else is asked for now ({changed}): give "
                f"what was given then, or {way_out}"
            )

    def _go_on(self) -> None:
        """Count the groups of the journal whose text is in the partial file; drop the others."""
        entries = [line for line in self.journal.lines[1:] if line != FINISHED]
        if not self._is_moved():
            with open(self.partial if self.partial.exists() else os.devnull, "rb") as file:
                whole = next((n for n, entry in enumerate(entries) if not _is_whole(file, entry)), len(entries))
            self.damaged, entries = len(entries) - whole, entries[:whole]
            if self.damaged:
                self.journal.keep(1 + whole)
        for entry in entries:
            self.summary.add(JobSummary.from_json(entry["summary"]))
        self.groups, self._bytes = len(entries), sum(entry["bytes"] for entry in entries)

    def _is_moved(self) -> bool:
        """Whether the job before was killed between its last two steps: the output is there, and the journal still."""
        return self.journal.lines[-1] == FINISHED and not self.partial.exists()

    def append(self, text: str, summary: JobSummary) -> None:
        """Append the text of the next group, counted in its `summary`; it is on the disk when this returns.

        `.gz`: each group is packed for itself. Raises `OSError`.
        """
        data = text.encode()
        data = gzip.compress(data, mtime=0) if self.path.suffix == ".gz" and data else data
        entry = {"group": self.groups, "bytes": len(data), "crc32": zlib.crc32(data), "summary": summary.to_json()}
        try:
            write_durably(self._file, data)
            self.journal.append(entry)
        except OSError as error:
            raise self._cannot_write(error) from error
        self.groups, self._bytes = self.groups + 1, self._bytes + len(data)
        self.summary.add(summary)
        self._holds_work = True

    def finish(self) -> None:
        """Move the file to its place, with the mode of the one it replaces; delete the journal. Raises `OSError`."""
        try:
            if not self._is_moved():
                if self.journal.lines[-1] != FINISHED:
                    self.journal.append(FINISHED)
                os.chmod(self.partial, mode_of_file(self.path))
                os.replace(self.partial, self.path)
                sync(self.path.parent)
            self.journal.delete()
        except OSError as error:
            raise self._cannot_write(error) from error

    def _cannot_write(self, error: OSError) -> OSError:
        return OSError(f"cannot write {self.path}: {error.strerror or error}")

    def way_on(self) -> str:
        """What is kept of the job where it ends now, and how to go on with it."""
        if not self.groups:
            return "nothing was finished, and nothing is kept"
        documents, verb = counted(self.summary.documents, "document"), "is" if self.summary.documents == 1 else "are"
        kept = f"{documents} ({counted(self.summary.sentences, 'sentence')}) {verb} kept in {self.partial}"
        if not self.is_resumable:
            return f"{kept}; the job cannot go on, since its input came from a pipe"
        return f"{kept}: go on with the same command and --resume"


def _is_whole(file: BinaryIO, entry: dict) -> bool:
    """Whether the next bytes are the text of a group as it was written."""
    data = file.read(entry["bytes"])
    return len(data) == entry["bytes"] and zlib.crc32(data) == entry["crc32"]
