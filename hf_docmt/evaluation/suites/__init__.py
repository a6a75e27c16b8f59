"""Contrastive suites: items with one right and some wrong translations, a class for each published file format."""

from hf_docmt.evaluation.suites.suite import Suite, average_results, counts_note, read_suite, suite_rules
from hf_docmt.evaluation.suites.suite_files import check_language, check_languages, items_digest, labels_of
from hf_docmt.systems.items import SuiteItem

__all__ = [
    "Suite",
    "SuiteItem",
    "average_results",
    "check_language",
    "check_languages",
    "counts_note",
    "items_digest",
    "labels_of",
    "read_suite",
    "suite_rules",
]
