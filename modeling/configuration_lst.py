"""Configuration of the long-short term architecture."""

from .configuration_docmt import SegmentConfig


class LstConfig(SegmentConfig):
    """Segments with self-attention over the whole segment and within each sentence.

    Long-short term attention (Herold and Ney 2023, section 3.2); it has no fields of its own. There segments are
    chunks of up to 1000 target tokens (`view="chunk"`).
    """

    model_type = "docmt-lst"
    is_in_decoder_self_attention = True


LstConfig.register_for_auto_class()

__all__ = ["LstConfig"]
