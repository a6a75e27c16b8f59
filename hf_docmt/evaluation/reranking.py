"""The best of several translations of the same documents, by minimum Bayes risk or scores of another program."""

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hf_docmt.evaluation.metrics.external import ExternalScore
from hf_docmt.evaluation.metrics.metric import TranslatedDocuments
from hf_docmt.evaluation.translation_files import translated_rows
from hf_docmt.files import DataError, data_name, display_path
from hf_docmt.messages import check_known
from hf_docmt.reports.columns import system_names

UNITS = ("sentence", "document")
METRICS = ("chrf", "bleu")


class Candidate(NamedTuple):
    """A translation of a sentence, the number of the file that it is from, and its score: more is better."""

    file: int
    text: str
    score: float


def reranked_rows(
    files: Sequence[str | Path],
    metric: str | Callable[[str, str], float] = "chrf",
    unit: str = "sentence",
    external: Sequence[tuple[str, str | Path]] = (),
) -> list[dict[str, Any]]:
    """Rows as `docmt translate` writes them, chosen among files of translations of the same documents.

        y* = argmax_h 1/N sum_n u(h, y_n)    (Kumar and Byrne 2004)

    over the N translations of a sentence: those of all files, and all `candidates` of a file that has some. `metric` is
    u: sentence-level `chrf` or `bleu` of sacrebleu, or a function of two texts. With `unit="document"` the files'
    documents are the hypotheses, the gain of one is the sum over its sentences: what a file decided for one sentence,
    such as a form of address, stays consistent in the others. Instead of the risk `external` has names and
    files of scores (see `ExternalScore`), one for each file; their `candidates` do not count then. `chosen` of a row
    names the files, of each sentence or of the document. A document that a file failed to translate is not its
    candidate.

    ValueError: one file without candidates, an unknown metric or unit, other numbers of scores than of files, scores of
    documents for sentences. DataError: files of other documents, or of other numbers of sentences.

    >>> for strategy in ("sentence", "sliding"):
    ...     write_translations(translate_corpus(model, tokenizer, documents, strategy=strategy), f"{strategy}.jsonl")
    >>> reranked_rows(["sentence.jsonl", "sliding.jsonl"], "bleu", unit="document")[0]["chosen"]
    'sentence'
    """
    check_known(unit, UNITS, "unit", "known are")
    if external and len(external) != len(files):
        raise ValueError(f"{len(external)} files of scores for {len(files)} of translations: give one for each")
    if len({name for name, _ in external}) > 1:
        names = ", ".join(name for name, _ in external)
        raise ValueError(f"scores of {names} do not compare: give those of one metric, a file for each system")
    systems = read_systems(files)
    if len(files) == 1 and (external or unit == "document" or not any(row.get("candidates") for row in systems[0])):
        raise ValueError(f"{display_path(files[0])} has one translation alone to choose from: give more systems")
    names, _ = system_names([Path(file) for file in files], [data_name(file) for file in files], None)
    score = scores_of_others(systems, external, unit) if external else mean_utility(metric)
    kind = external[0][0].partition(":")[0] if external else f"mbr-{metric if isinstance(metric, str) else 'custom'}"
    search = {"strategy": "rerank", "rerank": kind, "unit": unit, "systems": len(files)}
    rows = []
    for number, versions in enumerate(zip(*systems)):
        usable = [file for file, row in enumerate(versions) if not row.get("error")] or [0]
        sentences = [
            score(number, index, {file: versions[file] for file in usable})
            for index in range(len(versions[0]["translation"]))
        ]
        if unit == "document":
            own = [{one.file: one.score for one in reversed(candidates)} for candidates in sentences]
            totals = {file: sum(scores[file] for scores in own) for file in usable}
            best = max(usable, key=totals.__getitem__)
            rows.append({**versions[best], "search": search, "chosen": names[best]})
        else:
            chosen = [max(candidates, key=lambda candidate: candidate.score) for candidates in sentences]
            row = {**versions[usable[0]], "translation": [candidate.text for candidate in chosen], "search": search}
            rows.append(row | {"repairs": [], "chosen": [names[candidate.file] for candidate in chosen]})
        rows[-1].pop("candidates", None)
    return rows


