"""Configuration of the recurrent memory architecture."""

from .configuration_docmt import SIDES, SegmentConfig


class MemoryConfig(SegmentConfig):
    """Sentences that share a few vectors of memory, carried from one to the next (Feng et al. 2022).

    `memory_size` is d_M, the vectors of one memory (section 3.1). `memory_layers` are the layers that have one, from 0,
    or from the end with negative numbers; None = the last one (section 3.4). `memory_sides` is `both`, `source`
    (encoder only) or `target` (decoder only). `memory_residual` is the residual around output attention: `add`, the
    sentence state, as around every other sublayer, or `none`, equation 5 unchanged (see `MemoryUnit`).

    The context is the memory: `past_context` and `future_context` stay 0 and `view` is `window`, the sentence.
    """

    model_type = "docmt-memory"
    reported_fields = (
        *SegmentConfig.reported_fields,
        "memory_size",
        "memory_layers",
        "memory_sides",
        "memory_residual",
    )

    memory_size: int = 16
    memory_layers: list[int] | None = None
    memory_sides: str = "both"
    memory_residual: str = "add"
    choices, least = {"memory_sides": tuple(SIDES), "memory_residual": ("add", "none")}, {"memory_size": 1}

    def validate(self):
        super().validate()
        if self.view != "window" or self.past_context or self.future_context:
            raise ValueError(
                "the memory model reads one sentence at a time, its memory is the context: leave view='window' and no "
                f"past_context or future_context; got view={self.view!r}, past_context={self.past_context}, "
                f"future_context={self.future_context}."
            )
        for stack in ("encoder", "decoder"):
            self.layers_with_memory(stack)

    def context_reach(self):
        return f"all sentences before, in a memory of {self.memory_size} vectors: {SIDES[self.memory_sides]}"

    def layers_with_memory(self, stack: str) -> list[int]:
        """Numbers of the layers of the `encoder` or `decoder` that have a memory, from 0, in order."""
        if self.memory_sides not in ("both", {"encoder": "source", "decoder": "target"}[stack]):
            return []
        layers = [-1] if self.memory_layers is None else self.memory_layers
        depth = getattr(self, f"{stack}_layers")
        whole = isinstance(layers, list | tuple) and all(type(layer) is int for layer in layers)
        numbers = sorted({layer % depth for layer in layers if -depth <= layer < depth}) if whole else []
        if not numbers or len(numbers) != len(layers):
            raise ValueError(
                f"memory_layers must name different layers of the {stack}, from 0 to {depth - 1} or from -{depth} to "
                f"-1, at least one; got {self.memory_layers!r}."
            )
        return numbers


MemoryConfig.register_for_auto_class()

__all__ = ["MemoryConfig"]
