"""A training run small enough for tests: built-in documents, a model of some thousand parameters."""

from pathlib import Path

from hf_docmt.data.documents import write_documents
from hf_docmt.data.synthetic.corpus import make_corpus

SIZES = {
    "d_model": 16,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 16,
    "decoder_ffn_dim": 16,
}


def write_corpus_files(folder: Path, train: int = 12, validation: int = 4) -> Path:
    """`train.jsonl` and `validation.jsonl` of the built-in corpus."""
    for part, rows in make_corpus(seed=1, train=train, validation=validation, test=0, sentences=(3, 5)).items():
        write_documents(rows, folder / f"{part}.jsonl")
    return folder


def recipe_mapping(data: Path, output: Path, model: dict | None = None, **training) -> dict:
    """What a recipe file of such a run holds."""
    return {
        "seed": 3,
        "output_dir": str(output),
        "architecture": "concat",
        "model": {**SIZES, "dropout": 0.1, **(model or {})},
        "tokenizer": {"model": "bpe", "vocab_size": 300},
        "data": {
            "source_lang": "en",
            "target_lang": "de",
            "train": {"format": "jsonl", "path": str(data / "train.jsonl")},
            "validation": {"format": "jsonl", "path": str(data / "validation.jsonl")},
        },
        "training": {
            "max_tokens": 1000,
            "max_steps": 12,
            "learning_rate": 2e-3,
            "warmup_steps": 4,
            "eval_steps": 3,
            "log_steps": 1,
            "average": 1,
            **training,
        },
    }
