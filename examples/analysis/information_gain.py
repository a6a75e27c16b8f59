"""Entropy that update and output attention of a memory lost in training, in nats (Feng et al. 2022, figure 2).

    python examples/analysis/information_gain.py MODEL test.jsonl --picture gain.png

Section 5.1: the gain "between the random initialized memory and well trained memory [...] calculated from attention
maps", without a formula. Here IG = mean of H(p of a random memory) - H(p of the trained one), over queries and heads,
then layers. The random memory is that of a new model of the same configuration. It has its own state through the
document and reads the states h^t of the trained model, so that both see the same sentences.
"""

import pandas as pd
import torch
from inputs import documents_of, draw_lines, load, parser, show

from hf_docmt.analysis.memory import (
    STACKS,
    attention_maps,
    document_batches,
    empty_memory,
    forward_step,
    has_sentence,
    memory_stacks,
    replay,
    token_mask,
)
from hf_docmt.systems.attention_weights import eager_attention


def entropy(key: tuple, weights: torch.Tensor, step: dict) -> torch.Tensor:
    """Entropies (queries,) of all sentences of a step, mean of the heads."""
    counted = has_sentence(step)[:, None].expand(-1, weights.shape[2])  # (B, queries)
    if key[0] == "output":
        counted = counted & token_mask(step, key[1]).bool()
    return torch.special.entr(weights.double()).sum(-1).mean(1)[counted].cpu()


@torch.inference_mode()
def information_gain(model, other, batches) -> pd.DataFrame:
    """Entropies of a model's memory and of that of another model of the same configuration, by attention and layer."""
    others, found = memory_stacks(other), {}
    with eager_attention(model), eager_attention(other), attention_maps(memory_stacks(model)) as maps:
        with attention_maps(others) as random_maps:
            for steps in batches:
                memory, random_memory = empty_memory(model, len(steps[0]["labels"])), dict.fromkeys(others)
                for step in steps:
                    outputs, memory = forward_step(model, step, memory)
                    states = dict(zip(STACKS, outputs.memory_states))
                    for side, stack in others.items():
                        random_memory[side] = replay(stack, random_memory[side], states[side], step, side)
                    for key, weights in maps.items():
                        pair = [entropy(key, one, step) for one in (random_maps[key], weights)]
                        found.setdefault(key, []).append(torch.stack(pair, dim=1))  # (queries, 2)
    rows = [(*key, *torch.cat(parts).mean(dim=0).tolist(), sum(map(len, parts))) for key, parts in found.items()]
    table = pd.DataFrame(rows, columns=["attention", "side", "layer", "random", "trained", "queries"])
    return table.assign(gain=table["random"] - table["trained"]).sort_values(["attention", "side", "layer"])


def main() -> None:
    made = parser(__doc__, "model", "documents")
    made.add_argument("--seed", type=int, default=1, help="of the untrained memory")
    options = made.parse_args()
    model, tokenizer = load(options)
    batches = document_batches(model, documents_of(options, model), tokenizer)
    torch.manual_seed(options.seed)
    other = type(model)(model.config).to(device=model.device, dtype=model.dtype)
    table = information_gain(model, other, batches)
    show(table, options)
    mean = table.groupby("attention", as_index=False)["gain"].mean()
    print(mean.to_string(index=False))
    if options.picture:
        draw_lines(options.picture, mean, "attention", ["gain"], f"nats, memory of {model.config.memory_size}")


if __name__ == "__main__":
    main()
