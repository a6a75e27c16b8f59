"""Where a translation job writes to: a file that survives the job's end, or a pipe, device or standard output."""

import gzip
import json
import os
import shutil
import sys
import zlib
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any, BinaryIO

from hf_docmt.files import STDOUT, check_writable_file, mode_of_file
from hf_docmt.messages import counted
from hf_docmt.store import Records, differences, lock_file, open_private, sync, write_durably
from hf_docmt.translation.corpus import Render
from hf_docmt.translation.job_input import Group
from hf_docmt.translation.progress import JobSummary
from hf_docmt.translation.subtitle_output import reading_speed

BESIDE = (".partial", ".journal")  # endings of what lies beside the output of a job
MARK, VERSION = "docmt_translation_job", 2  # the first key of a journal, and its value
FINISHED = {"finished": True}  # in the record of a journal behind the last group


def check_output(path: str, resume: bool = False, inputs: Iterable[str] = ()) -> None:
    """Raise `ValueError` where an output cannot be written, is one of the inputs, or can hold no job to resume."""
    check_writable_file(path, inputs)
    if Path(path).suffix in BESIDE:
        raise ValueError(
            f"{path} ends in {Path(path).suffix} as the files of unfinished jobs do; give the output another name"
        )
    if resume and not is_file_output(path):
        name = "standard output" if path == STDOUT else f"{path}, a pipe or device,"
        raise ValueError(f"a job that writes to {name} leaves nothing to resume; leave --resume out, or give -o FILE")


def open_output(path: str, identity: dict[str, Any], render: Render, resume: bool = False) -> "JobOutput":
    """The output of a job with this identity; `-` is standard output. Raises `ValueError` as `FileOutput`.

    `render` gives the text of a document from its rows of input and result.
    """
    return FileOutput(path, identity, render, resume) if is_file_output(path) else StreamOutput(path, render)


def is_file_output(path: str) -> bool:
    """Whether a path is that of a file, there or to be made; not standard output, a pipe or a device."""
    return path != STDOUT and (Path(path).is_file() or not Path(path).exists())


class JobOutput(AbstractContextManager):
    """What takes the result rows of one group after the other; a context manager. `summary` counts what it holds."""

    is_kept = True  # so that what is written survives the job

    def __init__(self) -> None:
        self.summary = JobSummary()

    @property
    def holds_work(self) -> bool:
        """Whether there is something to go on from."""
        return self.summary.documents > 0

    def missing(self, groups: Iterable[Group | None]) -> Iterator[Group | None]:
        """The groups that it does not hold from a job before."""
        return iter(groups)

    def write(self, group: Group, rows: list[dict]) -> None:
        """Write the next one of these groups. Raises `OSError`."""
        raise NotImplementedError

    def finish(self) -> None:
        """All groups are written. Raises `OSError`."""

    def way_on(self) -> str:
        """What is kept where the job ends now, and how to go on."""
        raise NotImplementedError

    def __exit__(self, *error) -> None:
        """Close it."""


class StreamOutput(JobOutput):
    """Standard output, a pipe or a device: the text of a group is written at once, and nothing is kept."""

    is_kept = False

    def __init__(self, path: str, render: Render):
        super().__init__()
        self.render = render
        self._file = sys.stdout if path == STDOUT else open(path, "w", encoding="utf-8", newline="\n")

    def write(self, group: Group, rows: list[dict]) -> None:
        self._file.writelines(map(self.render, group.rows, rows))
        self._file.flush()
        self.summary.add(_summary(group, rows))

    def way_on(self) -> str:
        return f"{counted(self.summary.documents, 'document')} written, and nothing else is kept"

    def __exit__(self, *error) -> None:
        if self._file is not sys.stdout:
            self._file.close()


