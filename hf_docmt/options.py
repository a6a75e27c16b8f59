"""Options, declared once: parameters and fields with default, help and bounds, for commands, recipes and functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from operator import ge, gt, le, lt
from typing import Any, ClassVar

PANELS = "Basic", "Search", "Suite", "Metrics", "Files", "Machine", "Limits"  # of the help, in their order
PANELS += "Models of other packages", "Scores of other programs", "Translations side by side (--show)"
BASIC, SEARCH, SUITE, METRICS, FILES, MACHINE, LIMITS, OTHER_MODELS, OTHERS, SHOW = PANELS
BOUNDS = {"least": ge, "most": le, "above": gt, "below": lt}
REQUIRED: Any = MISSING  # default of an option without one


def option(default: Any, help: str, *flags: str, **settings) -> Any:
    """An option with its default, its help and, where they are not `--name-of-the-field`, its flags.

    It is the default of a parameter of a command (see `hf_docmt.cli.options.command`), or a field of a dataclass.
    `settings`: bounds, which are `least`, `most`, `above` and `below`; `panel` of the help, by default the `PANEL` of
    the dataclass, and `metavar`, which names the value there; `read`, which turns the text of the command line into the
    value, or the texts of a `repeated` flag.
    """
    return field(default=default, metadata={"help": help, "flags": flags, **settings})


def argument(help: str, default: Any = REQUIRED, metavar: str | None = None) -> Any:
    """A positional argument of the command line; required unless it has a default."""
    return field(default=default, metadata={"help": help, "is_argument": True, "metavar": metavar})


def out_of_bounds(options: Any) -> Iterator[tuple[str, str, Any]]:
    """Name, bounds in words and value of every number in a dataclass of options that is out of its bounds."""
    for item in fields(options):
        value = getattr(options, item.name)
        if bounds := broken_bounds(item.metadata, value):
            yield item.name, bounds, value


def broken_bounds(bounds: Mapping[str, Any], value: Any) -> str | None:
    """The bounds in words, if the value is a number outside of them."""
    given = [name for name in BOUNDS if name in bounds] if isinstance(value, int | float) else []
    return None if all(BOUNDS[name](value, bounds[name]) for name in given) else _in_words(bounds)


def _in_words(bounds: Mapping[str, Any]) -> str:
    if "below" in bounds:
        return f"in [{bounds['least']}, {bounds['below']})"
    if "most" in bounds:
        return f"in [{bounds['least']}, {bounds['most']}]"
    return f"at least {bounds['least']}" if "least" in bounds else f"more than {bounds['above']}"


def item_range(text: str) -> tuple[int, int]:
    """`FIRST-LAST` as two numbers."""
    first, dash, last = text.partition("-")
    if not (dash and first.isdecimal() and last.isdecimal()):
        raise ValueError(f"--items is {text!r}, expected FIRST-LAST, two numbers such as 1-100")
    return int(first), int(last)


def names(text: str | Iterable[str]) -> tuple[str, ...]:
    """Names separated by commas, in one text or several; empty ones are dropped."""
    return tuple(filter(None, (text if isinstance(text, str) else ",".join(text)).split(",")))


def distinct_names(text: str) -> tuple[str, ...]:
    """Names separated by commas, without blanks around them, each once."""
    return tuple(dict.fromkeys(name.strip() for name in text.split(",")))


def named_file(text: str) -> tuple[str, str]:
    """`NAME=FILE` as its two parts."""
    name, equals, path = text.partition("=")
    if not (name and equals and path):
        raise ValueError(f"got {text!r}, expected NAME=FILE, such as metricx=scores.jsonl")
    return name, path


def named_files(texts: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Several of `NAME=FILE`."""
    return tuple(map(named_file, texts))


def window_and_stride(text: str) -> tuple[int, int | None]:
    """`6` or `6:3`: the number of sentences in a window, and the step to the next window."""
    window, colon, stride = text.partition(":")
    if not window.isdecimal() or (colon and not stride.isdecimal()):
        raise ValueError(f"--scorer-window is {text!r}, expected N or N:STRIDE, such as 6 or 6:3")
    return int(window), int(stride) if colon else None


METAVARS = {item_range: "M-N", names: "A,B", distinct_names: "A,B", window_and_stride: "N[:STEP]"}
METAVARS |= dict.fromkeys((named_file, named_files), "NAME=FILE")

