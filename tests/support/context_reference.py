"""Slow references of the architectures with separate context sentences, and documents to compare them on."""

import torch
from torch.nn import functional as F

from hf_docmt import registry
from support.reference import attention, position_vector, reference_stack, weights_of
from support.tiny_models import random_text

CONTEXT = ("context_input_ids", "context_attention_mask", "context_offsets", "context_is_target")
LATENT = {"categorizer_dim": 6, "shortening_size": 3}
DOCUMENTS = [
    random_text([3, 1, 4, 2, 3, 5], seed=11),
    random_text([2, 2], seed=12),
    [],
    random_text([4, 1, 1], seed=13),
]


def sentences_of(batch: dict) -> list[dict]:
    """Rows of a batch as lists: source, target, context as (offset, is it of the target, ids)."""
    rows = []
    for row, (ids, mask) in enumerate(zip(batch["input_ids"], batch["attention_mask"])):
        seen = batch["decoder_attention_mask"][row].sum()
        context = [
            (int(offset), bool(is_target), sentence[: kept.sum()].tolist())
            for offset, is_target, sentence, kept in zip(
                batch["context_offsets"][row],
                batch["context_is_target"][row],
                batch["context_input_ids"][row],
                batch["context_attention_mask"][row],
            )
            if kept.any()
        ]
        source, target = ids[: mask.sum()].tolist(), batch["decoder_input_ids"][row][:seen].tolist()
        rows.append({"source": source, "target": target, "context": context})
    return rows


def plain_size(config) -> int:
    """Parameters of the plain Transformer with the vocabulary of this configuration."""
    concat = registry.get("concat")
    return concat.model_class(concat.config_class(vocab_size=config.vocab_size)).num_parameters()


def normalized(kind: str, scores: torch.Tensor) -> torch.Tensor:
    """Softmax, or sparsemax by trying every number of nonzero weights."""
    if kind == "softmax":
        return scores.exp() / scores.exp().sum()
    order = sorted(range(len(scores)), key=lambda index: -scores[index].item())
    for count in range(len(scores), 0, -1):
        chosen = order[:count]
        threshold = (scores[chosen].sum() - 1) / count
        if all(scores[index] > threshold for index in chosen):
            return torch.stack([scores[i] - threshold if i in chosen else scores[i] * 0 for i in range(len(scores))])
    raise AssertionError("one nonzero weight is always possible")


def positions(model, length: int) -> torch.Tensor:
    """The position vectors of the encoder, (length, D)."""
    return torch.stack([position_vector(model, t, "encoder") for t in range(length)])


def layer_outputs(model, ids: list[int], segment: torch.Tensor) -> list[torch.Tensor]:
    """Of a context sentence the output of every context layer, normalised where layers normalise their input."""
    config, outputs = model.config, []
    layers = config.encoder_layers
    for count in range(1, layers + 1):
        config.encoder_layers = count
        outputs.append(
            reference_stack(
                model, "encoder", ids, [positions(model, len(ids)) + segment], layers="model.encoder.context_layers"
            )
        )
    config.encoder_layers = layers
    return outputs


def selected(model, name: str, states: torch.Tensor, contexts: list, side: str = "encoder") -> torch.Tensor:
    """Fei et al. (2022), equations 12 to 15, word by word: attention to each sentence by the word's share of it."""
    config, weights = model.config, weights_of(model)
    heads = getattr(config, f"{side}_attention_heads")
    read = {
        index: attention(weights, f"{name}.attn", states, context @ weights[f"{name}.{when}_proj.weight"].T, heads)
        for index, when, context in contexts
    }
    rows = []
    for word, x in enumerate(states):
        hidden = F.relu(weights[f"{name}.selection.fc1.weight"] @ x + weights[f"{name}.selection.fc1.bias"])
        scores = [*(weights[f"{name}.selection.fc2.weight"] @ hidden), torch.tensor(0.0)]
        total = sum(score.exp() for score in scores)
        rows.append(sum((scores[index].exp() / total * read[index][word] for index in read), start=torch.zeros_like(x)))
    return torch.stack(rows)
