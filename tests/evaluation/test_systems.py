"""Systems: scores equal to one candidate at a time, translation N in N out, language codes, prompts, bad input."""

import json
import math
import warnings
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from support.pretrained_models import SIZES, multilingual, randomised, saved
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    M2M100Tokenizer,
    MarianConfig,
    MarianMTModel,
    MarianTokenizer,
    T5Config,
    T5ForConditionalGeneration,
)

from hf_docmt import registry
from hf_docmt.data.tokenizers import train_tokenizer
from hf_docmt.evaluation.suites import SuiteItem
from hf_docmt.evaluation.systems import CausalSystem, DocMTSystem, Prompt, Seq2SeqSystem, load_system
from hf_docmt.evaluation.systems.log_probabilities import score_suite
from hf_docmt.evaluation.systems.token_texts import piece_spans, piece_texts, word_spans
from hf_docmt.hub.conversion import convert_sentence_model

WORDS = "der die das Hund Katze Haus schläft sitzt ist rot groß hier dort heute nie immer und oder aber Sie".split()
TOKENS = {
    "pad_token_id": 0,
    "bos_token_id": 2,
    "eos_token_id": 3,
    "decoder_start_token_id": 0,
    "forced_eos_token_id": None,
}


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer([" ".join(WORDS), "English German Translate from to : \n"] * 3, vocab_size=340)


def text(seed, words):
    generator = torch.Generator().manual_seed(seed)
    return " ".join(WORDS[place] for place in torch.randint(len(WORDS), (words,), generator=generator))


def item(number, context=2, candidates=3, **changes):
    """An item with sentences of many lengths; every third has a blank context sentence."""
    blank = number % 3 == 0
    given = {
        "item_id": f"suite:{number}",
        "source": tuple(
            text(10 * number + i, 0 if blank and i == 0 else 1 + (number + 3 * i) % 7) for i in range(context)
        )
        + (text(number, 3),),
        "target_context": tuple(text(50 * number + i, 0 if blank and i == 0 else 2) for i in range(context)),
        "candidates": tuple(text(90 * number + i, 2 + (number + i) % 4) for i in range(candidates)),
        "correct": 0,
        "phenomenon": "p",
        "distance": None,
    }
    return SuiteItem(**{**given, **changes})


ITEMS = [item(number, context=number % 4, candidates=2 + number % 2) for number in range(1, 9)]
DOCUMENTS = [[text(1, 3), "", text(2, 5), text(3, 1)], [], ["  "], [text(4, 2), text(5, 6)]]


@pytest.fixture(scope="module")
def marian(tokenizer):
    config = MarianConfig(**SIZES, **TOKENS, vocab_size=len(tokenizer), decoder_vocab_size=len(tokenizer))
    return randomised(MarianMTModel(config))


def t5(tokenizer):
    sizes = {"d_model": 16, "d_kv": 8, "d_ff": 24, "num_layers": 2, "num_heads": 2}
    return randomised(T5ForConditionalGeneration(T5Config(**sizes, **TOKENS, vocab_size=len(tokenizer))))


def pieces(tokenizer, sentence):
    return tokenizer(sentence, add_special_tokens=False)["input_ids"]


def log_probabilities(model, source, labels, scored):
    """The definition: one row, the model's own shift of the labels, token by token in double precision."""
    with torch.no_grad():
        source, target = torch.tensor([source]), torch.tensor([labels])
        logits = model(input_ids=source, attention_mask=torch.ones_like(source), labels=target).logits[0].double()
    return [torch.log_softmax(logits[t], 0)[labels[t]].item() for t in scored]