AS_JSON = option(False, "Print all results as JSON.", "--json")
BEAMS = option(None, "Beam size. Default: the model's.", "--beams", least=1, panel=BASIC)
BATCH_SIZE = option(16, "Segments per batch.", least=1, panel=MACHINE)
CONDITIONS = option(("true",), "Contexts to score with: true, empty, random, wrong-document.", read=distinct_names)
CONTEXT = option(
    None, "Sentences of past context. Default: the model's own; 3 for chunk models; all for a recurrent memory."
)
DETAILS = option(
    None,
    "JSON lines with texts, scores and verdict per item. Items already in the file are not scored again.",
    metavar="FILE",
    panel=FILES,
)
DOCUMENTS = argument("Documents with references, JSON lines or TSV.")
FUTURE_CONTEXT = option(None, "Sentences of future context, for chunk models. Default: 0.", least=0)
LIMIT = option(None, "Maximum number of items per suite.", least=1, panel=SUITE)
MODEL = argument("Model folder, or name on the Hub.")
OPTION_PAIRS = option(
    None,
    "Option of Seq2SeqSystem or CausalSystem, such as tgt_lang=deu_Latn; repeatable.",
    "--option",
    metavar="KEY=VALUE",
    panel=OTHER_MODELS,
)
OUTPUT = option(None, "Report file to write.", "-o", "--output", metavar="FILE")
OUTPUT_TEXT = option("-", "File to write; - is standard output.", "-o", "--output", metavar="FILE")
PICTURE = option(None, "Also draw a picture: a file ending in .png or .svg.", metavar="FILE")
STRATEGY = option(
    None,
    "sentence, sliding, sequential, full, chunk_sequential or stream. Default: the model's.",
    metavar="NAME",
    panel=BASIC,
)

# Groups of options that go together to one function


@dataclass(kw_only=True)
class ModelLanguages:
    """Languages of a model that has several, or of documents."""

    source_lang: str | None = option(None, "Source language; by default the model's.", metavar="CODE")
    target_lang: str | None = option(None, "Target language; by default the model's.", metavar="CODE")

    def __iter__(self):
        return iter((self.source_lang, self.target_lang))


@dataclass(kw_only=True)
class ReferenceReading:
    """How files of references are read."""

    format: str = option("auto", "Format of the references.", metavar="NAME", panel=FILES)
    source_lang: str | None = option(
        None, "Source language in the documents; plain lines need none.", metavar="CODE", panel=BASIC
    )
    target_lang: str | None = option(
        None, "Target language in the documents; plain lines need none.", metavar="CODE", panel=BASIC
    )


@dataclass(kw_only=True)
class SuiteItems:
    """The items of a contrastive suite, and where texts and scores of each are kept."""

    PANEL: ClassVar[str] = SUITE
    format: str = option("auto", "contrapro, voita, lopes, bawden, a plugin's, or auto.", metavar="NAME")
    documents: str | None = option(None, "JSON lines with the contexts of a ContraPro suite.", metavar="FILE")
    records: str | None = option(None, "JSON file of a suite whose sentences are text files.", metavar="FILE")
    only: tuple[int, int] | None = option(None, "Only these items of each suite, from 1.", "--items", read=item_range)
    limit: int | None = LIMIT
    details: str | None = DETAILS


@dataclass(kw_only=True)
class Computation:
    """Device and number type of a model; None = the model's own choice."""

    PANEL: ClassVar[str] = MACHINE
    strategy: str | None = STRATEGY
    batch_size: int = BATCH_SIZE
    device: str | None = option(None, "cpu, cuda, cuda:1. Default: a GPU if available.", metavar="NAME")
    dtype: str | None = option(
        None, "fp32, bf16, fp16, or int8 (weights, on a CPU). Default: as saved.", metavar="TYPE"
    )
    revision: str | None = option(None, "Branch, tag or commit of a model on the Hub.", metavar="NAME")


@dataclass(kw_only=True)
class SystemSearch:
    """How a system translates; None = the system's own choice."""

    strategy: str | None = STRATEGY
    num_beams: int | None = BEAMS
    batch_size: int = BATCH_SIZE


@dataclass(kw_only=True)
class DocumentSearch:
    """Further arguments of `translate_documents`; None = the model's own choice."""

    PANEL: ClassVar[str] = SEARCH
    num_beams: int | None = BEAMS
    past_context: int | None = option(
        None,
        "Previous sentences, for sliding and sequential. Default: as in training, or 0.",
        least=0,
        panel=BASIC,
    )
    repairs: str | None = option(
        None,
        "none: keep the model's lines, even if there are more or fewer than sentences. Default: one line per sentence.",
        metavar="none",
    )
    alignment: str | None = option(None, "Window models: one_to_one, linear or sentence.", metavar="NAME")
    length_penalty: float | None = option(None, "Higher values favour long translations.")
    early_stopping: bool | None = option(None, "Stop at num_beams finished translations.")
    max_new_tokens: int | None = option(
        None,
        "Maximum tokens per segment. Default: twice its source tokens plus 32; for models of other packages 256.",
        least=1,
    )
    formality: str | None = option(None, "formal or informal address (de, fr, nl).", metavar="NAME", panel=BASIC)
    shortlist: str | None = option(None, "Marian's binary shortlist (lex.*.bin).", metavar="FILE")
    batch_tokens: int | None = option(
        None, "Source tokens per batch, instead of --batch-size; not for sequential and stream.", least=1, panel=MACHINE
    )


