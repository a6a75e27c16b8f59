"""Documents that benchmarks train and score on."""

from pathlib import Path

from datasets import Dataset

from hf_docmt.bench.benchmark import check_positive
from hf_docmt.data.documents import make_documents
from hf_docmt.data.readers import read_documents
from hf_docmt.data.synthetic.corpus import make_corpus


def load_documents(documents: str | Path | int, source_lang: str, target_lang: str) -> Dataset:
    """The documents of a JSON-lines file, or that number of documents of the built-in corpus (English to German)."""
    if isinstance(documents, str | Path):
        return read_documents("jsonl", path=documents, source_lang=source_lang, target_lang=target_lang)
    check_positive(documents=documents)
    if (source_lang, target_lang) != ("en", "de"):
        raise ValueError(
            f"the built-in corpus is en to de, got {source_lang} to {target_lang}; give a file as documents"
        )
    return make_documents(make_corpus(train=documents, validation=0, test=0)["train"], "en", "de")
