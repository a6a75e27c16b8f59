"""Configuration of the concatenation architecture."""

from .configuration_docmt import SegmentConfig


class ConcatConfig(SegmentConfig):
    """Concatenation of sentences, with every sentence-position encoding of Lupo et al. (2023).

    `segment_encoding` (section 2.1) is `none`, `shift` (positions jump by `segment_shift` at every new sentence; None
    means the average length of a source sentence of the training data in tokens with the separator, rounded up, which
    training finds and stores; the constants of the paper, 8, 21 and 27, are lengths in words), `onehot`, `sinusoidal`
    or `learned`. `persistent` (section 2.2) adds the encoding to the input of every block, not of the first alone.
    `pse_dim` (section 2.3, d_SE) > 0 puts the segment encoding in the last `pse_dim` dimensions of a
    position-segment embedding instead of adding it.

    `start_sentence` is the sentence whose segment embedding the decoder's start token gets: the `first` of the window,
    or the `current` one (number 1), as in the authors' released code.
    """

    model_type = "docmt-concat"
    reported_fields = (*SegmentConfig.reported_fields, "segment_encoding")

    segment_encoding: str = "none"
    segment_shift: int | None = None
    persistent: bool = False
    pse_dim: int = 0
    start_sentence: str = "first"
    choices = {
        "segment_encoding": ("none", "shift", "onehot", "sinusoidal", "learned"),
        "start_sentence": ("first", "current"),
    }
    least = {"pse_dim": 0, "segment_shift": 0}

    def validate(self):
        super().validate()
        if self.view == "chunk" and self.segment_encoding in ("onehot", "learned"):
            raise ValueError(
                f"segment_encoding={self.segment_encoding!r} numbers the sentences of a window, but view='chunk' has "
                "no fixed number of them: use 'shift', 'sinusoidal' or 'none'."
            )
        if self.pse_dim and self.segment_encoding in ("none", "shift"):
            raise ValueError(
                f"pse_dim={self.pse_dim} fuses a segment embedding with the positions, but segment_encoding is "
                f"{self.segment_encoding!r}: use 'onehot', 'sinusoidal' or 'learned', or pse_dim=0."
            )
        if self.pse_dim % 2 or self.pse_dim >= self.d_model:
            raise ValueError(f"pse_dim must be even and below d_model={self.d_model}, got {self.pse_dim}.")
        if (self.pse_dim or self.segment_encoding == "shift") and self.position_type == "learned":
            raise ValueError(
                "segment-shifted positions and position-segment embeddings are defined for sinusoidal positions; got "
                "position_type='learned'."
            )
        if self.segment_encoding == "sinusoidal" and self.d_model % 2:
            raise ValueError(f"segment_encoding='sinusoidal' needs an even d_model, got {self.d_model}.")
        if self.segment_encoding == "onehot" and self.window_size > (self.pse_dim or self.d_model):
            raise ValueError(
                f"one-hot segment embeddings of {self.pse_dim or self.d_model} dimensions cannot number "
                f"{self.window_size} sentences: raise pse_dim."
            )
        if self.segment_encoding == "learned" and not self.tie_word_embeddings:
            raise ValueError(
                "segment_encoding='learned' has one table for encoder and decoder, which transformers shares only with "
                "tie_word_embeddings=True, got False: use 'sinusoidal' or 'onehot'."
            )
        if self.persistent and self.segment_encoding == "none":
            raise ValueError("persistent=True needs a segment_encoding other than 'none'.")


ConcatConfig.register_for_auto_class()

__all__ = ["ConcatConfig"]
