"""A translation job: documents in, translations out in the same order, written group by group."""

import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from hf_docmt.files import STDOUT, write_parts
from hf_docmt.translation.groups import Group
from hf_docmt.translation.job_summary import JobSummary

Engine = Callable[[Iterable[Group]], Iterator[list[dict]]]  # the result rows of each group, in the groups' order
Render = Callable[[dict, dict], str]  # the text of a document: its row of the input, and its result row
FIRST_DOCUMENTS = 10  # so many that fail, and none else before them, end the job


def run_job(groups: Iterable[Group], engine: Engine, output: str | Path, render: Render) -> JobSummary:
    """Translate groups of documents and write the text of each to `output`, a file, or `-` for standard output.

    `engine` is a `GroupTranslator` mapped over the groups, in this process or in others. Documents that fail are
    counted in the summary. Raises `ValueError` where the first ten documents fail, or all of fewer, since then the
    model or a setting is to blame; `OSError` for what cannot be written.
    """
    summary = JobSummary()
    texts = _texts(check_first_documents(_with_results(groups, engine)), render, summary)
    if str(output) == STDOUT:
        for text in texts:
            sys.stdout.write(text)
            sys.stdout.flush()
    else:
        write_parts(texts, output)
    return summary


def local_engine(translator: Callable[[Group], list[dict]]) -> Engine:
    """The engine that translates in this process, one group after the other."""
    return lambda groups: map(translator, groups)


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


def _with_results(groups: Iterable[Group], engine: Engine) -> Iterator[tuple[Group, list[dict]]]:
    """Each group with its result rows; an engine may take groups in advance."""
    waiting: deque[Group] = deque()

    def taken() -> Iterator[Group]:
        for group in groups:
            waiting.append(group)
            yield group

    for rows in engine(taken()):
        yield waiting.popleft(), rows


def _texts(results: Iterable[tuple[Group, list[dict]]], render: Render, summary: JobSummary) -> Iterator[str]:
    for group, rows in results:
        summary.add(rows)
        yield "".join(render(row, result) for row, result in zip(group.rows, rows, strict=True))