def one_at_a_time(model, tokenizer, item, past, sides, separator):
    past = min(past, len(item.source) - 1)
    sources, context = (
        item.source[len(item.source) - 1 - past :],
        item.target_context[len(item.target_context) - past :],
    )
    kept = [i for i in range(past) if sources[i].strip() or (sides == "both" and context[i].strip())]
    sep, eos = separator, [tokenizer.eos_token_id]
    source = sum((pieces(tokenizer, sources[i]) + sep for i in kept), []) + pieces(tokenizer, sources[-1]) + eos
    before = sum((pieces(tokenizer, context[i]) + sep for i in kept), []) if sides == "both" else []
    rows = []
    for candidate in item.candidates:
        labels = before + pieces(tokenizer, candidate) + eos
        rows.append(log_probabilities(model, source, labels, range(len(before), len(labels))))
    return rows


def assert_close(found, expected):
    assert [[len(row) for row in rows] for rows in found] == [[len(row) for row in rows] for rows in expected]
    for rows, others in zip(found, expected):
        for row, other in zip(rows, others):
            assert row == pytest.approx(other, abs=1e-5, rel=1e-5)


@pytest.mark.parametrize(("past", "sides"), [(0, "source"), (2, "source"), (2, "both")])
@pytest.mark.parametrize("kind", ["marian", "t5"])
def test_seq2seq_equals_one_candidate_at_a_time(marian, tokenizer, kind, past, sides):
    model = marian if kind == "marian" else t5(tokenizer)
    separator = " der " if kind == "t5" else None  # a text, or the tokenizer's own token
    ids = pieces(tokenizer, separator) if separator else [tokenizer.sep_token_id]
    system = Seq2SeqSystem(model, tokenizer, past_context=past, context_sides=sides, separator=separator)
    assert system.target_context == ("none" if past and sides == "source" else "reference")
    expected = [one_at_a_time(model, tokenizer, one, past, sides, ids) for one in ITEMS]
    assert_close(system.token_log_probabilities(ITEMS), expected)


def test_seq2seq_future_context_ends_in_a_separator(marian, tokenizer):
    """The reference is the future sentence's; the mark after the current sentence is the separator, if one follows."""
    after = item(1, context=1, source_after=("das Haus",), target_after=("die Katze",))
    system = Seq2SeqSystem(marian, tokenizer, past_context=1, future_context=1, context_sides="both")
    sep, eos = [tokenizer.sep_token_id], [tokenizer.eos_token_id]
    source = pieces(tokenizer, after.source[0]) + sep + pieces(tokenizer, after.source[1]) + sep
    source += pieces(tokenizer, "das Haus") + eos
    before = pieces(tokenizer, after.target_context[0]) + sep
    expected = []
    for candidate in after.candidates:
        current = pieces(tokenizer, candidate) + sep
        labels = before + current + pieces(tokenizer, "die Katze") + eos
        scored = range(len(before), len(before) + len(current))
        expected.append(log_probabilities(marian, source, labels, scored))
    last = item(2, context=1)
    expected_last = one_at_a_time(marian, tokenizer, last, 1, "both", sep)
    assert_close(system.token_log_probabilities([after, last]), [expected, expected_last])
    assert [row[0][-1] for row in system.token_texts([after, last])] == ["<sep>", "</s>"]


def test_batches_and_order_do_not_matter(marian, tokenizer):
    encoded = []
    hook = marian.get_encoder().register_forward_hook(lambda module, inputs, output: encoded.append(len(output[0])))
    scores = {}
    for budget in (1, 300, 100_000):
        encoded.clear()
        system = Seq2SeqSystem(marian, tokenizer, past_context=2, batch_tokens=budget)
        scores[budget] = system.token_log_probabilities(ITEMS)
        assert sum(encoded) == len(ITEMS)  # each source once, for all its candidates
    hook.remove()
    assert_close(scores[1], scores[300])
    assert_close(scores[1], scores[100_000])
    assert_close(system.token_log_probabilities(ITEMS[::-1])[::-1], scores[1])
    assert not marian.training