class FileOutput(JobOutput):
    """A file that is written group by group beside its place, to which it moves when it is whole.

    Beside `FILE` lie `FILE.partial`, to which the text of each group is appended, and `FILE.journal`, the records of
    the groups that are on the disk (`hf_docmt.store.Records`). A job that was killed goes on behind the last of them.
    `groups` is the number of groups that it holds. Where the block ends by an error before the first group is written,
    nothing is left.
    """

    def __init__(self, path: str | os.PathLike, identity: dict[str, Any], render: Render, resume: bool = False):
        """With `resume` go on with the job before. `identity` is a dict of JSON values.

        Raises `ValueError` where another job writes the same file, an unfinished one lies there that is not to be
        resumed, or has another identity or version, and where a name is taken by another file; `OSError`.
        """
        super().__init__()
        path = Path(path).resolve()  # a link stays, what it points to is replaced
        self.path, self.partial, self.render = path, path.with_name(f"{path.name}.partial"), render
        self.is_resumable = identity["input"] is not None
        for beside in (path.with_name(f"{path.name}{ending}") for ending in BESIDE):
            if beside.is_symlink() or beside.exists() and not beside.is_file():
                raise ValueError(f"{beside} is in the way, which is no file; move it, or choose another output")
        self.journal = self._locked_journal(path.with_name(f"{path.name}.journal"))
        self._file: BinaryIO | None = None
        self.groups = len(self._records())
        try:
            self._open(identity, resume)
        except BaseException as error:
            self.__exit__(True)
            if isinstance(error, OSError):
                raise self._cannot_write(error) from error
            raise

    def __exit__(self, *error) -> None:
        """Close the files; after an error before the first group was written, delete them."""
        self._close()
        if error[0] and not self.groups:
            if self._file is not None:
                self.partial.unlink(missing_ok=True)
            self.journal.delete()
        self.journal.close()

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()

    def _locked_journal(self, path: Path) -> Records:
        """The journal that lies there, or a new one; ValueError for one that cannot be gone on with."""
        file = lock_file(path)
        if file is None:
            raise ValueError(f"another job uses {path} now; wait for its end, or choose another output")
        beginning, content = f'{{"{MARK}": '.encode(), file.read()
        file.seek(0)
        journal, is_torn = Records(path, file, _is_record), b"\n" not in content
        if not content.startswith(beginning) and not (is_torn and beginning.startswith(content)):
            problem = f"{path} is in the way, which is no journal of a job; move it, or choose another output"
        elif not is_torn and not content.startswith(beginning + str(VERSION).encode()):
            problem = f"{path} is of a job of another version of docmt; finish it with that one, or {self._start_anew}"
        elif journal.damage and not journal.items:
            problem = f"{journal.damage}: the job cannot go on; {self._start_anew}"
        else:
            if journal.damage:
                print(f"{journal.damage}: the groups from there on are translated again", file=sys.stderr)
            return journal
        file.close()
        raise ValueError(problem)

    @property
    def _start_anew(self) -> str:
        return f"delete {self.partial} and {self.partial.with_suffix('.journal')} to start anew"

    def _open(self, identity: dict, resume: bool) -> None:
        if not self.journal.items and self.partial.exists():
            raise ValueError(f"{self.partial} is in the way, of which there is no journal; move or delete it")
        if self._is_moved():
            self._check_moved()
        if self.groups and not resume and self.partial.exists() and self.journal.items[0]["identity"]["input"] is None:
            self._set_aside()
        if self.groups and (resume or self.partial.exists()):
            self._check(identity, resume)
            if not self._is_moved():
                self._drop_damaged()
            for record in self._records():
                self.summary.add(JobSummary(**record["summary"]))
        else:
            self.groups = 0
        if not self.groups:
            self.partial.unlink(missing_ok=True)  # before its journal, without which it would be a file of others
            self.journal.keep(0)
            self.journal.append({MARK: VERSION, "identity": identity})
        if not self._is_moved():
            size = sum(record["bytes"] for record in self._records())
            self._file = open_private(self.partial)
            self._file.truncate(size)
            self._file.seek(size)
            sync(self.path.parent)

    def _check(self, identity: dict, resume: bool) -> None:
        """Raise `ValueError` where the job that lies there is not to be resumed by this one."""
        before, job = self.journal.items[0]["identity"], f"job in {self.partial}"
        if not resume:
            raise ValueError(
                f"an unfinished job lies in {self.partial}: give --resume to go on with it, or {self._start_anew}"
            )
        if changed := changes(before, identity):
            raise ValueError(
                f"the {job} cannot be resumed, since something else is asked for now ({changed}): give what was given "
                f"then, or {self._start_anew}"
            )

    def _set_aside(self) -> None:
        """Give way to a new job: what one did whose input came from a pipe is kept as a job of another output."""
        kept = self.path.with_name(f"{self.path.name}.unfinished")
        shutil.copyfile(self.journal.path, f"{kept}.journal")
        os.replace(self.partial, f"{kept}.partial")
        print(
            "the documents of the unfinished job came from a pipe, and are translated anew; what was done is kept: "
            f"with the same documents again, -o {kept} --resume goes on",
            file=sys.stderr,
        )
        self.groups = 0

    def _records(self) -> list[dict]:
        """Those of the groups."""
        return [record for record in self.journal.items[1:] if not _is_last(record)]

    def _drop_damaged(self) -> None:
        """Drop the groups from the first one on whose text is not in the partial file as it was written."""
        whole = _whole_groups(self.partial, self._records())
        if whole < self.groups:
            print(
                f"{self.partial} is not as it was written: {counted(self.groups - whole, 'group')} of documents are "
                "translated again",
                file=sys.stderr,
            )
            self.journal.keep(1 + whole)
        self.groups = whole

    def _is_moved(self) -> bool:
        """Whether the job before was killed between its last two steps: the output is there, and the journal still."""
        return self._is_finished and not self.partial.exists()

    @property
    def _is_finished(self) -> bool:
        return any(map(_is_last, self.journal.items[-1:]))

    def _check_moved(self) -> None:
        """Raise `ValueError` where the output of a finished job is not under its name."""
        records, size = self._records(), self.path.stat().st_size if self.path.is_file() else None
        if size != sum(record["bytes"] for record in records) or _whole_groups(self.path, records) < len(records):
            problem = "is gone" if size is None else "is not as the job wrote it"
            raise ValueError(
                f"{self.path} {problem}, though {self.journal.path} says that the job was finished: bring the file "
                f"back, or delete {self.journal.path} to translate again"
            )

    def missing(self, groups: Iterable[Group | None]) -> Iterator[Group | None]:
        """As in the base class; ValueError where a group that it holds was made from other documents."""
        groups, held = iter(groups), self._records()
        for group, record in zip_longest(islice(groups, len(held)), held):
            if group is None or record.get("source_crc32") not in (None, _source_crc32(group)):
                raise ValueError(
                    f"{self.partial} has translations of other documents than the input has now: it changed while they "
                    f"were translated; {self._start_anew}"
                )
        yield from groups

    def write(self, group: Group, rows: list[dict]) -> None:
        """Append the text of the next group; it is on the disk when this returns. `.gz`: each is packed for itself."""
        data, summary = "".join(map(self.render, group.rows, rows)).encode(), _summary(group, rows)
        data = gzip.compress(data, mtime=0) if self.path.suffix == ".gz" and data else data
        record = {"group": self.groups, "bytes": len(data), "text_crc32": zlib.crc32(data)}
        record["source_crc32"] = _source_crc32(group)
        try:
            write_durably(self._file, data)
            self.journal.append(record | {"summary": vars(summary)})
        except OSError as error:
            raise self._cannot_write(error) from error
        self.groups += 1
        self.summary.add(summary)

    def finish(self) -> None:
        """Move the file to its place, with the mode of the one it replaces; delete the journal."""
        self._close()
        try:
            if not self._is_moved():
                if not self._is_finished:
                    self.journal.append(FINISHED)
                os.chmod(self.partial, mode_of_file(self.path))
                os.replace(self.partial, self.path)
                sync(self.path.parent)
            self._check_moved()
            self.journal.delete()
        except OSError as error:
            raise self._cannot_write(error) from error

    def _cannot_write(self, error: OSError) -> OSError:
        return OSError(f"cannot write {self.path}: {error.strerror or error}")

    def way_on(self) -> str:
        if not self.groups:
            return "nothing was finished, and nothing is kept"
        documents, verb = counted(self.summary.documents, "document"), "is" if self.summary.documents == 1 else "are"
        kept = f"{documents} ({counted(self.summary.sentences, 'sentence')}) {verb} kept in {self.partial}"
        again = "" if self.is_resumable else ", the same documents from the pipe,"
        return f"{kept}: go on with the same command{again} and --resume"


