"""Card of the architecture with long-short term attention."""

from .card_usage import HEROLD, SegmentCard


class LstCard(SegmentCard):
    """Attention, view and paper of a model of long-short term attention."""

    citations = (HEROLD,)

    def description(self):
        return (
            "An encoder-decoder Transformer that reads sentences of a document as one sequence, with long-short term "
            "attention (as in Herold and Ney 2023, Improving Long Context Document-Level Machine Translation): encoder "
            "and decoder self-attention look at the whole segment and, a second time, at the own sentence only, and "
            "one linear layer joins both. "
        ) + (self.view_description() or "It is set to no context, where both are the same.")
