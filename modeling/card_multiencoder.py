"""Card of the architecture with a second encoder."""

from .card_usage import ContextCard
from .model_card import sentences

JEAN = """@article{jean-etal-2017-does,
  title = {Does Neural Machine Translation Benefit from Larger Context?},
  author = {Jean, Sebastien and Lauly, Stanislas and Firat, Orhan and Cho, Kyunghyun},
  journal = {arXiv preprint arXiv:1704.05135},
  year = {2017},
  url = {https://arxiv.org/abs/1704.05135}
}"""


class MultiEncoderCard(ContextCard):
    """Context of the second encoder, and its paper."""

    citations = (JEAN,)

    def description(self):
        return (
            "An encoder-decoder Transformer with a second encoder for the context (Jean et al. 2017, [Does Neural "
            "Machine Translation Benefit from Larger Context?](https://arxiv.org/abs/1704.05135)). It reads "
            f"{sentences(self.config.past_context)} of the source before the current one and "
            f"{sentences(self.config.future_context)} after it, joined to one sequence."
        )