def _summary(group: Group, rows: list[dict]) -> JobSummary:
    """The counts over the rows of a group, and the lines about its subtitles."""
    summary = JobSummary.of(rows)
    summary.written = list(filter(None, map(reading_speed, group.rows, rows)))
    return summary


def _is_record(number: int, record: dict) -> bool:
    """Whether a journal may have this record at this number: the identity, then the groups in their order, the end."""
    if number == 0:
        return isinstance(record.get("identity"), dict) and "input" in record["identity"]
    try:
        JobSummary().add(JobSummary(**record["summary"]))
        sizes = record["bytes"], record["text_crc32"]
        return record["group"] == number - 1 and all(isinstance(size, int) and size >= 0 for size in sizes)
    except (KeyError, TypeError, ValueError):
        return _is_last(record)


def _is_last(record: dict) -> bool:
    return FINISHED.items() <= record.items()


def changes(before: Any, now: Any) -> str:
    """In words, what differs in the identities of two jobs; empty where nothing does."""
    texts = []
    for names, old, new in differences(before, now):
        is_digest = isinstance(new, str) and len(new) == 64
        texts.append(f"{' '.join(names)} " + ("changed" if is_digest else f"was {old!r}, is {new!r}"))
    return "; ".join(texts)


def _source_crc32(group: Group) -> int:
    """That of the documents of a group."""
    return zlib.crc32(json.dumps(group.rows, default=str).encode())


def _whole_groups(path: Path, records: list[dict]) -> int:
    """How many of the first groups stand in the file as they were written."""
    with open(path if path.exists() else os.devnull, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        for count, record in enumerate(records):
            data = file.read(min(record["bytes"], size))
            if len(data) != record["bytes"] or zlib.crc32(data) != record["text_crc32"]:
                return count
    return len(records)
