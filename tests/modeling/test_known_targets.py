"""Sentences whose translation is known: they come back as they are, and are context for the others."""

import pickle

import pytest
from support.errors import refused
from support.slow_translation import settings
from support.tiny_models import build, random_text, word_tokenizer

from hf_docmt.modeling.opaque_runs import Finder, carry
from hf_docmt.modeling.text_splitting import Sentence

DOCUMENTS = [random_text(lengths, seed) for seed, lengths in enumerate([[3, 1, 2, 4, 2, 1], [5, 2, 1], [2, 2]])]
KNOWN = [(1, 3, 4), (0, 1), (0, 1)]  # sentences of each document
WINDOW = {"past_context": 2, "segment_encoding": "learned", "persistent": True}
CHUNK = {"view": "chunk", "chunk_tokens": 12, "segment_encoding": "sinusoidal", "persistent": True}
IN_ORDER = {  # strategies whose context are the translations before
    "concat": ("concat", WINDOW, "sequential"),
    "concat, bod": ("concat", WINDOW | {"use_bod": True, "future_context": 1}, "sequential"),
    "window": ("window", {"past_context": 3, "window": 3, "use_bod": True}, "sequential"),
    "chunk": ("concat", CHUNK, "sequential"),
    "chunk in chunks": ("concat", CHUNK, "chunk_sequential"),
    "memory": ("memory", {"memory_size": 3}, "stream"),
    "han": ("han", {"past_context": 2, "context_sides": "both"}, "sequential"),
    "caching": ("caching", {"past_context": 2}, "sliding"),
    "alone": ("concat", WINDOW, "sentence"),
}


def with_known(own: list[list[str]], others: str | None = None) -> list[list[str | None]]:
    """Of translations those of `KNOWN`, or other texts in their places."""
    return [
        [(others or text) if n in known else None for n, text in enumerate(document)]
        for document, known in zip(own, KNOWN)
    ]


@pytest.mark.parametrize(("name", "beams"), [*((name, 1) for name in IN_ORDER), ("chunk in chunks", 3)])
def test_known_as_the_model_writes_them(name, beams):
    """What is known is not translated, and what comes after it is as if the model had written it."""
    architecture, fields, strategy = IN_ORDER[name]
    model, rows = build(architecture, **fields), []
    options = settings({"num_beams": beams})
    free = model.translate_documents(DOCUMENTS, word_tokenizer(), strategy, batch_size=2, **options)
    generate = model.generate

    def counted(**arguments):
        rows.append(len(arguments.get("attention_mask", ())))
        return generate(**arguments)

    model.generate = counted
    known = with_known(free)
    assert model.translate_documents(DOCUMENTS, word_tokenizer(), strategy, targets=known, **options) == free
    unknown = sum(text is None for document in known for text in document)
    assert unknown <= sum(rows) <= unknown + (strategy == "stream")  # a batch of both kinds is searched whole
    other = model.translate_documents(
        DOCUMENTS, word_tokenizer(), strategy, targets=with_known(free, "w9 w9"), **options
    )
    changed = sum(new != old for pair in zip(free, other) for old, new in zip(*pair))
    assert all(document[n] == "w9 w9" for document, numbers in zip(other, KNOWN) for n in numbers)
    if architecture != "han":  # which moves no word by its context here
        assert (changed > sum(map(len, KNOWN))) == (strategy not in ("sentence", "sliding"))


@pytest.mark.parametrize(("fields", "strategy"), [(WINDOW, "sliding"), (CHUNK, "full"), (WINDOW, "full")])
def test_known_from_the_start_are_forced(fields, strategy):
    """All that stands before is known: one search behind it, as sentence by sentence."""
    model, options = build(**fields), settings({"num_beams": 1})
    documents, targets = [["w6 w7", "w8", "w9 w10"]], [["w11", "w12 w13", None]]
    found, reports = model.translate_documents(
        documents, word_tokenizer(), strategy, targets=targets, return_report=True, **options
    )
    slow = model.translate_documents(documents, word_tokenizer(), "sequential", targets=targets, **options)
    assert found[0][:2] == targets[0][:2] and (found == slow or reports[0])


