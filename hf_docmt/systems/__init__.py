"""Systems: one interface for models of this package, translation models of transformers, and language models.

Classes are imported when they are first used: not all need torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hf_docmt.systems.causal import CausalSystem
    from hf_docmt.systems.docmt import DocMTSystem
    from hf_docmt.systems.prompts import Prompt
    from hf_docmt.systems.seq2seq import Seq2SeqSystem
    from hf_docmt.systems.system import ContextReach, System, kind_of, load_system, read_options, system_classes

MODULES = {"CausalSystem": "causal", "DocMTSystem": "docmt", "Prompt": "prompts", "Seq2SeqSystem": "seq2seq"}
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


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{MODULES.get(name, 'system')}"), name)
