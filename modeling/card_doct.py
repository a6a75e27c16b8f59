"""Card of the Document Transformer."""

from .card_usage import FEI, ContextCard
from .model_card import sentences

ZHANG = """@inproceedings{zhang-etal-2018-improving,
  title = {Improving the Transformer Translation Model with Document-Level Context},
  author = {Zhang, Jiacheng and Luan, Huanbo and Sun, Maosong and Zhai, Feifei and Xu, Jingfang and Zhang, Min and
            Liu, Yang},
  booktitle = {Proceedings of the 2018 Conference on Empirical Methods in Natural Language Processing},
  year = {2018},
  url = {https://aclanthology.org/D18-1049}
}"""


class DocTCard(ContextCard):
    """Context, gate and papers of a Document Transformer."""

    @property
    def citations(self):
        return (ZHANG, FEI) if self.config.selection == "routing" else (ZHANG,)

    def description(self):
        config = self.config
        after = f" and {sentences(config.future_context)} after it" if config.future_context else ""
        routed = ", each word choosing among the sentences (Fei et al. 2022)" if config.selection == "routing" else ""
        return (
            "A Document Transformer (Zhang et al. 2018, [Improving the Transformer Translation Model with "
            "Document-Level Context](https://aclanthology.org/D18-1049)): a context encoder reads "
            f"{sentences(config.past_context)} of the source before the current one{after}, and every layer of encoder "
            f"and decoder takes from it through a gate{routed}."
        )
