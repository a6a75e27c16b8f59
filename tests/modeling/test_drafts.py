"""Windows whose drafts are translations of other windows: what they write is that of greedy search without drafts."""

import pytest
import torch
from support.tiny_models import EOS, SEP, build, random_text, word_tokenizer

from hf_docmt.modeling import draft_verification, strategies
from hf_docmt.modeling.decoding import NonFiniteScoresError
from hf_docmt.modeling.document_state import CurrentSentence, DocumentState, SentencePart, split_at
from hf_docmt.modeling.draft_verification import DraftRow, DraftSearch, DraftState, draft_search
from hf_docmt.modeling.strategies import SegmentTranslator

DOCUMENTS = [random_text(lengths, seed) for seed, lengths in enumerate([[2, 3, 1, 2, 4, 2, 3], [1, 2], [], [3] * 5])]
PAST = {"past_context": 3}
CHUNK = {"view": "chunk", "chunk_tokens": 20}
MODELS = {
    "none": ("concat", PAST),
    "shift, bod": ("concat", PAST | {"segment_encoding": "shift", "segment_shift": 3, "use_bod": True}),
    "onehot, future": ("concat", {"past_context": 2, "future_context": 1, "segment_encoding": "onehot"}),
    "sinusoidal, persistent": ("concat", PAST | {"segment_encoding": "sinusoidal", "persistent": True}),
    "learned, start": ("concat", PAST | {"segment_encoding": "learned", "start_sentence": "current"}),
    "pse": ("concat", PAST | {"segment_encoding": "learned", "pse_dim": 4, "persistent": True}),
    "future alone": ("concat", {"future_context": 2}),
    "chunk": ("concat", CHUNK | {"segment_encoding": "sinusoidal", "decoding_past_context": 2}),
    "few positions": ("concat", PAST | {"position_type": "learned", "max_position_embeddings": 20}),
    "gtransformer": ("gtransformer", PAST | {"global_layers": 1, "restarts_positions": True}),
    "lst": ("lst", PAST | {"use_bod": True}),
    "window": ("window", PAST | {"window": 2}),
    "window, all": ("window", PAST | {"window": 2, "sees_all": True}),
    "window, relative": ("window", PAST | {"window": 3, "position": "relative", "alignment": "one_to_one"}),
    "window, linear": (
        "window",
        CHUNK | {"decoding_past_context": 2, "window": 2, "alignment": "linear", "length_ratio": 0.8, "use_bod": True},
    ),
    "source": ("concat", PAST | {"context_sides": "source"}),
}
WITHOUT_DRAFTS = ("source",)  # which writes no sentence twice


def writing_model(name: str, ends: float = 0.0):
    """A model whose windows have separators often enough for some to have as many as their sources."""
    architecture, fields = MODELS[name]
    model = build(architecture, seed=1, **fields)
    model.final_logits_bias[0, SEP] += 1.5
    model.final_logits_bias[0, EOS] += ends
    return model


class Search:
    """Translations by `sliding` with drafts and without, and of the last ones the tokens in passes with drafts."""

    def __init__(self, model, monkeypatch):
        self.model, self.monkeypatch, self.drafts = model, monkeypatch, None

        def spy(translator):
            self.drafts = draft_search(translator)
            return self.drafts

        monkeypatch.setattr(strategies, "draft_search", spy)
        monkeypatch.setattr(draft_verification, "PAYS", 0.0)  # or few drafts of untrained models would be read

    def __call__(self, drafts: bool, documents=DOCUMENTS, **settings):
        self.monkeypatch.setattr(SegmentTranslator, "drafts", drafts)
        self.drafts = None
        arguments = {"strategy": "sliding", "max_new_tokens": 14, "return_report": True} | settings
        return self.model.translate_documents(documents, word_tokenizer(), **arguments)

    @property
    def written(self) -> int:
        return self.drafts.written if self.drafts else 0

    @property
    def accepted(self) -> int:
        return self.drafts.accepted if self.drafts else 0


def decode_with_drafts(translator, jobs, drafts, search=None):
    """Outputs of jobs with these drafts, by a new search if none is given."""
    for job, draft in zip(jobs, drafts, strict=True):
        job.draft = draft
    return translator.decode(jobs, drafts=search or DraftSearch(translator))


def test_sequential_keeps_to_batch_tokens(monkeypatch):
    search, sizes, read = Search(writing_model("none"), monkeypatch), [], DraftState.read
    monkeypatch.setattr(
        DraftState, "read", lambda state, tokens, last: sizes.append(len(tokens)) or read(state, tokens, last)
    )
    found = search(True, strategy="sequential", batch_tokens=1)
    assert set(sizes) == {1}
    assert found == search(False, strategy="sequential")


