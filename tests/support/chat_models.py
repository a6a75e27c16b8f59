"""Chat templates in the manner of Gemma and Qwen, a tokenizer of bytes that has their tokens, and tiny models."""

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    MambaConfig,
    MambaForCausalLM,
    PreTrainedTokenizerFast,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from support.pretrained_models import randomised

GEMMA = (
    "{{ bos_token }}{% for m in messages %}<start_of_turn>{{ 'model' if m['role'] == 'assistant' else m['role'] }}\n"
    "{{ m['content'] | trim }}<end_of_turn>\n{% endfor %}"
    "{% if add_generation_prompt %}<start_of_turn>model\n{% endif %}"
)
QWEN = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n"
    "{% if m['role'] == 'assistant' and loop.last %}<think>\n\n</think>\n\n{% endif %}"
    "{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n"
    "{% if enable_thinking is defined and enable_thinking is false %}<think>\n\n</think>\n\n{% endif %}{% endif %}"
)
TEMPLATES = {"gemma": GEMMA, "qwen": QWEN}
SPECIAL = ["<pad>", "<s>", "</s>", "<start_of_turn>", "<end_of_turn>", "<|im_start|>", "<|im_end|>"]
SIZES = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2}
SIZES |= {"num_key_value_heads": 1, "head_dim": 8, "max_position_embeddings": 1024}
IDS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "vocab_size": len(SPECIAL) + 256}
MODELS = {  # name -> class and configuration; Gemma's first layer sees 8 tokens
    "llama": lambda: LlamaForCausalLM(LlamaConfig(**SIZES, **IDS)),
    "gemma": lambda: Gemma3ForCausalLM(
        Gemma3TextConfig(
            **SIZES, **IDS, sliding_window=8, layer_types=["sliding_attention", "full_attention"],
            final_logit_softcapping=5.0,
        )
    ),
    "qwen": lambda: Qwen3ForCausalLM(Qwen3Config(**SIZES, **IDS)),
    "gpt2": lambda: GPT2LMHeadModel(GPT2Config(n_embd=16, n_layer=2, n_head=2, n_positions=1024, **IDS)),
    "mamba": lambda: MambaForCausalLM(MambaConfig(hidden_size=16, num_hidden_layers=2, state_size=4, **IDS)),
}  # fmt: skip


def byte_tokenizer(template: str | None = None) -> PreTrainedTokenizerFast:
    """A token for every byte, and the special ones of all templates."""
    names = [*SPECIAL, *sorted(pre_tokenizers.ByteLevel.alphabet())]
    tokenizer = Tokenizer(models.BPE({name: index for index, name in enumerate(names)}, []))
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    tokenizer.add_special_tokens(SPECIAL)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", bos_token="<s>", eos_token="</s>",
        clean_up_tokenization_spaces=False,
    )  # fmt: skip
    fast.chat_template = template
    return fast


def causal_model(name: str, seed: int = 0):
    """A random model of one of `MODELS`."""
    torch.manual_seed(seed)
    return randomised(MODELS[name](), seed)
