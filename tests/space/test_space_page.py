"""What the page says of a translation: strategies, rows, progress, the context of a sentence; all of it escaped."""

import re

import pytest
from support.errors import refused
from support.tiny_models import build, random_text, word_tokenizer

SOURCE = random_text([3, 2, 4], seed=1)
CASES = [
    ("concat", {"past_context": 1}),
    ("window", {"view": "chunk"}),
    ("caching", {"past_context": 1, "shortening": "grouping"}),
    ("doct", {"past_context": 1}),
    ("routing", {"past_context": 1}),
    ("memory", {}),
]


@pytest.fixture
def bench(monkeypatch, request):
    import workbench

    architecture, fields = getattr(request, "param", CASES[0])
    model = build(architecture, **fields)
    model.generation_config.max_new_tokens = 8
    monkeypatch.setattr(workbench.hf_docmt, "load_model", lambda name: (model, word_tokenizer()))
    return workbench.Workbench("models/tiny")


@pytest.mark.parametrize("bench", CASES, indirect=True, ids=[name for name, _ in CASES])
def test_sentence_of_every_architecture(bench):
    import page

    own = bench.strategies[0]
    assert own == bench.model.default_strategy()
    *_, last = bench.translate([SOURCE], own, bench.langs)
    assert last.translations == bench.model.translate_documents([SOURCE], bench.tokenizer, num_beams=1)
    it = bench.explain(SOURCE, last.translations[0], last.repairs[0], own, bench.langs, 2)
    made, alone = bench.model.translate_documents([SOURCE, SOURCE], bench.tokenizer, own, num_beams=1), it.context.alone
    assert alone == bench.model.translate_documents([SOURCE], bench.tokenizer, "sentence", num_beams=1)[0][1]
    assert own == "full" or it.context.translation == made[0][1]
    shown = page.explanation(it, bench.langs, 3)
    assert it.context.verdict in shown.replace("&#39;", "'")
    assert ('data-document="3"' in shown) == bool(it.context.left_out)
    use = bench.context_use(SOURCE, last.translations[0], bench.langs, 2)
    seen = page.research(use, 2, bench.langs)
    assert use.context and seen.count('class="bar"') == len(use.sentences) + len(use.slots)
    assert all(f"{one.share:.0f} %" in seen for one in use.sentences)
    assert ("Word by word" in seen) == (bench.architecture != "memory")
    assert ("gate lets in" in seen) == (bench.architecture == "doct")


STRATEGIES = [
    ("concat", {"past_context": 1}, ("sliding", "sentence", "sequential", "full")),
    ("concat", {"past_context": 1, "context_sides": "source"}, ("sliding", "sentence")),
    ("concat", {}, ("sentence",)),
    ("window", {"view": "chunk"}, ("full", "sentence", "sequential", "chunk_sequential")),
    ("doct", {"past_context": 1}, ("sliding", "sentence")),
    ("memory", {}, ("stream", "sentence")),
]


@pytest.mark.parametrize(("bench", "expected"), [(case[:2], case[2]) for case in STRATEGIES], indirect=["bench"])
def test_strategies_are_the_models(bench, expected):
    """Only those that it has, and that differ."""
    import workbench

    assert bench.strategies == expected and set(expected) <= set(workbench.STRATEGY_NAMES)


def test_translated_alone(bench):
    """No context is shown, and why."""
    import page

    it = bench.explain(SOURCE, SOURCE, [], "sentence", bench.langs, 2)
    shown = page.explanation(it, bench.langs)
    assert "every sentence alone" in shown and "For researchers" not in shown and "Without" not in shown
    refused("sentence 9 of 3", bench.explain, SOURCE, SOURCE, [], "sliding", bench.langs, 9)


def test_header(bench):
    import page

    shown = page.header(bench)
    assert "en → de with <b>tiny</b>" in shown and f"Context: {bench.model.config.context_reach()}." in shown


def test_model_without_languages(bench, monkeypatch):
    import workbench

    bench.model.config.target_lang = None
    refused("source_lang='en' and target_lang=None", workbench.Workbench, "models/tiny")


LEFT_OUT = [("The lamp <1>.", "Es ist da.", 3.0), ("B", "Sie ist da.", 0.1)]


def explained(left_out=LEFT_OUT, repairs=(), **fields):
    import page
    from workbench import Explanation

    from hf_docmt.analysis.decisive_context import DecisiveContext, LeftOutSentence

    sentences = tuple(LeftOutSentence(number, *one) for number, one in enumerate(left_out, 1))
    facts = {"number": 3, "source": "It is there.", "translation": "Sie ist da.", "alone": "Es ist da."}
    found = DecisiveContext(**facts | {"strategy": "sliding", "left_out": sentences} | fields)
    return " ".join(page.explanation(Explanation(found, tuple(repairs)), ("en", "de")).split())