@pytest.mark.parametrize("name", ["shift, bod", "few positions", "gtransformer", "lst", "window, linear"])
def test_sequential(name, monkeypatch):
    """Its own greedy search, without drafts, writes what `generate` does, also where rows come in between."""
    search = Search(writing_model(name), monkeypatch)
    expected = search(False, DOCUMENTS * 3, strategy="sequential", batch_size=4)
    sizes, joined, write_further, join = [], [], DraftSearch.write_further, DraftState.joined
    monkeypatch.setattr(DraftState, "joined", lambda *args: joined.append(1) or join(*args))
    monkeypatch.setattr(
        DraftSearch,
        "write_further",
        lambda self, rows, state: sizes.append(len(rows)) or write_further(self, rows, state),
    )
    assert search(True, DOCUMENTS * 3, strategy="sequential", batch_size=4) == expected
    assert max(sizes) == 4 and bool(joined) == (search.model.config.model_type != "docmt-window")


@pytest.mark.parametrize("name", MODELS)
def test_results_are_those_of_search_without_drafts(name, monkeypatch):
    search = Search(writing_model(name), monkeypatch)
    as_written = {} if name in WITHOUT_DRAFTS else {"repairs": "none"}
    for settings in ({"batch_tokens": 40}, {"batch_size": 3, "max_new_tokens": 9} | as_written):
        expected = search(False, **settings)
        assert search.written == 0
        assert search(True, **settings) == expected
        if name in WITHOUT_DRAFTS:
            assert search.written == 0
        else:
            assert 0 < search.accepted < search.written
    assert len({sentence for document in expected[0] for sentence in document}) > 1


def test_a_true_draft_is_read_in_one_pass(monkeypatch):
    """Also where the translation is stopped before its end; and one that is wrong at one place in two.

    As soon as drafts are known to hold.
    """
    monkeypatch.setattr(draft_verification, "ENOUGH", 0)
    model = writing_model("none")
    translator = SegmentTranslator(model, 16, {"max_new_tokens": 20})
    document = DocumentState(4, [SentencePart(index, [6 + index, 9]) for index in range(4)])
    jobs = [translator.window_job(document, index, index) for index in range(4)]
    outputs = translator.decode(jobs)
    assert min(len(output.ids) for output in outputs) > 1
    read, search = [], DraftSearch(translator)
    model.get_decoder().register_forward_hook(lambda *_: read.append(1))
    drafts = [split_at(output.ids, SEP) for output in outputs]
    assert decode_with_drafts(translator, jobs, drafts, search) == outputs and len(read) == 1
    for draft in drafts:
        draft[0][:1] = [28 if draft[0][:1] == [29] else 29]
    assert decode_with_drafts(translator, jobs, drafts, search) == outputs and 1 < len(read) - 1 < 20


def test_drafts_that_do_not_pay_are_not_read(monkeypatch):
    """Of the first ones few tokens are read, and no more as soon as too few of them were accepted."""
    monkeypatch.setattr(draft_verification, "FIRST", 3)
    translator = SegmentTranslator(build(), 1, {"max_new_tokens": 8})
    document = DocumentState(1, [SentencePart(0, [6, 9])])
    jobs = [translator.window_job(document, 0) for _ in range(4)]
    outputs = translator.decode(jobs)
    wrong, true = [[28] * 6], split_at(outputs[0].ids, SEP)
    assert len(outputs[0].ids) == 8 and 28 not in outputs[0].ids and len(true) == 1
    read = []
    forward = translator.model.get_decoder().forward
    monkeypatch.setattr(
        translator.model.get_decoder(),
        "forward",
        lambda input_ids, **kwargs: read.append(input_ids.shape[1]) or forward(input_ids, **kwargs),
    )
    for drafts, enough, widths in (
        ([wrong, true], 1, [4] + [1] * 15),
        ([wrong, true], 3, [4] * 3 + [1] * 13),
        ([true, true], 5, [4, 4, 8]),
    ):
        monkeypatch.setattr(draft_verification, "ENOUGH", enough)
        read.clear()
        assert decode_with_drafts(translator, jobs[:2], drafts) == outputs[:2]
        assert read == widths


@pytest.mark.parametrize(
    "settings",
    [
        {"num_beams": 2},
        {"do_sample": True},
        {"repetition_penalty": 1.3},
        {"min_new_tokens": 1},
        {"suppress_tokens": [9]},
        {"forced_bos_token_id": 0},
        {"use_cache": False},
        {"logits_processor": [lambda ids, scores: scores]},
        {"stopping_criteria": [lambda ids, scores: torch.zeros(len(ids), dtype=torch.bool)]},
    ],
)
def test_other_searches_have_no_drafts(settings, monkeypatch):
    search = Search(writing_model("none"), monkeypatch)
    search(True, DOCUMENTS[1:3], **settings)
    assert search.written == 0


