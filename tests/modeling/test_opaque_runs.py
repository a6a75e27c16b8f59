"""What is no language in a sentence: found, carried through translators that copy well and badly, each run once."""

import random
import re
import time
from types import SimpleNamespace

import pytest
from support.tiny_models import word_tokenizer
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from hf_docmt.data.tokenizers import train_tokenizer
from hf_docmt.modeling.opaque_runs import FAMILIES, CarriedSentence, Finder, carry, context_reach

FOUND = {
    "See https://a.org/x_(y)?b=1&c=2, or www.b.org.": ["https://a.org/x_(y)?b=1&c=2", "www.b.org"],
    "[url=https://a.org/lamp]the manual[/url] {https://b.org} https://c.org|x": [
        "https://a.org/lamp",
        "https://b.org",
        "https://c.org",
    ],
    "访问https://a.org/c，联系me@a.org。": ["https://a.org/c", "me@a.org"],
    "<mailto:a.b@c.org> or 'www.a.org'!": ["mailto:a.b@c.org", "www.a.org"],
    "a@b, http://, 5@6.7, wwww.b, c# and 5 % of it (100 %)": [],
    "Thanks @ana-b and @bob, see #12 and PR#3, not # 5": ["@ana-b", "@bob", "#12"],
    "@ana_b@a-c.social, @bob@b.org.": ["@ana_b@a-c.social", "@bob@b.org"],
    "%s of %1$d, %(count)d, %NAME% and 100%, 5 %": ["%s", "%1$d", "%(count)d", "%NAME%"],
    "Hi {name}, {0}, ${count}, {{ site.title }}; {a, plural, other {x}}": [
        "{name}",
        "{0}",
        "${count}",
        "{{ site.title }}",
        "{x}",
    ],
    "Press <kbd>Enter</kbd> &amp; a < b > c <!-- no -->": ["<kbd>", "</kbd>", "&amp;", "<!-- no -->"],
    "Run `make all` or ``a ` b``; it's `": ["`make all`"],
    "Of $x^2$ and \\(a+b\\), $5 and $6": ["$x^2$", "\\(a+b\\)"],
    "In config.yaml, /etc/hosts, ~/a/b, --no-cache, my_var, f() and v1.2.3.": [
        "config.yaml",
        "/etc/hosts",
        "~/a/b",
        "--no-cache",
        "my_var",
        "f()",
        "v1.2.3",
    ],
    "© 2019-2025 Ana B. Doe. © All (c) 2020, Foo.org and (c) x": ["© 2019-2025 Ana B", "©", "(c) 2020, Foo.org"],
    "He said - and/or - e.g. this. Yes/No? It's 3:30 p.m., 1,000.50 or 2-3.": [],
}
TEXTS = [*FOUND, "The lamp is old.", "`a`", "pr`in`cipal", "", "...", "42", "CLOSE `x` THE DOOR", "5 $0.30 euros"]


@pytest.mark.parametrize("text", FOUND)
def test_what_is_found(text):
    assert [text[start:end] for start, end in Finder()(text)] == FOUND[text]


def test_given_runs_come_first():
    text = "See www.a.org now"
    assert Finder()(text, [(4, 9)]) == [(4, 9)]
    assert Finder()(text, [(14, 17)]) == [(4, 13), (14, 17)]


@pytest.mark.parametrize("text", TEXTS)
def test_places_around_runs_match(text):
    own = CarriedSentence(text, Finder()(text), text)
    own.mark(0)
    inside = {place for start, end in own.spans for place in range(start, end)}
    outside = [place for place in range(len(own.plain)) if place not in inside]
    assert all(own.source[own.place(place) :][:1] in (own.plain[place], " ") for place in outside)
    assert own.place(len(text)) == len(own.source)


def spoken(text: str) -> str:
    """A translator that copies every mark, and writes other words the other way round."""
    return re.sub(r"[^\W\d]+(?!\d)", lambda match: match[0][::-1] if match[0] != "X" else "X", text)


def translated(text: str, translate=spoken, **options) -> str:
    every = lambda documents: [[line and translate(line) for line in document] for document in documents]  # noqa: E731
    ((line,),), _ = carry(every, [[text]], Finder(**options))
    return line


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Run `make` now.", "nuR `make` won."),
        ("(`in`cipal list", "(`in`lapic tsil"),
        ("H₂O", "O₂H"),
        ("%s%s lamp", "%s%s pmal"),
        ("🙂 ★ 42!", "🙂 ★ 42!"),
        ("`only code`", "`only code`"),
        ("a\u00a0lamp\u202fand\u2009me", "a pmal dna em"),
        ("CLOSE THE DOOR `now`", "ESOLC EHT ROOD `now`"),
        ("The NATO", "ehT OTAN"),
        ("X1 is `a`", "X1 si `a`"),  # a mark that the text has is not taken
    ],
)
def test_a_translator_that_copies(text, expected):
    seen = []
    assert translated(text, lambda line: seen.append(line) or spoken(line)) == expected
    assert all("`" not in line and "\u00a0" not in line for line in seen)


@pytest.mark.parametrize(
    ("change", "tries"),
    [
        (lambda line: line.replace("X1", "X 1"), 2),  # broken
        (lambda line: line.replace("X1", "X1 X1"), 2),  # doubled
        (lambda line: re.sub(r"X\d|\b1\d5\b", "", line), 3),  # dropped
        (lambda line: re.sub(r"[XA]\d|\d+", "", line), 5),  # all dropped: around the runs
    ],
)
def test_a_translator_that_does_not(change, tries):
    seen = []
    line = translated("Open `a` and %s now.", lambda line: seen.append(line) or change(line))
    assert line == "Open `a` and %s now." and len(seen) - 2 * (tries == 5) == tries


