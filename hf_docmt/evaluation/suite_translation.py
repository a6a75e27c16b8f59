"""Contrastive suites translated: their items as documents, and scores of the current sentences."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from hf_docmt.evaluation.contrast import read_items
from hf_docmt.evaluation.contrastive_accuracy import by_group
from hf_docmt.evaluation.item_records import ItemRecords
from hf_docmt.evaluation.metrics.metric import Metric, ScoreSettings, TranslatedDocuments, default_metrics, metric_class
from hf_docmt.evaluation.metrics.pronoun_f1 import PronounF1
from hf_docmt.evaluation.metrics.tagging import tag
from hf_docmt.evaluation.suites import SuiteItem, check_language
from hf_docmt.evaluation.translation_scores import Evaluation
from hf_docmt.reports.report import Report
from hf_docmt.reports.result import Result
from hf_docmt.reports.signature import Signature
from hf_docmt.systems import System


def suite_translation_report(
    system: System,
    suite: str | Path,
    *,
    discourse: Sequence[str] = (),
    tagger: str = "spacy",
    details: str | Path | None = None,
    **reading,
) -> Report:
    """The report of a system's translations of a suite's current sentences, as in Table 6 of Herold and Ney (2023).

    Every item is translated as a document with the context, before and after, that the system reads, by the search
    that it does; its right candidate is the reference. Scored are s-BLEU, chrF and TER, and what `discourse` names,
    such as `pronouns`: the pronoun F1 of that table. `details` is a `ItemRecords` with every translation, `reading` are
    the options of `read_items`. ValueError: a suite of other languages than the system's, unknown measures, a tagger
    that is not installed.
    """
    file = ItemRecords(details)
    items, split, note = read_items(suite, system.context, **reading)
    check_language(items, *system.languages)
    languages = [own or other for own, other in zip(items[0].languages, system.languages)]
    _, further = Evaluation(discourse=discourse, tagger=tagger).metrics_for(*languages)
    for metric in further:
        for function in metric.taggers if isinstance(metric, PronounF1) else ():  # before hours of work
            tag(function, ["."])
    results = _results(system, items, _translations(system, items, file), split, languages, further)
    results = [result.with_details(note) for result in results]
    return Report(model=system.describe(), data={"suites": [Path(suite).name]}, results=results)


def suite_documents(items: Sequence[SuiteItem]) -> list[list[str]]:
    """The source of every item as a document: the context before, the current sentence, the context after."""
    return [[*item.source, *item.source_after] for item in items]


def current_sentences(items: Sequence[SuiteItem], outputs: Sequence[Sequence[str]]) -> list[str]:
    """The translation of every item's current sentence, from its translated document.

    ValueError: another number of documents, or of sentences in one.
    """
    for item, document, output in zip(items, suite_documents(items), outputs, strict=True):
        if isinstance(output, str) or len(output) != len(document):
            raise ValueError(f"{item.where}: got {output!r}, expected a list of {len(document)} translated sentences")
    return [output[len(item.source) - 1] for item, output in zip(items, outputs)]


def _translations(system: System, items: Sequence[SuiteItem], file: ItemRecords) -> list[str]:
    """The translations of the current sentences, as far as possible from the file of details."""

    def find(part: Sequence[SuiteItem]) -> list[dict]:
        outputs = system.translate(suite_documents(part))
        return [
            {
                "suite": item.suite,
                "source_after": list(item.source_after),
                "output": list(output),
                "translation": translation,
                "reference": item.candidates[item.correct],
            }
            for item, output, translation in zip(part, outputs, current_sentences(part, outputs))
        ]

    records = file.records(items, find, system, **system.decoding)
    file.finish()
    return [record["translation"] for record in records]


def _results(
    system: System,
    items: Sequence[SuiteItem],
    translations: Sequence[str],
    split: str,
    languages: Sequence[str | None],
    further: Sequence[Metric],
) -> list[Result]:
    """Scores; the current sentences of one document are resampled as one, an item without one alone."""
    groups = by_group(items, range(len(items)))
    documents = TranslatedDocuments(
        [[translations[n] for n in group] for group in groups.values()],
        [[items[n].candidates[items[n].correct] for n in group] for group in groups.values()],
        [[items[n].source[-1] for n in group] for group in groups.values()],
        list(groups),
        dataset=items[0].suite,
        split=split,
        source_lang=languages[0],
        target_lang=languages[1],
        **system.decoding,
    )
    default = [metric_class(name)() for name in default_metrics() if metric_class(name).segment == "sentence"]
    results = [result for metric in (*default, *further) for result in metric.score(documents, ScoreSettings())]
    made = Signature.of(system.context.entries())
    return [replace(result, signature=made + result.signature) for result in results]
