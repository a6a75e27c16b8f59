"""Models, tokenizers and documents of the scripts here: random weights, random words, one token per word."""

import tempfile
from collections.abc import Mapping
from zlib import crc32

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from torch import nn
from transformers import MarianConfig, MarianMTModel, PreTrainedModel, PreTrainedTokenizerFast

import hf_docmt

SPECIAL_TOKENS = ["<pad>", "<unk>", "<s>", "</s>", "<sep>", "<bod>"]  # ids 0 to 5
EOS, SEP = 3, 4
SENTENCE = 25  # tokens of a random sentence
NEVER = -1e9  # logit bias of a token that is never chosen


def layer_sizes(d_model: int, layers: int, attention_heads: int, ffn_dim: int) -> dict[str, int]:
    """The fields of a configuration whose encoder and decoder have the same sizes."""
    sizes = {"layers": layers, "attention_heads": attention_heads, "ffn_dim": ffn_dim}
    sides = {f"{side}_{name}": size for side in ("encoder", "decoder") for name, size in sizes.items()}
    return {"d_model": d_model, **sides}


SIZES = {  # sizes of the layers, and of the vocabulary
    "base": (layer_sizes(512, 6, 8, 2048), 32000),  # Transformer-base, Vaswani et al. 2017, table 3
    "small": (layer_sizes(256, 3, 4, 1024), 8000),
    "tiny": (layer_sizes(32, 2, 2, 64), 2100),
}
# post-norm layers and scaled embeddings with sinusoidal positions, as in the paper; token ids of our tokenizers
COMMON = {
    "activation_function": "relu",
    "scale_embedding": True,
    "dropout": 0.1,
    "pad_token_id": 0,
    "bos_token_id": 2,
    "eos_token_id": EOS,
    "decoder_start_token_id": 2,
}


def random_model(architecture: str, size: str, **fields) -> PreTrainedModel:
    """A model for evaluation that never chooses a special token; weights of equal names are equal in all of them."""
    entry = hf_docmt.get_architecture(architecture)
    sizes, vocab_size = SIZES[size]
    model = entry.model_class(entry.config_class(vocab_size=vocab_size, **sizes, **fields)).eval()
    for name, parameter in model.named_parameters():
        if parameter.dim() > 1:
            generator = torch.Generator().manual_seed(crc32(name.encode()))
            nn.init.normal_(parameter, std=model.config.init_std, generator=generator)
    model.final_logits_bias[:, : len(SPECIAL_TOKENS)] = NEVER
    return model


def marian_pair(size: str, **fields) -> tuple[PreTrainedModel, MarianMTModel]:
    """Our concatenation model and transformers' Marian with the same random weights, in training mode."""
    sizes, vocab_size = SIZES[size]
    torch.manual_seed(1)
    peer = MarianMTModel(MarianConfig(vocab_size=vocab_size, forced_eos_token_id=None, **sizes, **COMMON))
    concat = hf_docmt.get_architecture("concat")
    ours = concat.model_class(concat.config_class(vocab_size=vocab_size, **sizes, **COMMON, **fields))
    loaded = ours.load_state_dict(peer.state_dict(), strict=False)
    if loaded.missing_keys:
        raise RuntimeError(f"the models do not have the same weights: {loaded.missing_keys}")
    return ours, peer


def word_tokenizer(vocab_size: int) -> PreTrainedTokenizerFast:
    """One token for every word `w6`, `w7`, ..., no subwords."""
    names = [*SPECIAL_TOKENS, *(f"w{number}" for number in range(len(SPECIAL_TOKENS), vocab_size))]
    backend = Tokenizer(models.WordLevel({name: number for number, name in enumerate(names)}, unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    backend.post_processor = processors.TemplateProcessing("$A </s>", special_tokens=[("</s>", EOS)])
    special = dict(zip(("pad_token", "unk_token", "bos_token", "eos_token", "sep_token"), SPECIAL_TOKENS))
    more = {"extra_special_tokens": SPECIAL_TOKENS[5:], "split_special_tokens": True}
    return PreTrainedTokenizerFast(tokenizer_object=backend, clean_up_tokenization_spaces=False, **special, **more)


def served(model: PreTrainedModel, precision: str = "fp32", device: str = "cpu") -> tuple[PreTrainedModel, object]:
    """The model as `load_model` gives it, and its tokenizer: what the command translates with."""
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        word_tokenizer(model.config.vocab_size).save_pretrained(folder)
        loaded, tokenizer = hf_docmt.load_model(folder)
    if precision == "int8":
        loaded.quantize("int8")
    return loaded.to(device, torch.bfloat16 if precision == "bf16" else torch.float32), tokenizer


def random_documents(documents: int, sentences: int, size: str, tokens: int = SENTENCE) -> list[list[str]]:
    """Documents of sentences with this number of random words."""
    ids = torch.randint(len(SPECIAL_TOKENS), SIZES[size][1], (documents, sentences, tokens))
    return [[" ".join(f"w{word}" for word in sentence) for sentence in document] for document in ids.tolist()]


def random_segment(tokens: int, vocab_size: int) -> torch.Tensor:
    """The ids of a document of random sentences with their separators, (1, tokens)."""
    ids = torch.randint(len(SPECIAL_TOKENS), vocab_size, (1, tokens))
    ids[:, SENTENCE - 1 :: SENTENCE] = SEP
    ids[:, -1] = EOS
    return ids


def training_step(model: PreTrainedModel, batch: Mapping[str, torch.Tensor], bf16: bool = False) -> None:
    """Forward and backward pass, without the update."""
    with torch.autocast(model.device.type, torch.bfloat16, enabled=bf16):
        loss = model(**batch).loss
    loss.backward()