@pytest.mark.filterwarnings("ignore:.*did not end before")
def test_model_is_left_in_its_mode(marian, tokenizer):
    marian.train()
    dropped = Seq2SeqSystem(marian, tokenizer).token_log_probabilities(ITEMS[:2])
    Seq2SeqSystem(marian, tokenizer, max_new_tokens=4).translate([["das Haus"]])
    assert marian.training and marian.model.encoder.training
    marian.eval()
    assert_close(dropped, Seq2SeqSystem(marian, tokenizer).token_log_probabilities(ITEMS[:2]))


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


def test_docmt_system_is_the_scorer(tokenizer):
    torch.manual_seed(0)
    architecture = registry.get("concat")
    sizes = {name: size for name, size in SIZES.items() if name != "max_position_embeddings"}
    model = architecture.model_class(
        architecture.config_class(**sizes, vocab_size=len(tokenizer), past_context=2, use_bod=True)
    ).eval()
    system = DocMTSystem(model, tokenizer, "mine")
    sums = [[sum(tokens) for tokens in row] for row in system.token_log_probabilities(ITEMS)]
    collate = architecture.collator(model.config, tokenizer, context_discount=0.0)
    expected = score_suite(model, tokenizer, ITEMS, collate=collate, past_context=2)
    for row, other in zip(sums, expected):
        assert row == pytest.approx(other)
    texts, scores = system.token_texts(ITEMS), system.token_log_probabilities(ITEMS)
    assert [[len(row) for row in rows] for rows in texts] == [[len(row) for row in rows] for rows in scores]
    alone = item(4, context=0)
    (row,) = system.token_texts([alone])
    assert row[0][0] == "<bod>" and row[0][-1] == "</s>" and "".join(row[0][1:-1]).strip() == alone.candidates[0]
    facts = system.describe()
    assert (facts["name"], facts["architecture"]) == ("mine", "concat")
    assert facts["parameters"] == model.num_parameters() and facts["config"]["past_context"] == 2
    assert [len(document) for document in system.translate(DOCUMENTS)] == [len(document) for document in DOCUMENTS]
    assert DocMTSystem(model, tokenizer, past_context=1).past_context == 1
    with pytest.raises(ValueError, match="past_context is 3, but the model was trained with 2"):
        DocMTSystem(model, tokenizer, past_context=3)
    with pytest.raises(ValueError, match="future_context is 1, but the model was trained with 0"):
        DocMTSystem(model, tokenizer, future_context=1)


@pytest.mark.filterwarnings("ignore:.*did not end before")
@pytest.mark.parametrize("family", ["nllb", "mbart"])
@pytest.mark.parametrize("past", [0, 1])
def test_language_codes(family, past):
    """Codes are where the tokenizer puts them in labels and are not scored; decoding starts with the same tokens."""
    model, tokenizer, (src, tgt) = multilingual(family)
    system = Seq2SeqSystem(
        model, tokenizer, src_lang=src, tgt_lang=tgt, past_context=past, context_sides="both", max_new_tokens=6
    )
    one = replace(item(1), source=("a b", "c de f"), target_context=("b",), candidates=("ab c", "d"))
    code, eos, sep = tokenizer.convert_tokens_to_ids(tgt), tokenizer.eos_token_id, tokenizer.sep_token_id
    tokenizer.src_lang, tokenizer.tgt_lang = src, tgt
    expected = []
    for candidate in one.candidates:
        labels = tokenizer(text_target=candidate)["input_ids"]
        source = tokenizer(one.source[-1])["input_ids"]
        if past:
            before, place = pieces(tokenizer, "b") + [sep], labels.index(code) + 1 if family == "nllb" else 0
            labels = labels[:place] + before + labels[place:]
            place = source.index(tokenizer.convert_tokens_to_ids(src)) + 1 if family == "nllb" else 0
            source = source[:place] + pieces(tokenizer, "a b") + [sep] + source[place:]
        current = len(pieces(tokenizer, candidate)) + 1
        stop = len(labels) - labels[::-1].index(eos)
        expected.append(log_probabilities(model, source, labels, range(stop - current, stop)))
    assert_close(system.token_log_probabilities([one]), [expected])
    if not past:
        inputs = tokenizer(one.source[-1], return_tensors="pt")
        forced = {"decoder_start_token_id": code} if family == "mbart" else {"forced_bos_token_id": code}
        output = model.generate(**inputs, **forced, max_new_tokens=6 if family == "mbart" else 7, num_beams=1)
        (found,) = system.translate([[one.source[-1]]])
        assert found == [tokenizer.decode(output[0], skip_special_tokens=True).strip()]


