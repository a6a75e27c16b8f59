"""Translation of documents sentence by sentence, without batches and caches: what strategies are compared with."""

import torch
from transformers import LogitsProcessor

from support.tiny_models import BOD, BOS, EOS, PAD, SEP, UNK, word_tokenizer


class Restless(LogitsProcessor):
    """Random preferences by the last token and the number of tokens, so that untrained models say different things."""

    def __init__(self):
        self.table = torch.randn(5, 30, 30, generator=torch.Generator().manual_seed(0)) * 1.5
        self.table[:, :, [SEP, EOS]] += 2.5
        self.table[:, :, [PAD, UNK, BOS, BOD]] -= 20

    def __call__(self, input_ids, scores):
        return scores + self.table[(input_ids > BOS).sum(1) % 5, input_ids[:, -1]]  # PAD and BOS may be holes


def settings(beams: dict) -> dict:
    """Options of `generate` for tiny untrained models."""
    return {**beams, "max_new_tokens": 8, "logits_processor": [Restless()]}


class Slow:
    """One sentence of one document at a time, everything computed anew."""

    def __init__(self, model, beams: dict):
        self.model, self.config, self.options = model, model.config, settings(beams)
        self.tokenizer = word_tokenizer()

    def ids(self, sentences: list[str]) -> list[list[int]]:
        return [self.tokenizer(sentence, add_special_tokens=False)["input_ids"] for sentence in sentences]

    def generate(
        self, sentences: list[list[int]], before: list[list[int]], bod: bool, target_bod: bool, stops
    ) -> list[int]:
        source = [BOD] * bod + [id for sentence in sentences for id in [*sentence, SEP]][:-1] + [EOS]
        prompt = [BOS] + [BOD] * target_bod + [id for sentence in before for id in [*sentence, SEP]]
        ids = self.model.generate(
            input_ids=torch.tensor([source]),
            decoder_input_ids=torch.tensor([prompt]),
            use_cache=False,
            eos_token_id=stops,
            **self.options,
        )[0, len(prompt) :].tolist()
        return ids[: next((length for length, id in enumerate(ids) if id in stops), None)]

    def in_order(self, document: list[str], strategy: str = "chunk_sequential", k: int | None = None) -> list[str]:
        """Sentence by sentence: windows that slide, or the chunk that the sentence is in (`chunk_sequential`).

        With `sequential` k sentences before and the current one, or as many as fit into a chunk.
        """
        source, target = self.ids(document), []
        for index in range(len(source)):
            if strategy == "sequential" and (self.config.view == "chunk" or k is not None):
                first, end, missing = index - min(index, self.fitting(source, index) if k is None else k), index + 1, 0
            elif self.config.view == "chunk":
                first, end, missing = *self.chunk(source, index), 0
            else:
                first, end = max(0, index - self.config.past_context), index + 1 + self.config.future_context
                missing = max(0, end - len(source))
            both = self.config.context_sides == "both"
            bod = self.config.use_bod and first == 0
            target.append(
                self.generate(
                    source[first:end] + [[]] * missing,
                    target[first:index] if both else [],
                    bod,
                    bod if both else bod and index == 0,
                    [EOS, SEP],
                )
            )
        return [self.tokenizer.decode(ids, skip_special_tokens=True) for ids in target]

    def fitting(self, source: list[list[int]], index: int) -> int:
        """The most sentences before that fit into a chunk with the current one."""
        sizes = [sum(len(ids) + 1 for ids in source[index - k : index + 1]) for k in range(index + 1)]
        return max((k for k, size in enumerate(sizes) if size <= self.config.chunk_tokens), default=0)

    def chunk(self, source: list[list[int]], index: int) -> tuple[int, int]:
        """First sentence and end of the part: the fewest parts, none over the limit, cut nearest to equal shares."""
        borders = [sum(len(ids) + 1 for ids in source[:number]) for number in range(len(source) + 1)]
        limit = max(self.config.chunk_tokens, *(len(ids) + 1 for ids in source))
        for shares in range(-(-borders[-1] // limit), 100):
            places = [borders[-1] * share / shares for share in range(shares + 1)]
            cuts = {min(range(len(borders)), key=lambda cut: abs(borders[cut] - place)) for place in places}
            sizes = [borders[end] - borders[first] for first, end in zip(sorted(cuts), sorted(cuts)[1:])]
            if max(sizes) <= limit:
                break
        return max(cut for cut in cuts if cut <= index), min(cut for cut in cuts if cut > index)
