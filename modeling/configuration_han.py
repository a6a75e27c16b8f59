"""Configuration of hierarchical attention networks."""

from .configuration_context import ContextConfig

SIDES = {"encoder": "source", "decoder": "both", "joint": "both"}  # of the previous sentences


class HanConfig(ContextConfig):
    """Attention to the words of each sentence before, then to these sentences (Miculicich et al. 2018).

    `hierarchical_attention` is where it applies: `encoder` (encoder states read those of previous sentences), `decoder`
    (decoder states those of previous translations) or `joint` (both). It sets `context_sides`, or follows from it:
    `encoder` reads the `source`, the others `both`, since decoder states of a translation are made from its source.
    The default is the `encoder`, with the three sentences of the paper.
    """

    model_type = "docmt-han"
    reported_fields = (*ContextConfig.reported_fields, "hierarchical_attention")

    past_context: int = 3
    context_sides: str | None = None
    hierarchical_attention: str | None = None
    choices = {"context_sides": ("source", "both"), "hierarchical_attention": tuple(SIDES)}

    def __post_init__(self, **kwargs):
        if self.hierarchical_attention is None:
            self.hierarchical_attention = "joint" if self.context_sides == "both" else "encoder"
        if self.context_sides is None:
            self.context_sides = SIDES.get(self.hierarchical_attention, "source")
        super().__post_init__(**kwargs)

    def validate(self):
        super().validate()
        expected = SIDES[self.hierarchical_attention]
        if self.context_sides != expected:
            raise ValueError(
                f"hierarchical_attention={self.hierarchical_attention!r} reads context_sides={expected!r}, got "
                f"{self.context_sides!r}: omit one of the two."
            )
        if self.hierarchical_attention == "decoder" and self.future_context:
            raise ValueError(
                "translations are known of past sentences only, got hierarchical_attention='decoder' with "
                f"future_context={self.future_context}: use 0, or another hierarchical_attention."
            )


HanConfig.register_for_auto_class()

__all__ = ["HanConfig"]
