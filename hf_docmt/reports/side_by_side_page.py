"""Translations of several systems side by side as one HTML file, which needs no other one."""

import base64
import hashlib
import json
from collections.abc import Sequence
from urllib.parse import quote

import jinja2
from markupsafe import Markup

from hf_docmt.reports.side_by_side import ComparedSentence, Overview, SideBySide, changed_words, score_text, visible

OPEN_CONTEXT = 2  # sentences of context that need no unfolding
STYLE = """
:root { color-scheme: light dark; --page: #fff; --line: #8886; --dim: #666;
  --new: #ffe08a; --up: #0a6b2e; --down: #a81e14; }
@media (prefers-color-scheme: dark) {
  :root { --page: #121212; --dim: #aaa; --new: #6b5200; --up: #6fd394; --down: #ff9a8d; }
}
* { box-sizing: border-box; }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 90rem; margin: 0 auto; padding: 1rem; overflow-wrap: anywhere;
  background: var(--page); }
h1 { font-size: 1.4rem; margin: 0 0 .5rem; }
h2 { font-size: .85rem; font-weight: 600; margin: 0 0 .25rem; }
h2 a { color: var(--dim); }
code { font-size: .8rem; }
table { border-collapse: collapse; margin: 0 0 .5rem; }
th, td { text-align: start; padding: .1rem 1rem .1rem 0; vertical-align: top; font-variant-numeric: tabular-nums; }
thead th { border-bottom: 1px solid var(--line); }
th, td:not(:last-child) { overflow-wrap: normal; }
form { display: flex; flex-wrap: wrap; gap: .5rem 1rem; align-items: end; margin: 1rem 0 .5rem; }
form[hidden] { display: none; }
label { display: grid; font-size: .85rem; color: var(--dim); }
input, select, button { font: inherit; padding: .25rem .5rem; max-width: 100%; }
article { border-top: 1px solid var(--line); padding: .75rem 0; content-visibility: auto; }
article:target { outline: 2px solid; outline-offset: .25rem; }
dl { margin: 0 0 .5rem; display: grid; grid-template-columns: max-content 1fr; gap: 0 .75rem; }
dt, .system, summary { color: var(--dim); font-size: .85rem; }
dd { margin: 0; }
dd, p { unicode-bidi: isolate; }
.context { color: var(--dim); }
.systems { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 19rem), 1fr)); gap: .5rem 1rem; }
.systems > div { border-inline-start: 3px solid var(--line); padding-inline-start: .6rem; }
.system { display: flex; justify-content: space-between; gap: .75rem; }
p { margin: 0; }
ins { background: var(--new); text-decoration: none; border-radius: .2rem; padding: 0 .1rem; }
del { color: var(--dim); }
.up { color: var(--up); font-weight: 600; }
.down { color: var(--down); font-weight: 600; }
@media (max-width: 32rem) { dl { grid-template-columns: 1fr; } }
"""
_SCRIPT = """
const size = 500, main = document.querySelector("main"), form = document.forms[0], found = form.elements;
const sentences = [...document.querySelectorAll("article")].map(article => ({
  article, text: article.textContent.toLowerCase(), deltas: JSON.parse(article.dataset.deltas),
  context: "context" in article.dataset }));
let first = 0;
function chosen() {
  const words = found.words.value.trim().toLowerCase(), view = found.view.value, system = found.system.value;
  const delta = sentence => sentence.deltas[system];
  const kept = sentences.filter(sentence => sentence.text.includes(words) && {
    all: true, changed: delta(sentence) !== null, gains: delta(sentence) > 0, losses: delta(sentence) < 0,
    context: sentence.context }[view]);
  if (view === "gains") kept.sort((a, b) => delta(b) - delta(a));
  if (view === "losses") kept.sort((a, b) => delta(a) - delta(b));
  return kept;
}
function show(start) {
  const kept = chosen();
  first = start;
  main.replaceChildren(...kept.slice(first, first + size).map(sentence => sentence.article));
  const last = Math.min(first + size, kept.length);
  found.status.value = last - first < kept.length ? `${first + 1} to ${last} of ${kept.length} sentences`
    : kept.length === 1 ? "1 sentence" : `${kept.length} sentences`;
  found.earlier.disabled = first === 0;
  found.later.disabled = last === kept.length;
  found.earlier.hidden = found.later.hidden = kept.length <= size;
}
function go() {
  const id = location.hash.slice(1), place = sentences.findIndex(sentence => sentence.article.id === id);
  if (place < 0) return;
  if (!document.getElementById(id)) { form.reset(); show(place - place % size); }
  location.replace(location.hash);  // now that it is there
}
form.addEventListener("input", () => show(0));
form.addEventListener("submit", event => event.preventDefault());
found.earlier.addEventListener("click", () => show(first - size));
found.later.addEventListener("click", () => { show(first + size); main.scrollIntoView(); });
addEventListener("hashchange", go);
form.hidden = false;
show(0);
go();
"""
HEAD = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'{{ policy }}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{ title | visible }}</title>
<style>{{ style }}</style>
</head>
<body>
"""
_PAGE = """\
<header>
<h1>Translations side by side</h1>
<table>
<thead><tr><th>system</th>
{%- for metric in shown.scores %}<th>{{ metric }}</th>{% endfor %}<th>sentences</th></tr></thead>
<tbody>
{%- for row in overview %}
<tr><th><bdi>{{ row.system | visible }}</bdi></th>
{%- for metric in shown.scores %}<td>{{ row.scores[metric] }}</td>{% endfor %}\
<td>{{ (row.changes or "baseline") | visible }}</td></tr>
{%- endfor %}
</tbody>
</table>
<p><ins>New</ins> and <del>gone</del> words against <bdi>{{ shown.baseline | visible }}</bdi>, whose scores are given in
full, those of the others as differences; of sentences: <code>{{ shown.signature | visible }}</code></p>
<form role="search" hidden>
<label>Words<input type="search" name="words"></label>
<label>Show<select name="view">
<option value="all">all sentences</option>
<option value="changed">changed from the baseline</option>
<option value="gains">largest gains first</option>
<option value="losses">largest losses first</option>
{%- if by_context %}<option value="context">changed by context</option>{% endif %}
</select></label>
<label>of<select name="system">
{%- for system in shown.others %}<option value="{{ loop.index0 }}">{{ system | visible }}</option>{% endfor %}\
</select></label>
<output name="status"></output>
<button name="earlier" type="button">Earlier</button><button name="later" type="button">Later</button>
</form>
</header>
<main>
{%- for sentence in shown.sentences %}
<article id="{{ id(sentence) }}" data-deltas="{{ deltas(sentence) }}"\
{% if shown.is_changed_by_context(sentence) %} data-context{% endif %}>
<h2><a href="#{{ id(sentence) }}"><bdi>{{ sentence.doc_id | visible }}</bdi>, sentence {{ sentence.number }}</a></h2>
{%- if sentence.context[:-open_context] %}
<details><summary>{{ sentence.context[:-open_context] | length }} more before</summary>
{%- for text in sentence.context[:-open_context] %}<p class="context" dir="auto">{{ text | visible }}</p>{% endfor %}
</details>
{%- endif %}
<dl>
{%- for text in sentence.context[-open_context:] %}
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
<script>{{ script }}</script>
</body>
</html>
"""
ENVIRONMENT = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
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

    return ENVIRONMENT.from_string(HEAD + _PAGE).render(
        title=f"Translations of {', '.join(shown.systems)}",
        shown=shown,
        overview=overview,
        open_context=OPEN_CONTEXT,
        style=Markup(STYLE),
        script=Markup(_SCRIPT),
        policy=Markup(f"; script-src 'sha256-{base64.b64encode(hashlib.sha256(_SCRIPT.encode()).digest()).decode()}'"),
        by_context=any(map(shown.is_changed_by_context, shown.sentences)),
        lang=lang,
        id=lambda sentence: quote(f"{sentence.doc_id}-{sentence.number}", safe="", errors="replace"),
        pieces=pieces,
        deltas=deltas,
        direction=direction,
        score=lambda sentence, system: score_text(shown, sentence, system),
    )
