"""Systems: one interface for models of this package, translation models of transformers, and language models."""

from hf_docmt.systems.causal import CausalSystem
from hf_docmt.systems.docmt import DocMTSystem
from hf_docmt.systems.prompts import Prompt
from hf_docmt.systems.seq2seq import Seq2SeqSystem
from hf_docmt.systems.system import ContextReach, System, kind_of, load_system, read_options, system_classes

__all__ = [
    "CausalSystem",
    "ContextReach",
    "DocMTSystem",
    "Prompt",
    "Seq2SeqSystem",
    "System",
    "kind_of",
    "load_system",
    "read_options",
    "system_classes",
]
