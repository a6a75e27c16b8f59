"""Our search finds what transformers' own finds, token by token; the two share no code and no cache."""

from functools import partial

import pytest
import torch
from support.errors import refused
from support.int8_models import SIZES
from support.tiny_models import EOS, PAD, SEP, build, random_text, word_tokenizer
from transformers import (
    DynamicCache,
    EncoderDecoderCache,
    EosTokenCriteria,
    GenerationMixin,
    LogitsProcessor,
    MaxLengthCriteria,
    StoppingCriteria,
)

from hf_docmt.engine import generation, search
from hf_docmt.engine.cache import DecodingCache
from hf_docmt.engine.cpu_kernels import kernels as library
from hf_docmt.engine.decoding_step import DecodingStep
from hf_docmt.engine.search import DecoderState, SearchSettings, best_continuations, best_token
from hf_docmt.modeling.decoding import Translator

needs_kernels = pytest.mark.skipif(library() is None, reason="the kernels were not built, or need AVX2")
VOCABULARY = 2100  # not a multiple of the size of a block
SOURCE = torch.randint(SEP, VOCABULARY, (5, 7), generator=torch.Generator().manual_seed(2))
MASK = torch.ones_like(SOURCE)
MASK[3, 4:] = 0
PROMPT = torch.cat([torch.full((5, 1), 2), SOURCE[:, 1:3]], dim=1)
INPUTS = {"input_ids": SOURCE, "attention_mask": MASK}
IDS = torch.tensor([[7, 8, 9, EOS]])


@pytest.fixture(scope="module")
def model():
    model = build(vocab_size=VOCABULARY)
    for parameter in model.parameters():
        parameter.data.mul_(3)  # so that translations differ from each other
    return model


@pytest.fixture
def searches(monkeypatch):
    """The settings that our search was called with."""
    settings, search_settings = [], generation.search_settings
    recorded = lambda *arguments: settings.append(search_settings(*arguments)) or settings[-1]  # noqa: E731
    monkeypatch.setattr(generation, "search_settings", recorded)
    return settings


class EvenEnds(StoppingCriteria):
    """Ends a row behind a third token that is even."""

    def __call__(self, input_ids, scores, **kwargs):
        return (input_ids[:, -1] % 2 == 0) & (input_ids.shape[1] > 3)


class Forbidden(LogitsProcessor):
    """Forbids the token of the last step, in place."""

    def __call__(self, input_ids, scores):
        return scores.scatter_(1, input_ids[:, -1:], -torch.inf)


SETTINGS = [
    {"num_beams": 1},
    {"num_beams": 1, "max_new_tokens": 1},
    {"num_beams": 1, "eos_token_id": [EOS, *range(20, 400)], "no_repeat_ngram_size": 1},
    {"num_beams": 1, "use_cache": False, "min_new_tokens": 3, "suppress_tokens": [9, 11]},
    {"num_beams": 1, "forced_bos_token_id": 12, "forced_eos_token_id": 13, "renormalize_logits": True},
    {"num_beams": 1, "logits_processor": [Forbidden()], "stopping_criteria": [EvenEnds()]},
    {"num_beams": 3},
    {"num_beams": 3, "max_new_tokens": 1},
    {"num_beams": 2, "num_return_sequences": 2, "length_penalty": 2.0},
    {"num_beams": 4, "length_penalty": 0.0, "early_stopping": "never", "num_return_sequences": 4},
    {"num_beams": 3, "early_stopping": True, "no_repeat_ngram_size": 2, "num_return_sequences": 3},
    {"num_beams": 3, "early_stopping": "never", "length_penalty": -1.0, "bad_words_ids": [[9], [10, 11]]},
    {"num_beams": 2, "use_cache": False, "min_length": 6, "eos_token_id": [EOS, *range(20, 60)]},
    {"num_beams": 3, "forced_eos_token_id": 13, "renormalize_logits": True, "num_return_sequences": 2},
    {"num_beams": 3, "logits_processor": [Forbidden()], "stopping_criteria": [EvenEnds()]},
    {"num_beams": 12, "eos_token_id": None, "max_new_tokens": 4},
]


