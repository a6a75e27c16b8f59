"""Configuration of the G-Transformer architecture."""

from .configuration_docmt import SegmentConfig


class GTransformerConfig(SegmentConfig):
    """Segments of which a token sees its own sentence, and in the top layers the whole (Bao et al. 2021, section 4).

    `global_layers` is how many of the top layers of encoder and decoder have global attention beside group attention;
    2 of 6 in the paper. With 0 no sentence sees another one. There segments are as many sentences as fit into 512
    tokens of either side (`view="chunk"`).

    `restarts_positions`: positions begin anew with every sentence, as those of a sentence-level model that training
    goes on from; not of the paper. Learned positions still have to reach over the whole segment.
    """

    model_type = "docmt-gtransformer"
    is_in_decoder_self_attention = True

    global_layers: int = 2
    restarts_positions: bool = False
    least = {"global_layers": 0}

    def validate(self):
        super().validate()
        most = min(self.encoder_layers, self.decoder_layers)
        if self.global_layers > most:
            raise ValueError(
                f"global_layers must be a number from 0 to {most}, the layers of the shallower one of encoder and "
                f"decoder, got {self.global_layers}."
            )
        if self.context_sides == "source":
            raise ValueError(
                "group attention reads the source sentence with the number of the target sentence, got "
                "context_sides='source', where the target has one sentence alone: use context_sides='both'."
            )

    def context_reach(self):
        if not self.global_layers:
            return "none: sentences of a segment do not see each other (global_layers=0)"
        return f"{super().context_reach()}; across sentences in the top {self.global_layers} layers"


GTransformerConfig.register_for_auto_class()

__all__ = ["GTransformerConfig"]
