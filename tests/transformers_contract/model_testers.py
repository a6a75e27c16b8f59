"""Tiny models and their inputs, as the tests of transformers ask for them; Marian's beside ours."""

from functools import cache
from tempfile import TemporaryDirectory

import torch
from support.tiny_models import context_fields
from transformers import AutoModelForSeq2SeqLM, MarianConfig, MarianModel, MarianMTModel

from hf_docmt.loading import registry

PAD, BOS, EOS, SEP = 0, 2, 3, 4  # as our configurations have them by default
FIRST_WORD, SHRUNK = 6, 84  # ids that stay when the tests take 15 of 99 away
ROWS, LENGTH, SENTENCES, SLOTS = 13, 7, 2, 3
SIZES = {
    "vocab_size": 99,
    "d_model": 16,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 24,
    "decoder_ffn_dim": 24,
    "max_position_embeddings": 50,
    "dropout": 0.1,
    "attention_dropout": 0.1,
}
FIELDS = context_fields(  # besides the sizes
    han={"context_sides": "both"}, memory={"memory_size": SLOTS}, routing={"future_context": 0}, window={"window": 2}
)
ARCHITECTURES = tuple(FIELDS)


def words(*shape: int) -> torch.Tensor:
    return torch.randint(FIRST_WORD, SHRUNK, shape)


def mask_of(*shape: int) -> torch.Tensor:
    return torch.ones(shape, dtype=torch.long)


def batch() -> dict[str, torch.Tensor]:
    """Sentences of words alone, all of one length."""
    return {
        "input_ids": words(ROWS, LENGTH),
        "attention_mask": mask_of(ROWS, LENGTH),
        "decoder_input_ids": words(ROWS, LENGTH),
        "decoder_attention_mask": mask_of(ROWS, LENGTH),
    }


def segment_context(inputs: dict) -> dict[str, torch.Tensor]:
    """The same tokens as three sentences, with two separators on each side."""
    separated = {name: inputs[name].clone() for name in ("input_ids", "decoder_input_ids")}
    for ids, places in zip(separated.values(), ([1, 3], [2, 4])):
        ids[:, places] = SEP
    return separated


def sentence_context(inputs: dict) -> dict[str, torch.Tensor]:
    """Two sentences before the current one, (B, C, L)."""
    ids = words(ROWS, SENTENCES, LENGTH)
    ids[..., -1] = EOS
    return {
        "context_input_ids": ids,
        "context_attention_mask": mask_of(ROWS, SENTENCES, LENGTH),
        "context_offsets": torch.arange(-SENTENCES, 0).expand(ROWS, SENTENCES).contiguous(),
    }


def memory_context(inputs: dict) -> dict[str, torch.Tensor]:
    """What a sentence before has left, (B, M, D)."""
    return {name: torch.randn(ROWS, SLOTS, SIZES["d_model"]) for name in ("encoder_memory", "decoder_memory")}


class ModelTester:
    """What `ModelTesterMixin` asks: sizes, a configuration, inputs. A subclass says of what."""

    batch_size, seq_length = ROWS, LENGTH
    encoder_seq_length = decoder_seq_length = key_length = decoder_key_length = LENGTH
    hidden_size, vocab_size, num_hidden_layers = SIZES["d_model"], SIZES["vocab_size"], SIZES["encoder_layers"]
    num_attention_heads, pad_token_id = SIZES["encoder_attention_heads"], PAD
    is_training = True

    def __init__(self, parent):
        self.parent = parent

    def prepare_config_and_inputs_for_common(self):
        return self.get_config(), self.inputs()


class MarianTester(ModelTester):
    """The control: a model of transformers' own, of the same sizes."""

    name, config_class, model_classes = "marian", MarianConfig, (MarianModel, MarianMTModel)

    def get_config(self):
        ids = {"pad_token_id": PAD, "bos_token_id": BOS, "eos_token_id": EOS, "decoder_start_token_id": BOS}
        return MarianConfig(**SIZES, **ids)

    def inputs(self):
        return batch()


class DocumentTester(ModelTester):
    """One of our architectures, with or without context."""

    architecture: str
    with_context: bool

    def get_config(self):
        return self.config_class(**SIZES, **FIELDS[self.architecture])

    def inputs(self):
        inputs = batch()
        return inputs | self.context(inputs) if self.with_context else inputs

    def context(self, inputs):
        entry = registry.get(self.architecture)
        if entry.separate_context:
            return sentence_context(inputs)
        return memory_context(inputs) if entry.carries_state else segment_context(inputs)


@cache
def exported_class(architecture: str) -> type:
    """The class with a head, by the code of a folder that was saved with it."""
    own = registry.get(architecture).model_class
    with TemporaryDirectory() as folder:
        own(own.config_class(**SIZES, **FIELDS[architecture])).save_pretrained(folder)
        model = AutoModelForSeq2SeqLM.from_pretrained(folder, trust_remote_code=True)
    assert type(model).__module__.startswith("transformers_modules.") and type(model) is not own
    return type(model)


def document_tester(architecture: str, with_context: bool) -> type[DocumentTester]:
    """The tester class of an architecture, for the classes that a folder of it brings along."""
    model_class = exported_class(architecture)
    fields = {
        "name": f"{architecture}{' with context' if with_context else ''}",
        "architecture": architecture,
        "with_context": with_context,
        "config_class": model_class.config_class,
        "model_classes": (model_class.model_class, model_class),
    }
    return type("Tester", (DocumentTester,), fields)


TESTERS = [MarianTester] + [document_tester(name, context) for name in ARCHITECTURES for context in (False, True)]