def test_unknown_language_codes(tokenizer, marian):
    model, nllb, _ = multilingual("nllb")
    with pytest.raises(ValueError, match="tgt_lang: 'french' is not a language code of NllbTokenizer"):
        Seq2SeqSystem(model, nllb, src_lang="eng_Latn", tgt_lang="french")
    with pytest.raises(ValueError, match="src_lang is 'en', but .* has no language codes"):
        Seq2SeqSystem(marian, tokenizer, src_lang="en")


@pytest.mark.parametrize("family", ["nllb", "mbart"])
def test_language_codes_are_asked_for(family):
    """What the tokenizer would take instead is English on both sides."""
    model, tokenizer, (src, tgt) = multilingual(family)
    with pytest.raises(ValueError, match="Tokenizer has language codes, but src_lang is not given; give src_lang and"):
        Seq2SeqSystem(model, tokenizer, tgt_lang=tgt)
    with pytest.raises(ValueError, match="Tokenizer has language codes, but tgt_lang is not given"):
        Seq2SeqSystem(model, tokenizer, src_lang=src)


def test_source_prefix(marian, tokenizer):
    system = Seq2SeqSystem(marian, tokenizer, source_prefix="Translate to German: ")
    one = item(1, context=0)
    source = pieces(tokenizer, "Translate to German:") + pieces(tokenizer, one.source[0]) + [tokenizer.eos_token_id]
    expected = []
    for candidate in one.candidates:
        labels = pieces(tokenizer, candidate) + [tokenizer.eos_token_id]
        expected.append(log_probabilities(marian, source, labels, range(len(labels))))
    assert_close(system.token_log_probabilities([one]), [expected])


@pytest.mark.filterwarnings("ignore:.*did not end before")
@pytest.mark.parametrize("settings", [{}, {"past_context": 2}, {"past_context": 1, "context_sides": "both"}], ids=str)
def test_seq2seq_translation(marian, tokenizer, settings):
    """N in, N out; blank sentences stay empty; batches do not matter; separators are not in the text."""
    found = {}
    for size in (1, 3):
        system = Seq2SeqSystem(marian, tokenizer, batch_size=size, max_new_tokens=9, **settings)
        found[size] = system.translate(DOCUMENTS)
    assert found[1] == found[3]
    assert [len(document) for document in found[1]] == [4, 0, 1, 2]
    assert found[1][0][1] == "" and found[1][2] == [""] and found[1][0][0] and found[1][3][1]
    assert "<sep>" not in str(found)


def test_bad_seq2seq(marian, tokenizer):
    with pytest.raises(ValueError, match="past_context is -1"):
        Seq2SeqSystem(marian, tokenizer, past_context=-1)
    with pytest.raises(ValueError, match="context_sides='target' is unknown"):
        Seq2SeqSystem(marian, tokenizer, past_context=1, context_sides="target")
    with pytest.raises(ValueError, match="context needs a separator"):
        Seq2SeqSystem(marian, tokenizer, past_context=1, separator="")
    with pytest.raises(
        ValueError, match=r"^f\.json, item 7: .* source tokens with their context, but .* positions for 128"
    ):
        long = item(7, context=1, source=(text(1, 200), text(2, 3)), place="f.json, item 7")
        Seq2SeqSystem(marian, tokenizer, past_context=1).token_log_probabilities([long])
    with pytest.raises(ValueError, match="document 1 is str, expected a list of sentences"):
        Seq2SeqSystem(marian, tokenizer).translate([["a"], "b"])
    with pytest.raises(ValueError, match="no items"):
        Seq2SeqSystem(marian, tokenizer).token_log_probabilities([])


