"""The data set card of the built-in corpus: read by huggingface_hub, and by `datasets`, which finds the splits."""

import datasets
import pytest
from huggingface_hub import DatasetCard

from hf_docmt.data.synthetic.corpus import write_corpus


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_corpus(
        tmp_path_factory.mktemp("corpus") / "small", seed=7, train=3, validation=2, test=0, suite_items=1
    )


def test_header_and_numbers(folder):
    card = DatasetCard.load(folder / "README.md")
    assert card.data.language == ["en", "de"] and card.data.license == "apache-2.0"
    rows = (folder / "train.jsonl").read_text().count('"en"')
    assert f"| train | 3 | {rows} |" in card.text and "deterministic by seed (7)" in card.text
    assert "| test |" not in card.text and "deixis, ellipsis" in card.text


def test_datasets_finds_the_splits(folder, tmp_path):
    """Suites and their documents are no data of a split."""
    found = datasets.load_dataset(str(folder), cache_dir=str(tmp_path))
    assert {split: len(rows) for split, rows in found.items()} == {"train": 3, "validation": 2}
    assert set(found["train"].column_names) >= {"doc_id", "translation", "phenomena"}
