"""Card of the architecture with recurrent memory."""

from .card_usage import MemoryCard

FENG = """@inproceedings{feng-etal-2022-learn,
  title = {Learn To Remember: Transformer with Recurrent Memory for Document-Level Machine Translation},
  author = {Feng, Yukun and Li, Feng and Song, Ziang and Zheng, Boyuan and Koehn, Philipp},
  booktitle = {Findings of the Association for Computational Linguistics: NAACL 2022},
  year = {2022}
}"""
SIDES = {"both": "encoder and decoder", "source": "the encoder", "target": "the decoder"}


class RecurrentMemoryCard(MemoryCard):
    """Size and sides of a recurrent memory, its paper, and that it fades."""

    citations = (FENG,)

    def description(self):
        config = self.config
        return (
            "An encoder-decoder Transformer with recurrent memory (Feng et al. 2022, Learn To Remember): it reads one "
            f"sentence at a time, and {config.memory_size} vectors in {SIDES[config.memory_sides]} carry what earlier "
            "sentences said. A document of any length is translated at the cost of its sentences; "
            "`model.translate_stream(sentences, tokenizer)` translates sentences as they come and keeps nothing but "
            "the memory."
        )

    def limits(self):
        return [*super().limits(), "The memory has a fixed size: what was said long ago fades."]
