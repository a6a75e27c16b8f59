"""What `docmt translate` is asked for, and the settings of the job that follow from it and from the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hf_docmt.cli.loading import NOT_FOR_JOBS, default_device, import_transformers
from hf_docmt.options import OPTION_PAIRS, Computation, DocumentSearch, ModelLanguages, option

if TYPE_CHECKING:
    from hf_docmt.translation.group_translation import TranslationSettings

MARKUP = "Documents with markup"  # panels of the help
LANGUAGE_MODELS = "Language models"
KINDS = dict.fromkeys(("strategy", "engine", "alignment", "batch_tokens", "shortlist", "nbest"), ("docmt",))
KINDS |= dict.fromkeys(("prompt", "chunk_sentences", "glossary"), ("causal",)) | {"repairs": ("docmt", "causal")}
OWNERS = {"docmt": "models of this package", "causal": "causal language models"}


@dataclass(kw_only=True)
class JobOptions(Computation):
    """What a job reads, where and how it computes, and what it writes."""

    format: str = option("auto", "Format of the input: auto, jsonl, lines, text, tsv, dtag, ...")
    processes: int | None = option(
        None, "Processes that translate, each with its share of the cores, or with a GPU.", least=1
    )
    engine: str = option(
        "local",
        "local: this machine; ctranslate2: this machine, a folder of docmt export --ctranslate2; ray: a Ray cluster.",
    )
    address: str | None = option(None, "Of the Ray cluster; default: RAY_ADDRESS, else this machine alone.")
    nbest: int | None = option(
        None, "Write that many of the beams of each sentence, too, as candidates of JSON lines.", least=1
    )
    carry: bool = option(
        True,
        "Keep what is no language in sentences (addresses, placeholders, code, signs that the model lacks) as it is; "
        "--no-carry: sentences go to the model as they are, for comparisons; not of documents with markup.",
        "--carry/--no-carry",
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
    all: bool = option(
        False, "Of files in two languages (PO, XLIFF, TMX) translate again what has a translation.", panel=MARKUP
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
        return vars(self) | {"all": "yes" if self.all else None}


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
    import_transformers()
    from hf_docmt.data.documents import UNNAMED
    from hf_docmt.systems import kind_of, read_options, system_classes
    from hf_docmt.systems.devices import check_device, checked_dtype
    from hf_docmt.systems.prompts import read_glossary, read_prompt
    from hf_docmt.translation.group_translation import TranslationSettings

    device = check_device(options.device or default_device())
    asked = {"strategy": options.strategy, "engine": options.engine, "nbest": options.nbest}
    chosen = {name: value for name, value in (asked | vars(search) | vars(system)).items() if value is not None}
    if chosen["engine"] != "ctranslate2":
        del chosen["engine"]
        checked_dtype(options.dtype, device)
    kind = kind_of(model, options.revision)
    check_options(kind, chosen)
    pairs = read_options(chosen.pop("option_pairs", ()), kind, NOT_FOR_JOBS)
    for name, read in (("prompt", read_prompt), ("glossary", read_glossary)):
        if name in chosen:
            chosen[name] = read(chosen[name])
    if kind == "docmt" and "past_context" in chosen:
        chosen["decoding_past_context"] = chosen.pop("past_context")
    chosen |= {"format": "auto"} if kind == "causal" else {}
    system_class = system_classes()[kind]
    codes, (source_lang, target_lang) = system_class.language_options(model, *languages, options.revision)
    chosen |= codes | pairs
    return TranslationSettings(
        model,
        source_lang or chosen.get("src_lang") or UNNAMED,
        device,
        batch_size=options.batch_size,
        search=chosen,
        dtype=options.dtype,
        revision=options.revision,
        target_lang=target_lang or chosen.get("target_lang") or chosen.get("tgt_lang"),
        line_by_line=system_class.reads_sentences_alone(model, chosen, options.revision),
        carry=options.carry,
    )


def check_options(kind: str, chosen: dict[str, Any]) -> None:
    """ValueError for an option that models of this kind do not have, or not by the engine ctranslate2."""
    for name, kinds in KINDS.items():
        if name in chosen and kind not in kinds:
            value = f" {chosen[name]}" if name in ("strategy", "engine") else ""
            owners = "models of other packages" if kind == "docmt" else OWNERS[kinds[-1]]
            raise ValueError(f"{flag(name)}{value} is for {owners}, got a model of kind {kind}; leave it out")
    if kind == "docmt" and "option_pairs" in chosen:
        raise ValueError("--option is for models of other packages; leave it out")
    for name in ("shortlist", "nbest"):
        if name in chosen and "engine" in chosen:
            raise ValueError(f"{flag(name)} is not for --engine ctranslate2; leave it out")


def flag(name: str) -> str:
    """The flag of an option."""
    return f"--{name.replace('_', '-')}"
