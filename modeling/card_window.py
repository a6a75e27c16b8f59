"""Card of the window attention architecture."""

from .card_usage import HEROLD, SegmentCard

ALIGNMENTS = {
    "one_to_one": "the one with the same position",
    "linear": "by the ratio of lengths in the training data",
    "sentence": "each target sentence begins with its source sentence",
}


class WindowCard(SegmentCard):
    """Window, alignment, positions and view of a model of window attention; its paper."""

    citations = (HEROLD,)

    def description(self):
        config = self.config
        relative = config.position == "relative"
        positions = "learned vectors of the distance in self-attention" if relative else "absolute"
        return (
            "An encoder-decoder Transformer in which every attention sees the tokens around one position only (Herold "
            "and Ney 2023, Improving Long Context Document-Level Machine Translation). A token sees "
            f"{config.window} tokens on either side, of the target only those before it, and {config.window} on either "
            f"side of the source token that it is aligned to ({ALIGNMENTS[config.alignment]}). Positions are "
            f"{positions}. "
        ) + (self.view_description() or "It is set to no context: sentences are translated alone.")
