"""Translations of several systems side by side as one HTML file without scripts or other files."""

from collections.abc import Sequence

import jinja2
from markupsafe import Markup

from hf_docmt.reports.side_by_side import ComparedSentence, SideBySide, changed_words, score_text, visible

_PAGE = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Translations of {{ shown.systems | map("visible") | join(", ") }}</title>
<style>
:root { color-scheme: light dark; --line: #8886; --dim: #666; --new: #ffe08a; --up: #0a6b2e; --down: #a81e14; }
@media (prefers-color-scheme: dark) {
  :root { --dim: #aaa; --new: #6b5200; --up: #6fd394; --down: #ff9a8d; }
}
* { box-sizing: border-box; }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 90rem; margin: 0 auto; padding: 1rem; overflow-wrap: anywhere; }
h1 { font-size: 1.4rem; margin: 0 0 .5rem; }
h2 { font-size: .85rem; font-weight: 600; color: var(--dim); margin: 0 0 .25rem; }
ul { margin: .25rem 0; padding-left: 1.25rem; }
code { font-size: .8rem; }
article { border-top: 1px solid var(--line); padding: .75rem 0; }
dl { margin: 0 0 .5rem; display: grid; grid-template-columns: max-content 1fr; gap: 0 .75rem; }
dt, .system { color: var(--dim); font-size: .85rem; }
dd { margin: 0; }
dd, p { unicode-bidi: isolate; }
.context { color: var(--dim); }
.systems { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 19rem), 1fr)); gap: .5rem 1rem; }
.systems > div { border-left: 3px solid var(--line); padding-left: .6rem; }
.system { display: flex; justify-content: space-between; gap: .75rem; }
p { margin: 0; }
ins { background: var(--new); text-decoration: none; border-radius: .2rem; padding: 0 .1rem; }
del { color: var(--dim); }
.up { color: var(--up); font-weight: 600; }
.down { color: var(--down); font-weight: 600; }
@media (max-width: 32rem) { dl { grid-template-columns: 1fr; } }
</style>
</head>
<body>
<header>
<h1>Translations side by side</h1>
<ul>
{%- for line in summary %}
<li><bdi>{{ line | visible }}</bdi></li>
{%- endfor %}
</ul>
<p><ins>New</ins> and <del>gone</del> words against <bdi>{{ shown.baseline | visible }}</bdi>, whose scores are given in
full, those of the others as differences: <code>{{ shown.signature | visible }}</code></p>
</header>
<main>
{%- for sentence in shown.sentences %}
<article>
<h2><bdi>{{ sentence.doc_id | visible }}</bdi>, sentence {{ sentence.number }}</h2>
<dl>
{%- for text in sentence.context %}
<dt>context</dt><dd class="context" dir="auto">{{ text | visible }}</dd>
{%- endfor %}
{%- if sentence.source is not none %}
<dt>source</dt><dd dir="auto">{{ sentence.source | visible }}</dd>
{%- endif %}
{%- for text in sentence.references %}
<dt>reference</dt><dd dir="auto"{{ lang }}>{{ text | visible }}</dd>
{%- endfor %}
</dl>
<div class="systems">
{%- for system in shown.systems %}
<div>
<div class="system"><bdi>{{ system | visible }}</bdi><span class="{{ direction(sentence, system) }}">\
{{ score(sentence, system) }}</span></div>
<p dir="auto"{{ lang }}>
{%- for change, text in pieces(sentence, system) -%}
{%- if change == "same" %}{{ text | visible }}
{%- elif change == "new" %}<ins>{{ text | visible }}</ins>
{%- else %} <del>{{ text | visible }}</del> {% endif %}
{%- endfor -%}
</p>
</div>
{%- endfor %}
</div>
</article>
{%- endfor %}
</main>
</body>
</html>
"""


def side_by_side_page(shown: SideBySide, summary: Sequence[str] = ()) -> str:
    """A page on which systems stand beside each other as wide as there is room, and below each other on a phone.

    All text is escaped, control characters are shown by their code points, and each sentence has its own direction of
    writing.
    """
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    environment.filters["visible"] = lambda text: visible(text, bidirectional=False)
    lang = Markup(' lang="{}"').format(shown.target_lang) if shown.target_lang else ""

    def pieces(sentence: ComparedSentence, system: str) -> list[tuple[str, str]]:
        return changed_words(sentence.translations[shown.baseline], sentence.translations[system])

    def direction(sentence: ComparedSentence, system: str) -> str:
        delta = sentence.delta(system, shown.baseline)
        return "up" if delta > 0 else "down" if delta < 0 else "same"

    return environment.from_string(_PAGE).render(
        shown=shown,
        summary=summary,
        lang=lang,
        pieces=pieces,
        direction=direction,
        score=lambda sentence, system: score_text(shown, sentence, system),
    )
