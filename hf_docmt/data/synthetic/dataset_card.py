"""The data set card of the built-in corpus."""

from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files

import jinja2
from huggingface_hub import DatasetCard, DatasetCardData

TEMPLATE = "dataset_card.md.j2"


def dataset_card(corpus: Mapping[str, Sequence[dict]], suites: Iterable[str], seed: int, far: int = 0) -> DatasetCard:
    """The card of the splits `corpus` (rows of documents) and the suites of these names; empty splits are left out.

    `far`: the most sentences between a clue and what depends on it, 0 where clues are near.
    The header tells the library `datasets` which file is which split.
    """
    splits = {split: rows for split, rows in corpus.items() if rows}
    header = DatasetCardData(
        language=["en", "de"],
        license="apache-2.0",
        task_categories=["translation"],
        annotations_creators=["machine-generated"],
        multilinguality=["translation"],
        pretty_name="Built-in discourse corpus of hf-docmt",
        tags=["document-level", "discourse", "hf-docmt"],
        configs=[
            {
                "config_name": "default",
                "data_files": [{"split": split, "path": f"{split}.jsonl"} for split in splits],
            }
        ],
    )
    text = files("hf_docmt.hub_cards").joinpath(TEMPLATE).read_text("utf-8")
    template = jinja2.Environment(trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True).from_string(text)
    body = template.render(corpus=splits, suites=sorted(suites), seed=seed, far=far)
    return DatasetCard(f"---\n{header.to_yaml()}\n---\n\n{body}")
