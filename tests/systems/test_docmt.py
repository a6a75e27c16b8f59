"""Document models as systems: the scores of the model, and those of a converted Marian model."""

from dataclasses import replace

import pytest
import torch
from support.errors import refused
from support.pretrained_models import SIZES
from support.systems import DOCUMENTS, ITEMS, assert_close, item, log_probabilities, pieces
from support.tiny_models import build, random_text, word_tokenizer

from hf_docmt.evaluation.contrast import candidate_scores, context_results
from hf_docmt.hub.export import convert_sentence_model
from hf_docmt.loading import registry
from hf_docmt.systems import DocMTSystem, Seq2SeqSystem
from hf_docmt.systems.docmt import translates_without_context


@pytest.mark.filterwarnings("ignore:.*did not end before")
@pytest.mark.parametrize("past", [0, 2])
def test_converted_model_has_the_same_scores(marian, tokenizer, past):
    """A Marian model and our model with the same weights; with context both join sentences by `<sep>`."""
    converted, adapted = convert_sentence_model(marian, tokenizer=tokenizer, past_context=past)
    items = [one for one in ITEMS if all(one.source)]  # blank context sentences are read by ours alone
    ours = DocMTSystem(converted, adapted)
    theirs = Seq2SeqSystem(marian, tokenizer, past_context=past, context_sides="both")
    assert_close(theirs.token_log_probabilities(items), ours.token_log_probabilities(items))
    assert theirs.token_texts(items) == ours.token_texts(items)
    settings = {"num_beams": 1, "max_new_tokens": 12}
    documents = [document for document in DOCUMENTS if document]
    strategy = "sequential" if past else "sentence"
    found = Seq2SeqSystem(marian, tokenizer, past_context=past, context_sides="both", **settings)
    assert found.translate(documents) == DocMTSystem(converted, adapted, strategy=strategy, **settings).translate(
        documents
    )


def test_docmt_system(tokenizer):
    torch.manual_seed(0)
    architecture = registry.get("concat")
    sizes = {name: size for name, size in SIZES.items() if name != "max_position_embeddings"}
    model = architecture.model_class(
        architecture.config_class(**sizes, vocab_size=len(tokenizer), past_context=2, use_bod=True)
    ).eval()
    system = DocMTSystem(model, tokenizer, "mine")
    texts, scores = system.token_texts(ITEMS), system.token_log_probabilities(ITEMS)
    assert [[len(row) for row in rows] for rows in texts] == [[len(row) for row in rows] for rows in scores]
    alone = item(4, context=0)
    (row,) = system.token_texts([alone])
    assert row[0][-1] == "</s>" and "".join(row[0][:-1]).strip() == alone.candidates[0]  # without <bod>
    facts = system.describe()
    assert (facts["name"], facts["architecture"]) == ("mine", "concat")
    assert facts["parameters"] == model.num_parameters() and facts["config"]["past_context"] == 2
    assert [len(document) for document in system.translate(DOCUMENTS)] == [len(document) for document in DOCUMENTS]
    assert DocMTSystem(model, tokenizer, past_context=1).past_context == 1
    refused("past_context is 3, but the model was trained with 2", DocMTSystem, model, tokenizer, past_context=3)
    refused("future_context is 1, but the model was trained with 0", DocMTSystem, model, tokenizer, future_context=1)


@pytest.mark.parametrize("kind", ["concat", "caching"])
def test_mean_scores_of_released_code(kind):
    """Means over the current sentence and its end (Maka et al.), and over the whole target window (Lupo et al.)."""
    tokenizer = word_tokenizer()
    model, words = build(kind, past_context=2), [f"w{number}" for number in range(6, 30)]
    items = [
        replace(item(n), source=tuple(words[n : 1 + 2 * n]), target_context=tuple(words[9 : 9 + n]),
                candidates=(" ".join(words[n : 3 * n + 2]), words[n + 1]))
        for n in range(4)
    ]  # fmt: skip
    system = DocMTSystem(model, tokenizer)
    tokens = system.token_log_probabilities(items)
    means = [[sum(candidate) / len(candidate) for candidate in row] for row in tokens]
    assert candidate_scores(system, items, "mean") == [pytest.approx(row) for row in means]
    window = candidate_scores(system, items, "window-mean")
    if kind == "caching":  # the target holds the current sentence alone
        assert window == [pytest.approx(row, abs=1e-6) for row in means]
        return
    for one, row in zip(items, window, strict=True):
        context = [pieces(tokenizer, text) + [tokenizer.sep_token_id] for text in one.target_context[-2:]]
        source = [pieces(tokenizer, text) + [tokenizer.sep_token_id] for text in one.source[-3:]]
        source = [*sum(source, [])[:-1], tokenizer.eos_token_id]
        for candidate, score in zip(one.candidates, row, strict=True):
            labels = [*sum(context, []), *pieces(tokenizer, candidate), tokenizer.eos_token_id]
            whole = log_probabilities(model, source, labels, range(len(labels)))
            assert score == pytest.approx(sum(whole) / len(whole), abs=1e-5)
    assert window[2] != pytest.approx(means[2])
    found = [context_results(system, items, dataset="d", conditions=("true",), normalization=name)[0] for name in
             ("sum", "mean", "window-mean")]  # fmt: skip
    made = [(result.signature["logprob"], result.signature["tokens"]) for result in found]
    assert made == [("sum", "current"), ("mean", "current"), ("mean", "window")]


def test_a_memory_has_no_windows():
    system = DocMTSystem(build("memory"), word_tokenizer(), "recurrent")
    with pytest.raises(ValueError, match="recurrent: a system of kind docmt has no target windows; use the sum or"):
        candidate_scores(system, ITEMS, "window-mean")


def test_fingerprints_of_systems():
    tokenizer = word_tokenizer()
    systems = [DocMTSystem(build("concat", seed, past_context=1), tokenizer, "m", past_context=past) for seed, past in
               ((0, 1), (0, 1), (1, 1), (0, 0))]  # fmt: skip
    systems.append(DocMTSystem(build("concat", past_context=1), tokenizer, "m", num_beams=3))
    for change in ({"length_penalty": 0.5}, {"no_repeat_ngram_size": 2}):
        systems.append(DocMTSystem(build("concat", past_context=1), tokenizer, "m"))
        systems[-1].model.generation_config.update(**change)
    systems.append(DocMTSystem(build("concat", past_context=1), tokenizer, "m"))
    systems[-1].model.config.position_type = "sinusoidal_t2t"
    first, again, *others = (system.fingerprint() for system in systems)
    assert first == again and first not in others and len(set(others)) == len(others)


def test_strategies_without_context():
    config = build(past_context=2).config
    assert not translates_without_context(config, None) and not translates_without_context(config, "sequential")
    assert translates_without_context(config, "sentence")
    config.strategy = "sentence"
    assert translates_without_context(config, None) and not translates_without_context(config, "sliding")
    config.use_bod = True  # a token in front of the first sentence of a document
    assert not translates_without_context(config, None)


@pytest.mark.parametrize("architecture", registry.ARCHITECTURES)
def test_lines_by_themselves_are_translated_as_in_their_document(architecture):
    model, tokenizer = build(architecture), word_tokenizer()
    lines = [*random_text([3, 1, 7, 2, 5]), "", *random_text([4], seed=1)]
    options = {"strategy": "sentence", "max_new_tokens": 9, "num_beams": 2}
    assert translates_without_context(model.config, "sentence")
    system = DocMTSystem(model, tokenizer, **options)
    assert [translation for (translation,) in system.translate([[line] for line in lines])] == system.translate(
        [lines]
    )[0]