@dataclass(frozen=True, kw_only=True)
class Scoring:
    """The measures of translations, and their settings."""

    PANEL: ClassVar[str] = METRICS
    metrics: Sequence[str] | None = option(
        None,
        "bleu, d-bleu, chrf, chrf++, d-chrf, ter, d-ter; separate with commas, or repeat. Default: bleu, d-bleu, chrf, "
        "ter.",
        "-m",
        "--metrics",
        read=names,
        repeated=True,
        panel=BASIC,
    )
    discourse: Sequence[str] = option(
        (),
        "Also score pronouns, formality, connectives, terms, ltcr, blonde, length, blank, copied, untranslated.",
        read=names,
        panel=BASIC,
    )
    glossary: str | None = option(
        None,
        "Score terms of a glossary: a file (TSV, CSV, TBX, UTX, Markdown), or a column of the references with each "
        "document's terms.",
        metavar="FILE",
        panel=BASIC,
    )
    tagger: str = option("spacy", "Tagger for German pronouns and formality: spacy or hanta.", metavar="NAME")
    by: Sequence[str] = option((), "Break scores down by index, length, domain.", read=names, panel=BASIC)
    domains: str | None = option(
        None,
        "Regular expression that finds the domain in a document id. Default: the domains of the references.",
        metavar="REGEX",
        panel=FILES,
    )
    repairs: str | None = option(
        None,
        "none: score the model's lines, even if there are more or fewer than sentences. Default: as in the JSON lines.",
        metavar="none",
        panel=FILES,
    )
    align: bool = option(False, "Align free text to the sentences of the reference.", panel=FILES)
    unit: str | None = option(
        None,
        "Resampling unit of intervals and tests: document, paragraph (between blank lines) or sentence. Default: "
        "document; sentence for several systems with a single document.",
        metavar="NAME",
    )
    external: Sequence[tuple[str, str]] | None = option(
        None,
        "Scores by another program or people: one number per line, or JSON lines with ids; repeatable.",
        read=named_files,
        repeated=True,
        panel=OTHERS,
    )
    scorer_input: tuple[str, str] | None = option(
        None, "Write input for another program: metricx=FILE or comet=FILE.", read=named_file, panel=OTHERS
    )
    scorer_window: tuple[int, int | None] | None = option(
        None,
        "Sentences per line of this input, and the step to the next line (SLIDE). Default: 1.",
        read=window_and_stride,
        panel=OTHERS,
    )
    tokenize: str | None = option(
        None, "BLEU: sacrebleu's tokenizer, such as 13a or char. Default: by language.", metavar="NAME"
    )
    lowercase: bool = option(False, "BLEU: ignore case.")
    joiner: str = option("space", "Document scores: join sentences by space, newline or none.", metavar="NAME")
    chrf_lowercase: bool = option(False, "chrF: ignore case.")
    ter_case_sensitive: bool = option(False, "TER: respect case.")
    ter_asian_support: bool = option(False, "TER: treat Asian characters as tercom does.")
    ter_no_punct: bool = option(False, "TER: ignore punctuation.")
    ter_normalized: bool = option(False, "TER: normalize and tokenize as tercom does.")


@dataclass(frozen=True, kw_only=True)
class ServerLimits:
    """Limits of a server for its clients."""

    PANEL: ClassVar[str] = LIMITS
    characters: int = option(100_000, "Characters per request.", least=1)
    sentences: int = option(2000, "Sentences per request.", least=1)
    texts: int = option(500, "Texts per request.", least=1)
    terms: int = option(1000, "Glossary terms per request.", least=1)
    megabytes: int = option(10, "Megabytes per request or file.", least=1)
    unpacked_megabytes: int = option(64, "Megabytes per unpacked archive.", least=1)
    elements: int = option(400_000, "Start tags per file.", least=1)
    sentence_tokens: int = option(1000, "Maximum tokens per sentence; longer ones are refused.", least=1)
    cut_sentences: bool = option(False, "Translate longer sentences in parts.")
    timeout: float = option(120.0, "Seconds per request.", least=0.1)
    receive_timeout: float = option(30.0, "Seconds to receive a request.", least=0.1)
    connections: int = option(800, "Open connections; further ones get status 503.", least=1)
    client_connections: int = option(250, "Open connections per client address.", least=1)
    kept_megabytes: int = option(200, "Megabytes of finished files.", least=1)
    public_url: str = option(
        "", "Server address in links to files. Default: relative links.", metavar="URL", panel=BASIC
    )
    hosts: Sequence[str] = option(("*",), "Host names that requests may use; * allows all.", read=names, panel=BASIC)
    origins: Sequence[str] = option(
        ("*",),
        "Origins whose pages may call the server, such as https://example.org; * allows all.",
        read=names,
        panel=BASIC,
    )
    waiting_sentences: int = option(10_000, "Waiting sentences; further requests get 503.", least=1)
    sessions: int = option(1000, "Sessions with context.", least=1)
    session_sentences: int = option(20, "Sentences of context per session.", least=1)
    session_minutes: float = option(30.0, "Minutes until unused sessions end.", least=0.01)
