"""`docmt export`, `docmt push` and `docmt convert`: folders for the Hub."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer

from hf_docmt.cli.loading import check_model, import_transformers, model_of_command
from hf_docmt.cli.options import command, refuse
from hf_docmt.files import check_new_folder
from hf_docmt.options import ModelLanguages, argument, option


@command
def export(
    *,
    model: str = argument("Model folder."),
    folder: str = argument("New folder to write: code, weights, tokenizer and card."),
    report: list[str] | None = option(None, "Report for the card; repeatable.", metavar="FILE"),
    baseline: str | None = option(None, "Report of another model, to compare with.", metavar="FILE"),
    dataset: list[str] | None = option(None, "Training data on the Hub; repeatable.", metavar="NAME"),
    repo_id: str | None = option(None, "Name on the Hub, for the card's example.", metavar="NAME"),
    license: str | None = option(None, "License of the weights. Default: from the model's card.", metavar="NAME"),
    stock: bool = option(
        False,
        "Write a model of transformers (Marian, Pegasus, BART, mBART, M2M-100), which needs no code. Only for concat "
        "without sentence encodings.",
    ),
    ctranslate2: str | None = option(
        None, "Write a model for --engine ctranslate2: int8, float32, float16, ...", metavar="TYPE"
    ),
) -> None:
    """Write a folder for the Hub: weights, code, tokenizer, and a model card made from reports.

    Examples:
      docmt export runs/mine runs/hub --report bleu.json --report accuracy.json
      docmt export runs/mine runs/fast --ctranslate2 int8

    The folder loads with trust_remote_code=True where this package is not installed.
    """
    if stock and ctranslate2 is not None:
        raise ValueError("--stock and --ctranslate2 write different folders; give one of the two")
    check_new_folder(folder)
    check_model(model, *(report or ()), baseline)
    import_transformers()
    from hf_docmt.hub.cards import license_of
    from hf_docmt.hub.export import collect_reports, export_model
    from hf_docmt.loading.adapters import adapted_model
    from hf_docmt.reports.report import Report

    loaded, tokenizer = model_of_command(model, device="cpu")
    base = adapted_model(model)
    facts = collect_reports(report or (), model, repo_id)
    card = {
        "repo_id": repo_id,
        "license": license or license_of(model) or base and license_of(base),
        "datasets": dataset or (),
        "baseline": None if baseline is None else Report.read(baseline),
    }
    if ctranslate2 is not None:
        card["quantization"] = ctranslate2
    form = "stock" if stock else "document" if ctranslate2 is None else "ctranslate2"
    print(export_model(loaded, tokenizer, folder, facts, form=form, **card))


@command
def push(
    *,
    folder: str = argument("Folder by docmt export, or of an adapter."),
    repo_id: str = argument("Name on the Hub: owner/name.", metavar="REPO"),
    private: bool = option(False, "Make a new repository private."),
    revision: str | None = option(None, "Branch; created if missing. Default: main.", metavar="NAME"),
    create_pr: bool = option(False, "Open a pull request.", "--pr"),
    license: str | None = option(None, "License of the weights, for the card.", metavar="NAME"),
    no_license: bool = option(False, "Upload a card without a license."),
    include: list[str] | None = option(None, "Further files, such as pictures/*; repeatable.", metavar="PATTERN"),
    dry_run: bool = option(False, "List the files, and upload nothing."),
) -> None:
    """Upload a model folder to the Hub in one commit.

    Examples:
      docmt push runs/hub owner/name --dry-run
      docmt push runs/hub owner/name --license apache-2.0

    Files by docmt export, save_pretrained and peft are uploaded, and those of --include. The token comes from hf auth
    login, or from the variable HF_TOKEN.
    """
    if license is not None and no_license:
        raise ValueError("got --license and --no-license; give one of the two")
    check_model(None, folder)
    import_transformers()
    from hf_docmt.hub.publishing import planned_upload, push_model

    options = {"revision": revision, "create_pr": create_pr, "include": include or ()}
    options["license"] = False if no_license else license
    if dry_run:
        files = planned_upload(folder, repo_id, **options)
        print(*(f"{file.size:>12,}  {file.path_in_repo}" for file in files), sep="\n")
        print(f"{sum(file.size for file in files):>12,}  bytes in {len(files)} files, to {repo_id}; nothing was sent")
        _print_left(folder, include or ())
        return
    url = push_model(folder, repo_id, private=private or None, **options)
    _print_left(folder, include or ())
    print(url)


def _print_left(folder: str, include: Sequence[str]) -> None:
    from hf_docmt.hub.upload_files import left_files

    if names := left_files(folder, include):
        print(f"not uploaded: {', '.join(names)}; add files of the model with --include", file=sys.stderr)


@command
def convert(
    *,
    call: typer.Context,
    source: str = argument(
        "Marian, BART, mBART or M2M-100 (NLLB): folder, or name on the Hub. Or a file of Marian (.npz, .bin) or "
        "fairseq (.pt)."
    ),
    folder: str = argument("New folder to write: code, weights, tokenizer and card."),
    fields: list[str] | None = argument(
        "Fields of the configuration, such as past_context=2.", default=None, metavar="KEY=VALUE"
    ),
    architecture: str = option("concat", "Architecture of the document model.", metavar="NAME"),
    interpolate_positions: bool = option(False, "Stretch learned positions to max_position_embeddings=NUMBER."),
    vocab: list[str] | None = option(
        None, "Marian file: SentencePiece model (.spm); twice for source and target.", metavar="FILE"
    ),
    data: str | None = option(None, "fairseq: folder with dict.SOURCE.txt and dict.TARGET.txt.", metavar="FOLDER"),
    subwords: list[str] | None = option(
        None, "fairseq: SentencePiece model (.model) or BPE codes; twice for source and target.", metavar="FILE"
    ),
    languages: ModelLanguages,
) -> None:
    """Turn a pretrained sentence-level model into a document model, with the same logits per sentence.

    Examples:
      docmt convert Helsinki-NLP/opus-mt-en-de runs/start past_context=3
      docmt convert facebook/nllb-200-distilled-600M runs/start
        --source-lang eng_Latn --target-lang deu_Latn
      docmt convert model.bin runs/start --vocab vocab.spm

    Checkpoints of fairseq, as published by Maka et al. (2024) and Lupo et al. (2023), need --data and --subwords.
    Until it is trained on documents, the model translates single sentences as before.
    """
    check_new_folder(folder)
    is_file = source.endswith((".npz", ".bin", ".pt"))
    if Path(source).is_file() and not is_file:
        raise ValueError(f"{source}: expected a model folder, or a file of Marian (.npz, .bin) or fairseq (.pt)")
    check_model(None if is_file else source, source if is_file else None)
    import_transformers()
    from hf_docmt.hub.export import convert_sentence_model
    from hf_docmt.hub.fairseq_conversion import convert_fairseq_checkpoint
    from hf_docmt.hub.marian_conversion import convert_marian_file

    codes = {name: code for name, code in vars(languages).items() if code is not None}
    if vocab or source.endswith((".npz", ".bin")):
        if not vocab:
            raise ValueError(f"{source}: a Marian file needs its SentencePiece model; add --vocab FILE")
        refuse(call, ("interpolate_positions", "data", "subwords"), "is not for Marian files")
        form = {"architecture": architecture} | _config_fields(fields or ())
        convert_marian_file(source, folder, vocab=vocab, **form, **codes)
    elif data or subwords or source.endswith(".pt"):
        if not (data and subwords):
            raise ValueError(f"{source}: a fairseq checkpoint needs --data and --subwords; give both")
        refuse(call, ("architecture", "interpolate_positions"), "is not for fairseq checkpoints")
        if fields:
            raise ValueError(f"{fields[0]!r}: fairseq checkpoints take no fields of the configuration; remove it")
        convert_fairseq_checkpoint(source, folder, data=data, subwords=subwords, **vars(languages))
    else:
        form = {"architecture": architecture, "interpolate_positions": interpolate_positions}
        convert_sentence_model(source, folder, needs_languages=True, **form, **_config_fields(fields or ()), **codes)
    print(folder)


def _config_fields(pairs: Sequence[str]) -> dict[str, Any]:
    """Texts KEY=VALUE as fields of a configuration, values in YAML."""
    from hf_docmt.training.recipe_files import overridden

    fields: dict[str, Any] = {}
    for pair in pairs:
        name = pair.partition("=")[0]
        if "=" not in pair or not name.isidentifier():
            raise ValueError(f"{pair!r}: expected KEY=VALUE, a field of the configuration, such as past_context=2")
        if name in ("source_lang", "target_lang"):
            raise ValueError(f"{pair!r}: give languages as --{name.replace('_', '-')}")
        fields = overridden(fields, pair)
    return fields
