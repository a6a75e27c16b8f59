"""Where a translation job writes to: a file that survives the job's end, or a pipe, device or standard output."""

import sys
from pathlib import Path
from typing import Any, Protocol

from hf_docmt.files import STDOUT, check_writable_file
from hf_docmt.messages import counted
from hf_docmt.translation.job_summary import JobSummary
from hf_docmt.translation.journaled_file import JournaledFile


class JobOutput(Protocol):
    """A context manager that takes the text of one group after the other."""

    summary: JobSummary
    groups: int  # that it holds from a job before
    is_kept: bool  # so that what is written survives the job

    def append(self, text: str, summary: JobSummary) -> None:
        """Write the text of the next group, which `summary` counts."""
        ...

    def finish(self) -> None:
        """All groups are written."""
        ...

    def way_on(self) -> str:
        """What is kept where the job ends now, and how to go on."""
        ...

    def __enter__(self) -> "JobOutput": ...

    def __exit__(self, *error) -> None: ...


def check_output(path: str, resume: bool = False) -> None:
    """Raise `ValueError` where it is known beforehand that an output cannot be written, or holds no job to resume."""
    check_writable_file(path)
    if resume and not is_file_output(path):
        name = "standard output" if path == STDOUT else f"{path}, a pipe or device,"
        raise ValueError(f"a job that writes to {name} leaves nothing to resume; leave --resume out, or give -o FILE")


def open_output(path: str, identity: dict[str, Any], resume: bool = False) -> JobOutput:
    """The output of a job with this identity, locked for it; `-` is standard output.

    Raises `ValueError` as `check_output` and `JournaledFile` do.
    """
    check_output(path, resume)
    return JournaledFile(path, identity, resume) if is_file_output(path) else StreamOutput(path)


def is_file_output(path: str) -> bool:
    """Whether a path is that of a file, there or to be made; not standard output, a pipe or a device."""
    return path != STDOUT and (Path(path).is_file() or not Path(path).exists())


class StreamOutput:
    """Standard output, a pipe or a device: the text of a group is written at once, and nothing is kept."""

    is_kept = False

    def __init__(self, path: str):
        self.summary, self.groups = JobSummary(), 0
        self._file = sys.stdout if path == STDOUT else open(path, "w", encoding="utf-8", newline="\n")

    def __enter__(self) -> "StreamOutput":
        return self

    def __exit__(self, *error) -> None:
        """Close a pipe or device."""
        if self._file is not sys.stdout:
            self._file.close()

    def append(self, text: str, summary: JobSummary) -> None:
        """Write the text of a group."""
        self._file.write(text)
        self._file.flush()
        self.summary.add(summary)

    def finish(self) -> None:
        """Nothing is left to be done."""

    def way_on(self) -> str:
        """What was written."""
        return f"{counted(self.summary.documents, 'document')} written, and nothing else is kept"