def test_around_the_runs_no_part_ends_as_a_sentence():
    def whole(line: str) -> str:
        return "" if re.search(r"[XA]\d|\d{3}", line) else line.upper().rstrip(".") + "."

    assert translated("open `a` and (see `b`) now", whole) == "OPEN `a` AND (SEE `b`) NOW"


def test_placeholders_whose_order_counts_keep_it():
    backwards = lambda line: " ".join(reversed(line.split()))  # noqa: E731
    assert translated("%s files of %d in {name}", backwards) == "{name} in %s of files %d"
    assert translated("%1$s files of %2$s", backwards) == "%2$s of files %1$s"


@pytest.mark.parametrize(
    ("text", "written", "expected"),
    [
        ("It is $0.30 now", "Es ist 30 jetzt", "It is $0.30 now"),
        ("It is 0.30 or $0.30", "Es ist 0,30 oder $0", "It is 0.30 or $0.30"),
        ("It is $0.30 now", "Es kostet 0,30 $ jetzt", "Es kostet 0,30 $ jetzt"),
        ("It is 5 or 20 or 3:30", "Es ist fünf oder zwanzig", "Es ist fünf oder zwanzig"),
    ],
)
def test_sums_that_are_lost_are_carried(text, written, expected):
    assert translated(text, lambda line: written if line == text else line) == expected


def test_signs_that_the_tokenizer_lacks():
    signs = ["[UNK]", *"abcdefghijklmnopqrstuvwxyz0123456789.,-\"'"]
    letters = Tokenizer(models.WordLevel({sign: number for number, sign in enumerate(signs)}, "[UNK]"))
    letters.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    finder = Finder(PreTrainedTokenizerFast(tokenizer_object=letters, unk_token="[UNK]"))
    text = "a 5 µm ± 0.1 → b “c” – Привет мир naïve c"
    assert [text[start:end] for start, end in finder(text)] == ["µm ±", "→", "Привет мир naïve"]
    assert finder.plain("“c” – d") == '"c" - d'


def test_symbols_that_are_spelled_in_bytes():
    finder, text = Finder(train_tokenizer(["the lamp"], "bpe", 270)), "a 🧵 lamp of 5 µm → é “x” € 東"
    assert [text[start:end] for start, end in finder(text)] == ["🧵", "µm →"]
    assert finder.plain(text) == text


def test_context_stays_when_a_sentence_is_translated_again():
    calls = []

    def translate(documents):
        calls.append(documents)
        return [[line.replace("X1", "") for line in document] for document in documents]

    lines, carried = carry(translate, [["One.", "Two `a`.", "Three."], ["Four."]], Finder(), reach=(9, 1))
    assert context_reach(SimpleNamespace(past_context=2, future_context=None)) == (2, 0)
    assert lines == [["One.", "Two `a`.", "Three."], ["Four."]] and [list(own) for own in carried] == [[1], []]
    assert calls[1] == [["One.", "Two 105.", "Three."]]


@pytest.mark.parametrize("seed", range(200))
def test_every_run_once_whatever_the_translator_does(seed):
    rng = random.Random(seed)
    words = "the lamp is old `a` %s %d {n} www.a.org @bob #12 $5.50 <b> é, . (x) 🙂 WE".split()
    text = "".join(rng.choice(words) + rng.choice([" ", " ", ""]) for _ in range(rng.randint(1, 12))).strip()

    def hostile(line: str) -> str:
        parts = re.findall(r"\w+|\W", line)
        for _ in range(rng.randint(0, 3)):
            rng.choice([rng.shuffle, list.reverse, lambda own: own and own.pop(), lambda own: own.extend(own[:2])])(
                parts
            )
        return "".join(parts)

    runs = [text[start:end] for start, end in Finder()(text)]
    every = lambda documents: [[line and hostile(line) for line in each] for each in documents]  # noqa: E731
    ((line,),), _ = carry(every, [[text]], Finder())
    assert all(line.count(run) >= runs.count(run) for run in runs)
    assert not re.search("[\ue000-\ue0ff]", line)


def test_a_translation_that_has_the_runs_itself():
    text = "Set `a` to 5 now"
    spans = [(4, 7), (11, 12)]
    assert CarriedSentence.read(text, spans, "Jetzt 5 auf `a`, 55").restored == "Jetzt 5 auf `a`, 55"
    assert CarriedSentence.read(text, spans, "Jetzt").restored == "Jetzt `a` 5"
    assert len({make(k) for make in FAMILIES for k in range(9)}) == 9 * len(FAMILIES)


def test_where_characters_stand_among_marks():
    own = CarriedSentence("At 東京駅 now.", [(3, 6)], "At 東京駅 now.")
    assert own.mark(0) == "At X1 now."
    assert [own.place(number) for number in (2, 3, 4, 5, 6, 7)] == [2, 3, 5, 5, 5, 6]


def test_long_words_of_lost_letters():
    """They are looked at once."""
    text, start = "一" * 40_000 + " w7", time.monotonic()
    assert Finder(word_tokenizer())(text) == [(0, 40_000)]
    assert time.monotonic() - start < 10
