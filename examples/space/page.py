"""The parts of the page as HTML: sentences side by side, progress, and the context of one sentence."""

from itertools import groupby
from pathlib import Path

import jinja2
from uploads import Upload
from workbench import Explanation, Workbench

from hf_docmt.analysis.read_sentences import ContextUse, ReadSentence
from hf_docmt.data.language_codes import primary_language
from hf_docmt.translation.live_translation import Progress

HERE = Path(__file__).resolve().parent
TEMPLATES = jinja2.Environment(
    loader=jinja2.FileSystemLoader(HERE / "templates"), autoescape=True, undefined=jinja2.StrictUndefined
)
TEMPLATES.filters["language"] = primary_language  # of the codes of NLLB and mBART, too
ABOUT = {
    "cross-attention": "Share of the decoder's attention to each source sentence while this one was written; mean of "
    "layers and heads. Darker words got more of it.",
    "context attention": "Share of the decoder's attention to each context sentence while this one was written; mean "
    "of layers and heads. Darker words got more of it.",
    "groups": "Share of the decoder's attention to the groups of each context sentence, taken apart into the words "
    "that are in them. Darker words got more of it.",
    "gate": "Share of the decoder's attention to each context sentence while this one was written; mean of layers and "
    "heads. Darker words got more of it.",
    "selection": "Share that the words of this sentence take from each context sentence, as their gates decide; mean "
    "of the encoder layers.",
    "memory": "Share of each sentence in what decided about this translation: gradients of its loss at their words, "
    "through the memory.",
}
WAITING = '<div class="status" role="status"><span>Others are before you; yours is next in turn.</span></div>'
SHOWN_WORDS = 0.05  # least depth of a word that is marked


def header(bench: Workbench) -> str:
    return _render("header", bench=bench)


def file_line(name: str, rows: list[dict]) -> str:
    return _render("file", name=name, documents=len(rows), sentences=sum(len(row["translation"]) for row in rows))


def download(file: Upload) -> str:
    """A link that holds the file."""
    return _render("download", **file.as_json())


def status(progress: Progress, strategy: str, seconds: float | None = None) -> str:
    """How far a translation is; `seconds` since it began, None where that is not known."""
    left = None
    if seconds is not None and progress.done == progress.total:
        left = f"in {_duration(seconds)}"
    elif seconds is not None and progress.done:
        left = f"about {_duration(seconds * (progress.total / progress.done - 1))} left"
    return _render("status", done=progress.done, total=progress.total, strategy=strategy, seconds=left)


def side_by_side(
    names: list[str],
    sources: list[list[str]],
    translations: list[list[str | None]],
    repairs: list[list[dict]],
    langs: tuple[str, str],
) -> str:
    """The documents, a button for each sentence: `data-document` from 0, `data-sentence` from 1."""
    documents = [
        {
            "name": name,
            "pairs": list(zip(source, translation, strict=True)),
            "repaired": {one["sentence"]: f"{one['kind']}: {one['detail']}" for one in own},
        }
        for name, source, translation, own in zip(names, sources, translations, repairs, strict=True)
    ]
    return _render("rows", documents=documents, langs=langs)


def context(it: Explanation, langs: tuple[str, str]) -> str:
    """The panel about one sentence."""
    use = it.use
    if use is None or not use.context:
        return _render("context", it=it, langs=langs)
    about = "selection" if use.kind == "gate" and use.gate is None else use.kind
    memories = [(side, list(slots)) for side, slots in groupby(use.slots, key=lambda slot: slot.side)]
    return _render(
        "context",
        it=it,
        langs=langs,
        about=ABOUT[about],
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
