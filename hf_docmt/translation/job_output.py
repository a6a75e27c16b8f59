"""Outputs of translation jobs: a file or folder that survives an interruption, or a pipe or standard output."""

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import islice, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock

from hf_docmt.data.readers import Reader
from hf_docmt.data.readers.reader import OTHER_FORMATS
from hf_docmt.data.readers.subtitles import reading_speed
from hf_docmt.files import STDOUT, check_writable_file, sync, write_parts
from hf_docmt.journal import Journal, differences, text_digest, try_lock, unlock
from hf_docmt.messages import counted
from hf_docmt.translation.job_input import Group
from hf_docmt.translation.progress import JobSummary

if TYPE_CHECKING:
    from hf_docmt.translation.corpus import Render

JOURNAL = ".journal"  # ending of the file next to the output of a job
MARK, VERSION = "docmt_translation_job", 3  # the first key of a journal, and its value
START = f'{{"{MARK}": {VERSION}, '.encode()
# output format of a reader -> in words, its endings, unless it is text
WRITTEN: dict[str, tuple[str, tuple[str, ...]]] = {"lines": ("plain text", ()), "text": ("plain text", ())}
WRITTEN |= dict.fromkeys(("jsonl", "wmt_jsonl"), ("JSON lines", (".jsonl", ".json")))
WRITTEN |= {"subtitles": ("subtitles", (".srt", ".vtt"))}
# makes the output from the texts of all groups: in a temporary place, then in its own; returns the messages about it
Write = Callable[[Iterable[str], Path, Path], JobSummary | None]


def check_output(path: str, resume: bool = False, inputs: Iterable[str] = (), reader: Reader | None = None) -> None:
    """Raise `ValueError` where an output cannot be written, is one of the inputs, or can hold no job to resume.

    With the `reader` of the inputs also for the ending of another format than the one that is written.
    """
    check_writable_file(path, inputs)
    if reader:
        check_ending(path, reader)
    if Path(path).suffix == JOURNAL:
        raise ValueError(f"{path} ends in {JOURNAL} as the files of unfinished jobs do; give the output another name")
    if resume and not is_file_output(path):
        name = "standard output" if path == STDOUT else f"{path}, a pipe or device,"
        raise ValueError(f"a job that writes to {name} cannot be resumed; omit --resume, or give -o FILE")


def check_ending(path: str, reader: Reader) -> None:
    """Raise `ValueError` for an output with the ending of a format that is not written for this reader."""
    ending = Path(path).suffix.lower()
    others = {other for name in OTHER_FORMATS.keys() - {"Markdown"} for other in OTHER_FORMATS[name][0].split()}
    what, own = WRITTEN.get(reader.output_format, ("", (ending,)))
    if ending in others | {".jsonl", ".srt", ".vtt"} and ending not in own:
        name = f"a name that ends in {own[0]}" if own else "another extension, such as .txt"
        raise ValueError(f"{path}: the translation of {reader.name} is written as {what}, not as {ending}; give {name}")


def open_output(
    path: str, identity: dict[str, Any], render: "Render", resume: bool = False, write: Write | None = None
) -> "StreamOutput":
    """The output of a job with this identity; `-` is standard output. Raises `ValueError` as `JournaledOutput`."""
    if write is None and not is_file_output(path):
        return StreamOutput(path, render)
    return JournaledOutput(path, identity, render, resume, write or write_parts)


def is_file_output(path: str) -> bool:
    """Whether a path is that of a file, there or to be made; not standard output, a pipe or a device."""
    return path != STDOUT and (Path(path).is_file() or not Path(path).exists())


class StreamOutput(AbstractContextManager):
    """Standard output, a pipe or a device: the text of a group is written at once, and nothing is kept.

    `render` gives the text of a document from its rows of input and result. `summary` counts what was written.
    """

    is_kept = False  # so that what is written survives the job

    def __init__(self, path: str, render: "Render"):
        self.render, self.summary = render, JobSummary()
        self._file = sys.stdout if path == STDOUT else open(path, "w", encoding="utf-8", newline="\n")

    @property
    def holds_work(self) -> bool:
        """Whether there is something to go on from."""
        return self.summary.documents > 0

    def missing(self, groups: Iterable[Group | None]) -> Iterator[Group | None]:
        """The groups that it does not hold from a job before."""
        return iter(groups)

    def write(self, group: Group, rows: list[dict]) -> None:
        """Write the text of the next one of these groups. Raises `OSError`."""
        self._file.writelines(map(self.render, group.rows, rows))
        self._file.flush()
        self.summary.add(_summary(group, rows))

    def finish(self) -> None:
        """All groups are written. Raises `OSError`."""

    def way_on(self) -> str:
        """Message about the work kept if the job ends now, and how to resume it."""
        return f"{counted(self.summary.documents, 'document')} written, and nothing else is kept"

    def __exit__(self, *error) -> None:
        if self._file is not sys.stdout:
            self._file.close()


