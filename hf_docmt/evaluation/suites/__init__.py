"""Contrastive suites: items with one right and some wrong translations, a class for each published file format."""

from hf_docmt.evaluation.suites.averages import average_results, weighted_average
from hf_docmt.evaluation.suites.counts import counts_note
from hf_docmt.evaluation.suites.items import SuiteItem, labels_of
from hf_docmt.evaluation.suites.languages import check_language, check_languages
from hf_docmt.evaluation.suites.reading import read_suite, suite_class, suite_classes, suite_rules
from hf_docmt.evaluation.suites.suite import Suite

__all__ = [
    "Suite",
    "SuiteItem",
    "average_results",
    "check_language",
    "check_languages",
    "counts_note",
    "labels_of",
    "read_suite",
    "suite_class",
    "suite_classes",
    "suite_rules",
    "weighted_average",
]
