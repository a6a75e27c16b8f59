"""Difference of two systems' s-BLEU by sentence index in the document (Feng et al. 2022, figure 3).

    python examples/analysis/by_index.py system.jsonl baseline.jsonl test.jsonl --source-lang en --target-lang de

Section 5.2, metric breakdown: corpus BLEU of the sentences at one index of all documents, then the mean over the
indices of a range (`docmt evaluate --by index` takes the sentences of a range as one corpus instead). Intervals are of
the difference, from bootstrap samples of documents.
"""

import numpy as np
import pandas as pd
from inputs import parser, read_translated, show

from hf_docmt.analysis.pictures import COLOURS, SINGLE, picture
from hf_docmt.evaluation.metrics.corpus_scores import SentenceBleu, bleu, segment_statistics
from hf_docmt.evaluation.references import read_references

REFERENCE_LENGTH = 1  # column of BLEU's statistics


def document_rows(side, references, target_lang: str | None) -> np.ndarray:
    """BLEU's statistics of each sentence, (documents, longest, columns), zeros after the end of a document."""
    metric = bleu(False, None, target_lang)
    statistics = [np.array(segment_statistics(metric, *pair)) for pair in zip(side, references)]
    width = next(document.shape[1] for document in statistics if len(document))
    rows = np.zeros((len(statistics), max(map(len, statistics)), width))
    for number, document in enumerate(statistics):
        rows[number, : len(document)] = document.reshape(-1, width)
    return rows


def mean_score(sums: np.ndarray) -> float:
    """Statistics (indices, columns) -> mean score over the indices that have a reference."""
    return float(np.mean(SentenceBleu.score_from_sums(sums[sums[:, REFERENCE_LENGTH] > 0])))


def main() -> None:
    made = parser(__doc__, "system", "baseline", "reference")
    made.add_argument("--every", type=int, default=10, help="sentence indices in a range")
    made.add_argument("--samples", type=int, default=1000, help="bootstrap samples for the intervals")
    options = made.parse_args()
    documents = read_references([options.reference], "auto", options.source_lang, options.target_lang)
    paths = (options.system, options.baseline)
    sides = [document_rows(read_translated(path, documents), documents.sides[0], options.target_lang) for path in paths]
    draws = np.random.default_rng(1).integers(len(sides[0]), size=(options.samples, len(sides[0])))
    rows = []
    for first in range(0, sides[0].shape[1], options.every):
        parts = [side[:, first : first + options.every] for side in sides]  # (documents, indices, columns)
        last, (system, baseline) = first + parts[0].shape[1], (mean_score(part.sum(axis=0)) for part in parts)
        there = int((parts[0][..., REFERENCE_LENGTH] > 0).sum())
        draws_of_range = [draw for draw in draws if parts[0][draw, :, REFERENCE_LENGTH].any()]
        sampled = [np.subtract(*(mean_score(part[draw].sum(axis=0)) for part in parts)) for draw in draws_of_range]
        low, high = np.percentile(sampled, [2.5, 97.5]) if sampled else (None, None)
        rows.append((f"{first + 1}-{last}", system, baseline, system - baseline, low, high, there))
    columns = ["index", "system", "baseline", "difference", "low", "high", "sentences"]
    table = pd.DataFrame(rows, columns=columns).round(2)
    show(table, options)
    if options.picture:
        with picture(options.picture, SINGLE) as figure:
            axes, values = figure.subplots(), table["difference"]
            bars = [values - table["low"], table["high"] - values] if options.samples else None
            axes.bar(table["index"], values, yerr=bars, color=COLOURS[0], capsize=2)
            axes.set(xlabel="sentence index", ylabel="difference of s-BLEU")


if __name__ == "__main__":
    main()
