"""Configuration of the Document Transformer architecture."""

from .configuration_context import ContextConfig


class DocTConfig(ContextConfig):
    """A context encoder, and context attention with a gate in every encoder and decoder layer (Zhang et al. 2018).

    `context_layers` is the depth of the context encoder. `selection` is `none`, the context joined to one sequence, or
    `routing`, each context sentence for itself with the word's own choice among them (Fei et al. 2022, section 5.4,
    DocT+AS).

    Departure: the embeddings of context get `dropout` like those of the current sentence, in the released code of Zhang
    et al. (2018) they get none.
    """

    model_type = "docmt-doct"
    reported_fields = (*ContextConfig.reported_fields, "context_layers", "selection")

    past_context: int = 2
    context_layers: int = 1
    selection: str = "none"
    choices, least = {"selection": ("none", "routing")}, {"context_layers": 1}

    @property
    def selects_by_word(self) -> bool:
        """Whether every word selects among the context sentences."""
        return self.selection == "routing"

    def validate(self):
        super().validate()
        if not self.past_context and not self.future_context:
            raise ValueError("the model reads context: got past_context=0 and future_context=0, set one.")


DocTConfig.register_for_auto_class()

__all__ = ["DocTConfig"]
