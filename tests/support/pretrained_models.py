"""Tiny models of other packages' classes, as users load them from the Hub."""

import torch
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    M2M100Config,
    M2M100ForConditionalGeneration,
    MarianConfig,
    MarianMTModel,
    MBartConfig,
    MBartForConditionalGeneration,
)

from hf_docmt.loading import registry

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
VOCABULARY = 40
SENTENCE_SIZES = SIZES | {
    "vocab_size": VOCABULARY,
    "decoder_layers": 3,
    "decoder_attention_heads": 4,
    "decoder_ffn_dim": 20,
    "max_position_embeddings": 32,
}
SENTENCE_MODELS = {
    "marian": (MarianMTModel, MarianConfig, {"pad_token_id": 39, "eos_token_id": 0, "decoder_start_token_id": 39}),
    "bart": (BartForConditionalGeneration, BartConfig, {}),
    "mbart": (MBartForConditionalGeneration, MBartConfig, {"decoder_start_token_id": 30, "scale_embedding": True}),
    "m2m_100": (M2M100ForConditionalGeneration, M2M100Config, {"scale_embedding": True}),
}


def sentence_model(family, **fields):
    """A tiny model of one of `SENTENCE_MODELS`, with random weights also where initial values are zeros or ones."""
    model_class, config_class, special = SENTENCE_MODELS[family]
    torch.manual_seed(0)
    model = model_class(config_class(**SENTENCE_SIZES | special | fields)).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "norm" in name or "bias" in name:
                parameter.add_(torch.randn_like(parameter) * 0.1)
        if hasattr(model, "final_logits_bias"):
            model.final_logits_bias.normal_()
    return model


def logits(model, pad, **inputs):
    """Logits of a batch with rows of different length."""
    torch.manual_seed(1)
    source, target = torch.randint(4, 30, (3, 9)), torch.randint(4, 30, (3, 7))
    mask = torch.ones_like(source)
    source[1, 6:], mask[1, 6:] = pad, 0
    with torch.no_grad():
        return model(input_ids=source, attention_mask=mask, decoder_input_ids=target, **inputs).logits


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


def context_inputs(model, rows):
    """Inputs with something to read besides the sentence, for models that take it."""
    torch.manual_seed(3)
    if registry.for_config(model.config).carries_state:
        slots = {"encoder_memory": model.config.encoder_layers, "decoder_memory": model.config.decoder_layers}
        return {name: torch.randn(rows, model.config.memory_size, model.config.d_model) for name in slots}
    ids = torch.randint(4, 30, (rows, 1, 5))
    offsets = torch.full((rows, 1), -1)
    return {"context_input_ids": ids, "context_attention_mask": torch.ones_like(ids), "context_offsets": offsets}
