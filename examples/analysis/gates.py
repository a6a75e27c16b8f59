"""Shares of the context sentences for each word, where words select among them (Fei et al. 2022, section 4.3).

    python examples/analysis/gates.py MODEL "Good evening." "The camera is red." "It is mine." --sentence 2

The sentences are those of one document, from the first; `nothing` is what is left for sentences that are not there.
"""

import pandas as pd
from inputs import load, parser, show

from hf_docmt.analysis.gates import gate_map
from hf_docmt.analysis.pictures import COLOURS, picture


def draw(path: str, mean: pd.DataFrame, columns: tuple[str, ...]) -> None:
    """Stacked bars for the words, a part for each context sentence."""
    with picture(path, (max(3.0, 0.3 * len(mean)), 2.4), style={"axes.grid": False}) as figure:
        axes, below = figure.subplots(), 0.0
        for name, colour in zip(columns, COLOURS):
            axes.bar(range(len(mean)), mean[name], bottom=below, color=colour, label=name)
            below = below + mean[name]
        axes.set_xticks(range(len(mean)), mean["token"], fontsize=7, rotation=90, parse_math=False)
        axes.set_ylabel("share")
        figure.legend(loc="outside upper center", ncols=len(columns), fontsize=8)


def main() -> None:
    made = parser(__doc__, "model")
    made.add_argument("texts", nargs="+", help="the sentences of a document, each in quotes")
    made.add_argument("--sentence", type=int, help="number of the sentence, from 1; default: the middle one")
    options = made.parse_args()
    model, tokenizer = load(options)
    found = gate_map(model, options.texts, tokenizer, options.sentence)
    tables = []
    for layer, shares in [("mean", found.mean), *enumerate(found.shares, 1)]:
        table = pd.DataFrame(shares, columns=found.columns).round(3)
        table.insert(0, "layer", layer)
        table.insert(1, "token", found.tokens)
        tables.append(table)
    show(pd.concat(tables), options)
    if options.picture:
        draw(options.picture, tables[0], found.columns)


if __name__ == "__main__":
    main()