@pytest.fixture(scope="module")
def marian_tokenizer(tmp_path_factory):
    """Marian's own, with one sentencepiece model for each side."""
    sentencepiece = pytest.importorskip("sentencepiece")
    folder = tmp_path_factory.mktemp("marian")
    names = ["</s>", "<unk>"]
    for side, words in (("source", WORDS[:10]), ("target", WORDS[10:])):
        text_file = folder / f"{side}.txt"
        text_file.write_text("\n".join([" ".join(words)] * 9), encoding="utf-8")
        prefix = str(folder / side)
        settings = {"vocab_size": 40, "hard_vocab_limit": False, "minloglevel": 2}
        sentencepiece.SentencePieceTrainer.train(input=text_file, model_prefix=prefix, **settings)
        pieces = sentencepiece.SentencePieceProcessor(model_file=f"{prefix}.model")
        names += [pieces.id_to_piece(i) for i in range(3, pieces.get_piece_size())]
    names = [*dict.fromkeys(names), ">>deu<<", "<pad>"]
    (folder / "vocab.json").write_text(json.dumps({name: i for i, name in enumerate(names)}), encoding="utf-8")
    models = {f"{side}_spm": str(folder / f"{side}.model") for side in ("source", "target")}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Recommended: pip install sacremoses")
        return MarianTokenizer(**models, vocab=str(folder / "vocab.json"))


@pytest.mark.filterwarnings("ignore:.*did not end before")
def test_marian_tokenizer(marian_tokenizer):
    """Sources and targets are cut by different models; the language mark stands before the source."""
    tokenizer, size = marian_tokenizer, len(marian_tokenizer)
    ends = {"pad_token_id": size - 1, "eos_token_id": 0, "decoder_start_token_id": size - 1}
    model = randomised(MarianMTModel(MarianConfig(**SIZES, **ends, vocab_size=size, decoder_vocab_size=size)))
    system = Seq2SeqSystem(model, tokenizer, source_prefix=">>deu<<", max_new_tokens=7)
    one = replace(item(1, context=0), source=("der Hund schläft",), candidates=("rot und groß", "nie"))
    expected = []
    for candidate in one.candidates:
        labels = tokenizer(text_target=candidate)["input_ids"]
        source = tokenizer(f">>deu<< {one.source[0]}")["input_ids"]
        expected.append(log_probabilities(model, source, labels, range(len(labels))))
    assert_close(system.token_log_probabilities([one]), [expected])
    assert "".join(system.token_texts([one])[0][0]) == "rot und groß</s>"
    inputs = tokenizer(f">>deu<< {one.source[0]}", return_tensors="pt")
    output = model.generate(**inputs, max_new_tokens=7, num_beams=1)[0]
    assert system.translate([[one.source[0], ""]]) == [[tokenizer.decode(output, skip_special_tokens=True).strip(), ""]]
    with pytest.raises(
        ValueError, match="tokens of target languages, such as '>>deu<<', but source_prefix is not given"
    ):
        Seq2SeqSystem(model, tokenizer)
    assert not Seq2SeqSystem(model, tokenizer, source_prefix="").collate.prefix
    files = {"spm_file": tokenizer.spm_files[0], "vocab_file": Path(tokenizer.spm_files[0]).with_name("vocab.json")}
    with pytest.raises(ValueError, match="M2M100Tokenizer has language codes, but tgt_lang is not given"):
        Seq2SeqSystem(model, M2M100Tokenizer(**files), src_lang="en")
    spans = piece_spans(tokenizer, "rot und groß", is_target=True)  # the word's place for each of its tokens
    assert sorted(set(spans)) == [(0, 3), (4, 7), (8, 12)] and len(spans) == len(expected[0]) - 1


