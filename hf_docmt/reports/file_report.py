"""The report on a translated file: its sentences with marks, as one HTML page."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from statistics import mean, pstdev
from typing import Any

from hf_docmt.files import write_text
from hf_docmt.modeling.text_splitting import has_text
from hf_docmt.reports.side_by_side_page import ENVIRONMENT

DEVIATIONS = 1.5  # by which the score of an uncertain sentence is below the mean of its document
REPAIRS = {  # kind of a repair -> its name, and what it means
    "length": ("cut off", "The translation was stopped before its end."),
    "split": ("in parts", "The sentence is over the length limit, so it was translated in parts."),
    "positions": ("less context", "The sentences around it are too long for the model, so it read fewer of them."),
    "separators": ("repaired", "The translation had another number of sentences, so it was translated again."),
    "register": ("form of address", "The translation keeps the other form of address."),
    "term": ("term missing", "The translation lacks a term of the glossary."),
}
NAMES = {kind: name for kind, (name, _) in REPAIRS.items()}
NAMES |= {"around": "in parts around its code", "tags": "tags placed by position"}
NAMES |= {"memory": "from memory", "previous": "translated before"}
CHANGED = "changed by context"
QUIET = ("carried", "from memory", "translated before", CHANGED)  # needs no review


def uncertain_sentences(scores: Sequence[float | None], sources: Sequence[str]) -> list[int]:
    """The sentences of a document of which the model is less sure than of the others, by number.

    Long ones have lower scores: these are compared divided by the square root of the source's length.
    """
    known = {n: score / len(sources[n]) ** 0.5 for n, score in enumerate(scores) if score is not None and sources[n]}
    least = mean(known.values()) - DEVIATIONS * pstdev(known.values()) if known else 0.0
    return [number for number, score in known.items() if score < least]


def write_report(path: str, *report: Any) -> None:
    """Write the page of `file_report` to a file."""
    write_text(file_report(*report), path)


def file_report(name: str, rows: Iterable[dict], languages: tuple[str, str], problems: list[str]) -> str:
    """The page of a file, from its result rows and the problems found in it. All text is escaped; no script runs."""
    problems, sentences = [*problems], []
    for row in rows:
        problems += [f"{row['doc_id']} was not translated: {row['error']}"] if "error" in row else []
        part = row["doc_id"].partition("#")[2]
        marks: dict[int, list] = {}
        for number, *mark in () if "error" in row else _marks(row):
            marks.setdefault(number, []).append(mark)
        for number, texts in enumerate(zip(row["source"], row["translation"])):
            one = {"id": f"s{len(sentences) + 1}", "place": f"{part} sentence {number + 1}".strip(), "texts": texts}
            own = [(NAMES.get(kind, kind), detail) for kind, detail in marks.get(number, ())]
            sentences.append(one | {"marks": own, "review": [mark for mark, _ in own if mark not in QUIET]})
    counts = Counter(mark for one in sentences for mark in {mark for mark, _ in one["marks"]})
    values = {"sentences": sentences, "problems": problems, "languages": languages, "title": f"Translation of {name}"}
    values |= {"counts": [("all", len(sentences)), *sorted(counts.items())]}
    return ENVIRONMENT.get_template("file_report.html").render(values, policy="")


def _marks(row: dict) -> Iterator[tuple[int, str, str]]:
    """The marks of a result row: sentence, kind and detail."""
    yield from ((one["sentence"], one["kind"], one["detail"]) for one in (*row["repairs"], *row.get("notes", ())))
    yield from ((int(number), "tags", "") for number, fit in row.get("word_fits", {}).items() if not fit)
    for number, texts in enumerate(zip(row["source"], row["translation"])):
        if list(map(has_text, texts)) == [True, False]:
            yield number, "empty", ""
    for number, (text, alone) in enumerate(zip(row["translation"], row.get("alone", ()))):
        if text != alone:
            yield number, CHANGED, f"alone it reads {alone}"
    scores = row.get("score", ())
    unsure = uncertain_sentences(scores, row["source"])
    yield from ((number, "uncertain", f"score {scores[number]:.2f}") for number in unsure)
