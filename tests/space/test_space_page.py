"""What the page says of a translation: strategies, rows, progress, the context of a sentence; all of it escaped."""

import re

import pytest
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

    own = next(iter(bench.strategies))
    assert own == bench.model.default_strategy()
    *_, last = bench.translate([SOURCE], own, bench.langs)
    assert last.translations == bench.model.translate_documents([SOURCE], bench.tokenizer, num_beams=1)
    it = bench.explain(SOURCE, last.translations[0], last.repairs[0], own, bench.langs, 2)
    ((alone,),) = bench.model.translate_documents([SOURCE[1:2]], bench.tokenizer, "sentence", num_beams=1)
    assert (it.alone, it.is_same) == (alone, alone == it.translation)
    shown = page.context(it, bench.langs)
    context = it.use.context
    assert context and shown.count('class="bar"') == len(it.use.sentences) + len(it.use.slots)
    assert all(f"{one.share:.0f} %" in shown for one in it.use.sentences)
    assert ("Word by word" in shown) == (bench.architecture != "memory")
    assert ("gate lets in" in shown) == (bench.architecture == "doct")


def test_strategies_are_the_models(bench):
    assert list(bench.strategies) == ["sliding", "sentence", "sequential", "full"]
    it = bench.explain(SOURCE, SOURCE, [], "sentence", bench.langs, 2)
    import page

    assert it.use is None and "reads no context" in page.context(it, bench.langs)
    with pytest.raises(ValueError, match="sentence 9 of 3"):
        bench.explain(SOURCE, SOURCE, [], "sliding", bench.langs, 9)


def test_header(bench):
    import page

    shown = page.header(bench)
    assert "en → de with <b>tiny</b>" in shown and f"Context: {bench.model.config.context_reach()}." in shown


def test_model_without_languages(bench, monkeypatch):
    import workbench

    bench.model.config.target_lang = None
    with pytest.raises(ValueError, match="source_lang='en' and target_lang=None"):
        workbench.Workbench("models/tiny")


def test_difference_is_marked(bench):
    import page
    from workbench import Explanation

    from hf_docmt.reports.side_by_side import changed_words

    pieces = changed_words("Es ist da.", "Sie ist da.")
    it = Explanation(2, "It is there.", "Sie ist da.", "Es ist da.", pieces, None, ("split: 300 tokens",))
    shown = page.context(it, ("en", "de"))
    assert "<ins>Sie</ins> ist da." in shown and "Es ist da." in shown and "Repaired: split: 300 tokens" in shown


def test_rows_are_escaped():
    import page

    shown = page.side_by_side(
        ["<i>a</i>"] * 2, [["<script>1</script>", ""], ["b"]], [["<b>", ""], [None]], [[], []], ("en", "de")
    )
    assert "<script>" not in shown and "<b>" not in shown and "<i>a</i>" not in shown
    assert "&lt;script&gt;1&lt;/script&gt;" in shown and shown.count("<h2>") == 2
    places = re.findall(r'data-document="(\d)" data-sentence="(\d)" tabindex="(-?\d)"(.*?)>', shown)
    assert [place[:3] for place in places] == [("0", "1", "0"), ("0", "2", "-1"), ("1", "1", "-1")]
    assert ["disabled" in place[3] for place in places] == [False, True, True]


def test_language_codes_of_families():
    import page

    shown = page.side_by_side(["a"], [["One."]], [["Eins."]], [[]], ("eng_Latn", "deu_Latn"))
    assert '<span lang="en" dir="auto" class="source">One.' in shown and '<span lang="de"' in shown


def test_status():
    import page

    from hf_docmt.translation.live_translation import Progress

    def text(*arguments):
        return " ".join(re.sub("<[^>]*>", "", page.status(*arguments)).split())

    some, all_ = Progress(5, 20, [[None] * 20]), Progress(20, 20, [["a"] * 20], [[]])
    assert text(some, "full", 10.0) == "5 of 20 sentences, strategy full, about 30 s left."
    assert (
        text(all_, "full", 240.0)
        == "20 of 20 sentences, strategy full, in 4 min. Choose a sentence to see its context."
    )
    assert text(all_, "full") == "20 of 20 sentences, strategy full. Choose a sentence to see its context."
    assert 'max="20"' in page.status(some, "full") and "<progress" not in page.status(all_, "full")
