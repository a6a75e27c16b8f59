"""Gradient of a sentence's loss at the words of earlier sentences, by distance (Feng et al. 2022, figure 4).

    python examples/analysis/attribution.py MODEL test.jsonl --reach 20 --step 5 --picture attribution.png

Section 5.2: Score(k) is the mean over sentence pairs s, i with i - s in the range k of the norms of the gradients which
the loss of sentence i has at the words of s; the gradients of a word that occurs several times in the range are added
up first. References are forced, no dropout, no smoothing, no truncation. Ranges do not overlap, and distance 0, the
sentence itself, is a range of its own (departures from the paper).
"""

import pandas as pd
import torch
from inputs import documents_of, draw_lines, load, parser, show

from hf_docmt.analysis.memory import (
    INPUTS,
    document_batches,
    embedding_gradients,
    has_sentence,
    memory_stacks,
    sentence_losses,
)


def word_norms(ids, gradients, special: torch.Tensor) -> float:
    """The norms of the summed gradients of each word in each row: ids (B, T), gradients (B, T, D) of sentences."""
    ids, gradients = torch.cat(ids, dim=1), torch.cat(gradients, dim=1)
    words = ~torch.isin(ids, special)
    rows = torch.arange(len(ids), device=ids.device)[:, None].expand_as(ids)
    unique, index = torch.stack([rows[words], ids[words]]).unique(dim=1, return_inverse=True)  # (2, words)
    summed = gradients.new_zeros(unique.shape[1], gradients.shape[2], dtype=torch.double)
    return float(summed.index_add_(0, index, gradients[words].double()).norm(dim=1).sum())


def attribution(model, documents, tokenizer, reach: int, step: int) -> pd.DataFrame:
    """Mean scores of source and target words by range of distances."""
    memory_stacks(model)
    reach = min(reach, max(map(len, documents["translation"])) - 1)
    ranges = [(0, 0), *((first, min(first + step - 1, reach)) for first in range(1, reach + 1, step))]
    codes = (model.config.language_ids or {}).values()
    special = set(tokenizer.all_special_ids) - {tokenizer.unk_token_id} | {model.config.decoder_start_token_id, *codes}
    special = torch.tensor(sorted(special), device=model.device)
    table = pd.DataFrame(0.0, index=range(len(ranges)), columns=[*INPUTS, "pairs"])
    with embedding_gradients(model) as embeddings:
        for steps in document_batches(model, documents, tokenizer):
            for earlier, loss in sentence_losses(model, steps, embeddings, reach):
                leaves = [leaf[side] for side in INPUTS for _, leaf in earlier]
                gradients = torch.autograd.grad(loss, leaves, retain_graph=True, materialize_grads=True)
                by_side = dict(zip(INPUTS, (gradients[: len(earlier)], gradients[len(earlier) :])))
                for number, near in enumerate(slice(first, last + 1) for first, last in ranges if first < len(earlier)):
                    table.loc[number, "pairs"] += int(has_sentence(earlier[0][0]).sum()) * len(earlier[near])
                    for side, name in INPUTS.items():
                        ids = [one[name] for one, _ in earlier[near]]
                        table.loc[number, side] += word_norms(ids, by_side[side][near], special)
    table[list(INPUTS)] = table[list(INPUTS)].div(table["pairs"], axis=0)
    table.insert(0, "distance", [str(first) if first == last else f"{first}-{last}" for first, last in ranges])
    return table


def main() -> None:
    made = parser(__doc__, "model", "documents")
    made.add_argument("--reach", type=int, default=100, help="largest distance in sentences")
    made.add_argument("--step", type=int, default=10, help="sentences per range of distances")
    options = made.parse_args()
    model, tokenizer = load(options)
    table = attribution(model, documents_of(options, model), tokenizer, options.reach, options.step)
    show(table, options)
    if options.picture:
        draw_lines(options.picture, table, "distance", list(INPUTS), "gradient of the loss", log=True)


if __name__ == "__main__":
    main()
