"""The parts of the page as HTML: sentences side by side, progress, and the context of one sentence."""

from itertools import chain, groupby
from pathlib import Path

import jinja2
from live_translation import LiveProgress
from read_sentences import ContextUse, ReadSentence
from repairs import repairs_of
from uploads import Upload
from workbench import STRATEGY_NAMES, Explanation, Workbench

from hf_docmt.data.language_codes import primary_language
from hf_docmt.reports.side_by_side import changed_words

HERE = Path(__file__).resolve().parent
TEMPLATES = jinja2.Environment(
    loader=jinja2.FileSystemLoader(HERE / "templates"), autoescape=True, undefined=jinja2.StrictUndefined
)
TEMPLATES.globals["changed_words"] = changed_words
TEMPLATES.filters["language"] = primary_language  # of the codes of NLLB and mBART, too
ABOUT = {  # kind of what is shown -> its name, and what the shares are
    "cross-attention": (
        "Cross-attention",
        "Share of the decoder's attention to each source sentence while this one was written; mean of "
        "layers and heads. Darker words got more of it.",
    ),
    "context attention": (
        "Attention to the context",
        "Share of the decoder's attention to each context sentence while this one was written; mean "
        "of layers and heads. Darker words got more of it.",
    ),
    "groups": (
        "Groups",
        "Share of the decoder's attention to the groups of each context sentence, taken apart into the words "
        "that are in them. Darker words got more of it.",
    ),
    "gate": (
        "Gated attention",
        "Share of the decoder's attention to each context sentence while this one was written; mean of layers and "
        "heads. Darker words got more of it.",
    ),
    "selection": (
        "Selection by words",
        "Share that the words of this sentence take from each context sentence, as their gates decide; mean "
        "of the encoder layers.",
    ),
    "memory": (
        "Memory",
        "Share of each sentence in what decided about this translation: gradients of its loss at their words, "
        "through the memory.",
    ),
}
SHOWN_WORDS = 0.05  # least depth of a word that is marked


def header(bench: Workbench) -> str:
    return _render("header", bench=bench)


def file_line(name: str, rows: list[dict]) -> str:
    return _render("file", name=name, documents=len(rows), sentences=sum(len(row["translation"]) for row in rows))


def download(file: Upload) -> str:
    """A link that holds the file."""
    return _render("download", **file.as_json())


def waiting(before: int) -> str:
    """The place of someone whose turn has not come."""
    return _render("waiting", before=before)


def status(progress: LiveProgress, strategy: str, seconds: float | None = None, is_stopped: bool = False) -> str:
    """How far a translation is; `seconds` since it began, None where that is not known."""
    left = None
    if seconds is not None and progress.done == progress.total:
        left = f"in {_duration(seconds)}"
    elif seconds is not None and progress.done:
        left = f"about {_duration(seconds * (progress.total / progress.done - 1))} left"
    name, _ = STRATEGY_NAMES[strategy]
    quarter = 4 * progress.done // max(1, progress.total)
    return _render(
        "status",
        done=progress.done,
        total=progress.total,
        strategy=name,
        seconds=left,
        is_stopped=is_stopped,
        spoken=f"{25 * quarter} percent translated" if quarter else "",
    )


def comparison(differing: int | None, total: int, is_running: bool = False) -> str:
    """How many sentences read differently alone, with steps from one to the next; None: not compared."""
    return _render("comparison", differing=differing, total=total, is_running=is_running)


def differing(translations: list[list[str | None]], alone: list[list[str | None]]) -> int:
    """The number of sentences, of those finished on both sides, that read differently alone."""
    pairs = zip(chain.from_iterable(translations), chain.from_iterable(alone), strict=True)
    return sum(None not in pair and pair[0] != pair[1] for pair in pairs)


def side_by_side(
    names: list[str],
    sources: list[list[str]],
    translations: list[list[str | None]],
    repairs: list[list[dict]],
    langs: tuple[str, str],
    strategy: str,
    alone: list[list[str | None]] | None = None,
) -> str:
    """The documents, a row for each sentence: `data-document` from 0, `data-sentence` from 1.

    `alone` are the translations sentence by sentence, which are shown where they differ.
    """
    alone = alone or [[None] * len(source) for source in sources]
    documents = [
        {
            "name": name,
            "rows": [_row(*texts) for texts in zip(source, translation, by_sentence, strict=True)],
            "repairs": {number: repairs_of(own, number, strategy) for number in {one["sentence"] for one in own}},
        }
        for name, source, translation, by_sentence, own in zip(
            names, sources, translations, alone, repairs, strict=True
        )
    ]
    return _render("rows", documents=documents, langs=langs)


def _row(source: str, translation: str | None, alone: str | None) -> dict:
    differs = None not in (translation, alone) and translation != alone
    return {
        "source": source,
        "translation": translation,
        "alone": alone if differs else None,
        "pieces": changed_words(alone or "", translation or "") if differs else [],
    }


def explanation(it: Explanation, langs: tuple[str, str], document: int = 0) -> str:
    """The panel about one sentence of a document (from 0): what decided, in words."""
    found = it.context
    shown = list(found.changing)
    if not shown and found.is_changed and found.strongest:
        shown = [found.strongest]
    silent = [one.number for one in found.left_out if one.translation == found.translation and one not in shown]
    return _render(
        "explanation",
        it=found,
        document=document,
        langs=langs,
        strategy=STRATEGY_NAMES[found.strategy],
        shown=shown,
        silent=silent,
        repairs=repairs_of(it.repairs, found.number - 1, found.strategy),
    )


def research(use: ContextUse, number: int, langs: tuple[str, str]) -> str:
    """Attention, gates, groups or memory while one sentence was written."""
    if not use.context:
        return _render("research", number=number, kind=None)
    about = "selection" if use.kind == "gate" and use.gate is None else use.kind
    memories = [(side, list(slots)) for side, slots in groupby(use.slots, key=lambda slot: slot.side)]
    name, text = ABOUT[about]
    return _render(
        "research",
        number=number,
        kind=name,
        about=text,
        gate=use.gate,
        sentences=[_shown(one, use, langs) for one in use.sentences],
        table=_table(use, is_open=about == "selection"),
        memories=memories,
    )


def _shown(one: ReadSentence, use: ContextUse, langs: tuple[str, str]) -> dict:
    most = max((share for other in use.context for _, share in other.words), default=0)
    words = [] if not one.offset else [(text, share / most if most else 0) for text, share in one.words]
    words = [(text, depth if depth >= SHOWN_WORDS and text.strip() else 0) for text, depth in words]
    return {
        "label": _label(one),
        "share": one.share,
        "text": one.text,
        "lang": langs[int(one.is_target)],
        "words": words,
    }


def _label(one: ReadSentence) -> str:
    place = f"{one.offset:+d}".replace("-", "−") if one.offset else "itself"
    return f"{place}, translation" if one.is_target else place


def _table(use: ContextUse, is_open: bool) -> dict | None:
    """Percentages of every reading token; None where there is one row for all of them."""
    if len(use.tokens) < 2:
        return None
    rows = [(token, row.tolist()) for token, row in zip(use.tokens, use.by_token)]
    return {"labels": [_label(one) for one in use.sentences], "rows": rows, "open": is_open}


def _duration(seconds: float) -> str:
    if seconds < 1:
        return "less than 1 s"
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def _render(template: str, **values) -> str:
    return TEMPLATES.get_template(f"{template}.html.j2").render(**values)
