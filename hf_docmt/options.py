"""Options, declared once: parameters and fields with default, help and bounds, for commands, recipes and functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from math import inf
from typing import Any

BLEU, CHRF, TER, OTHERS = "BLEU", "chrF", "TER", "Scores of others"  # panels of the help
REQUIRED: Any = MISSING  # default of an option without one


def option(default: Any, help: str, *flags: str, **settings) -> Any:
    """An option with its default, its help and, where they are not `--name-of-the-field`, its flags.

    It is the default of a parameter of a command (see `hf_docmt.cli.options.command`), or a field of a dataclass.
    `settings`: bounds, which are `least`, `most`, `above` and `below`; `panel` of the help; `read`, which makes the
    value of the text of the command line, or of the texts of a flag that is `repeated`.
    """
    return field(default=default, metadata={"help": help, "flags": flags, **settings})


def argument(help: str, default: Any = REQUIRED, metavar: str | None = None) -> Any:
    """The same for what the command line holds by its position; without a default it is needed."""
    return field(default=default, metadata={"help": help, "is_argument": True, "metavar": metavar})


def out_of_bounds(options: Any) -> Iterator[tuple[str, str, Any]]:
    """Name, bounds in words and value of every number in a dataclass of options that is out of its bounds."""
    for item in fields(options):
        bounds, value = item.metadata, getattr(options, item.name)
        if isinstance(value, int | float) and not (
            bounds.get("least", value) <= value <= bounds.get("most", value)
            and bounds.get("above", -inf) < value < bounds.get("below", inf)
        ):
            yield item.name, _in_words(bounds), value


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
    """`6` or `6:3`: so many sentences, and every how many."""
    window, colon, stride = text.partition(":")
    if not window.isdecimal() or (colon and not stride.isdecimal()):
        raise ValueError(f"--scorer-window is {text!r}, expected N or N:STRIDE, such as 6 or 6:3")
    return int(window), int(stride) if colon else None


# Options of several commands

AS_JSON = option(False, "Print all results as JSON.", "--json")
BEAMS = option(None, "Beam size; default: the model's.", "--beams", least=1)
BATCH_SIZE = option(16, "Segments translated at once.", least=1)
CONDITIONS = option(
    ("true",),
    "Contexts to score with: true, empty, random, wrong-document; separated by commas.",
    read=distinct_names,
)
CONTEXT = option(
    None, "Sentences of past context. Default: the model's own; 3 for a model of chunks; all for a recurrent memory."
)
DETAILS = option(None, "JSON lines with texts, scores and verdict of every item; what is there is not scored again.")
DOCUMENTS = argument("Documents with references, JSON lines or TSV.")
FUTURE_CONTEXT = option(None, "Sentences of future context, for a model of chunks; default: none.", least=0)
LIMIT = option(None, "At most so many items of each suite, the first ones.", least=1)
MODEL = argument("Model folder or Hub name.")
OPTION_PAIRS = option(
    None, "KEY=VALUE, an option of Seq2SeqSystem or CausalSystem, such as tgt_lang=deu_Latn; repeatable.", "--option"
)
OUTPUT = option(None, "Report file to write.", "-o", "--output")
OUTPUT_TEXT = option("-", "File to write, or - for standard output.", "-o", "--output")
PICTURE = option(None, "Also draw a picture: a file ending in .png or .svg.")
STRATEGY = option(None, "sentence, sliding, sequential, chunk_sequential, full or stream; default: the model's.")

# Groups of options that go together to one function


@dataclass(kw_only=True)
class ModelLanguages:
    """Languages of a model that has several, or of documents."""

    source_lang: str | None = option(None, "Language code, for example en; default: that of the model.")
    target_lang: str | None = option(None, "Language code, for example en; default: that of the model.")

    def __iter__(self):
        return iter((self.source_lang, self.target_lang))


@dataclass(kw_only=True)
class ReferenceReading:
    """How files of references are read."""

    format: str = option("auto", "Format of the reference.")
    source_lang: str | None = option(
        None, "Language of the documents, as they name it, for example en; plain lines need none."
    )
    target_lang: str | None = option(
        None, "Language of the documents, as they name it, for example en; plain lines need none."
    )


@dataclass(kw_only=True)
class SuiteItems:
    """The items of a contrastive suite, and where texts and scores of each are kept."""

    format: str = option("auto", "contrapro, voita, lopes, bawden, a plugin's, or auto.")
    documents: str | None = option(None, "JSON lines with the contexts of a ContraPro suite.")
    records: str | None = option(None, "JSON file of a suite that is given as text files.")
    only: tuple[int, int] | None = option(
        None, "Only these items of each suite: FIRST-LAST, from 1.", "--items", read=item_range
    )
    limit: int | None = LIMIT
    details: str | None = DETAILS


@dataclass(kw_only=True)
class Computation:
    """What a model computes with; None = as it does by itself."""

    strategy: str | None = STRATEGY
    batch_size: int = BATCH_SIZE
    device: str | None = option(None, "cpu, cuda, cuda:1, ...; default: a GPU where there is one.")
    dtype: str | None = option(None, "fp32, bf16 or fp16, to compute in, or int8 weights on a CPU; default: as saved.")
    revision: str | None = option(None, "Branch, tag or commit of a model on the Hub.")


@dataclass(kw_only=True)
class SystemSearch:
    """How a system translates; None = as it does by itself."""

    strategy: str | None = STRATEGY
    num_beams: int | None = BEAMS
    batch_size: int = BATCH_SIZE


@dataclass(kw_only=True)
class DocumentSearch:
    """Further arguments of `translate_documents`; None = as the model does by itself."""

    num_beams: int | None = BEAMS
    past_context: int | None = option(
        None,
        "Sentences before the current one that sliding and sequential read; default: what the model's config says, "
        "else as many as in training, and for sequential of chunks what fits into one. Of other models: none.",
        least=0,
    )
    repairs: str | None = option(
        None,
        "none: leave segments of full and windows of sliding as they were written. Documents may then have more or "
        "fewer lines than sentences. Language models: see --chunk-sentences.",
    )
    alignment: str | None = option(
        None, "Of window models: one_to_one, linear or sentence; default: the configuration's."
    )
    length_penalty: float | None = option(None, "Exponent of the length in beam scores.")
    early_stopping: bool | None = option(
        None, "End a beam search at as many finished translations as beams, as fairseq does; default: the model's way."
    )
    max_new_tokens: int | None = option(
        None,
        "Most tokens of a translated segment; default: twice its source tokens and 32. Of other models: of a sentence, "
        "256.",
        least=1,
    )
    shortlist: str | None = option(
        None, "Marian's binary shortlist (lex.*.bin): write words that translate those of the source alone."
    )
    batch_tokens: int | None = option(
        None,
        "Source tokens of a batch, padding included, in place of --batch-size; sequential and stream, whose rows are "
        "documents, keep that.",
        least=1,
    )


@dataclass(frozen=True, kw_only=True)
class Scoring:
    """What is scored in translations, and how."""

    metrics: Sequence[str] | None = option(
        None,
        "bleu, d-bleu, chrf, chrf++, d-chrf, ter, d-ter; commas or repeated; default: bleu, d-bleu, chrf, ter.",
        "-m",
        "--metrics",
        read=names,
        repeated=True,
    )
    discourse: Sequence[str] = option(
        (),
        "Also score pronouns, formality, connectives, terms, ltcr, blonde, length, blank, copied, untranslated.",
        read=names,
    )
    tagger: str = option("spacy", "Tagger for pronouns and formality in German: spacy or hanta.")
    by: Sequence[str] = option((), "Break scores down by index, length, domain; separated by commas.", read=names)
    domains: str | None = option(
        None, "Regular expression that finds the domain in a document's id; default: as the references say."
    )
    repairs: str | None = option(
        None, "none: score lines as they were written, more or fewer than sentences; default: as the JSON lines say."
    )
    align: bool = option(False, "Align the text to the reference's sentences.")
    unit: str | None = option(
        None,
        "What intervals and tests of BLEU, chrF and TER draw: document, paragraph (between blank lines), or sentence, "
        "the default of a single document beside other systems.",
    )
    external: Sequence[tuple[str, str]] | None = option(
        None,
        "Scores that another program or people gave: NAME=FILE, a number a line or JSON lines with ids; repeatable.",
        read=named_files,
        repeated=True,
        panel=OTHERS,
    )
    scorer_input: tuple[str, str] | None = option(
        None, "Write what another program takes: metricx=FILE or comet=FILE.", read=named_file, panel=OTHERS
    )
    scorer_window: tuple[int, int | None] | None = option(
        None,
        "Sentences a line of it, and every how many: N or N:STRIDE (SLIDE); default: 1.",
        read=window_and_stride,
        panel=OTHERS,
    )
    tokenize: str | None = option(None, "sacrebleu's tokenizer, such as 13a or char; default: by language.", panel=BLEU)
    lowercase: bool = option(False, "Ignore case.", panel=BLEU)
    joiner: str = option("space", "Between sentences of d-BLEU, d-chrF and d-TER: space, newline or none.", panel=BLEU)
    chrf_lowercase: bool = option(False, "Ignore case.", panel=CHRF)
    ter_case_sensitive: bool = option(False, "Mind case.", panel=TER)
    ter_asian_support: bool = option(False, "Treat Asian characters as tercom does.", panel=TER)
    ter_no_punct: bool = option(False, "Leave out punctuation.", panel=TER)
    ter_normalized: bool = option(False, "Normalise and tokenize as tercom does.", panel=TER)


@dataclass(frozen=True, kw_only=True)
class ServerLimits:
    """What a server takes from its clients."""

    characters: int = option(100_000, "Most characters of a request.", least=1)
    sentences: int = option(2000, "Most sentences of a request.", least=1)
    texts: int = option(500, "Most texts in the list of a request.", least=1)
    megabytes: int = option(10, "Most megabytes of a request, and so of a file.", least=1)
    unpacked_megabytes: int = option(64, "Most megabytes of an archive, unpacked.", least=1)
    elements: int = option(400_000, "Most elements of a file with markup (beginnings of tags).", least=1)
    sentence_tokens: int = option(1000, "Most tokens of a sentence; longer ones are refused (400).", least=1)
    cut_sentences: bool = option(False, "Translate longer sentences in parts in place of refusing them.")
    timeout: float = option(120.0, "Seconds after which a request is given up.", least=0.1)
    receive_timeout: float = option(
        30.0, "Seconds in which a request must arrive, its headers and then its body.", least=0.1
    )
    connections: int = option(800, "Most connections; beyond, requests are sent away (503).", least=1)
    client_connections: int = option(250, "Most connections of an address; further ones are closed.", least=1)
    kept_megabytes: int = option(
        200, "Most megabytes of translated files that wait half an hour to be fetched; beyond: 503.", least=1
    )
    public_url: str = option("", "Address of the server for its clients, in links to files; default: relative links.")
    hosts: Sequence[str] = option(("*",), "Hosts that requests may name, with commas between; *: all.", read=names)
    origins: Sequence[str] = option(
        ("*",), "Origins whose pages may ask, such as https://example.org, with commas between; *: all.", read=names
    )
    waiting_sentences: int = option(
        10_000, "Most sentences that wait; with more, requests are sent away (503).", least=1
    )
    sessions: int = option(
        1000, "Most sessions with context; the one that was not used for longest goes first.", least=1
    )
    session_sentences: int = option(20, "Most sentences of context that a session keeps.", least=1)
    session_minutes: float = option(30.0, "Minutes after which an unused session is dropped.", least=0.01)
