"""What `docmt translate` is asked for, and the settings of the job that follow from it and from the model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hf_docmt.options import BATCH_SIZE, OPTION_PAIRS, STRATEGY, DocumentSearch, ModelLanguages, option

if TYPE_CHECKING:
    from hf_docmt.translation.group_translation import TranslationSettings

MARKUP = "Documents with markup"  # panels of the help
LANGUAGE_MODELS = "Language models"


@dataclass(kw_only=True)
class JobOptions:
    """What a job reads, where and how it computes, and what it writes."""

    format: str = option("auto", "Format of the input: auto, jsonl, lines, text, tsv, dtag, ...")
    strategy: str | None = STRATEGY
    batch_size: int = BATCH_SIZE

    device: str | None = option(None, "cpu, cuda, cuda:1, ...; default: a GPU where there is one.")
    dtype: str | None = option(None, "fp32, bf16 or fp16, to compute in, or int8 weights on a CPU; default: as saved.")
    revision: str | None = option(None, "Branch, tag or commit of a model on the Hub.")
    processes: int | None = option(
        None, "Processes that translate, each with its share of the cores, or with a GPU.", least=1
    )
    engine: str = option(
        "local",
        "local: this machine; ctranslate2: this machine, a folder of docmt export --ctranslate2; ray: a Ray cluster, "
        "from a folder or URL of parts to shards.",
    )
    address: str | None = option(None, "Of the Ray cluster; default: RAY_ADDRESS, else this machine alone.")
    nbest: int | None = option(
        None, "Write that many of the beams of each sentence, too, as candidates of JSON lines.", least=1
    )
    estimate: bool = option(False, "Print how long it takes, from a sample of a minute; write nothing.")
    resume: bool = option(
        False, "Go on with the job of this output that was stopped or killed, from what is done, if anything is."
    )


@dataclass(kw_only=True)
class MarkupOptions:
    """What of documents with markup is translated."""

    keep: str | None = option(
        None, "Regular expression of what is kept as it is, such as placeholders of your own.", panel=MARKUP
    )
    only_missing: bool = option(
        False, "Of files in two languages (PO, XLIFF, TMX) translate only what has no translation.", panel=MARKUP
    )
    columns: str | None = option(
        None, "Columns of a table that are translated, by name or number: title,3.", panel=MARKUP
    )
    max_line: str | None = option(None, "Of subtitles, the characters of a line; default: 42.", panel=MARKUP)
    max_speed: str | None = option(
        None, "Of subtitles, the characters a second above which a cue is told, such as 17.", panel=MARKUP
    )

    def arguments(self) -> dict[str, str | None]:
        """As arguments of the reader."""
        return vars(self) | {"only_missing": "yes" if self.only_missing else None}


@dataclass(kw_only=True)
class SystemOptions:
    """What models of other packages take."""

    prompt: str | None = option(
        None,
        "File with the prompt of a language model: {source}, {source_language}, {target_language} and, where they are "
        "to stand in it, {context} and {glossary}. Without {context} a chat model has it as earlier turns.",
        panel=LANGUAGE_MODELS,
    )
    chunk_sentences: int | None = option(
        None,
        "Sentences that are translated at once, as numbered lines; 0: whole documents. With --repairs none lines "
        "without numbers, as they were written. Default: 1.",
        least=0,
        panel=LANGUAGE_MODELS,
    )
    glossary: str | None = option(
        None, "File with a source term, a tab and its translation on each line.", panel=LANGUAGE_MODELS
    )
    option_pairs: list[str] | None = OPTION_PAIRS


def translation_settings(
    model: str, languages: ModelLanguages, search: DocumentSearch, options: JobOptions, system: SystemOptions
) -> TranslationSettings:
    """How the job translates. ValueError: a device, number type, language or option that is not the model's."""
    from hf_docmt.cli.loading import default_device
    from hf_docmt.data.documents import UNNAMED
    from hf_docmt.generation_settings import load_generation_config, make_repeatable
    from hf_docmt.registry import MODEL_TYPE_PREFIX, load_config, read_config
    from hf_docmt.translation.group_translation import TranslationSettings, check_device, checked_dtype

    device = check_device(options.device or default_device())
    library = "ctranslate2" if options.engine == "ctranslate2" else "transformers"
    if library == "transformers":
        checked_dtype(options.dtype, device)
    shared = {name: getattr(options, name) for name in ("strategy", "batch_size", "dtype", "revision")}
    of_ctranslate2 = (Path(model) / "model.bin").is_file()  # its config.json names no type
    if of_ctranslate2 or not read_config(model, options.revision)["model_type"].startswith(MODEL_TYPE_PREFIX):
        source_lang, arguments = system_settings(model, languages, search, options, system)
        return TranslationSettings(model, source_lang, device, search=arguments, engine="system", **shared)
    for name, value in vars(system).items():
        if value is not None:
            raise ValueError(
                f"{'--option' if name == 'option_pairs' else flag(name)} is for models of other packages; leave it out"
            )
    for name, value in {"shortlist": search.shortlist, "mbr": search.mbr, "nbest": options.nbest}.items():
        if value is not None and library != "transformers":
            raise ValueError(f"{flag(name)} is not for --engine {options.engine}; leave it out")
    config = load_config(model, options.revision)
    make_repeatable(load_generation_config(model, options.revision), model)  # here for its warning
    codes = config.language_codes(*languages)
    config.sequence_format(codes.get("source_lang"), languages.target_lang)  # refuses a target that is not written
    if "source_lang" not in codes:
        _check_source(model, languages.source_lang, config.source_lang)
    return TranslationSettings(
        model,
        languages.source_lang or config.source_lang or UNNAMED,
        device,
        search={k: v for k, v in (vars(search) | codes | {"nbest": options.nbest}).items() if v is not None},
        engine=library,
        **shared,
    )


