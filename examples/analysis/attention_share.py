"""Share of cross-attention from each target sentence to its source sentence (Herold and Ney 2023, table 1).

    python examples/analysis/attention_share.py MODEL test.jsonl --target search --picture share.png

With `--target reference` references are forced, with `search` the documents are translated, as in the paper.
"""

import pandas as pd
from inputs import documents_of, draw_matrices, load, parser, show
from recorded_search import search_shares

from hf_docmt.analysis.attention_share import attention_share
from hf_docmt.systems.generation_settings import make_repeatable


def main() -> None:
    made = parser(__doc__, "model", "documents")
    made.add_argument("--target", choices=("reference", "search"), default="reference")
    made.add_argument("--strategy", help="of the search; default: the model's own")
    options = made.parse_args()
    model, tokenizer = load(options)
    documents = documents_of(options, model)
    if options.target == "search":
        make_repeatable(model.generation_config, options.model)
        found = search_shares(model, documents, tokenizer, options.strategy)
    elif options.strategy is None:
        found = attention_share(model, documents, tokenizer)
    else:
        made.error("--strategy is of the search; give --target search, too, or omit it")
    count = len(found.tokens)
    table = pd.DataFrame(found.shares, columns=[f"to {number}" for number in range(1, count + 1)]).round(2)
    table.insert(0, "target sentence", range(1, count + 1))
    table.insert(1, "tokens", found.tokens)
    show(table, options)
    print(f"same sentence, all target tokens: {found.value:.2f} %")
    if options.picture:
        layers = [f"layer {number}" for number in range(1, len(found.heads) + 1)]
        matrices = {"sentences (%)": (found.shares, list(range(1, count + 1))), "heads (%)": (found.heads, layers)}
        draw_matrices(options.picture, matrices, "source sentence, or head", "target sentence, or layer", (3.3, 2.9))


if __name__ == "__main__":
    main()
