"""Counts of connectives in the reference and in systems side by side (Fei et al. 2022, Table 4).

    python examples/analysis/connectives.py test.jsonl ours.jsonl theirs.jsonl --source-lang zh --target-lang en

Whole words are counted, ignoring case. The last row sums the absolute differences from the reference's counts.
"""

from pathlib import Path

import pandas as pd
from inputs import parser, read_translated, show

from hf_docmt.evaluation.metrics.connectives import connective_table, connectives_of
from hf_docmt.evaluation.references import read_references


def main() -> None:
    made = parser(__doc__, "reference")
    made.add_argument("systems", nargs="+", help="translations of systems, JSON lines of docmt translate")
    made.add_argument("--words", help="words or phrases to count, separated by commas; default: those of the paper")
    options = made.parse_args()
    documents = read_references([options.reference], "auto", options.source_lang, options.target_lang)
    words = options.words.split(",") if options.words else connectives_of(options.target_lang)
    sides = {"reference": documents.sides[0]}
    sides |= {Path(path).stem: read_translated(path, documents) for path in options.systems}
    counts = pd.DataFrame.from_dict(connective_table(sides, words), orient="index")
    differences = counts.sub(counts["reference"], axis=0).abs().sum()
    counts.loc["(total)"] = counts.sum()
    counts.loc["(differences)"] = differences
    show(counts.rename_axis("connective").reset_index(), options)
    if options.picture:
        made.error("there is no picture of counts")


if __name__ == "__main__":
    main()
