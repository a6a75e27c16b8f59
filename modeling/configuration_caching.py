"""Configuration of the caching architecture."""

from .configuration_context import IntegratedContextConfig

PAPER = {  # Maka et al. (2024), section 5.2: what is best for each shortening, and so the default
    "none": {},
    "sentence": {"integration": "parallel", "context_gate": True, "include_current": True},
    "avg": {"include_current": True, "shortening_size": 2},
    "max": {"include_current": True, "shortening_size": 2},
    "linear": {"include_current": True, "shortening_size": 2},
    "grouping": {
        "include_current": True,
        "shortening_size": 9,
        "encoder_gradient": True,
        "shortening_gradient": 2,
    },
    "selecting": {
        "include_current": True,
        "shortening_size": 10,
        "encoder_gradient": True,
        "shortening_gradient": 1,
    },
}


class CachingConfig(IntegratedContextConfig):
    """Context sentences that went through the same encoder as the current one, kept and shortened (Maka et al. 2024).

    `shortening` is `none` (Caching Tokens), `sentence` (their mean, Caching Sentence), `avg`, `max` or `linear`
    (pooling of K neighbours), `grouping` or `selecting` (K groups); `shortening_size` is K. `pooling_padding`: average
    and maximum ignore positions after a sentence's end (`ignored`), or read `zeros` as in the released code.
    `categorizer` and `categorizer_dim` are the function and the hidden units of the network that assigns tokens to
    groups.
    `include_current` adds the shortened current sentence to the context. With `encoder_gradient` the gradient flows
    from the context into the encoder; only from the nearest `shortening_gradient` sentences it flows into the
    shortening. The current sentence always gives its gradient. Fields that are None take the paper's value for the
    `shortening`; that of `shortening_gradient` is 2 for `grouping`, 1 for `selecting`, and all sentences for others.
    """

    model_type = "docmt-caching"
    reported_fields = (
        *IntegratedContextConfig.reported_fields,
        "integration",
        "shortening",
        "shortening_size",
        "context_gate",
        "include_current",
    )

    shortening: str = "none"
    shortening_size: int | None = None
    pooling_padding: str = "ignored"
    categorizer: str = "sparsemax"
    categorizer_dim: int = 512
    include_current: bool | None = None
    integration: str | None = None
    context_gate: bool | None = None
    encoder_gradient: bool | None = None
    shortening_gradient: int | None = None
    choices = {
        "context_sides": ("source", "target", "both"),
        "shortening": tuple(PAPER),
        "pooling_padding": ("ignored", "zeros"),
        "categorizer": ("softmax", "sparsemax"),
    }
    least = {"categorizer_dim": 1, "shortening_size": 1, "shortening_gradient": 0}
    dependent_fields = {"shortening": {name for values in PAPER.values() for name in values}}

    def __post_init__(self, **kwargs):
        others = {"integration": "sequential", "context_gate": False, "include_current": False}
        if self.integration == "concatenate" and self.context_gate is None:
            self.context_gate = False
        for name, value in (others | {"encoder_gradient": False} | PAPER.get(self.shortening, {})).items():
            if getattr(self, name) is None:
                setattr(self, name, value)
        super().__post_init__(**kwargs)

    def validate(self):
        super().validate()
        if self.shortening_size is not None and self.shortening in ("none", "sentence"):
            raise ValueError(
                f"shortening={self.shortening!r} has no size, got shortening_size={self.shortening_size}: omit it."
            )
        if self.include_current and self.shortening == "none":
            raise ValueError(
                "include_current=True adds the shortened current sentence, which the model would read twice with "
                "shortening='none': choose a shortening, or include_current=False."
            )
        if self.context_sides != "source" and not self.share_encoder_decoder_embeddings:
            raise ValueError(
                f"context_sides={self.context_sides!r} reads translations with the encoder, which needs one vocabulary "
                "for both languages: set share_encoder_decoder_embeddings=True or context_sides='source'."
            )
        if self.missing_context == "eos" and self.context_sides != "source":
            raise ValueError(
                "missing_context='eos' is defined for context of the source; got context_sides="
                f"{self.context_sides!r}: use 'none'."
            )
        if self.context_sides == "target" and self.future_context:
            raise ValueError(
                f"translations are known of past sentences only, got context_sides='target' with future_context="
                f"{self.future_context}: use 0, or context_sides='both'."
            )

    @property
    def groups_tokens(self) -> bool:
        """Whether tokens are assigned to groups."""
        return self.shortening in ("grouping", "selecting")

    @property
    def segment_rows(self) -> list[tuple[str, int]]:
        """Rows of the segment embedding: past, current and future sentences of the source, past ones of the target."""
        source = [("source", offset) for offset in range(-self.past_context, self.future_context + 1)]
        target = [("target", offset) for offset in range(-self.past_context, 0)]
        return source if self.context_sides == "source" else source + target


CachingConfig.register_for_auto_class()

__all__ = ["CachingConfig"]
