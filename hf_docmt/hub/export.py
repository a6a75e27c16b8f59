"""Export of a model to a folder for the Hub."""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

from hf_docmt.files import atomic_folder, check_new_folder
from hf_docmt.hub.cards import make_card
from hf_docmt.reports.report import Report, merge_reports
from hf_docmt.reports.result import Result


def export_model(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase | None,
    folder: str | os.PathLike,
    report: Report | None = None,
    **card,
) -> Path:
    """Write code, weights, tokenizer, generation config and card into a new folder, whole or not at all.

    The folder loads with `trust_remote_code=True` on machines without this package. `card` holds further
    arguments of `make_card`. Raises ValueError where the folder has something in it, or where the tokenizer's tokens
    are not those of the model.

    >>> folder = export_model(model, tokenizer, "runs/hub", license="apache-2.0")
    >>> (folder / "modeling_concat.py").is_file()  # the code goes with it
    True
    """
    if tokenizer is not None:
        card = {"needs": tokenizer_needs(tokenizer), **card}
    with new_folder(model, tokenizer, folder, report=report, **card) as unfinished:
        model.save_pretrained(unfinished)
    return Path(folder)


@contextmanager
def new_folder(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase | None, folder: str | os.PathLike, **card
) -> Iterator[Path]:
    """A new folder with tokenizer and card (arguments of `make_card`), which appears when the block has filled it."""
    path = check_new_folder(folder)
    if tokenizer is not None:
        check_tokens(model.config, tokenizer)
    text = str(make_card(config=model.config, parameters=model.num_parameters(), **card))
    with atomic_folder(path) as unfinished:
        yield unfinished
        if tokenizer is not None:
            tokenizer.save_pretrained(unfinished)
        (unfinished / "README.md").write_text(text, encoding="utf-8")


def collect_reports(paths: Sequence[str | os.PathLike], model: str | os.PathLike, name: str | None) -> Report | None:
    """The reports of one model as one, with the facts of its training, under `name` or the name of its folder.

    Results with other contexts than the true one are left out, since a card lists them among the model's scores.
    """
    reports = []
    for report in [Report.read(str(path)) for path in paths]:
        kept = [result for result in report.results if _has_true_context(result)]
        reports.append(replace(report, model={**report.model, "name": name or Path(model).name}, results=kept))
    if not reports:
        return None
    merged = merge_reports(*reports)
    facts = Path(model) / "training.json"
    if merged.training is None and facts.is_file():
        merged = replace(merged, training=json.loads(facts.read_text(encoding="utf-8")))
    return merged


def tokenizer_needs(tokenizer: PreTrainedTokenizerBase) -> list[str]:
    """The packages besides transformers that a tokenizer needs to be loaded."""
    files = map(str, tokenizer.vocab_files_names.values())
    return (
        ["sentencepiece"] if not tokenizer.is_fast and any(name.endswith((".spm", ".model")) for name in files) else []
    )


def _has_true_context(result: Result) -> bool:
    return result.signature.get("context", "true") == "true"


def check_tokens(config: PreTrainedConfig, tokenizer: PreTrainedTokenizerBase) -> None:
    """ValueError where the ids of special tokens, or their number, are not those of the model."""
    for name in ("pad_token_id", "eos_token_id", "sep_token_id"):
        own = getattr(config, name)
        if getattr(tokenizer, name) not in (own if isinstance(own, list) else [own]):
            raise ValueError(
                f"{name}: the tokenizer has {getattr(tokenizer, name)}, the model {own}; "
                "save a model with the tokenizer it was trained with"
            )
    largest = max(tokenizer.get_vocab().values())
    if largest >= config.vocab_size:
        raise ValueError(
            f"vocab_size: the tokenizer has ids up to {largest}, the model {config.vocab_size} embeddings; "
            "save a model with the tokenizer it was trained with"
        )
