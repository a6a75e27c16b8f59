"""A translation job: documents in, translations out in the same order, written group by group."""

import sys
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import islice

from hf_docmt.files import check_writable_file
from hf_docmt.translation.group_translation import TranslationSettings
from hf_docmt.translation.groups import Group
from hf_docmt.translation.interruption import Interrupted, Interruption
from hf_docmt.translation.job_identity import job_identity
from hf_docmt.translation.job_input import JobInput
from hf_docmt.translation.job_output import JobOutput, is_file_output, open_output
from hf_docmt.translation.job_summary import JobSummary
from hf_docmt.translation.outputs import Render
from hf_docmt.translation.progress import Progress, job_progress

# the result rows of each group, in the groups' order; None in between says that no group has arrived yet
Engine = Callable[[Iterable[Group | None]], Iterator[list[dict]]]
FIRST_DOCUMENTS = 10  # so many that fail, and none else before them, end the job


@dataclass(frozen=True)
class TranslationJob:
    """Documents of a file or pipe that are translated to a file or pipe.

    `make_engine` loads the model, here or in other processes. `render` gives the text of a document. With `resume` a
    job that ended before its time goes on, to the same bytes as without the interruption.
    """

    settings: TranslationSettings
    input: JobInput
    output: str
    make_engine: Callable[[TranslationSettings], Engine]
    render: Render
    resume: bool = False

    def run(self, interruption: Interruption) -> JobSummary:
        """Translate all documents. Raises `ValueError`, `OSError` and `Interrupted`; what can be is known before work.

        Where an error leaves finished work, a line on standard error says how to go on.
        """
        check_writable_file(self.output, self.input.paths)
        inputs = None if self.input.path is None else self.input.files
        identity = job_identity(self.settings, inputs, format=self.input.format)
        with open_output(self.output, identity, self.resume) as output:
            try:
                engine, size = self.make_engine(self.settings), self.input.size()
                groups = self.input.groups(self.settings.batch_size, as_they_come=not is_file_output(self.output))
                progress = job_progress(size, output.summary)
                return run_job(groups, engine, output, self.render, progress, interruption)
            except Interrupted as stopped:
                raise Interrupted(stopped.number, output.way_on()) from stopped
            except Exception:
                if output.groups:
                    print(output.way_on(), file=sys.stderr)
                raise


def run_job(
    groups: Iterable[Group | None],
    engine: Engine,
    output: JobOutput,
    render: Render,
    progress: Progress,
    interruption: Interruption,
) -> JobSummary:
    """Translate groups of documents and write the text of each to `output`, behind the groups that it holds already.

    `engine` is a `GroupTranslator` mapped over the groups, in this process or in others. Documents that fail are
    counted in the summary. Raises `ValueError` where the first ten documents fail, or all of fewer, since then the
    model or a setting is to blame; `OSError` for what cannot be written.
    """
    uninterrupted = interruption.deferred if output.is_kept else nullcontext
    results = with_results(islice(groups, output.groups, None), engine)
    try:
        for group, rows in results if output.groups else check_first_documents(results):
            text = "".join(render(row, result) for row, result in zip(group.rows, rows, strict=True))
            with uninterrupted():
                output.append(text, JobSummary.of(rows))
            interruption.check()
            progress.update(output.summary)
        with uninterrupted():
            output.finish()
    finally:
        progress.close()
        results.close()  # ends the processes of an engine
    return output.summary


def local_engine(translator: Callable[[Group], list[dict]]) -> Engine:
    """The engine that translates in this process, one group after the other."""
    return lambda groups: (translator(group) for group in groups if group is not None)


def check_first_documents(results: Iterable[tuple[Group, list[dict]]]) -> Iterator[tuple[Group, list[dict]]]:
    """Pass on groups and their result rows; ValueError where the first ten documents fail, or all of fewer."""
    results, held = iter(results), []
    for group, rows in results:
        held.append((group, rows))
        first = [row for _, rows in held for row in rows][:FIRST_DOCUMENTS]
        if not all("error" in row for row in first):
            break
        if len(first) == FIRST_DOCUMENTS:
            raise _nothing_translated(first)
    else:
        if held:
            raise _nothing_translated(first)
    yield from held
    yield from results


def _nothing_translated(rows: list[dict]) -> ValueError:
    count = "the first document" if len(rows) == 1 else f"none of the first {len(rows)} documents"
    verb = "cannot be translated" if len(rows) == 1 else "can be translated"
    return ValueError(f"{count} {verb}; {rows[0]['doc_id']!r}: {rows[0]['error']}")


def with_results(groups: Iterable[Group | None], engine: Engine) -> Generator[tuple[Group, list[dict]], None, None]:
    """Each group with its result rows; an engine may take groups in advance."""
    waiting: deque[Group] = deque()

    def taken() -> Iterator[Group | None]:
        for group in groups:
            if group is not None:
                waiting.append(group)
            yield group

    for rows in engine(taken()):
        yield waiting.popleft(), rows
