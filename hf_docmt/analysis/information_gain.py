"""Information gain of the attention to and from a recurrent memory (Feng et al. 2022, section 5.1, figure 2)."""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from datasets import Dataset
from torch import nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from hf_docmt.analysis.memory_maps import (
    ATTENTIONS,
    STACKS,
    Batch,
    attention_maps,
    document_batches,
    empty_memory,
    forward_step,
    has_sentence,
    memory_stacks,
    token_mask,
)
from hf_docmt.analysis.model_runs import context_result
from hf_docmt.reports.result import Result
from hf_docmt.systems.attention_weights import eager_attention

DIGITS = 6  # after the point, of the nats in a report


@dataclass(frozen=True)
class Entropies:
    """Mean entropy of the attention of one layer, in nats, over `n` queries and all heads."""

    random: float
    trained: float
    n: int

    @property
    def gain(self) -> float:
        """Entropy lost in training, in nats."""
        return self.random - self.trained


@dataclass(frozen=True)
class InformationGain:
    """Entropies by (`update` or `output`, `source` or `target`, layer), for a memory of `memory_size` vectors."""

    memory_size: int
    layers: dict[tuple[str, str, int], Entropies]
    seed: int

    def mean(self, attention: str, side: str | None = None) -> Entropies:
        """Over the layers of a side or of both, which all count the same; `n` is the sum of theirs."""
        layers = [entropies for key, entropies in self.layers.items() if key[0] == attention and side in (None, key[1])]
        means = [sum(getattr(entropies, name) for entropies in layers) / len(layers) for name in ("random", "trained")]
        return Entropies(*means, sum(entropies.n for entropies in layers))

    def results(self, dataset: str) -> list[Result]:
        """The results of a report, for update and for output attention."""
        sides, results = dict.fromkeys(side for _, side, _ in self.layers), []
        for attention in ATTENTIONS:
            whole = self.mean(attention)
            parts = {f"side={side}": self.mean(attention, side) for side in sides}
            layers = [(side, layer, gain) for (kind, side, layer), gain in self.layers.items() if kind == attention]
            parts |= {f"{side} layer={layer}": gain for side, layer, gain in layers}
            signature = {"entropy": "random less trained", "unit": "nats", "mean": "queries, heads, layers"}
            signature |= {"target": "reference", "seed": self.seed}
            scores = {label: (round(part.gain, DIGITS), part.n) for label, part in parts.items()}
            entropy = {name: round(getattr(whole, name), DIGITS) for name in ("random", "trained")}
            details = {"memory_size": self.memory_size, "entropy": entropy}
            metric, value = f"information gain of {attention} attention", round(whole.gain, DIGITS)
            results.append(context_result(metric, value, whole.n, dataset, signature, scores, details))
        return results


def information_gain(
    model: PreTrainedModel, documents: Dataset, tokenizer: PreTrainedTokenizerBase, *, seed: int = 1, rows: int = 8
) -> InformationGain:
    """Entropy of update and output attention with an untrained memory less that with the trained one, in nats.

    Feng et al. (2022), section 5.1: the information gain "between the random initialized memory and well trained
    memory […] calculated from attention maps in Update Attention and Output Attention", without a formula. Here, for
    the attention distribution p of a query (a slot over the tokens of the sentence in the update, a token over the
    slots in the output), IG = mean of H(p of the random memory) - H(p of the trained one), H(p) = -sum p ln p, over
    queries and heads, then layers. Above 0: training has made the attention more selective; at most the logarithm of
    the number of keys, so that larger memories have more to gain in the output.

    The random memory is that of a new model of the same configuration (`seed`): initial memory, both attentions, and
    the layers around the update. It has its own state through the document and reads the states h^t of the trained
    model, so that both see the same sentences. Target sentences are the references, `rows` documents are read at once.
    ValueError: a model without memory.
    """
    memory_stacks(model)
    batches = document_batches(model, documents, tokenizer, rows)
    return information_gain_over(model, new_model(model, seed), batches, seed)


def new_model(model: PreTrainedModel, seed: int) -> PreTrainedModel:
    """A model of the same configuration with the random weights that training begins from."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return type(model)(model.config).to(device=model.device, dtype=model.dtype)


@torch.inference_mode()
def information_gain_over(
    model: PreTrainedModel, other: PreTrainedModel, batches: Iterable[list[Batch]], seed: int = 1
) -> InformationGain:
    """The gain of a model's memory over that of another model of the same configuration, on batches of documents."""
    stacks, others, sums = memory_stacks(model), memory_stacks(other), {}
    with eager_attention(model), eager_attention(other), attention_maps(stacks) as maps:
        with attention_maps(others) as random_maps:
            for steps in batches:
                memory = empty_memory(model, len(steps[0]["labels"]))
                random_memory = dict.fromkeys(stacks)
                for step in steps:
                    outputs, memory = forward_step(model, step, memory)
                    states = dict(zip(STACKS, outputs.memory_states))
                    for side, stack in others.items():
                        random_memory[side] = replay(stack, random_memory[side], states[side], step, side)
                    for key, weights in maps.items():
                        add_entropies(sums, key, (random_maps[key], weights), step)
    layers = {key: Entropies(*(part / n for part in parts), n) for key, (*parts, n) in sorted(sums.items())}
    return InformationGain(model.config.memory_size, layers, seed)


def replay(stack: nn.Module, memory: torch.Tensor | None, states: dict, step: Batch, side: str) -> torch.Tensor:
    """Output and update attention of a stack's memory M^t to the states {layer: h^t (B, T, D)}; returns M^{t+1}."""
    start, batch = step["document_start"], len(step["labels"])
    if memory is None:
        memory, start = stack.initial_memory.weight.repeat(batch, 1, 1), None
    memory = stack.memory_before(memory, start, stack.initial_memory.weight.device, batch)
    for layer, layer_memory in stack.by_layer(memory).items():
        stack.layers[layer].memory.output_attn(states[layer], layer_memory)
    return stack.memory_after(memory, states, token_mask(step, side))


def add_entropies(sums: dict, key: tuple[str, str, int], maps: tuple[torch.Tensor, ...], step: Batch) -> None:
    """Add the entropies (mean over heads) of the queries of all present sentences, and the number of queries."""
    counted = has_sentence(step)[:, None].expand(-1, maps[0].shape[2])  # (B, queries)
    if key[0] == "output":
        counted = counted & token_mask(step, key[1]).bool()
    total = [float(torch.special.entr(weights.double()).sum(-1).mean(1)[counted].sum()) for weights in maps]
    new = (*total, int(counted.sum()))
    sums[key] = tuple(map(sum, zip(sums.get(key, (0.0, 0.0, 0)), new)))