@pytest.mark.parametrize("name", ["concat", "concat, bod", "window", "chunk"])
def test_pairs_are_read_before_the_sentence(name):
    """As sentences of the document that nobody sees."""
    architecture, fields, strategy = IN_ORDER[name]
    model, options = build(architecture, **fields), settings({"num_beams": 1})

    def last(*document):
        return model.translate_documents([list(document)], word_tokenizer(), strategy, **options)[0][-1]

    before, pair = Sentence("w8 w9", "w7"), ("w10 w11", "w12 w13 w14")
    assert last(before, Sentence("w6 w7", context=[pair])) == last(Sentence(*pair), before, "w6 w7")
    for other in ("sliding", "full"):
        text = model.translate_documents([[Sentence("w6 w7", context=[pair])]], word_tokenizer(), other, **options)
        assert len(text[0]) == 1


@pytest.mark.parametrize("beams", [1, 3])
@pytest.mark.parametrize("name", [*IN_ORDER, "sliding"])
def test_beginnings(name, beams):
    """Translations start with what is given, and go on as the model does; its own first words change nothing."""
    architecture, fields, strategy = IN_ORDER.get(name, ("concat", WINDOW, "sliding"))
    model, options = build(architecture, **fields), settings({"num_beams": beams})

    def last(text):
        documents = [[*document[:-1], Sentence(document[-1], beginning=text(own))] for document, own in zip(*both)]
        known = [[*own[:-1], None] for own in both[1]]
        found = model.translate_documents(documents, word_tokenizer(), strategy, targets=known, **options)
        return [own[-1] for own in found]

    both = DOCUMENTS, model.translate_documents(DOCUMENTS, word_tokenizer(), strategy, **options)
    free = last(lambda own: "")
    both = DOCUMENTS, [[*own[:-1], text] for own, text in zip(both[1], free)]
    assert beams > 1 or last(lambda own: " ".join(own[-1].split()[:1])) == free
    beginnings = iter(("w7 w9 w8", "", "w8"))
    found = last(lambda own: next(beginnings))
    assert found[0].startswith("w7 w9 w8") and found[2].startswith("w8") and found[1] == free[1]


def test_bytes_and_refusals():
    model, tokenizer = build(**WINDOW), word_tokenizer()
    odd = "  w7\u00a0 <sep>  w8 \n"
    assert model.translate_documents([["w6", ""]], tokenizer, targets=[[odd, odd]]) == [[odd, odd]]
    for targets in ([], [["w7"]], [["w7", None], []], [["w7", 3]], [["w7", "\ud800"]], [None]):
        refused("target", model.translate_documents, [["w6", "w7"]], tokenizer, targets=targets)
    pair = [Sentence("w6", context=[("w7", "w8")])]
    refused("reads no pairs", model.translate_documents, [pair], tokenizer, "sentence")
    copied = pickle.loads(pickle.dumps(pair[0]))
    assert (copied, copied.target, copied.context) == ("w6", None, (("w7", "w8"),))


def test_runs_of_known_sentences_are_masked_as_their_sources():
    seen = []

    def translate(documents):
        seen.extend(documents)
        return [["Neu X1." for _ in document] for document in documents]

    document = [
        Sentence("See `a` now.", "Siehe  `a` jetzt."),
        Sentence("See `b` now.", "Siehe jetzt."),  # without its run
        "See `c` now.",
    ]
    lines, carried = carry(translate, [document], Finder())
    assert lines == [["Siehe  `a` jetzt.", "Siehe jetzt.", "Neu `c`."]] and list(carried[0]) == [2]
    assert [(text, getattr(text, "target", None)) for text in seen[0]] == [
        ("See X1 now.", "Siehe  X1 jetzt."),
        ("See `b` now.", "Siehe jetzt."),
        ("See X1 now.", None),
    ]