def label(settings: dict) -> str:
    values = {name: "own" if "logits" in name or "criteria" in name else value for name, value in settings.items()}
    return ", ".join(f"{name}={str(value)[:20]}" for name, value in values.items())


@pytest.mark.parametrize("prompt", [None, PROMPT], ids=["start", "prompt"])
@pytest.mark.parametrize("settings", SETTINGS, ids=label)
def test_as_transformers(model, settings, prompt, searches):
    """Rows that end at different steps, one with padding in its source; with and without a prompt."""
    settings = {"max_new_tokens": 9, "do_sample": False, "eos_token_id": [EOS, 268, 960], **settings}
    inputs = INPUTS if prompt is None else INPUTS | {"decoder_input_ids": prompt}
    found = model.generate(**inputs, **settings)
    assert len(searches) == 1
    assert torch.equal(found, GenerationMixin.generate(model, **inputs, **settings))


@pytest.mark.parametrize("seed", range(10))
def test_scores_of_the_best(seed):
    """Ids and scores of n-best lists on random models, of one and of several architectures' caches."""
    architecture = ("concat", "lst", "window", "memory", "gtransformer")[seed % 5]
    model = build(architecture, seed=seed, **({"past_context": 1} if architecture != "memory" else {}))
    draw = torch.Generator().manual_seed(seed)
    beams = int(torch.randint(2, 7, (1,), generator=draw))
    returned = int(torch.randint(1, beams + 1, (1,), generator=draw))
    stopping = (True, False, "never")[seed % 3]
    penalty = float(torch.randn(1, generator=draw))
    names = {"num_beams": beams, "num_return_sequences": returned, "length_penalty": penalty}
    recorded = {"return_dict_in_generate": True, "output_scores": True}
    source = {"input_ids": SOURCE.remainder(24) + 6, "attention_mask": MASK} | dict.fromkeys(model.context_arguments)
    expected = GenerationMixin.generate(
        model, **source, **names, early_stopping=stopping, max_new_tokens=8, do_sample=False, **recorded
    )
    settings = SearchSettings(9, [EOS], PAD, early_stopping=stopping, **names)
    outputs = model.get_encoder()(source["input_ids"], attention_mask=MASK)
    state = DecoderState(model, outputs, DecodingCache(), attention_mask=MASK)
    ids, scores, sums = search.beam_search(state, torch.full((5, 1), 2), settings)
    assert torch.equal(ids, expected.sequences)
    torch.testing.assert_close(scores, expected.sequences_scores, atol=1e-5, rtol=1e-5)
    lengths = ((ids[:, 1:] == EOS).cumsum(1) == 0).sum(1).add(1).clamp(max=ids.shape[1] - 1)  # with the end token
    totals = sums.gather(1, lengths[:, None])[:, 0] / lengths**penalty
    torch.testing.assert_close(totals, scores, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("settings", [{}, {"num_beams": 3, "num_return_sequences": 2}], ids=label)
def test_log_probabilities(model, kernels, settings, monkeypatch):
    """The sums up to each new token are those of forced decoding, by our search and by that of transformers."""
    inputs = INPUTS | {"max_new_tokens": 40, "eos_token_id": [EOS, 268, 960]} | settings
    for engine in (model.engine, None):
        monkeypatch.setattr(model, "engine", engine)
        prompts = {} if engine else {"decoder_input_ids": PROMPT}
        ids, sums = model.generate(**inputs, **prompts, return_log_probabilities=True)
        start, each = (PROMPT.shape[1] if prompts else 1), len(ids) // 5
        read = {name: value.repeat_interleave(each, 0) for name, value in INPUTS.items()}
        log_probs = model(**read, decoder_input_ids=ids[:, :-1]).logits.log_softmax(-1)
        expected = log_probs.gather(2, ids[:, 1:, None])[:, start - 1 :, 0].cumsum(1)
        ended = sum(ids[:, start:] == end for end in inputs["eos_token_id"])
        is_new = ended.cumsum(1) - ended == 0  # until the end token
        assert not sums[:, :start].any() and not is_new.all()
        torch.testing.assert_close(sums[:, start:][is_new], expected[is_new], atol=1e-3, rtol=1e-4)


class Keep(LogitsProcessor):
    """Keeps the scores of every step, and copies of them."""

    def __init__(self):
        self.scores, self.copies = [], []

    def __call__(self, input_ids, scores):
        self.scores.append(scores)
        self.copies.append(scores.clone())
        return scores


def test_scores_that_a_processor_keeps(model):
    keep = Keep()
    model.generate(torch.full((1, 4), 9), num_beams=2, max_new_tokens=4, logits_processor=[keep])
    assert len(keep.scores) > 1
    assert all(map(torch.equal, keep.scores, keep.copies))


def test_the_prompt_is_read_once_a_source(model):
    rows = []
    hook = model.get_decoder().register_forward_hook(
        lambda _, __, kwargs, ___: rows.append(tuple(kwargs["input_ids"].shape)), with_kwargs=True
    )
    cache = DecodingCache()
    model.generate(**INPUTS, decoder_input_ids=PROMPT, num_beams=3, max_new_tokens=4, min_new_tokens=4, cache=cache)
    hook.remove()
    assert rows[0] == (5, 3) and set(rows[1:]) == {(15, 1)} and isinstance(cache, DecodingCache)
    assert [layer.keys.shape[0] for layer in cache.cross_attention_cache.layers] == [5, 5]
    assert [layer.keys.shape[0] for layer in cache.self_attention_cache.layers] == [15, 15]


@pytest.mark.parametrize(
    "settings",
    [
        {"do_sample": True, "num_beams": 2},
        {"num_beams": 2, "return_dict_in_generate": True, "output_scores": True},
        {"prefix_allowed_tokens_fn": lambda row, ids: [9, 11] if len(ids) < 3 else [12, 13, 14]},
        {"prompt_lookup_num_tokens": 2},
        {"repetition_penalty": 1.3, "num_beams": 2},
        {"cache_implementation": "static"},
        {"max_time": 100.0},
        {"max_time": 0},
        {"stopping_criteria": [MaxLengthCriteria(6)]},
        {"stopping_criteria": [EosTokenCriteria(9)]},
        {"decoder_start_token_id": [2], "decoder_input_ids": torch.tensor([[2, 9]])},
        {"sequence_bias": [[[9], 5.0]]},
        {"decoder_input_ids": torch.tensor([[9, 11]])},
    ],
    ids=lambda settings: ", ".join(settings),
)
def test_left_to_transformers(model, settings, searches):
    """As `GenerationMixin.generate` has it, by caches of transformers."""
    results, source = [], torch.tensor([[7, 8, EOS]])
    for generate in (model.generate, lambda *a, **k: GenerationMixin.generate(model, *a, **k)):
        torch.manual_seed(3)
        results.append(generate(source, max_new_tokens=3, pad_token_id=PAD, **settings))
    if "return_dict_in_generate" in settings:
        assert len(results[0].scores) == 3
        results = [one.sequences for one in results]
    assert not searches and torch.equal(*results)


def test_arguments_by_their_places(model, searches):
    """As transformers has them, behind the criteria, too."""

    def allowed(row, ids):
        return [9, 11] if len(ids) < 3 else [12, 13, 14]

    found = model.generate(SOURCE, None, None, None, allowed, max_new_tokens=3)
    assert torch.equal(found, model.generate(SOURCE, prefix_allowed_tokens_fn=allowed, max_new_tokens=3))
    assert not searches


def test_settings_in_the_configuration_of_the_model():
    """Nothing reads them there, as transformers says, too."""
    model = build()
    model.config.num_beams = 4
    refused("model.config are not read, got {'num_beams': 4}: set them in", model.generate, IDS)


@pytest.mark.parametrize("settings", [{}, {"do_sample": True}], ids=["ours", "theirs"])
def test_a_cache_with_all_of_the_prompt(settings):
    model = build()
    prompt = torch.tensor([[2, 9]])
    cache = DecodingCache() if not settings else EncoderDecoderCache(DynamicCache(), DynamicCache())
    model(IDS, decoder_input_ids=prompt, cache=cache)
    with pytest.raises(ValueError, match="the cache has 2 tokens, got 2 target ids, expected one more"):
        model.generate(IDS, decoder_input_ids=prompt, cache=cache, max_new_tokens=3, **settings)


def test_low_memory_is_refused(model):
    refused("low_memory=True", model.generate, torch.full((1, 4), 9), num_beams=2, max_new_tokens=4, low_memory=True)


def test_a_hook_that_counts_rows(model, searches):
    """Who hooks into the calls of layers, as peft does for an adapter a row, sees the rows that transformers has."""
    expected, rows = model.generate(**INPUTS, num_beams=2, max_new_tokens=3), []
    hook = model.get_decoder().layers[0].fc1.register_forward_pre_hook(lambda _, inputs: rows.append(len(inputs[0])))
    assert torch.equal(model.generate(**INPUTS, num_beams=2, max_new_tokens=3), expected)
    hook.remove()
    assert len(searches) == 1 and set(rows) == {10}


@pytest.mark.parametrize(
    "wrong",
    [
        {"num_return_sequences": 2},
        {"no_such_argument": 1},
        {"max_length": 1},
        {"repetition_penalty": 0},
        {"encoder_repetition_penalty": 0.0},
        {"bad_words_ids": []},
    ],
    ids=str,
)
def test_refusals_of_transformers(model, wrong):
    with pytest.raises(ValueError):
        model.generate(**INPUTS, do_sample=False, **wrong)


@pytest.fixture(params=["0", pytest.param("1", marks=needs_kernels)])
def kernels(request, monkeypatch):
    """With and without the compiled primitives."""
    monkeypatch.setenv("DOCMT_KERNELS", request.param)


@pytest.mark.parametrize("count", [2, 8])
@pytest.mark.parametrize("special", ["none", "ties", "few", "nan", "infinite"])
def test_best_continuations(kernels, count, special):
    """Values and indices of torch.topk over all, equal values and what is no number included."""
    log_probs = torch.randn(6, VOCABULARY).log_softmax(-1)
    if special == "ties":
        log_probs = (log_probs * 4).round() / 4
    if special == "few":
        log_probs[1:4, 3:] = -torch.inf
    if special == "nan":
        log_probs[2] = torch.nan
        log_probs[5, 2090] = torch.nan
    if special == "infinite":
        log_probs[:] = -torch.inf
    scores = torch.randn(3, 2)
    expected = (log_probs.view(3, 2, -1) + scores[..., None]).flatten(1).topk(count)
    values, indices = best_continuations(log_probs, scores, count)
    torch.testing.assert_close(values, expected.values, atol=0, rtol=0, equal_nan=True)
    assert torch.equal(indices, expected.indices)


def test_values_that_the_sum_makes_equal(kernels):
    """Different log-probabilities, equal with the score of their beam."""
    log_probs = -torch.rand(4, VOCABULARY) / 1e3
    scores = torch.tensor([[-1000.0, -1000.0], [0.0, -1e9]])
    expected = (log_probs.view(2, 2, -1) + scores[..., None]).flatten(1).topk(4)
    values, indices = best_continuations(log_probs, scores, 4)
    assert torch.equal(values, expected.values) and torch.equal(indices, expected.indices)


@pytest.mark.parametrize("size", [100, 256, 300, 383])
def test_best_token(kernels, size):
    """The first of equal ones and of what is no number, wherever it stands."""
    scores = torch.randint(0, 50, (200, size)).float()
    scores[:5] = -torch.inf
    scores[torch.arange(20, 40), torch.randint(0, size, (20,))] = torch.nan
    scores[30:40, -1] = torch.nan
    scores[40, -1] = scores[41, 0] = 99
    assert torch.equal(best_token(scores), scores.argmax(dim=1))


ARCHITECTURES = [
    ("concat", {"past_context": 2, "use_bod": True}),
    ("concat", {"decoder_autoregression": "ssru", "view": "chunk", "chunk_tokens": 30}),
    ("concat", {"activation_function": "gelu"}),  # which torch runs, between the primitives
    ("lst", {"past_context": 2}),
    ("gtransformer", {"past_context": 2, "global_layers": 1}),
    ("window", {"past_context": 2, "window": 2, "position": "absolute"}),
    ("caching", {"past_context": 2, "context_gate": True}),
    ("multiencoder", {"past_context": 2}),
    ("routing", {"past_context": 2, "future_context": 0}),
    ("doct", {"past_context": 2}),
    ("han", {"past_context": 2}),
    ("memory", {}),
]
PLAIN = SearchSettings.is_plain
SEARCHES = [
    {"num_beams": 1},
    {"num_beams": 3},
    {"num_beams": 2, "early_stopping": True, "nbest": 2},
    {"num_beams": 2, "early_stopping": "never", "length_penalty": -1.0, "no_repeat_ngram_size": 2},
    {"num_beams": 2, "use_cache": False},
]


@pytest.mark.parametrize(("architecture", "fields"), ARCHITECTURES, ids=str)
def test_sources_that_leave_change_nothing(monkeypatch, kernels, architecture, fields):
    """All strategies find the same if no source leaves its batch, each one does, or others take its place (kernels)."""
    model, left = build(architecture, **SIZES | fields), []
    keep, count = DecoderState.keep, 0
    monkeypatch.setattr(DecoderState, "keep", lambda self, sources: left.append(len(sources)) or keep(self, sources))
    monkeypatch.setattr(Translator, "wanted", lambda self, length: 4 + length)  # rows end at their limits, too
    documents, translator = [random_text([5, 1, 2, 3]), random_text([2, 7], seed=1)], model.translator_class
    for strategy in sorted(translator.strategies.keys() - translator.refusals(model.config).keys()):
        for settings in SEARCHES:
            settings, found = settings | {"eos_token_id": [EOS, 8, 17, 26]}, []
            for waste, is_plain, batch in (1, lambda *_: False, 16), (0, lambda *_: False, 16), (0, PLAIN, 2):
                monkeypatch.setattr(search, "MOST_WASTE", waste)
                monkeypatch.setattr(SearchSettings, "is_plain", is_plain)
                settings["batch_size"] = batch
                found.append(
                    model.translate_documents(documents, word_tokenizer(), strategy, return_scores=True, **settings)
                )
                assert waste == 0 or not left
            assert found[0] == found[1] == found[2]
            lines = (each[0] if "nbest" in settings else each for each in found)
            first, *others = ([text.score for document in each for text in document] for each in lines)
            assert all(first == pytest.approx(scores, abs=1e-4) for scores in others)
            count += len(left)
            left.clear()
    assert count


@needs_kernels
@pytest.mark.parametrize("batch", [{"batch_size": 2}, {"batch_tokens": 9}], ids=str)
@pytest.mark.parametrize("architecture", ["concat", "lst", "gtransformer", "window"])
def test_sources_wait(monkeypatch, batch, architecture):
    """All in one search, behind prefixes, too, in batches of tokens, and where attention has limits.

    In `sequential` the next sentences of all documents.
    """
    model, sizes, run = build(architecture, **SIZES, past_context=2, use_bod=True), [], DecodingStep.search
    monkeypatch.setattr(
        DecodingStep, "search", lambda step, ids, *rest: sizes.append(len(ids)) or run(step, ids, *rest)
    )
    documents = [random_text([5, 1]), *(random_text([length], seed=length) for length in (2, 7, 3))]
    settings = {"max_new_tokens": 9, "eos_token_id": [EOS, 8, 17, 26]}
    translate = partial(model.translate_documents, documents, word_tokenizer(), **settings)
    found = translate("full", repairs="none", **batch), translate("sequential", **batch)
    assert sizes[:2] == [4, 4]
    monkeypatch.setattr(SearchSettings, "is_plain", lambda *_: False)
    assert found == (translate("full", repairs="none", batch_size=1), translate("sequential", batch_size=1))


class OddRows(LogitsProcessor):
    """Forbids a token in every second row, and cannot tell which rows have left."""

    def __call__(self, input_ids, scores):
        scores[1::2, 9] = -torch.inf
        return scores


@pytest.mark.parametrize("own", [{"logits_processor": [OddRows()]}, {"stopping_criteria": [EvenEnds()]}], ids=list)
def test_sources_stay_where_a_caller_knows_rows(model, monkeypatch, own):
    monkeypatch.setattr(DecoderState, "keep", None)
    model.generate(**INPUTS, max_new_tokens=9, eos_token_id=[EOS, 268, 960], **own)
