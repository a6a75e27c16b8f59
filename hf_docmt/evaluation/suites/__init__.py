"""Contrastive suites: items with one right and some wrong translations, a class for each published file format."""

from hf_docmt.evaluation.suites.suite import (
    Suite as Suite,
    average_results as average_results,
    counts_note as counts_note,
    read_suite as read_suite,
    suite_rules as suite_rules,
)
from hf_docmt.evaluation.suites.suite_files import (
    check_language as check_language,
    check_languages as check_languages,
    items_digest as items_digest,
    labels_of as labels_of,
)
from hf_docmt.systems.items import SuiteItem as SuiteItem
