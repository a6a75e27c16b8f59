"""The options of `docmt translate`, and the settings of the job that follow from them and from the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from hf_docmt.cli.loading import NOT_FOR_JOBS, default_device, import_transformers
from hf_docmt.options import (
    BASIC,
    FILES,
    OPTION_PAIRS,
    OTHER_MODELS,
    SEARCH,
    Computation,
    DocumentSearch,
    ModelLanguages,
    option,
)

if TYPE_CHECKING:
    from hf_docmt.translation.group_translation import TranslationSettings

KINDS = dict.fromkeys(
    ("strategy", "engine", "alignment", "batch_tokens", "shortlist", "nbest", "formality", "consistent"), ("docmt",)
)
KINDS |= {"prompt": ("causal",), "repairs": ("docmt", "causal"), "model_name": ("endpoint",)}
KINDS |= {"chunk_sentences": ("causal", "endpoint"), "glossary": ("docmt", "causal", "endpoint")}
OWNERS = {"docmt": "models of this package", "causal": "causal language models", "endpoint": "endpoints"}


@dataclass(kw_only=True)
class JobOptions(Computation):
    """Input, computation and output of a job."""

    format: str = option("auto", "Input format, such as jsonl, text, tsv. Default: auto.", metavar="NAME", panel=BASIC)
    processes: int | None = option(None, "Number of processes, which share the cores or get a GPU each.", least=1)
    engine: str = option("local", "local (default), ctranslate2 (see docmt export), or ray (cluster).", metavar="NAME")
    address: str | None = option(None, "Ray cluster. Default: RAY_ADDRESS, or local.", metavar="HOST")
    nbest: int | None = option(None, "JSON lines: also write the N best beams.", least=1, panel=SEARCH)
    no_carry: bool = option(
        False,
        "Also translate URLs, code and placeholders.",
        panel=FILES,
    )
    memory: list[str] | None = option(
        None, "Reuse translations of TMX, PO, XLIFF or JSON lines; repeatable.", metavar="FILE", panel=BASIC
    )
    report: str | None = option(
        None, "HTML page of the sentences and what to review (one file with markup).", metavar="HTML", panel=FILES
    )
    resume: bool = option(False, "Continue the interrupted job of this output.", panel=FILES)


@dataclass(kw_only=True)
class MarkupOptions:
    """The parts of documents with markup to translate."""

    PANEL: ClassVar[str] = FILES
    keep: str | None = option(None, "Copy matching text, such as placeholders.", metavar="REGEX")
    bilingual: bool = option(False, "Write each translation below its text (Markdown, HTML, EPUB, DOCX, PPTX, ODT).")
    all: bool = option(False, "PO, XLIFF, TMX: replace existing translations.")
    fuzzy_below: float | None = option(
        None,
        "PO: mark only translations with a lower score as fuzzy, such as -0.3.",
        least=-100,
        most=0,
        metavar="SCORE",
    )
    columns: str | None = option(None, "Tables: columns to translate, by name or number.", metavar="A,B")
    previous: tuple[str, str] | None = option(
        None, "Old version and its translation (files or folders): translate what changed.", metavar="A B"
    )
    max_line: str | None = option(None, "Subtitles: characters per line. Default: 42.", metavar="N")
    max_speed: str | None = option(None, "Subtitles: report faster cues (characters/s).", metavar="N")

    def arguments(self) -> dict[str, str | None]:
        """As arguments of the reader."""
        previous = dict(zip(("previous", "previous_target"), self.previous or ()))
        flags = {name: "yes" if vars(self)[name] else None for name in ("all", "bilingual")}
        least = None if self.fuzzy_below is None else str(self.fuzzy_below)
        return {**vars(self), **flags, "fuzzy_below": least, "previous": None} | previous


@dataclass(kw_only=True)
class SystemOptions:
    """Options for language models and other models of transformers."""

    PANEL: ClassVar[str] = OTHER_MODELS

    model_name: str | None = option(None, "Model at an endpoint (MODEL is a URL).", "--model", metavar="NAME")
    prompt: str | None = option(
        None,
        "File with the prompt: {source}, {source_language}, {target_language}; optional {context}, {glossary}. Without "
        "{context} a chat model gets earlier turns.",
        metavar="FILE",
    )
    chunk_sentences: int | None = option(
        None, "Sentences per request, as numbered lines; 0: the whole document. Default: 1.", least=0
    )
    glossary: str | None = option(
        None, "Terms and their translations: TSV, CSV, TBX, UTX or a list in Markdown.", metavar="FILE", panel=BASIC
    )
    consistent: bool | None = option(None, "Translate each name of a document alike.", panel=BASIC)
    option_pairs: list[str] | None = OPTION_PAIRS


def translation_settings(
    model: str, languages: ModelLanguages, search: DocumentSearch, options: JobOptions, system: SystemOptions
) -> TranslationSettings:
    """How the job translates. ValueError: a device, number type, language or option that is not the model's."""
    from hf_docmt.data.documents import UNNAMED
    from hf_docmt.files import check_file
    from hf_docmt.systems.kernel_system import KernelSystem
    from hf_docmt.translation.group_translation import TranslationSettings

    asked = {"strategy": options.strategy, "engine": options.engine, "nbest": options.nbest}
    chosen = {name: value for name, value in (asked | vars(search) | vars(system)).items() if value is not None}
    if chosen["engine"] == "local":
        del chosen["engine"]
    renamed = {"decoding_past_context" if name == "past_context" else name: value for name, value in chosen.items()}
    is_light = options.processes in (None, 1) and options.revision is None and options.report is None
    if is_light and KernelSystem.fits(model, options.dtype, options.device, renamed):
        chosen, device, system_class = renamed, "cpu", KernelSystem
    else:
        chosen, device, system_class = checked_settings(model, options, chosen)
    codes, (source_lang, target_lang) = system_class.language_options(model, *languages, options.revision)
    if "glossary" in chosen:
        from hf_docmt.data.glossary_files import read_entries

        chosen["glossary"] = read_entries(chosen["glossary"], source_lang, target_lang)
    chosen = codes | chosen
    return TranslationSettings(
        model,
        source_lang or chosen.get("src_lang") or UNNAMED,
        device,
        batch_size=options.batch_size,
        search=chosen,
        dtype=options.dtype,
        revision=options.revision,
        target_lang=target_lang or chosen.get("target_lang") or chosen.get("tgt_lang"),
        line_by_line=not system.consistent and system_class.reads_sentences_alone(model, chosen, options.revision),
        carry=not options.no_carry,
        memory=tuple(str(check_file(path)) for path in options.memory or ()),
    )