class JournaledOutput(StreamOutput):
    """An output that appears whole, made at the end from the journal next to it, `FILE.journal`.

    Each row of the journal is a finished group of documents: digest of its sources, text and summary; the first one
    identifies the job. A killed job resumes after the last row. After an error before the first group nothing is left.
    """

    is_kept = True

    def __init__(
        self,
        path: str | Path,
        identity: dict[str, Any],
        render: "Render",
        resume: bool = False,
        write: Write = write_parts,
    ):
        """With `resume` continue the previous job. `identity` is a dict of JSON values.

        Raises `ValueError` where another job writes the same file, an unfinished one is there without `resume`, or has
        another identity or version, and where a name is taken by another file; `OSError`.
        """
        self.path = Path(path).resolve()  # a link stays, what it points to is replaced
        self.render, self._write, self.summary = render, write, JobSummary()
        self.is_resumable = identity["input"] is not None
        self.groups = 0
        path = self.path.with_name(f"{self.path.name}{JOURNAL}")
        if path.is_symlink() or path.exists() and not path.is_file():
            raise ValueError(f"{path} exists and is not a file; move it, or choose another output")
        with self._writing():
            self._lock = self._locked(path)
            try:
                self.journal = Journal(path, START, private=True)
                self._open(identity, resume)
            except BaseException:
                unlock(self._lock)
                raise

    def __exit__(self, *error) -> None:
        """Give the journal up; after an error before the first group was written, delete it."""
        if error[0] and not self.groups:
            self.journal.delete()
        self.journal.close()
        unlock(self._lock)

    def _locked(self, path: Path) -> FileLock:
        lock = try_lock(path.with_name(f"{path.name}.lock"))
        if lock is None:
            raise ValueError(f"another job uses {path} now; wait for its end, or choose another output")
        return lock

    def _open(self, identity: dict, resume: bool) -> None:
        """Go on with the job of the journal, or begin a new one where it holds no group."""
        if self.journal.damage and not self.journal.count:
            raise ValueError(f"{self.journal.damage}: the job cannot continue; {self._start_anew}")
        if self.journal.damage:
            print(f"{self.journal.damage}: the groups from there on are translated again", file=sys.stderr)
        self.groups = max(self.journal.count - 1, 0)
        if self.groups:
            self._check(next(self.journal.rows())["identity"], identity, resume)
            for row in self.journal.rows(1):
                self.summary.add(JobSummary(**row["summary"]))
        else:
            try:
                self.journal.keep(0)
                self.journal.append({MARK: VERSION, "identity": identity})
            except OSError:
                self.journal.delete()
                raise
            sync(self.path.parent)

    @property
    def _start_anew(self) -> str:
        return f"delete {self.journal.path} to start again"

    def _check(self, before: dict, now: dict, resume: bool) -> None:
        """Raise `ValueError` if this job may not resume the one there."""
        path = self.journal.path
        if not resume:
            raise ValueError(f"{path} holds an unfinished job: give --resume to continue it, or {self._start_anew}")
        if changed := changes(before, now):
            raise ValueError(
                f"the job in {path} cannot be resumed, since the request differs ({changed}): repeat the "
                f"first request, or {self._start_anew}"
            )

    def missing(self, groups: Iterable[Group | None]) -> Iterator[Group | None]:
        """As in the base class; ValueError where a group that it holds was made from other documents."""
        groups = iter(groups)
        for group, row in zip_longest(islice(groups, self.groups), self.journal.rows(1)):
            if group is None or row["digest"] != _source_digest(group):
                raise ValueError(
                    f"{self.journal.path} has translations of other documents than the input has now: it changed while "
                    f"they were translated; {self._start_anew}"
                )
        yield from groups

    def write(self, group: Group, rows: list[dict]) -> None:
        """Append the next group to the journal; it is on the disk when this returns."""
        text, summary = "".join(map(self.render, group.rows, rows)), _summary(group, rows)
        row = {"index": self.journal.count, "digest": _source_digest(group), "text": text, "summary": vars(summary)}
        with self._writing():
            self.journal.append(row)
        self.groups += 1
        self.summary.add(summary)

    def finish(self) -> None:
        """Make the output from the journal, which is deleted when the output has its place."""
        whole = self.path.with_name(f".{self.path.name}.whole")
        with self._writing():
            told = self._write((row["text"] for row in self.journal.rows(1)), self.path, whole)
        if not self.path.exists():
            raise OSError(f"{self.path} is gone, though it was written; all is kept in {self.journal.path}")
        self.summary.add(told or JobSummary())
        self.journal.delete()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """A context in which a failure to write names the output."""
        try:
            yield
        except OSError as error:
            raise OSError(f"cannot write {self.path}: {error.strerror or error}") from error

    def way_on(self) -> str:
        if not self.groups:
            return "nothing was finished, and nothing is kept"
        documents, verb = counted(self.summary.documents, "document"), "is" if self.summary.documents == 1 else "are"
        kept = f"{documents} ({counted(self.summary.sentences, 'sentence')}) {verb} kept in {self.journal.path}"
        again = "" if self.is_resumable else ", the same documents from the pipe,"
        return f"{kept}: go on with the same command{again} and --resume"


def _summary(group: Group, rows: list[dict]) -> JobSummary:
    """The counts over the rows of a group, and the lines about its subtitles."""
    summary = JobSummary.of(rows)
    summary.written += filter(None, map(reading_speed, group.rows, rows))
    return summary


def changes(before: Any, now: Any) -> str:
    """The differences between the identities of two jobs in words; empty without any."""
    texts = []
    for names, old, new in differences(before, now):
        is_digest = isinstance(new, str) and len(new) == 64
        texts.append(f"{' '.join(names)} " + ("changed" if is_digest else f"was {old!r}, is {new!r}"))
    return "; ".join(texts)


def _source_digest(group: Group) -> str:
    """The digest of the documents of a group."""
    return text_digest(json.dumps(group.rows, default=str))
