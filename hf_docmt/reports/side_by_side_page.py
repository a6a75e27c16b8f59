"""Translations of several systems side by side as one HTML file, which needs no other one."""

import base64
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

import jinja2
from markupsafe import Markup

from hf_docmt.reports.side_by_side import ComparedSentence, Overview, SideBySide, changed_words, score_text, visible

OPEN_CONTEXT = 2  # sentences of context that need no unfolding
_PAGE = Path(__file__).parent / "page"
ENVIRONMENT = jinja2.Environment(
    loader=jinja2.FileSystemLoader(_PAGE), autoescape=True, undefined=jinja2.StrictUndefined
)
ENVIRONMENT.filters["visible"] = lambda text: visible(text, bidirectional=False)


def side_by_side_page(shown: SideBySide, overview: Sequence[Overview] = ()) -> str:
    """A page with systems side by side on wide screens, and below each other on a phone.

    Its script searches, sorts by gain and loss, keeps what context changed, and shows 500 sentences at a time; without
    scripts it shows all. All text is escaped, control characters are shown by their code points, each sentence has its
    own direction of writing and its own link. A browser runs no other script.
    """
    lang = Markup(' lang="{}"').format(shown.target_lang) if shown.target_lang else ""

    def pieces(sentence: ComparedSentence, system: str) -> list[tuple[str, str]]:
        return changed_words(sentence.translations[shown.baseline], sentence.translations[system])

    def direction(sentence: ComparedSentence, system: str) -> str:
        delta = sentence.delta(system, shown.baseline)
        return "up" if delta > 0 else "down" if delta < 0 else "same"

    def deltas(sentence: ComparedSentence) -> str:
        """As JSON, of every other system; null where its translation is the same."""
        changes = {system: round(sentence.delta(system, shown.baseline), 2) for system in shown.differing(sentence)}
        return json.dumps([changes.get(system) for system in shown.others])

    script = (_PAGE / "side_by_side.js").read_text("utf-8")
    return ENVIRONMENT.get_template("side_by_side.html").render(
        title=f"Translations of {', '.join(shown.systems)}",
        shown=shown,
        overview=overview,
        open_context=OPEN_CONTEXT,
        script=Markup(script),
        policy=Markup(f"; script-src 'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"),
        by_context=any(map(shown.is_changed_by_context, shown.sentences)),
        lang=lang,
        id=lambda sentence: quote(f"{sentence.doc_id}-{sentence.number}", safe="", errors="replace"),
        pieces=pieces,
        deltas=deltas,
        direction=direction,
        score=lambda sentence, system: score_text(shown, sentence, system),
    )
