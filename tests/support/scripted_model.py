"""A model that writes what a script says, and keeps what it was asked."""

from contextlib import nullcontext

import torch
from transformers import GenerationConfig
from transformers.modeling_outputs import BaseModelOutput

from hf_docmt.modeling.configuration_concat import ConcatConfig
from hf_docmt.modeling.generation_docmt import DocumentTranslation
from hf_docmt.modeling.segment_translator import SegmentTranslator
from support.tiny_models import BOD, BOS, EOS, PAD, SEP, SIZES

DOCUMENT = ["w6 w7", "w8", "", "w9 w10 w11", "  ", "w12"]
TRANSLATION = ["w18 w19", "w20", "", "w21 w22 w23", "", "w24"]  # every word is translated by the one twelve later
WINDOW = {"past_context": 2}
CHUNK = {"view": "chunk", "chunk_tokens": 7}


class Scripted(DocumentTranslation):
    """Writes the true translation of every segment, or what `faults` says for a certain source."""

    translator_class = SegmentTranslator
    device = "cpu"

    def __init__(self, faults: dict[tuple, list[int]] | None = None, **fields):
        self.config = ConcatConfig(**SIZES | fields)
        self.generation_config = GenerationConfig(eos_token_id=[EOS, BOS], pad_token_id=PAD)
        self.faults, self.calls = faults or {}, []

    def modules(self):
        return ()

    def unchanged_weights(self):
        return nullcontext()

    def get_encoder(self):
        return lambda input_ids, attention_mask, **_: BaseModelOutput(last_hidden_state=input_ids[..., None].float())

    def prompt_cache(self):
        return self

    def get_seq_length(self):
        """As a cache it says that something was read."""
        return 1

    def keep(self, sources, length):
        """As a cache it is asked to keep the first beam of every row."""

    def batch_select_indices(self, rows):
        """As a cache it is asked to keep some rows."""

    def generate(
        self, attention_mask, generation_config, stopping_criteria, logits_processor, input_ids=None, **options
    ):
        encoder_outputs = options.pop("encoder_outputs", None)
        eos_token_id, max_new_tokens = generation_config.eos_token_id, generation_config.max_new_tokens - 1
        assert generation_config.num_return_sequences == 1 and not generation_config.return_dict_in_generate
        (limits,) = stopping_criteria
        options["num_beams"] = generation_config.num_beams
        prompts, prompt_mask = (options.pop(f"decoder_{name}", None) for name in ("input_ids", "attention_mask"))
        ids = encoder_outputs.last_hidden_state[..., 0].long() if input_ids is None else input_ids
        if prompts is None:
            prompts = torch.full((len(ids), 1), BOS)
            prompt_mask = torch.ones_like(prompts)
        self.calls.append([])
        new = []
        for source, mask, prompt, kept in zip(ids, attention_mask, prompts, prompt_mask):
            source, prompt = source[mask.bool()].tolist(), prompt[kept.bool()].tolist()
            self.calls[-1].append((source, prompt, max_new_tokens, options))
            limit = int(limits.row_ends[len(new)]) - prompts.shape[1]
            new.append(self.answer(source, prompt.count(SEP), eos_token_id)[: min(limit, max_new_tokens)])
        width = max(map(len, new))
        new = torch.tensor([row + [PAD] * (width - len(row)) for row in new], dtype=torch.long).view(len(new), width)
        return torch.cat([prompts, new], dim=1)

    def answer(self, source: list[int], written: int, stops: list[int]) -> list[int]:
        """Ids of the translation behind so many sentences, through the first stop token."""
        sentences = sentences_of(source)
        if self.config.context_sides == "source":
            sentences = [sentences[len(sentences) - 1 - self.config.future_context]]
        target = [id for sentence in sentences for id in [*translated(sentence), SEP]][:-1] + [EOS]
        target = self.faults.get(tuple(source), target)
        for _ in range(written):
            target = target[target.index(SEP) + 1 :]
        end = next((index for index, id in enumerate(target) if id in stops), len(target))
        return target[: end + 1]

    @property
    def sources(self) -> list[list[int]]:
        return [source for call in self.calls for source, *_ in call]

    @property
    def prompts(self) -> list[list[int]]:
        return [prompt for call in self.calls for _, prompt, *_ in call]


def sentences_of(source: list[int]) -> list[list[int]]:
    assert source[-1] == EOS
    sentences = [[]]
    for id in source[:-1]:
        if id == SEP:
            sentences.append([])
        elif id != BOD:
            sentences[-1].append(id)
    return sentences


def translated(sentence: list[int]) -> list[int]:
    return [(id - 6 + 12) % 24 + 6 for id in sentence]


def segment(*sentences: str, start: tuple = (), end: tuple = (EOS,)) -> list[int]:
    """Ids of a segment of written-out sentences."""
    ids = [[int(word[1:]) for word in sentence.split()] for sentence in sentences]
    return [*start, *[id for sentence in ids for id in [*sentence, SEP]][:-1], *end]


def prefix(*sentences: str, bod: bool = False) -> list[int]:
    """Ids of a decoder prompt with earlier translations."""
    return [BOS, *[BOD] * bod, *(segment(*sentences, end=(SEP,)) if sentences else [])]
