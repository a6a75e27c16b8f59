"""Systems: models of this package, any translation model of transformers and language models, behind one interface."""

from hf_docmt.evaluation.systems.causal import CausalSystem
from hf_docmt.evaluation.systems.docmt import DocMTSystem
from hf_docmt.evaluation.systems.interface import System
from hf_docmt.evaluation.systems.loading import KINDS, load_system
from hf_docmt.evaluation.systems.prompts import Prompt
from hf_docmt.evaluation.systems.seq2seq import Seq2SeqSystem

__all__ = ["KINDS", "CausalSystem", "DocMTSystem", "Prompt", "Seq2SeqSystem", "System", "load_system"]
