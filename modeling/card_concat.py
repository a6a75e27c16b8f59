"""Card of the concatenation architecture."""

from .card_usage import SegmentCard

ENCODINGS = {
    "shift": "segment-shifted positions",
    "onehot": "one-hot segment embeddings",
    "sinusoidal": "sinusoidal segment embeddings",
    "learned": "learned segment embeddings",
}
TIEDEMANN = """@inproceedings{tiedemann-scherrer-2017-neural,
  title = {Neural Machine Translation with Extended Context},
  author = {Tiedemann, J{\\"o}rg and Scherrer, Yves},
  booktitle = {Proceedings of the Third Workshop on Discourse in Machine Translation},
  year = {2017},
  url = {https://aclanthology.org/W17-4811}
}"""
LUPO = """@inproceedings{lupo-etal-2023-encoding,
  title = {Encoding Sentence Position in Context-Aware Neural Machine Translation with Concatenation},
  author = {Lupo, Lorenzo and Dinarelli, Marco and Besacier, Laurent},
  booktitle = {The Fourth Workshop on Insights from Negative Results in NLP},
  year = {2023},
  url = {https://aclanthology.org/2023.insights-1.4}
}"""


class ConcatCard(SegmentCard):
    """View, encoding of sentence positions, papers of a model that reads joined sentences; the baseline's, too."""

    @property
    def citations(self):
        return (TIEDEMANN,) if self.config.segment_encoding == "none" else (TIEDEMANN, LUPO)

    def description(self):
        parts = [
            "An encoder-decoder Transformer that reads sentences of a document as one sequence (Tiedemann and Scherrer "
            "2017, [Neural Machine Translation with Extended Context](https://aclanthology.org/W17-4811)).",
            self.view_description()
            or "It is set to no context: the sentence-level baseline of the document-level models.",
            self.encoding_description(),
        ]
        return " ".join(filter(None, parts))

    def encoding_description(self) -> str:
        """How tokens know their sentence."""
        config = self.config
        if config.segment_encoding == "none":
            return ""
        details = ENCODINGS[config.segment_encoding]
        if config.persistent:
            details += ", added again before every block"
        if config.pse_dim:
            details += f", fused with the positions in the last {config.pse_dim} dimensions"
        return (
            f"Tokens carry the position of their sentence ({details}), after Lupo et al. 2023, [Encoding Sentence "
            "Position in Context-Aware Neural Machine Translation with Concatenation]"
            "(https://aclanthology.org/2023.insights-1.4)."
        )
