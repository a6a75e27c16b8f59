"""`docmt export`, `docmt push` and `docmt convert`: folders for the Hub."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import typer

from hf_docmt.cli.loading import import_transformers, model_of_command
from hf_docmt.cli.options import command, refuse
from hf_docmt.options import ModelLanguages, argument, option


@command
def export(
    *,
    model: str = argument("Model folder."),
    folder: str = argument("New folder to write: code, weights, tokenizer and card."),
    report: list[str] | None = option(None, "Report for the card; repeatable."),
    baseline: str | None = option(None, "Report of another model, whose scores stand beside them."),
    dataset: list[str] | None = option(None, "Training data on the Hub; repeatable."),
    repo_id: str | None = option(None, "Name on the Hub, for the card's example."),
    license: str | None = option(None, "Licence of the weights; default: that of the folder's card."),
    stock: bool = option(
        False,
        "As transformers' own Marian, Pegasus, BART, mBART or M2M-100, which need no code of ours: concat without "
        "sentence encodings.",
    ),
    ctranslate2: str | None = option(
        None, "The same for --engine ctranslate2, with weights of this type: int8, float32, float16, ..."
    ),
) -> None:
    """Write a folder for the Hub, with a model card made from reports."""
    import_transformers()
    from hf_docmt.hub.cards import license_of
    from hf_docmt.hub.export import collect_reports, export_model
    from hf_docmt.loading.adapters import adapted_model
    from hf_docmt.reports.report import Report

    if stock and ctranslate2 is not None:
        raise ValueError("--stock and --ctranslate2 write different folders; give one of them at a time")

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
    folder: str = argument("Folder that docmt export wrote, or an adapter's."),
    repo_id: str = argument("Name on the Hub: owner/name.", metavar="REPO"),
    private: bool = option(False, "A new repository is private."),
    revision: str | None = option(None, "Branch, created if it is not there; default: main."),
    create_pr: bool = option(False, "Open a pull request.", "--pr"),
    code_repo: str | None = option(
        None, "Keep the Python files in this repository, owner/name, which gets those of this version."
    ),
    license: str | None = option(None, "Licence of the weights, written into the card."),
    no_license: bool = option(False, "Send a card that states no licence."),
    include: list[str] | None = option(None, "Further files, such as pictures/*; repeatable."),
    dry_run: bool = option(False, "List what would go up, and send nothing."),
) -> None:
    """Upload a folder to the Hub in one commit: what export, save_pretrained and peft write, and --include.

    The token is that of hf auth login, or of the variable HF_TOKEN.
    """
    import_transformers()
    from hf_docmt.hub.publishing import code_files, planned_upload, push_model

    if license is not None and no_license:
        raise ValueError("--license and --no-license: give one of them")
    options = {"revision": revision, "create_pr": create_pr, "code_repo": code_repo, "include": include or ()}
    options["license"] = False if no_license else license
    if dry_run:
        files = planned_upload(folder, repo_id, **options)
        _print_files({file.path_in_repo: file.size for file in files}, repo_id)
        if code_repo is not None:
            code = {name: len(content) for name, content in code_files(code_repo).items()}
            _print_files(code, f"{code_repo} unless it has them")
        _print_left(folder, include or ())
        return
    url = push_model(folder, repo_id, private=private or None, **options)
    _print_left(folder, include or ())
    print(url)
    if code_repo is not None:
        options = f'trust_remote_code=True, code_revision="{url.code_revision}"'
        print(f'AutoModelForSeq2SeqLM.from_pretrained("{repo_id}", {options})')


def _print_files(sizes: dict[str, int], target: str) -> None:
    for name, size in sizes.items():
        print(f"{size:>12,}  {name}")
    print(f"{sum(sizes.values()):>12,}  bytes in {len(sizes)} files, to {target}; nothing was sent")


def _print_left(folder: str, include: Sequence[str]) -> None:
    from hf_docmt.hub.upload_files import left_files

    if names := left_files(folder, include):
        print(f"left here: {', '.join(names)}; what belongs to the model goes up with --include", file=sys.stderr)


@command
def convert(
    *,
    call: typer.Context,
    source: str = argument(
        "Marian, BART, mBART, M2M-100 (NLLB): folder or Hub name; a .npz or .bin file of Marian; a .pt file of fairseq."
    ),
    folder: str = argument("New folder to write: code, weights, tokenizer and card."),
    fields: list[str] | None = argument(
        "Fields of the configuration, such as past_context=2.", default=None, metavar="[KEY=VALUE]..."
    ),
    architecture: str = option("concat", "Architecture of the document model."),
    interpolate_positions: bool = option(False, "Stretch learned positions to max_position_embeddings=NUMBER."),
    vocab: list[str] | None = option(
        None, "Marian's files: SentencePiece model (.spm); twice for two: source, target."
    ),
    data: str | None = option(None, "fairseq: folder with dict.SOURCE.txt and dict.TARGET.txt."),
    subwords: list[str] | None = option(
        None, "fairseq: SentencePiece model (.model) or BPE codes; twice for two: source, target."
    ),
    languages: ModelLanguages,
) -> None:
    """Make a document model of a pretrained sentence-level one, with the same logits for single sentences.

    With --vocab the source is a file that Marian wrote. With --data and --subwords it is a published checkpoint of Maka
    et al. (2024) or Lupo et al. (2023).
    """
    import_transformers()
    from hf_docmt.hub.export import convert_sentence_model
    from hf_docmt.hub.fairseq_conversion import convert_fairseq_checkpoint
    from hf_docmt.hub.marian_conversion import convert_marian_file

    codes = {name: code for name, code in vars(languages).items() if code is not None}
    if vocab or source.endswith((".npz", ".bin")):
        if not vocab:
            raise ValueError(f"{source}: a file of Marian needs --vocab, the SentencePiece model that goes with it")
        refuse(call, ("interpolate_positions", "data", "subwords"), "is not for files of Marian")
        form = {"architecture": architecture} | _config_fields(fields or ())
        convert_marian_file(source, folder, vocab=vocab, **form, **codes)
    elif data or subwords or source.endswith(".pt"):
        if not (data and subwords):
            raise ValueError(f"{source}: a checkpoint of fairseq needs --data and --subwords; give both")
        refuse(call, ("architecture", "interpolate_positions"), "is not for checkpoints of fairseq")
        if fields:
            raise ValueError(f"{fields[0]!r}: fields are not for checkpoints of fairseq; leave them out")
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
