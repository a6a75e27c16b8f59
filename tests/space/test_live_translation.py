"""A translation that is looked at while it is made: the same sentences, progress, stopping, errors."""

import time

import pytest
from support.tiny_models import build, random_text, word_tokenizer

DOCUMENTS = [[*random_text([3, 4, 2], 1), "", *random_text([3], 2)], random_text([2, 3], 3)]
CASES = [
    ("concat", {"past_context": 2}, "sliding"),
    ("concat", {"past_context": 2}, "sequential"),
    ("concat", {"view": "chunk"}, "full"),
    ("caching", {"past_context": 2}, "sliding"),
    ("memory", {}, "stream"),
]


@pytest.mark.parametrize(("architecture", "fields", "strategy"), CASES)
def test_same_translations(architecture, fields, strategy):
    from live_translation import live_translation

    model, tokenizer = build(architecture, **fields), word_tokenizer()
    before = model.translator_class
    search = {"strategy": strategy, "batch_size": 2, "max_new_tokens": 6}
    *some, last = live_translation(model, tokenizer, DOCUMENTS, interval=0.1, **search)
    assert (last.translations, last.repairs) == model.translate_documents(
        DOCUMENTS, tokenizer, return_report=True, **search
    )
    done = [progress.done for progress in [*some, last]]
    assert done == sorted(done) and done[-1] == last.total == 7
    for progress in some:
        for texts, final in zip(progress.translations, last.translations):
            assert len(texts) == len(final)
            assert strategy == "sliding" or all(text in (None, same) for text, same in zip(texts, final))
    assert model.translator_class is before


def test_runs_are_carried():
    """Also those that a format knows; what is shown meanwhile has no marks."""
    from live_translation import Finder, LiveProgress, live_translation, marked_sentences, without_marks

    documents = [["w6 <b> w7", "w8 w9"], ["w6 w11 w7"]]
    given = [{}, {0: [(3, 6)]}]
    *_, last = live_translation(build("concat"), word_tokenizer(), documents, given=given, max_new_tokens=6)
    assert last.translations[0][0].count("<b>") == last.translations[1][0].count("w11") == 1
    assert [list(own) for own in last.carried] == [[0], [0]]
    marked = marked_sentences(documents, Finder(), given)
    shown = without_marks(LiveProgress(1, 3, [["a X1", None], ["X1 b"]]), marked)
    assert shown.translations == [["a <b>", None], ["w11 b"]]


def test_progress_of_sentences_and_rows():
    """After two of three sentences of one document."""
    from live_translation import Watch, watched_class

    model, tokenizer, seen = build("memory"), word_tokenizer(), []
    document = random_text([3, 2, 4], 1)

    class Slow(model.translator_class):
        def generate(self, *arguments, **options):
            seen.append(watch.progress([document], tokenizer))
            return super().generate(*arguments, **options)

    watch = Watch()
    assert watch.progress([document], tokenizer).translations == [[None] * 3]
    model.translator_class = watched_class(Slow, watch)
    (final,) = model.translate_documents([document], tokenizer, max_new_tokens=12)
    assert all(final) and [progress.done for progress in seen] == [0, 1, 2]
    assert seen[-1].translations == [[*final[:2], None]]


@pytest.mark.parametrize(
    ("architecture", "search"),
    [("memory", {}), ("concat", {"strategy": "sequential", "num_beams": 1}), ("concat", {"strategy": "sliding"})],
)
def test_closing_stops(architecture, search):
    from live_translation import live_translation

    fields = {"past_context": 2} if architecture == "concat" else {}
    model, tokenizer, calls = build(architecture, **fields), word_tokenizer(), []
    part = model.get_decoder().layers[0]
    part.register_forward_pre_hook(lambda module, inputs: (calls.append(1), time.sleep(0.01)) and None)
    search = {"max_new_tokens": 4, "batch_size": 2, **search}
    running = live_translation(model, tokenizer, [random_text([4] * 400, 1)], interval=0.05, **search)
    assert next(running).done < 400
    running.close()
    time.sleep(0.3)
    count = len(calls)
    time.sleep(0.3)
    assert len(calls) == count < 1600


def test_bad_input():
    from live_translation import live_translation

    model, tokenizer = build("concat"), word_tokenizer()
    with pytest.raises(ValueError, match="strategy must be one of"):
        list(live_translation(model, tokenizer, DOCUMENTS, strategy="backwards"))
