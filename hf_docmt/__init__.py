"""Document-level machine translation for HuggingFace Transformers."""

__version__ = "0.1.0"
