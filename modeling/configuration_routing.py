"""Configuration of the routing architecture."""

from .configuration_context import ContextConfig


class RoutingConfig(ContextConfig):
    """Previous and next sentences; a gate selects for every word what it needs from them (Fei et al. 2022).

    Every encoder layer has a context layer. `past_context` 1 and `future_context` 1 is the paper's offline
    model, `future_context` 0 the online one; more sentences on either side are its future work.

    `selection_weighs` says what the gate of a word weighs: `attention`, what attention gives that word from each
    sentence, or `states`, the states of the sentences at the word's own position, equation 12 unchanged. Both have the
    same parameters; see `SelectedAttention` and `SelectedStates`.
    """

    model_type = "docmt-routing"
    reported_fields = (*ContextConfig.reported_fields, "selection_weighs")
    selects_by_word = True

    past_context: int = 1
    future_context: int = 1
    selection_weighs: str = "attention"
    choices = ContextConfig.choices | {"selection_weighs": ("attention", "states")}

    def validate(self):
        super().validate()
        if not self.past_context and not self.future_context:
            raise ValueError("routing chooses context sentences: got past_context=0 and future_context=0, set one.")


RoutingConfig.register_for_auto_class()

__all__ = ["RoutingConfig"]
