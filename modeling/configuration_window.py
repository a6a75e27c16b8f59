"""Configuration of the window attention architecture."""

from .configuration_docmt import SegmentConfig

ALIGNMENTS = ("one_to_one", "linear", "sentence")


class WindowConfig(SegmentConfig):
    """Attention to the tokens around one position (Herold and Ney 2023, section 3.3).

    `window` is w: a token sees w tokens before it and, in the encoder, w after it; of the source a target token sees
    the one it is aligned to and w on either side. `position` is `relative` (learned vectors r_{i-j} in self-attention,
    no others) or `absolute` (the encodings of `position_type` at the input). `alignment` is what decoding and scoring
    align to the source by: `one_to_one`, `linear` (by `length_ratio`, source tokens per target token; None means the
    average of the training data, which training finds and stores) or `sentence` (from the start of the source sentence
    with the same number); training has the lengths of both sides and takes their ratio. Validation while a model is
    trained is scoring, so its loss, by which the best checkpoint is chosen, is that of `alignment`, which search uses;
    the paper does not say which one it validates with.

    Through E encoder and D decoder layers a prediction depends on w D target tokens before the last one, and on the
    source from w (E + D) tokens before the aligned one to w (E + 1) after it (with `one_to_one`): 2 w E + w D + w + 1
    tokens. The paper's effective context size, 2 w E + w D, omits the w of the attention to the source.

    `sees_all`: every token sees the whole segment, `window` only limits how far relative vectors distinguish positions,
    the farthest ones serving beyond it as in Shaw et al. (2018): concatenation with relative positions, which the paper
    found not to converge (table 4, "N/A").
    """

    model_type = "docmt-window"
    is_in_decoder_self_attention = True
    neutral_fields = {"position": "absolute"}  # positions at the input, as the backbone has them

    window: int = 20
    position: str = "relative"
    alignment: str = "sentence"
    length_ratio: float | None = None
    sees_all: bool = False
    choices, least = {"position": ("relative", "absolute"), "alignment": ALIGNMENTS}, {"window": 1}

    def validate(self):
        super().validate()
        if self.length_ratio is not None and self.length_ratio <= 0:
            raise ValueError(f"length_ratio must be above 0 or null, got {self.length_ratio}.")
        if self.context_sides == "source":
            raise ValueError(
                "window attention aligns the whole target with the whole source, got context_sides='source': use "
                "context_sides='both'."
            )
        if self.position == "relative" and self.position_type == "learned":
            raise ValueError(
                "position='relative' replaces encodings at the input, got position_type='learned': use "
                "position='absolute', or omit position_type."
            )

    def _check_positions(self):
        """Relative positions add nothing to the states."""
        if self.position != "relative":
            super()._check_positions()

    def context_reach(self):
        if self.sees_all:
            return super().context_reach()
        return f"{super().context_reach()}; attention to {self.window} tokens on either side"


WindowConfig.register_for_auto_class()

__all__ = ["WindowConfig"]
