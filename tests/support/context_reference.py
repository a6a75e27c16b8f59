"""Slow references of the architectures with separate context sentences, and documents to compare them on."""

import torch
from torch.nn import functional as F

from hf_docmt.loading import registry
from support.battery import Battery, tokens_of
from support.reference import attention, position_vector, reference_stack, weights_of
from support.tiny_models import random_text, word_tokenizer

CONTEXT = ("context_input_ids", "context_attention_mask", "context_offsets", "context_is_target")
LATENT = {"categorizer_dim": 6, "shortening_size": 3}
LENGTHS = [[3, 1, 4, 2, 3, 5], [2, 2], [], [4, 1, 1]]
DOCUMENTS = [random_text(lengths, seed) for seed, lengths in enumerate(LENGTHS, start=11)]


class SeparateContext(Battery):
    """Translations do not depend on each other."""

    strategies = ("sentence", "sliding", "sequential")

    def reach(self, config):
        return {"source": set(range(-config.past_context, config.future_context + 1)), "target": {0}}

    def without_context(self, model) -> dict:
        batch = self.collate(model.config, self.examples(model.config))
        return {name: value for name, value in batch.items() if name not in CONTEXT}

    def test_order_of_translation(self, model):
        settings = {"max_new_tokens": 6, "no_repeat_ngram_size": 2}
        found = [
            model.translate_documents(DOCUMENTS, word_tokenizer(), strategy, size, **settings)
            for strategy, size in (("sliding", 16), ("sliding", 1), ("sequential", 2))
        ]
        assert found[0] == found[1] == found[2]


def sentences_of(batch: dict) -> list[dict]:
    """Rows of a batch as lists: source, target, context as (offset, is it of the target, ids)."""
    names, rows = ("offsets", "is_target", "input_ids", "attention_mask"), []
    for row, (source, target) in enumerate(tokens_of(batch)):
        sentences = zip(*(batch[f"context_{name}"][row] for name in names))
        context = [
            (int(offset), bool(is_target), ids[: mask.sum()].tolist())
            for offset, is_target, ids, mask in sentences
            if mask.any()
        ]
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
        added = [positions(model, len(ids)) + segment]
        outputs.append(reference_stack(model, "encoder", ids, added, layers="model.encoder.context_layers"))
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


def selected_states(model, name: str, states: torch.Tensor, contexts: list) -> torch.Tensor:
    """Fei et al. (2022), equations 10 and 12 to 15, position by position; zeros stand where a sentence has no word."""
    config, weights = model.config, weights_of(model)
    if not contexts:
        return torch.zeros_like(states)
    sequence = []
    for position in range(max(len(context) for _, _, context in contexts)):
        x = states[position] if position < len(states) else torch.zeros_like(states[0])
        hidden = F.relu(weights[f"{name}.selection.fc1.weight"] @ x + weights[f"{name}.selection.fc1.bias"])
        scores = [*(weights[f"{name}.selection.fc2.weight"] @ hidden), torch.tensor(0.0)]
        total, mixed = sum(score.exp() for score in scores), torch.zeros_like(x)
        for index, when, context in contexts:
            if position < len(context):
                projected = weights[f"{name}.{when}_proj.weight"] @ context[position]
                mixed = mixed + scores[index].exp() / total * projected
        sequence.append(mixed)
    return attention(weights, f"{name}.attn", states, torch.stack(sequence), config.encoder_attention_heads)
