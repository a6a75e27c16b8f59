"""Card of the routing architecture."""

from .card_usage import FEI, ContextCard


class RoutingCard(ContextCard):
    """The sentences that words choose from, and the paper."""

    citations = (FEI,)

    def description(self):
        sides = ((self.config.past_context, "before"), (self.config.future_context, "after"))
        read = [f"the {f'{count} sentences' if count > 1 else 'sentence'} {side}" for count, side in sides if count]
        return (
            "An encoder-decoder Transformer whose words choose their context (Fei et al. 2022): in every encoder layer "
            f"a gate decides, word by word, what is taken from {' and '.join(read)} the current one."
        )