def test_settings_that_change_nothing(monkeypatch):
    search = Search(writing_model("none"), monkeypatch)
    settings = {"repetition_penalty": 1.0, "no_repeat_ngram_size": 0, "length_penalty": 2.0, "forced_eos_token_id": EOS}
    assert search(True, DOCUMENTS[1:2], **settings) == search(False, DOCUMENTS[1:2], **settings)
    search(True, DOCUMENTS[1:2], **settings)
    assert search.written > 0


# One row


def row_of(draft: list[list[int] | None], limit: int = 50) -> DraftRow:
    translator = SegmentTranslator(build(), 1, {"max_new_tokens": limit})
    document = DocumentState(1, [SentencePart(0, [6])], number=2)
    job = translator.window_job(document, 0)
    job.draft = draft
    return DraftRow(translator, job, [EOS])


def written(row: DraftRow, target: list[int]) -> tuple[list[int], list[int]]:
    """What a row writes for a model that writes the target, and how many tokens were accepted in each pass."""
    accepted = []
    while not row.is_finished:
        proposal, before = row.proposal(), row.accepted
        row.take(proposal, target[len(row.written) : len(row.written) + len(proposal) + 1])
        accepted.append(row.accepted - before)
    return row.written, accepted


SENTENCE = [6, 7, 8, 9, 10, 11]


@pytest.mark.parametrize(
    ("own", "accepted"),
    [
        (SENTENCE, [10]),
        ([6, 7, 20, 9, 10, 11], [2, 4, 2]),  # another token
        ([6, 7, 9, 10, 11], [2, 4, 1]),  # one less
        ([6, 7, 20, 21, 8, 9, 10, 11], [2, 0, 0, 4, 2]),  # two more
        ([6, 7], [2, 3]),
        ([20, 21], [0, 0, 0, 3]),
        ([*SENTENCE, 20], [6, 4]),
        ([], [0, 3]),
    ],
)
def test_where_a_draft_goes_on(own, accepted):
    target = [*own, SEP, 12, 13, EOS]
    assert written(row_of([SENTENCE, [12, 13]]), target) == (target, accepted)


def test_sentences_without_a_draft():
    """They are written token by token; a draft of another sentence is taken up behind them."""
    target = [6, 7, SEP, 8, 9, SEP, 10, 11, EOS]
    assert written(row_of([[6, 7], None, [10, 11]]), target) == (target, [3, 0, 0, 3])
    assert written(row_of([None]), [6, 7, EOS]) == ([6, 7, EOS], [0, 0, 0])
    longer = [6, SEP, 7, SEP, 8, EOS]
    assert written(row_of([[6], [7]]), longer) == (longer, [3, 0, 0])


def test_no_more_tokens_than_the_limit():
    target = [6, 7, 8, 9, EOS]
    for limit in (1, 2, 4, 5):
        row = row_of([[6, 7, 8, 9]], limit)
        assert written(row, target)[0] == target[:limit]
        assert row.output().finished == (limit == 5) and row.output().ids == target[: min(limit, 4)]


def test_scores_that_are_no_numbers():
    row = row_of([[6, 7, 8]])
    with pytest.raises(NonFiniteScoresError) as caught:
        row.take(row.proposal(), [6, 7, None, None])
    assert (caught.value.document, caught.value.sentence, caught.value.step) == (2, 0, 3)


def test_scores_of_a_model_that_are_no_numbers():
    """Where reading a word breaks the model: the same sentence as without drafts, at the latest behind that word."""
    model = build(share_encoder_decoder_embeddings=False, tie_word_embeddings=False)
    translator = SegmentTranslator(model, 2, {"max_new_tokens": 6})
    document = DocumentState(2, [SentencePart(index, [6, 7 + index]) for index in range(2)], number=1)
    jobs = [translator.window_job(document, index) for index in range(2)]
    outputs = translator.decode(jobs)
    with torch.no_grad():
        model.get_decoder().embed_tokens.weight[outputs[1].ids[0]] = float("nan")
    errors = []
    drafts = [[output.ids] for output in outputs]
    for decode in (translator.decode, lambda jobs: decode_with_drafts(translator, jobs, drafts)):
        with pytest.raises(NonFiniteScoresError) as caught:
            decode(jobs)
        errors.append((caught.value.document, caught.value.sentence))
        assert caught.value.step <= 2
    assert errors[0] == errors[1]


def test_windows_side_by_side():
    """Together they have every sentence; the last one is that of the last sentence."""
    document = DocumentState(9, [SentencePart(index, [6]) for index in range(9)])
    sentences = [CurrentSentence(document, index) for index in range(9)]
    for past, future, expected in ((3, 0, [3, 7, 8]), (8, 0, [8]), (1, 1, [1, 4, 7]), (0, 2, [0, 3, 6]), (20, 0, [8])):
        translator = SegmentTranslator(build(), 1, {})
        translator.past, translator.future = past, future
        first, others = DraftSearch(translator).side_by_side(sentences)
        assert [sentence.index for sentence in first] == expected
        assert sorted(first + others) == sentences