def checked_settings(model: str, options: JobOptions, chosen: dict[str, Any]) -> tuple[dict[str, Any], str, type]:
    """The settings of a system that needs torch, its device and its class. ValueError as `translation_settings`."""
    import_transformers()
    from hf_docmt.systems import kind_of, read_options, system_classes
    from hf_docmt.systems.devices import check_device, checked_dtype
    from hf_docmt.systems.prompts import read_prompt

    device = check_device(options.device or default_device())
    if chosen.get("engine") != "ctranslate2":
        chosen.pop("engine", None)
        checked_dtype(options.dtype, device)
    kind = kind_of(model, options.revision)
    check_options(kind, chosen)
    pairs = read_options(chosen.pop("option_pairs", ()), kind, NOT_FOR_JOBS)
    if "prompt" in chosen:
        chosen["prompt"] = read_prompt(chosen["prompt"])
    if kind == "docmt" and "past_context" in chosen:
        chosen["decoding_past_context"] = chosen.pop("past_context")
    chosen |= {"format": "auto"} if kind == "causal" else {}
    return chosen | pairs, device, system_classes()[kind]


def check_options(kind: str, chosen: dict[str, Any]) -> None:
    """ValueError for an option that models of this kind do not have, or not by the engine ctranslate2."""
    for name, kinds in KINDS.items():
        if name in chosen and kind not in kinds:
            value = f" {chosen[name]}" if name in ("strategy", "engine") else ""
            owners = "models of other packages" if kind == "docmt" else " and ".join(OWNERS[of] for of in kinds)
            raise ValueError(f"{flag(name)}{value} is for {owners}, got a model of kind {kind}; remove it")
    if kind == "docmt" and "option_pairs" in chosen:
        raise ValueError("--option is for models of other packages; remove it")
    for name in ("shortlist", "nbest"):
        if name in chosen and "engine" in chosen:
            raise ValueError(f"{flag(name)} is not for --engine ctranslate2; remove it")


def flag(name: str) -> str:
    """The flag of an option."""
    return f"--{name.replace('_', '-')}"
