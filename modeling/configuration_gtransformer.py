"""Configuration of the G-Transformer architecture."""

from .configuration_docmt import SegmentConfig


class GTransformerConfig(SegmentConfig):
    """Segments of which a token sees its own sentence, and in the top layers the whole (Bao et al. 2021, section 4).

    `global_layers` is the number of top layers of encoder and decoder with global attention in addition to group
    attention; 2 of 6 in the paper. With 0 no sentence sees another one. `global_layers_encoder` and
    `global_layers_decoder` (of self-attention) and `global_layers_cross` (of attention to the source) set another
    number, each where it is not None, as in the released code. There a segment is filled with sentences up to 512
    tokens on either side (`view="chunk"`).

    `restarts_positions`: positions restart in every sentence, as in a sentence-level model that training
    goes on from; not of the paper. Learned positions still have to reach over the whole segment.
    """

    model_type = "docmt-gtransformer"
    is_in_decoder_self_attention = True

    global_layers: int = 2
    global_layers_encoder: int | None = None
    global_layers_decoder: int | None = None
    global_layers_cross: int | None = None
    restarts_positions: bool = False
    least = dict.fromkeys(("global_layers", "global_layers_encoder", "global_layers_decoder", "global_layers_cross"), 0)

    def validate(self):
        super().validate()
        for name in self.least:
            most = self.decoder_layers if name.endswith(("_decoder", "_cross")) else self.encoder_layers
            most = min(most, self.decoder_layers) if name == "global_layers" else most
            if (getattr(self, name) or 0) > most:
                raise ValueError(f"{name} must be a number from 0 to {most}, got {getattr(self, name)}.")
        if self.context_sides == "source":
            raise ValueError(
                "group attention attends from each target sentence to the source sentence with the same index, got "
                "context_sides='source', which has only one target sentence: use context_sides='both'."
            )

    def context_reach(self):
        numbers = [self.global_layers_of(part) for part in ("encoder", "decoder", "cross")]
        if not any(numbers):
            return "none: sentences of a segment do not see each other (global_layers=0)"
        top = max(numbers) if len(set(numbers)) == 1 else "{} (encoder), {} (decoder), {} (cross)".format(*numbers)
        return f"{super().context_reach()}; across sentences in the top {top} layers"

    def global_layers_of(self, part: str) -> int:
        """How many of the top layers have global attention in self-attention of `encoder` or `decoder`, or `cross`."""
        number = getattr(self, f"global_layers_{part}")
        return self.global_layers if number is None else number


GTransformerConfig.register_for_auto_class()

__all__ = ["GTransformerConfig"]