def system_settings(
    model: str, languages: ModelLanguages, search: DocumentSearch, options: JobOptions, system: SystemOptions
) -> tuple[str, dict[str, Any]]:
    """The language of the documents, and the options of the class of a system of another package.

    ValueError: options that such systems do not have.
    """
    from hf_docmt.cli.loading import NOT_FOR_JOBS
    from hf_docmt.data.documents import UNNAMED
    from hf_docmt.remote_code import load_tokenizer
    from hf_docmt.systems import kind_of, read_options
    from hf_docmt.systems.prompts import read_glossary, read_prompt

    kind = kind_of(model, options.revision)
    chosen = {name: value for name, value in (vars(search) | vars(system)).items() if value is not None}
    if options.strategy is not None or options.engine == "ctranslate2":
        name, value = ("strategy", options.strategy) if options.strategy else ("engine", options.engine)
        raise ValueError(f"--{name} {value} is for models of this package, got a model of kind {kind}; leave it out")
    for name in ("alignment", "batch_tokens", "shortlist", "mbr", "nbest"):
        if chosen.get(name, getattr(options, name, None)) is not None:
            raise ValueError(f"{flag(name)} is for models of this package, got a model of kind {kind}; leave it out")
    pairs = read_options(chosen.pop("option_pairs", ()), kind, NOT_FOR_JOBS)
    if kind != "causal":
        for name in ("prompt", "chunk_sentences", "glossary", "repairs"):
            if name in chosen:
                raise ValueError(
                    f"{flag(name)} is for causal language models, got a model of kind {kind}; leave it out"
                )
        tokenizer = load_tokenizer(model, options.revision)
        own = getattr(tokenizer, "source_lang", None)
        _check_source(model, languages.source_lang, own)
        if hasattr(tokenizer, "src_lang"):
            codes = zip(("src_lang", "tgt_lang"), languages)
            chosen |= {name: code for name, code in codes if code is not None}
        chosen |= pairs
        return languages.source_lang or chosen.get("src_lang") or own or UNNAMED, chosen
    for name, read in (("prompt", read_prompt), ("glossary", read_glossary)):
        if name in chosen:
            chosen[name] = read(chosen[name])
    codes = {"source_lang": languages.source_lang, "target_lang": languages.target_lang}
    chosen |= {"format": "auto"} | {name: code for name, code in codes.items() if code is not None}
    return languages.source_lang or UNNAMED, chosen | pairs


def flag(name: str) -> str:
    """The flag of an option."""
    return "--option" if name == "option_pairs" else f"--{name.replace('_', '-')}"


def _check_source(model: str, asked: str | None, own: str | None) -> None:
    """ValueError for another source language than that of a model without language codes, where both are known.

    Codes of different length, such as those of documents with sides `src` and `tgt`, are not compared, nor those of
    groups of languages (ISO 639-5), such as `roa` and `mul`.
    """
    from hf_docmt.data.language_codes import GROUPS, primary_language

    codes = {primary_language(code) for code in (asked, own) if code} - GROUPS
    if len(codes) == 2 and len(set(map(len, codes))) == 1:
        raise ValueError(
            f"--source-lang is {asked!r}, but {model} translates from {own!r}; leave it out, or "
            "give a model of this language"
        )