Score = Callable[[int, int, dict[int, dict]], list[Candidate]]  # number of a document, of a sentence, rows by file


def mean_utility(metric: str | Callable[[str, str], float]) -> Score:
    """Candidates of a sentence with their mean utility against all of them; those of a file begin with its own."""
    utility = utility_of(metric) if isinstance(metric, str) else metric

    def score(number: int, index: int, versions: dict[int, dict]) -> list[Candidate]:
        own = {file: row["translation"][index] for file, row in versions.items()}
        found = {
            file: row["candidates"][index] if row.get("candidates") else [own[file]] for file, row in versions.items()
        }
        votes = Counter(text for texts in found.values() for text in texts)
        different = dict.fromkeys([*own.values(), *votes])
        sums = {text: sum(count * utility(text, other) for other, count in votes.items()) for text in different}
        texts = [(file, text) for file in versions for text in [own[file], *found[file]]]
        return [Candidate(file, text, sums[text] / votes.total()) for file, text in texts]

    return score


def utility_of(metric: str) -> Callable[[str, str], float]:
    """A sentence-level score of a hypothesis and a reference, by name."""
    check_known(metric, METRICS, "utility", "expected one of")
    from sacrebleu.metrics import BLEU, CHRF

    scorer = CHRF() if metric == "chrf" else BLEU(effective_order=True)
    return lambda hypothesis, reference: scorer.sentence_score(hypothesis, [reference]).score


def scores_of_others(systems: Sequence[list[dict]], external: Sequence[tuple[str, str | Path]], unit: str) -> Score:
    """Translations of a sentence with the scores that another program gave them; of a document for the first one."""
    ids = [row["doc_id"] for row in systems[0]]
    tables = []
    for rows, (name, path) in zip(systems, external):
        hypotheses = [row["translation"] for row in rows]
        measured = ExternalScore(name, path).measure(TranslatedDocuments(hypotheses, hypotheses, doc_ids=ids))
        entries = dict(measured.signature.entries)
        if unit == "sentence" and entries["segments"] != unit:
            raise ValueError(f"{display_path(path)} has scores of documents, which do not tell sentences apart")
        sign = -1 if entries["better"] == "lower" else 1
        tables.append([[sign * segment[0] for segment in document] for document in measured.statistics])

    def score(number: int, index: int, versions: dict[int, dict]) -> list[Candidate]:
        scores = {file: tables[file][number] for file in versions}
        return [
            Candidate(file, row["translation"][index], scores[file][index] if index < len(scores[file]) else 0.0)
            for file, row in versions.items()
        ]

    return score


def read_systems(files: Sequence[str | Path]) -> list[list[dict]]:
    """The rows of each file, in the order of the first. DataError: other documents, or sentences of a document."""
    first, *others = (translated_rows(file) for file in files)
    for rows, file in zip((first, *others), files):
        if unlike := first.keys() ^ rows.keys():
            raise DataError(
                f"{display_path(file)}: document {min(unlike)!r} is not in both this file and "
                f"{display_path(files[0])}; give translations of the same documents"
            )
        for doc_id, row in rows.items():
            sizes = len(row["translation"]), len(first[doc_id]["translation"])
            if sizes[0] != sizes[1]:
                raise DataError(
                    f"{display_path(file)}: document {doc_id!r} has {sizes[0]} sentences, in {display_path(files[0])} "
                    f"{sizes[1]}; give translations with a sentence for each of the source"
                )
            if (found := row.get("candidates")) and not are_of_sentences(found, sizes[0]):
                raise DataError(
                    f"{display_path(file)}: `candidates` of document {doc_id!r} must be a list of texts for each of "
                    f"its {sizes[0]} sentences, as docmt translate --nbest writes them; correct or remove them"
                )
    return [[rows[doc_id] for doc_id in first] for rows in (first, *others)]


def are_of_sentences(candidates: Any, sentences: int) -> bool:
    """Whether these are texts, one or more for each of `size` sentences."""
    lists = candidates if isinstance(candidates, list) and len(candidates) == sentences else [None]
    return all(isinstance(texts, list) and texts and all(isinstance(text, str) for text in texts) for texts in lists)
