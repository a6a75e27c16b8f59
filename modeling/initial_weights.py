"""Initial weights as fairseq draws them, from which the published numbers of models trained with it come."""

from torch import nn
from transformers import initialization as init

from .configuration_docmt import DocMTConfig


def init_as_fairseq(module: nn.Module, config: DocMTConfig) -> None:
    """Draw the weights of a linear layer or an embedding, D = `d_model`, by its `init_role` where it has one.

    Embeddings and output layer (`logits`) N(0, 1/D), zeros for padding; of sentences (`segments`, Lupo et al.) N(0, 1).
    In attention Xavier-uniform: `projection` (Q, K, V) with the factor 1/sqrt(2) and biases U(-1/sqrt(D), 1/sqrt(D)),
    `attention_output` with bias 0. Other linear layers, of the feed-forward network and of mechanisms, with
    `fairseq_0.9` Xavier-uniform and bias 0, else (fairseq from 0.10 on) weights and biases U(-1/sqrt(n), 1/sqrt(n)) of
    n inputs.
    """
    role = getattr(module, "init_role", None)
    if isinstance(module, nn.Embedding) or role == "logits":
        init.normal_(module.weight, std=1.0 if role == "segments" else config.d_model**-0.5)
        if getattr(module, "padding_idx", None) is not None:
            init.zeros_(module.weight[module.padding_idx])
        return
    bound = module.in_features**-0.5  # torch's own for linear layers
    if role is None and config.init != "fairseq_0.9":
        init.uniform_(module.weight, -bound, bound)
    else:
        init.xavier_uniform_(module.weight, gain=2**-0.5 if role == "projection" else 1.0)
    if module.bias is not None:
        if role == "projection" or (role is None and config.init != "fairseq_0.9"):
            init.uniform_(module.bias, -bound, bound)
        else:
            init.zeros_(module.bias)
