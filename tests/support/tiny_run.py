"""A training run small enough for tests: built-in documents, a model of some thousand parameters."""

import json
from pathlib import Path

import pytest
import torch
from transformers import Seq2SeqTrainer

from hf_docmt.data.documents import write_documents
from hf_docmt.data.synthetic.corpus import make_corpus
from hf_docmt.training.checkpoints import read_weights
from hf_docmt.training.run import train
from support.processes import run_in_two

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


def facts(folder):
    """What `training.json` of a run says."""
    return json.loads((Path(folder) / "training.json").read_text())


def train_until(recipe, batches):
    """Train, and interrupt it after so many batches, in the middle of things."""
    seen, step = [], Seq2SeqTrainer.training_step

    def training_step(*args, **kwargs):
        if len(seen) == batches:
            raise InterruptedError
        seen.append(True)
        return step(*args, **kwargs)

    with pytest.MonkeyPatch.context() as patch, pytest.raises(InterruptedError):
        patch.setattr(Seq2SeqTrainer, "training_step", training_step)
        train(recipe)


def same_course(folder, other):
    """Whether two runs had the same losses, and end in the same weights, bit for bit."""
    names = ("steps", "losses", "validation_losses", "best_step", "averaged_steps")
    same_facts = all(facts(folder)[name] == facts(other)[name] for name in names)
    theirs = read_weights(other)
    return same_facts and all(torch.equal(tensor, theirs[name]) for name, tensor in read_weights(folder).items())


def train_in_two_processes(recipe, port):
    """Facts of a run that two processes share; one of them says where it is."""
    path = f"{recipe.output_dir}.yaml"
    recipe.save(path)
    assert run_in_two("-m", "hf_docmt", "train", path, port=port) == f"{recipe.output_dir}\n"
    return facts(recipe.output_dir)
