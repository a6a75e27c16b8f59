"""Configuration shared by the architectures that read context sentences as sequences of their own."""

from .configuration_docmt import DocMTConfig


class ContextConfig(DocMTConfig):
    """The context sentences of the current one.

    `past_context` sentences before the current one and `future_context` after it; fewer may be given. `context_sides`
    is `source`; some architectures read earlier translations, too (`target`, `both`).
    """

    past_context: int = 1
    future_context: int = 0
    context_sides: str = "source"
    choices = {"context_sides": ("source",)}
    least = {"past_context": 0, "future_context": 0}

    def context_reach(self):
        return self.sentence_reach()

    @property
    def known_offsets(self) -> list[int]:
        """Offsets of the source sentences that may be given, in order of the document."""
        return [*range(-self.past_context, 0), *range(1, self.future_context + 1)]


class IntegratedContextConfig(ContextConfig):
    """How the decoder reads the context.

    `integration` is `sequential` (a sublayer of context attention after attention to the source), `parallel` (next to
    it) or `concatenate` (attention to the source reads context and source as one); `context_gate` weighs what context
    attention adds, token by token. `missing_context` is read instead of a missing context sentence,
    as at the start of a document, or is blank: `none`, or `eos`, a lone `</s>` as in the released code of Maka et al.
    (2024). A joined context is one `</s>` if all its sentences are missing.

    The gate of Maka et al. (2024), equation 5, is on what context attention returns. The released code has it on the
    sum of attention and residual, after the norm: so does `parallel` here; `sequential` keeps to the equation (no
    published row has a gate there). With the norm before, `parallel` adds the residual once, where the released code,
    of which only the norm after is published, would add it twice.
    """

    integration: str = "sequential"
    context_gate: bool = False
    missing_context: str = "none"
    choices = {"integration": ("sequential", "parallel", "concatenate"), "missing_context": ("none", "eos")}

    def validate(self):
        super().validate()
        if self.context_gate and self.integration == "concatenate":
            raise ValueError(
                "context_gate=True weighs the output of context attention, which integration='concatenate' has not: "
                "use 'sequential' or 'parallel', or context_gate=False."
            )


__all__ = ["ContextConfig", "IntegratedContextConfig"]
