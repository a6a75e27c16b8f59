"""Attention from a sentence into the memory, and from the memory to the next one (Feng et al. 2022, figures 6 and 7).

    python examples/analysis/memory_maps.py MODEL test.jsonl --document talk7 --sentence 3 --picture maps.png

The table has the slot with the largest weight of each token; weights are the mean of the heads, references are forced.
"""

import pandas as pd
import torch
from inputs import documents_of, draw_matrices, load, parser, show

from hf_docmt.analysis.memory import (
    attention_maps,
    document_batches,
    empty_memory,
    forward_step,
    maps_of_step,
    memory_stacks,
)
from hf_docmt.systems.attention_weights import eager_attention


@torch.inference_mode()
def memory_maps(model, documents, tokenizer) -> list:
    """Maps of update and output attention for every sentence of one document, in the last layer with a memory."""
    stacks, found = memory_stacks(model), []
    layers = {side: stack.memory_layers[-1] for side, stack in stacks.items()}
    (steps,) = document_batches(model, documents, tokenizer, rows=1)
    memory = empty_memory(model, 1)
    with eager_attention(model), attention_maps(stacks) as maps:
        for number, step in enumerate(steps, 1):
            _, memory = forward_step(model, step, memory)
            found += maps_of_step(maps, layers, step, number, tokenizer)
    return found


def main() -> None:
    made = parser(__doc__, "model", "documents")
    made.add_argument("--document", help="id of the document; default: the first one")
    made.add_argument("--sentence", type=int, default=1, help="number of the sentence that writes, from 1")
    options = made.parse_args()
    model, tokenizer = load(options)
    documents = documents_of(options, model)
    names = list(documents["doc_id"])
    if options.document not in (None, *names):
        made.error(f"no document {options.document!r}: there are {', '.join(names[:5])}")
    number = names.index(options.document) if options.document else 0
    wanted = {"update": options.sentence, "output": options.sentence + 1}
    maps = memory_maps(model, documents.select([number]), tokenizer)
    shown = [one for one in maps if one.sentence == wanted[one.attention]]
    if not {one.attention for one in shown} == set(wanted):
        made.error(f"sentence {options.sentence} and the next one are shown, but the document has {maps[-1].sentence}")
    rows = []
    for one in shown:
        best = zip(one.tokens, one.weights.argmax(axis=1) + 1, one.weights.max(axis=1))
        rows += [(one.side, one.attention, one.sentence, token, slot, weight) for token, slot, weight in best]
    table = pd.DataFrame(rows, columns=["side", "attention", "sentence", "token", "slot", "weight"])
    show(table.round(3), options)
    if options.picture:
        matrices = {f"{one.side}: {one.attention}, sentence {one.sentence}": (one.weights, one.tokens) for one in shown}
        longest = max(len(one.tokens) for one in shown)
        draw_matrices(options.picture, matrices, "memory slot", "token", (3.3, max(2.9, 0.16 * longest + 1)))


if __name__ == "__main__":
    main()
