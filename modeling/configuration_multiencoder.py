"""Configuration of the multi-encoder architecture."""

from .configuration_context import IntegratedContextConfig


class MultiEncoderConfig(IntegratedContextConfig):
    """A second encoder for the context (Jean et al. 2017; as the baseline of Maka et al. 2024, section 5.2).

    `context_layers` is its depth, None = `encoder_layers`. Context is read on the source side. The default
    `integration` is `concatenate`, which Maka et al. found the best.
    """

    model_type = "docmt-multiencoder"
    reported_fields = (*IntegratedContextConfig.reported_fields, "integration", "context_gate", "context_layers")

    integration: str = "concatenate"
    context_layers: int | None = None
    least = {"context_layers": 1}

    def __post_init__(self, **kwargs):
        super().__post_init__(**kwargs)
        if self.context_layers is None:
            self.context_layers = self.encoder_layers


MultiEncoderConfig.register_for_auto_class()

__all__ = ["MultiEncoderConfig"]
