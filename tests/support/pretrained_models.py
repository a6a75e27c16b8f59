"""Tiny models of other packages' classes, as users load them from the Hub."""

import torch
from transformers import (
    M2M100Config,
    M2M100ForConditionalGeneration,
    MBartConfig,
    MBartForConditionalGeneration,
    MBartTokenizer,
    NllbTokenizer,
)

SIZES = {
    "d_model": 16,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 24,
    "decoder_ffn_dim": 24,
    "init_std": 0.5,
    "max_position_embeddings": 128,
}
LETTERS = ["▁", *"abcdefghij", "▁der", "▁die"]
NLLB_VOCAB = {token: index for index, token in enumerate(["<s>", "<pad>", "</s>", "<unk>", *LETTERS, "▁d", "er"])}


def multilingual(family):
    """A tiny model of `mbart` or `nllb`, its tokenizer, and two of its language codes."""
    if family == "mbart":
        vocab = [(token, -float(index)) for index, token in enumerate(["<s>", "<pad>", "</s>", "<unk>", *LETTERS])]
        tokenizer = MBartTokenizer(vocab=vocab)
        config = MBartConfig(**SIZES, vocab_size=len(tokenizer), scale_embedding=True)
        return randomised(MBartForConditionalGeneration(config)), tokenizer, ("en_XX", "ro_RO")
    merges = [("▁", "d"), ("e", "r")] if "r" in NLLB_VOCAB else []
    tokenizer = NllbTokenizer(vocab=dict(NLLB_VOCAB), merges=merges)
    ends = {"pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2}
    config = M2M100Config(**SIZES, **ends, vocab_size=len(tokenizer))
    return randomised(M2M100ForConditionalGeneration(config)), tokenizer, ("eng_Latn", "fra_Latn")


def randomised(model, seed=0):
    """The model with larger random weights, so that its scores differ, in evaluation mode."""
    torch.manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:  # not Marian's sines
                parameter.add_(torch.randn_like(parameter) * 0.3)
    return model.eval()


def saved(folder, model, tokenizer):
    """The folder, with model and tokenizer in it."""
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
