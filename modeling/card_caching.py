"""Card of the caching architecture."""

from .card_usage import ContextCard
from .model_card import sentences

SIDES = {
    "source": "the source",
    "target": "its own translations",
    "both": "the source and its own translations",
}
MAKA = """@inproceedings{maka-etal-2024-sequence,
  title = {Sequence Shortening for Context-Aware Machine Translation},
  author = {M{\\k{a}}ka, Pawe{\\l} and Semerci, Yusuf Can and Scholtes, Jan and Spanakis, Gerasimos},
  booktitle = {Findings of the Association for Computational Linguistics: EACL 2024},
  year = {2024}
}"""


class CachingCard(ContextCard):
    """Method, shortening and context of a model that keeps encoded sentences; its paper."""

    citations = (MAKA,)

    def description(self):
        config = self.config
        shortened = {
            "none": "",
            "sentence": ", as the mean of its tokens",
            "grouping": f", shortened to {config.shortening_size} vectors by latent grouping",
            "selecting": f", shortened to {config.shortening_size} vectors by latent selecting",
        }
        pooled = f", {config.shortening_size} neighbouring tokens pooled to one ({config.shortening})"
        return (
            "An encoder-decoder Transformer with cached context (Maka et al. 2024, Sequence Shortening for "
            "Context-Aware Machine Translation): each sentence is encoded once, and kept as context for those around it"
            f"{shortened.get(config.shortening, pooled)}. The decoder reads {sentences(config.past_context)} before "
            f"the current one and {sentences(config.future_context)} after it, of {SIDES[config.context_sides]}."
        )
