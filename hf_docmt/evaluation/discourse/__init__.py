"""Discourse metrics of translated documents: pronouns, forms of address, connectives, terms."""

from hf_docmt.evaluation.discourse.connectives import (
    connective_result,
    connective_table,
    connectives_of,
    count_connectives,
)
from hf_docmt.evaluation.discourse.consistency import term_consistency
from hf_docmt.evaluation.discourse.pronouns import pronoun_f1
from hf_docmt.evaluation.discourse.tagging import SpacyTagger, load_tagger

__all__ = [
    "SpacyTagger",
    "connective_result",
    "connective_table",
    "connectives_of",
    "count_connectives",
    "load_tagger",
    "pronoun_f1",
    "term_consistency",
]
