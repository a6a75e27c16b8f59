"""Assignment of tokens to groups in latent grouping and selecting (Maka et al. 2024, figures 4, 6 and 7).

    python examples/analysis/groups.py MODEL "The dog sleeps." "It is red." --picture groups.png

c of equation 3, from the states of the encoder, which reads the sentences one by one. With `grouping` the weights of a
token sum to 1, with `selecting` those of a group do, and a token may be in none.
"""

import numpy as np
import pandas as pd
import torch
from inputs import draw_matrices, load, parser, show

from hf_docmt.analysis.model_runs import token_texts
from hf_docmt.systems.model_system import evaluation_mode, piece_ids


@torch.inference_mode()
def group_weights(model, ids: list[int]) -> np.ndarray:
    """Weights of the tokens of one sentence in the groups, (L, K)."""
    encoder, ids = model.get_encoder(), torch.tensor([ids], device=model.device)  # (1, L)
    mask = torch.ones_like(ids)
    with evaluation_mode(model):
        states, *_ = encoder.read(ids, mask)  # (1, L, D)
        return encoder.shortener.categories(states, mask)[0].cpu().numpy()


def main() -> None:
    made = parser(__doc__, "model")
    made.add_argument("texts", nargs="+", help="sentences in the language of the context, each in quotes")
    options = made.parse_args()
    model, tokenizer = load(options)
    if not model.config.groups_tokens:
        made.error(f"{options.model} assigns no tokens to groups; give a model with grouping or selecting")
    pieces = [piece_ids(tokenizer, text, is_target=False) for text in options.texts]
    rows = [model.config.sequence_format().source(ids) for ids in pieces]
    weights = [group_weights(model, row) for row in rows]
    tokens = [token_texts(tokenizer, row, is_target=False) for row in rows]
    names = [f"group {number}" for number in range(1, weights[0].shape[1] + 1)]
    table = pd.DataFrame(np.concatenate(weights), columns=names)
    table.insert(0, "sentence", [number for number, row in enumerate(rows, 1) for _ in row])
    table.insert(1, "token", sum(tokens, []))
    show(table, options)
    used = table[names] > 0
    print(f"{used.any().sum()} of {len(names)} groups used, {(~used.any(axis=1)).sum()} of {len(table)} tokens in none")
    if options.picture:
        matrices = {f"sentence {n}": one for n, one in enumerate(zip(weights, tokens), 1)}
        draw_matrices(options.picture, matrices, "group", "token", (2.5, 0.16 * max(map(len, rows)) + 1))


if __name__ == "__main__":
    main()