def test_decisive_sentence_in_words():
    shown = explained()
    assert "Sentence 1 decided." in shown and "Without sentence 1 it reads" in shown
    assert "<ins>Sie</ins> ist da." in shown and "<del>Es</del> ist da." in shown and "The lamp &lt;1&gt;." in shown
    assert "Without sentence 2 it reads the same." in shown
    weak = explained([("A", "Sie ist da.", 3.0), ("B", "Sie ist da.", 0.0)])
    assert "No single sentence decided. Sentence 1 matters most" in weak and "is 5 % as probable" in weak
    assert "Without sentence 2 it reads the same." in weak, "sentence 1 is told above"
    unread = explained([("A", "Es ist da.", 3.0, False), ("B", "Sie ist da.", 0.0)])
    assert "Without sentence 2 it reads the same." in unread, "without sentence 1 nothing was read"
    none = explained([("A", "Sie ist da.", 0.0)])
    assert "removing any one of them changes nothing" in none
    same = explained([("A", "Sie ist da.", 0.0)], alone="Sie ist da.")
    assert "Context changed nothing" in same and "The same." in same
    assert "farther away were not left out" in explained(is_cut=True)


REPAIRED = [
    ("length", "sliding", "Cut off.", "Make the sentence shorter"),
    ("split", "stream", "In parts.", "shorter sentences"),
    ("positions", "full", "Fewer sentences read.", "sentences around it"),
    ("separators", "sliding", "Translated alone.", "“One by one”"),
    ("separators", "full", "One by one.", "with its context"),
    ("separators", "stream", "Joined.", "several sentences"),
]


@pytest.mark.parametrize(("kind", "strategy", "name", "remedy"), REPAIRED)
def test_repairs_in_words(kind, strategy, name, remedy):
    """Its name in the row; meaning and a remedy of this page in the panel."""
    import page

    repair = {"sentence": 2, "kind": kind, "detail": "x"}
    shown = explained(repairs=[repair, repair], strategy=strategy)
    assert shown.count(f"<b>{name}</b>") == 1 and remedy in shown
    rows = page.side_by_side(["a"], [["b", "c", "d"]], [["b", "c", "d"]], [[repair, repair]], ("en", "de"), strategy)
    assert rows.count(f">{name[:-1].lower()}</small>") == 1


def test_rows_are_escaped():
    import page

    shown = page.side_by_side(
        ["<i>a</i>"] * 2,
        [["<script>1</script>", ""], ["b"]],
        [["<b>", ""], [None]],
        [[], []],
        ("en", "de"),
        "sliding",
        [["<u>", ""], [None]],
    )
    assert "<script>" not in shown and "<b>" not in shown.replace("<b>Alone:", "") and "<i>a</i>" not in shown
    assert "<u>" not in shown and "&lt;<ins>b</ins>&gt;" in shown and "&lt;u&gt;" in shown
    assert "&lt;script&gt;1&lt;/script&gt;" in shown and shown.count("<h2>") == 2
    places = re.findall(r'id="sentence-(\d)-(\d)" data-document="(\d)" data-sentence="(\d)"', shown)
    assert places == [("0", "1", "0", "1"), ("0", "2", "0", "2"), ("1", "1", "1", "1")]
    assert shown.count('class="why"') == 1 and shown.count('tabindex="0"') == 1


def test_language_codes_of_families():
    import page

    shown = page.side_by_side(["a"], [["One."]], [["Eins."]], [[]], ("eng_Latn", "deu_Latn"), "sliding")
    assert '<span lang="en" dir="auto" class="source">One.' in shown and '<span lang="de"' in shown


def test_status():
    import page
    from live_translation import LiveProgress

    def text(*arguments):
        return " ".join(re.sub("<[^>]*>", "", page.status(*arguments)).split())

    some, all_ = LiveProgress(5, 20, [[None] * 20]), LiveProgress(20, 20, [["a"] * 20], [[]])
    assert text(some, "full", 10.0) == "5 of 20 sentences, about 30 s left"
    assert text(all_, "full", 240.0) == "20 sentences translated in 4 min: whole parts at once."
    assert text(all_, "full") == "20 sentences translated: whole parts at once."
    assert text(some, "full", 3.0, True) == "Stopped at 5 of 20. The download has the source text of the others."
    assert 'max="20"' in page.status(some, "full") and "<progress" not in page.status(all_, "full")
    assert "<progress" not in page.status(some, "full", 3.0, True)
    assert 'data-spoken="25 percent translated"' in page.status(some, "full")
    assert 'data-spoken="20 sentences translated"' in page.status(all_, "full")


def test_comparison():
    import page

    assert "3 of 20 differ" in page.comparison(3, 20) and "Only these" in page.comparison(3, 20)
    assert "0 of 20 differ" in page.comparison(0, 20) and "button" not in page.comparison(0, 20)
    assert "Translating sentence by sentence" in page.comparison(None, 20, True) and page.comparison(None, 20) == ""
    assert page.differing([["a", "b", None, "d"]], [["a", "c", "x", None]]) == 1


def test_place_in_the_queue():
    import page

    assert "1 before you: you are next" in page.waiting(1) and "2 before you." in page.waiting(2)
