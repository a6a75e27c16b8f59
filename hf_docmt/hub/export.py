"""Hub folders of models and of converted sentence-level ones, as files of transformers or CTranslate2."""

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

from hf_docmt.files import atomic_folder, check_new_folder
from hf_docmt.hub.cards import license_of, make_card
from hf_docmt.hub.stock import stock_class, to_stock
from hf_docmt.hub.upload_files import HANDLER
from hf_docmt.loading import registry
from hf_docmt.loading.carried_code import PACKAGE, carry_code
from hf_docmt.loading.pretrained import from_sentence_model
from hf_docmt.messages import install_command
from hf_docmt.modeling.fingerprints import add_tokenizer_fingerprint
from hf_docmt.modeling.modeling_docmt import DocMTForConditionalGeneration
from hf_docmt.modeling.sequence_format import LANGUAGES, some_codes, uses_language
from hf_docmt.reports.report import Report, merge_reports


def export_model(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase | None,
    folder: str | os.PathLike,
    report: Report | None = None,
    *,
    form: str = "document",
    quantization: str = "int8",
    **card,
) -> Path:
    """Write a model, its tokenizer and its card into a new folder, whole or not at all.

    `form` is that of the files: `document` (code, weights, generation config: the folder loads with
    `trust_remote_code=True` on machines without this package, and with `handler.py` on Inference Endpoints), `stock` (a
    concatenation model without sentence encodings as transformers' own class, see `to_stock`: no code, same logits),
    `ctranslate2` (such a model for `docmt translate --engine ctranslate2`, weights of the type `quantization`; the
    files of `ctranslate2.Translator` are in `ctranslate2/`). A model without tokenizer is for `document` alone. `card`
    holds further arguments of `make_card`. Raises ValueError where the folder has something in it, where the tokens of
    the tokenizer are not those of the model, and for a model that the form cannot hold or a missing package.

    >>> folder = export_model(model, tokenizer, "runs/hub", license="apache-2.0")
    >>> (folder / "modeling_concat.py").is_file()  # the code goes with it
    True
    """
    path = check_new_folder(folder)
    if tokenizer is not None:
        check_tokens(model.config, tokenizer)
        is_spm = any(str(name).endswith((".spm", ".model")) for name in tokenizer.vocab_files_names.values())
        card = {"needs": ["sentencepiece"] if is_spm and not tokenizer.is_fast else [], **card}
    if form == "stock":
        card["model_class"] = stock_class(model.config).__name__
    text = str(make_card(report, config=model.config, parameters=model.num_parameters(), form=form, **card))
    write = writer_of(form, model, tokenizer, quantization)
    with atomic_folder(path) as unfinished:
        write(unfinished)
        if form == "document" and registry.for_config(model.config).package != PACKAGE:
            check_code(unfinished, model)
        if tokenizer is not None:
            tokenizer.save_pretrained(unfinished)
            if form != "stock":
                add_tokenizer_fingerprint(unfinished, tokenizer)
            if form == "document":
                (unfinished / HANDLER).write_text(files("hf_docmt.hub_cards").joinpath(HANDLER).read_text("utf-8"))
        (unfinished / "README.md").write_text(text, encoding="utf-8")
    return path


def check_code(folder: Path, model: PreTrainedModel) -> None:
    """ValueError if the folder does not hold the code of a model of another package, or it needs further packages."""
    name = type(model).__name__
    if not (model.is_remote_code() and model.config._auto_class):
        raise ValueError(
            f"{name} is of {type(model).__module__}, and its code does not go along: call "
            f'{name}.register_for_auto_class("AutoModelForSeq2SeqLM") there, and for the model and configuration, too'
        )
    if missing := carry_code(folder):
        raise ValueError(
            f"the code of {name} imports {', '.join(missing)}, which the folder does not hold; import torch, "
            f"transformers, {PACKAGE} and modules of its own as 'from .module import' only"
        )


def writer_of(
    form: str, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, quantization: str
) -> Callable[[Path], None]:
    """The function that writes the model's files of a form into a folder. ValueError: see `export_model`."""
    if form == "stock":
        return to_stock(model).save_pretrained
    if form == "ctranslate2":
        try:
            from hf_docmt.hub.ctranslate2_conversion import write_ctranslate2_folder
        except ImportError as error:
            raise ValueError(f"CTranslate2 is not installed: {install_command('ctranslate2')}") from error
        names = {index: token for token, index in tokenizer.get_vocab().items()}
        tokens = [names.get(index, f"<row {index}>") for index in range(model.config.vocab_size)]
        return lambda folder: write_ctranslate2_folder(model, tokens, folder, quantization)
    return model.save_pretrained


def collect_reports(paths: Sequence[str | os.PathLike], model: str | os.PathLike, name: str | None) -> Report | None:
    """The reports of one model as one, with the facts of its training, under `name` or the name of its folder.

    Results with other contexts than the true one are dropped, since a card would list them as the model's scores.
    """
    reports = []
    for report in [Report.read(str(path)) for path in paths]:
        kept = [result for result in report.results if result.signature.get("context", "true") == "true"]
        reports.append(replace(report, model={**report.model, "name": name or Path(model).name}, results=kept))
    if not reports:
        return None
    merged = merge_reports(*reports)
    facts = Path(model) / "training.json"
    if merged.training is None and facts.is_file():
        merged = replace(merged, training=json.loads(facts.read_text(encoding="utf-8")))
    return merged


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


def convert_sentence_model(
    source: str | os.PathLike | PreTrainedModel,
    output: str | os.PathLike | None = None,
    *,
    tokenizer: PreTrainedTokenizerBase | None = None,
    architecture: str = "concat",
    interpolate_positions: bool = False,
    needs_languages: bool = False,
    **fields,
) -> tuple[DocMTForConditionalGeneration, PreTrainedTokenizerBase | None]:
    """Convert a Marian, BART, mBART or M2M-100 (NLLB) model to a document model; write it to `output` if given.

    Before training, the new model translates single sentences as the original does. Arguments, results, departures and
    errors are those of `from_sentence_model`; `output` is a new folder, written by `export_model`, whose card states
    the licence of the source's, and that it is not trained on documents. With `needs_languages` a ValueError asks for
    those that a model with language codes was not given.

    >>> from transformers import MarianConfig, MarianMTModel
    >>> sizes = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16}
    >>> marian = MarianMTModel(MarianConfig(vocab_size=50, pad_token_id=49, decoder_start_token_id=49, **sizes))
    >>> converted, _ = convert_sentence_model(marian, architecture="caching", past_context=2)
    >>> converted.config.model_type
    'docmt-caching'
    """
    if output is not None:
        check_new_folder(output)
    fields |= {"architecture": architecture, "interpolate_positions": interpolate_positions}
    model, tokenizer = from_sentence_model(source, tokenizer=tokenizer, **fields)
    if needs_languages:
        _check_languages(model.config, source)
    if output is not None:
        license = None if isinstance(source, PreTrainedModel) else license_of(source)
        export_model(model, tokenizer, output, license=license, untrained=True)
    return model, tokenizer


def _check_languages(config: PreTrainedConfig, source: str | os.PathLike | PreTrainedModel) -> None:
    """ValueError where a model of several languages does not know which ones it translates between."""
    missing = [name for name in LANGUAGES if uses_language(config, name) and getattr(config, name) is None]
    if config.language_ids and missing:
        flags = " and ".join(f"--{name.replace('_', '-')}" for name in missing)
        raise ValueError(f"{source}: give {flags}, codes such as {some_codes(config.language_ids)}")