# Causal language models


@pytest.fixture(scope="module")
def llama(tokenizer):
    sizes = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2}
    ends = {"pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3, "max_position_embeddings": 256}
    return randomised(LlamaForCausalLM(LlamaConfig(**sizes, **ends, vocab_size=len(tokenizer))))


def gpt2(tokenizer):
    sizes = {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 256, "bos_token_id": 2, "eos_token_id": 3}
    return randomised(GPT2LMHeadModel(GPT2Config(**sizes, vocab_size=len(tokenizer))))


LANGUAGES = {"source_lang": "English", "target_lang": "German"}


def continuation(model, tokenizer, prompt, answer):
    """Log-probabilities of the tokens that follow the prompt's, one row."""
    start, ids = len(pieces(tokenizer, prompt)), pieces(tokenizer, prompt + answer)
    assert ids[:start] == pieces(tokenizer, prompt)
    with torch.no_grad():
        logits = model(torch.tensor([ids])).logits[0].double()
    return [torch.log_softmax(logits[t - 1], 0)[ids[t]].item() for t in range(start, len(ids))]


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
@pytest.mark.parametrize("past", [0, 2])
def test_causal_equals_one_candidate_at_a_time(llama, tokenizer, kind, past):
    model = llama if kind == "llama" else gpt2(tokenizer)
    expected = []
    for one in ITEMS:
        prompt = "Translate from English to German.\n\n"
        pairs = list(zip(one.source, one.target_context))
        for source, target in pairs[max(0, len(pairs) - past) :]:
            if source or target:
                prompt += f"English: {source}\nGerman: {target}\n"
        prompt += f"English: {one.source[-1]}\nGerman:"
        expected.append([continuation(model, tokenizer, prompt, f" {answer}\n") for answer in one.candidates])
    for budget in (1, 500):
        system = CausalSystem(model, tokenizer, past_context=past, batch_tokens=budget, **LANGUAGES)
        assert_close(system.token_log_probabilities(ITEMS), expected)
    assert_close(system.token_log_probabilities(ITEMS[::-1])[::-1], expected)
    texts = system.token_texts(ITEMS)
    assert [[len(row) for row in rows] for rows in texts] == [[len(row) for row in rows] for rows in expected]
    assert "".join(texts[0][0]).strip() == ITEMS[0].candidates[0]


@pytest.mark.filterwarnings("ignore:.*did not end before")
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("past", [0, 1])
def test_causal_translation(llama, tokenizer, monkeypatch, side, past):
    """N in, N out; equal to greedy decoding of each prompt alone, up to the line break; padding does not matter."""
    monkeypatch.setattr(tokenizer, "padding_side", side)
    found = {}
    for size in (1, 3):
        system = CausalSystem(llama, tokenizer, past_context=past, batch_size=size, max_new_tokens=8, **LANGUAGES)
        found[size] = system.translate(DOCUMENTS)
    assert found[1] == found[3]
    assert [len(document) for document in found[1]] == [4, 0, 1, 2]
    assert found[1][0][1] == "" and found[1][2] == [""]
    source, done = DOCUMENTS[3], []
    for place, sentence in enumerate(source):
        prompt = "Translate from English to German.\n\n"
        if past and place:
            prompt += f"English: {source[place - 1]}\nGerman: {done[place - 1]}\n"
        ids = pieces(tokenizer, prompt + f"English: {sentence}\nGerman:")
        start = len(ids)
        with torch.no_grad():
            while len(ids) < start + 8 and ids[-1] != 3 and "\n" not in tokenizer.decode(ids[start:]):
                ids.append(int(llama(torch.tensor([ids])).logits[0, -1].argmax()))
        answer = tokenizer.decode(ids[start:], skip_special_tokens=True).split("\n")[0]
        done.append(" ".join(answer.splitlines()).strip())
    assert found[1][3] == done


def test_answer_stops_at_a_line_break(llama, tokenizer):
    """A model that writes one word and then line breaks is stopped after the first one."""
    model = LlamaForCausalLM(llama.config).eval()
    (word,), line_break = pieces(tokenizer, "Hund"), pieces(tokenizer, "a\n")[-1]
    steps = []

    def forward(input_ids=None, **kwargs):
        output = type(model).forward(model, input_ids=input_ids, **kwargs)
        steps.append(1)
        output.logits[:, -1] = -100.0
        output.logits[:, -1, word if len(steps) == 1 else line_break] = 0.0
        return output

    model.forward = forward
    system = CausalSystem(model, tokenizer, max_new_tokens=20, **LANGUAGES)
    assert system.translate([["das Haus", ""]]) == [["Hund", ""]]
    assert len(steps) == 2


def test_chat_format(llama, tokenizer, monkeypatch):
    with pytest.raises(ValueError, match="has no chat template; use format='plain'"):
        CausalSystem(llama, tokenizer, format="chat", **LANGUAGES)
    template = "{% for m in messages %}[{{ m['role'] }}] {{ m['content'] }} [/]{% endfor %}"
    monkeypatch.setattr(tokenizer, "chat_template", template + "{% if add_generation_prompt %} [answer]{% endif %}")
    system = CausalSystem(llama, tokenizer, format="chat", past_context=1, **LANGUAGES)
    one = item(2, context=1, candidates=2)
    content = f"Translate from English to German.\n\nEnglish: {one.source[0]}\nGerman: {one.target_context[0]}\n"
    content += f"English: {one.source[1]}\nGerman:"
    prompt = f"[user] {content} [/] [answer]"
    ids, scores = pieces(tokenizer, prompt), []
    for candidate in one.candidates:
        whole = pieces(tokenizer, prompt + candidate) + [tokenizer.eos_token_id]
        assert whole[: len(ids)] == ids
        with torch.no_grad():
            logs = llama(torch.tensor([whole])).logits[0].double().log_softmax(-1)
        scores.append([logs[t - 1, whole[t]].item() for t in range(len(ids), len(whole))])
    assert_close(system.token_log_probabilities([one]), [scores])
    assert system.token_texts([one])[0][0][-1] == "</s>"


def test_prompt_template(llama, tokenizer):
    prompt = Prompt(instruction="{{task}} ", context="<{source}>", current="[{source}]", stop=";")
    assert not prompt.target_context and prompt.languages == set()
    assert CausalSystem(llama, tokenizer, prompt=prompt, past_context=1).target_context == "none"
    assert CausalSystem(llama, tokenizer, past_context=1, **LANGUAGES).target_context == "reference"
    assert prompt.fill(["a\nb", " ", "{c}"], [], None, None) == "{task} <a b>[{c}]"
    both = Prompt(context="<{source}|{target}>")
    assert both.fill(["", "a", "b"], ["", "x"], "E", "G") == "Translate from E to G.\n\n<a|x>E: b\nG:"
    with pytest.raises(ValueError, match="prompt, current: unknown field 'text', expected source, source_lang"):
        Prompt(current="{text}")
    with pytest.raises(ValueError, match="prompt, context: {source} is missing"):
        Prompt(context="{target}")
    with pytest.raises(ValueError, match="prompt, current: .*write {{ and }} for braces"):
        Prompt(current="{source")
    with pytest.raises(ValueError, match="stop is empty"):
        Prompt(stop="")


def test_bad_causal(llama, tokenizer, monkeypatch):
    with pytest.raises(ValueError, match="the prompt names {source_lang}, but it is not given"):
        CausalSystem(llama, tokenizer, target_lang="German")
    with pytest.raises(ValueError, match="format is 'json', expected plain or chat"):
        CausalSystem(llama, tokenizer, format="json", **LANGUAGES)
    with pytest.raises(
        ValueError, match="item suite:5: .* tokens with the prompt, but the model has positions for 256"
    ):
        long = item(5, context=0, source=(text(1, 300),))
        CausalSystem(llama, tokenizer, **LANGUAGES).token_log_probabilities([long])
    with pytest.raises(ValueError, match="document 0, sentence 1: .* positions for 256; give less context"):
        CausalSystem(llama, tokenizer, **LANGUAGES).translate([["", text(1, 300)]])
    monkeypatch.setattr(tokenizer, "chat_template", "{{ messages[0]['content'] }}")
    glued = CausalSystem(llama, tokenizer, format="chat", prompt=Prompt("", "{source}", "{source}"))
    with pytest.raises(ValueError, match="item suite:1: the tokens of the prompt change when 'd' follows"):
        glued.token_log_probabilities([replace(item(1), source=("Hun",), target_context=(), candidates=("d",))])


# Loading


def test_load_system(tmp_path, marian, llama, tokenizer):
    converted, adapted = convert_sentence_model(marian, tokenizer=tokenizer, past_context=1)
    folders = {
        "seq2seq": saved(tmp_path / "marian", marian, tokenizer),
        "causal": saved(tmp_path / "llama", llama, tokenizer),
        "docmt": saved(tmp_path / "ours", converted, adapted),
    }
    classes = {"seq2seq": Seq2SeqSystem, "causal": CausalSystem, "docmt": DocMTSystem}
    for kind, folder in folders.items():
        options = LANGUAGES if kind == "causal" else {}
        system = load_system(folder, attn_implementation="eager", **options)
        assert type(system) is classes[kind] and system.name == str(folder)
        assert system.model.config._attn_implementation == "eager" and not system.model.training
        direct = {"seq2seq": marian, "causal": llama, "docmt": converted}[kind]
        expected = classes[kind](direct, tokenizer, **options).token_log_probabilities(ITEMS[:2])
        assert_close(system.token_log_probabilities(ITEMS[:2]), expected)
        facts = load_system(folder, kind, **options).describe()
        assert facts["name"] == str(folder) and facts["parameters"] == direct.num_parameters()
        wrong = "causal" if kind != "causal" else "seq2seq"
        with pytest.raises(ValueError, match=f"a model of kind {kind}, not {wrong}"):
            load_system(folder, wrong)
    with pytest.raises(
        ValueError, match="unknown option 'past_contxt' of a seq2seq system; did you mean 'past_context'"
    ):
        load_system(folders["seq2seq"], past_contxt=1)


def test_load_system_bad_folders(tmp_path, marian):
    with pytest.raises(ValueError, match="unknown kind of system 'decoder': expected one of auto, causal, docmt"):
        load_system(tmp_path, "decoder")
    with pytest.raises(ValueError, match="unknown dtype 'float8'"):
        load_system(tmp_path, dtype="float8")
    with pytest.raises(ValueError, match="holds no model: config.json is missing"):
        load_system(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "bert", "architectures": ["BertModel"]}')
    with pytest.raises(ValueError, match="a model of type 'bert' with BertModel, expected an encoder-decoder"):
        load_system(tmp_path)
    marian.config.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="cannot load a model from"):
        load_system(tmp_path)


# Tokens and text


def test_pieces(tokenizer):
    sentence = "Der schläft, der Hund!"
    ids = pieces(tokenizer, sentence)
    texts = piece_texts(tokenizer, ids)
    assert len(texts) == len(ids) and "".join(texts).replace("\ufffd", "") == sentence
    spans = piece_spans(tokenizer, sentence, is_target=False)
    assert len(spans) == len(ids) and spans[-1][1] == len(sentence)
    assert all(sentence[start:end].strip() for start, end in spans)
    assert word_spans("l'ami -- là!") == [(0, 1), (1, 2), (2, 5), (6, 8), (9, 11), (11, 12)]
    assert math.isclose(len(word_spans("")), 0)
