"""Shares of the context sentences for each word, where words select among them (Fei et al. 2022, section 4.3).

    python examples/analysis/gates.py MODEL "Good evening." "The camera is red." "It is mine." --sentence 2

The sentences are those of one document, from the first; `nothing` is the share left for missing sentences.
"""

import pandas as pd
from inputs import load, parser, show

from hf_docmt.analysis.model_runs import selection_shares, token_texts
from hf_docmt.analysis.pictures import COLOURS, picture
from hf_docmt.data.documents import make_documents
from hf_docmt.loading import registry


def draw(path: str, mean: pd.DataFrame) -> None:
    """Stacked bars for the words, a part for each context sentence."""
    columns = list(mean.columns[2:])
    with picture(path, (max(3.0, 0.3 * len(mean)), 2.4), style={"axes.grid": False}) as figure:
        axes, below = figure.subplots(), 0.0
        for name, colour in zip(columns, COLOURS):
            axes.bar(range(len(mean)), mean[name], bottom=below, color=colour, label=name)
            below = below + mean[name]
        axes.set_xticks(range(len(mean)), mean["token"], fontsize=7, rotation=90, parse_math=False)
        axes.set_ylabel("share")
        figure.legend(loc="outside upper center", ncols=len(columns), fontsize=8)


def gates(model, texts: list[str], tokenizer, position: int) -> pd.DataFrame:
    """Shares of each `token` of a sentence, by `layer`, the mean of all first; a column for each context sentence."""
    config, architecture = model.config, registry.for_config(model.config)
    offsets = [offset for offset in config.known_offsets if 0 <= position + offset < len(texts)]
    if not offsets:
        raise SystemExit("the sentence has no context; give the sentences around it, too, or choose another one")
    languages = config.source_lang or "source", config.target_lang or "target"
    pairs = [dict(zip(languages, (text, ""))) for text in texts]
    documents = make_documents([{"doc_id": "texts", "translation": pairs}], *languages)
    batch = architecture.collator(config, tokenizer)([architecture.examples(documents, tokenizer, config)[position]])
    shares = selection_shares(model, batch)[:, :, [config.known_offsets.index(offset) for offset in offsets]]
    tables = []
    for layer, of_layer in [("mean", shares.mean(axis=0)), *enumerate(shares, 1)]:
        table = pd.DataFrame(of_layer, columns=[f"{offset:+d}" for offset in offsets])
        table["nothing"] = 1 - table.sum(axis=1)
        table.insert(0, "layer", layer)
        table.insert(1, "token", token_texts(tokenizer, batch["input_ids"][0].tolist(), is_target=False))
        tables.append(table)
    return pd.concat(tables)


def main() -> None:
    made = parser(__doc__, "model")
    made.add_argument("texts", nargs="+", help="the sentences of a document, each in quotes")
    made.add_argument("--sentence", type=int, help="number of the sentence, from 1; default: the middle one")
    options = made.parse_args()
    model, tokenizer = load(options)
    position = len(options.texts) // 2 if options.sentence is None else options.sentence - 1
    if not 0 <= position < len(options.texts):
        made.error(f"sentence {position + 1} of {len(options.texts)}: expected a number from 1")
    table = gates(model, options.texts, tokenizer, position)
    show(table.round(3), options)
    if options.picture:
        draw(options.picture, table[table["layer"] == "mean"])


if __name__ == "__main__":
    main()
