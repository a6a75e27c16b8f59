"""Contrastive suites: items with one right and some wrong translations, from the published file formats."""

from hf_docmt.evaluation.suites.averages import average_results
from hf_docmt.evaluation.suites.items import SuiteItem, labels_of
from hf_docmt.evaluation.suites.published import TIES, check_language, check_languages, counts_note
from hf_docmt.evaluation.suites.reader import FORMATS, read_suite

__all__ = [
    "FORMATS",
    "TIES",
    "SuiteItem",
    "average_results",
    "check_language",
    "check_languages",
    "counts_note",
    "labels_of",
    "read_suite",
]
