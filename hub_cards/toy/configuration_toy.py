"""Configuration of the toy architecture."""

from .configuration_docmt import SegmentConfig


class ToyConfig(SegmentConfig):
    """Windows or chunks of sentences; fields of the mechanism go here, with their types and defaults."""

    model_type = "docmt-toy"


ToyConfig.register_for_auto_class()

__all__ = ["ToyConfig"]
