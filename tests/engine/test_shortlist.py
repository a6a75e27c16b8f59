"""Lexical shortlists: all words as without, a list as a mask on the scores, files of Marian, lists from alignments."""

import random
import struct

import pytest
import torch
from support.battery import KeptScores
from support.errors import refused
from support.fuzzed_files import damaged
from support.tiny_models import BOD, EOS, PAD, SEP, UNK, build, random_text, word_tokenizer
from transformers import LogitsProcessor

from hf_docmt.engine import cpu_kernels, int8_linear
from hf_docmt.engine.decoding_step import DecodingStep
from hf_docmt.engine.shortlist import LexicalShortlist

V = 30
SOURCES = torch.tensor([[7, 9, 8, EOS], [6, 11, EOS, PAD], [12, EOS, PAD, PAD]])
INPUTS = {"input_ids": SOURCES, "attention_mask": (SOURCES != PAD).long(), "max_new_tokens": 9}
SIZES = {"d_model": 32, "decoder_ffn_dim": 64, "encoder_ffn_dim": 64, "vocab_size": 2000, "normalize_before": True}
LISTS = {7: [20, 21], 9: [22], 8: [], 6: [23, 24, 25], 11: [26], 12: [27, 13, 14]}


def shortlist(lists=LISTS, first=0):
    words = [sorted(lists.get(word, [])) for word in range(V)]
    offsets = torch.tensor([0, *map(len, words)]).cumsum(0)
    return LexicalShortlist(offsets, torch.tensor([word for row in words for word in row]), first)


class OnlyWords(LogitsProcessor):
    """Scores of other words than a source's own and those of its list are -inf."""

    def __call__(self, input_ids, scores):
        for row, source in zip(scores, SOURCES):
            allowed = {EOS, UNK, SEP, BOD, *source.tolist()} - {PAD}
            for word in source.tolist():
                allowed |= set(LISTS.get(word, []))
            row[[word for word in range(V) if word not in allowed]] = float("-inf")
        return scores


@pytest.mark.parametrize("beams", [1, 3])
@pytest.mark.parametrize("fields", [{}, {"decoder_autoregression": "ssru"}], ids=["attention", "ssru"])
def test_all_words(beams, fields):
    model = build(**fields)
    expected = model.generate(**INPUTS, num_beams=beams)
    assert torch.equal(model.generate(**INPUTS, num_beams=beams, shortlist=shortlist(first=V)), expected)


def test_words_of_the_list():
    """Greedy search is that with a mask on the scores, in every row, alone and in the batch."""
    model = build()
    found = model.generate(**INPUTS, shortlist=shortlist())
    assert torch.equal(found, model.generate(**INPUTS, logits_processor=[OnlyWords()]))
    assert not torch.equal(found, model.generate(**INPUTS))
    for row in range(3):
        alone = {name: value[row : row + 1] if torch.is_tensor(value) else value for name, value in INPUTS.items()}
        generated = model.generate(**alone, shortlist=shortlist())[0]
        assert found[row, : len(generated)].tolist() == generated.tolist()


def test_list_with_the_best_words():
    """Of what the model writes; the translations are those of the whole vocabulary."""
    model, tokenizer = build(past_context=1), word_tokenizer()
    documents = [random_text([3, 2, 4], seed=1), random_text([2, 5], seed=2)]
    for strategy in ("sentence", "sliding", "sequential"):
        expected = model.translate_documents(documents, tokenizer, strategy, max_new_tokens=6, num_beams=1)
        written = {tokenizer.convert_tokens_to_ids(word) for text in expected for line in text for word in line.split()}
        written |= set(range(6, V)) if strategy == "sliding" else set()
        made = shortlist(dict.fromkeys(range(V), written))
        found = model.translate_documents(documents, tokenizer, strategy, max_new_tokens=6, shortlist=made)
        if strategy != "sequential":  # whose forced prefixes are other words
            assert found == expected


@pytest.mark.skipif(cpu_kernels.kernels() is None, reason="the kernels were not built, or need AVX2")
@pytest.mark.parametrize("beams", [1, 3])
@pytest.mark.parametrize("fields", [{}, {"decoder_autoregression": "ssru"}], ids=["attention", "ssru"])
@pytest.mark.parametrize("prompt", [None, torch.tensor([[2, 9, 11], [2, 8, 7], [2, 12, 13]])], ids=["", "prompt"])
def test_steps_of_the_kernels(monkeypatch, fields, beams, prompt):
    """Several at once write what those of torch write, with and without a processor, which sees all words."""
    monkeypatch.setattr(int8_linear, "FBGEMM", False)  # plain operations, with 8 bits of the input
    model, draw, found, alone, steps = build(**SIZES, **fields), random.Random(1), {}, {}, []
    for parameter in model.parameters():
        parameter.data.mul_(3)  # so that translations differ from each other
    model = model.quantize("int8")
    lists = {word: draw.sample(range(V, 2000), 40) for word in LISTS}
    search = DecodingStep.search
    monkeypatch.setattr(DecodingStep, "search", lambda step, *rest: steps.append(step.words) or search(step, *rest))
    for kernels in "10":
        monkeypatch.setenv("DOCMT_KERNELS", kernels)
        settings = INPUTS | {"num_beams": beams, "shortlist": shortlist(lists), "decoder_input_ids": prompt}
        found[kernels] = model.generate(**settings)
        assert torch.equal(model.generate(**settings, logits_processor=[KeptScores()]), found[kernels])
        first = {name: value[:1] if torch.is_tensor(value) else value for name, value in settings.items()}
        alone[kernels] = model.generate(**first)  # whose words are all of its list
    assert torch.equal(alone["1"], alone["0"])
    assert torch.equal(found["1"], found["0"]) and len(found["1"].unique()) > 6
    assert steps and all(len(words) < 300 for words in steps)
    for source, written in zip(SOURCES, found["1"][:, 1 if prompt is None else 3 :]):
        allowed = {PAD, EOS, UNK, SEP, BOD, *source.tolist()}
        assert set(written.tolist()) <= allowed.union(*(lists.get(word, []) for word in source.tolist()))


@pytest.mark.skipif(cpu_kernels.kernels() is None, reason="the kernels were not built, or need AVX2")
def test_sources_that_wait_keep_their_words(monkeypatch):
    """Each is translated as alone, though others take the place of those that end."""
    model, sizes, search = build(**SIZES | {"vocab_size": V}), [], DecodingStep.search
    for parameter in model.parameters():
        parameter.data.mul_(3)
    monkeypatch.setattr(
        DecodingStep, "search", lambda step, ids, *rest: sizes.append(len(ids)) or search(step, ids, *rest)
    )
    settings = {"max_new_tokens": 6, "shortlist": shortlist({word: [word * 7 % 23 + 6] for word in range(6, V)})}
    sentences = random_text([3, 2, 4, 5, 1])
    found = model.translate_documents([sentences], word_tokenizer(), "sentence", batch_size=2, **settings)
    alone = [model.translate_documents([[one]], word_tokenizer(), "sentence", **settings)[0] for one in sentences]
    assert [[line] for line in found[0]] == alone and sizes == [5, 1, 1, 1, 1, 1]


def test_fewer_words_than_candidates():
    """Beams over three words, two of which end a translation besides the third."""
    found = build().generate(
        torch.tensor([[3]]), num_beams=2, max_new_tokens=4, eos_token_id=[3, 5, 4], shortlist=shortlist({7: [20]})
    )
    assert found.shape[0] == 1


def test_file_of_marian(tmp_path):
    """The header, offsets of 8 bytes and words of 4 that Marian's `shortlist.cpp` reads; written and read again."""
    words = [[4, 9], [], [7]]
    content = struct.pack("<6Q", 0xF11A48D5013417F5, 1, 5, 2, 4, 3) + struct.pack("<4Q3I", 0, 2, 2, 3, 4, 9, 7)
    (tmp_path / "lex.bin").write_bytes(content)
    read = LexicalShortlist.read(tmp_path / "lex.bin")
    assert read.first == 5 and [read.words[a:b].tolist() for a, b in zip(read.offsets, read.offsets[1:])] == words
    read.write(tmp_path / "again.bin")
    again = LexicalShortlist.read(tmp_path / "again.bin")
    assert torch.equal(again.words, read.words) and torch.equal(again.offsets, read.offsets) and again.first == 5
    draw = random.Random(0)
    for _ in range(300):
        (tmp_path / "lex.bin").write_bytes(damaged(content, draw))
        try:
            LexicalShortlist.read(tmp_path / "lex.bin")
        except ValueError as error:
            assert "lex.bin: " in str(error)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not a binary shortlist of Marian"),
        (struct.pack("<6Q", 0xF11A48D5013417F5, 1, 5, 2, 2**60, 2**60), "or a damaged one; copy it again"),
        (struct.pack("<6Q2Q1I", 0xF11A48D5013417F5, 1, 5, 2, 2, 1, 1, 0, 9), "are not consecutive"),
        (struct.pack("<6Q2Q1I", 0xF11A48D5013417F5, 1, 5, 2, 2, 1, 0, 1, 2**31), "are not consecutive"),
    ],
)
def test_bad_files(tmp_path, content, message):
    (tmp_path / "lex.bin").write_bytes(content)
    refused(message, LexicalShortlist.read, tmp_path / "lex.bin")


def test_refusals(tmp_path):
    model = build()
    refused("missing.bin: cannot be read", LexicalShortlist.read, tmp_path / "missing.bin")
    with pytest.raises(
        ValueError, match="has words up to id 99, the model 30 tokens; give the shortlist of this model's"
    ):
        model.generate(**INPUTS, shortlist=shortlist({7: [99]}))
    with pytest.raises(ValueError, match="shortlist is for greedy and beam search"):
        model.generate(**INPUTS, shortlist=shortlist(), do_sample=True)
    outputs = model.get_encoder()(SOURCES, attention_mask=INPUTS["attention_mask"])
    with pytest.raises(ValueError, match="a shortlist is made from input_ids, got encoder_outputs alone: give both"):
        model.generate(encoder_outputs=outputs, attention_mask=INPUTS["attention_mask"], shortlist=shortlist())
    model.lm_head.register_forward_hook(lambda *_: None)
    with pytest.raises(ValueError, match="rows of a plain output projection: merge the adapter"):
        model.generate(**INPUTS, shortlist=shortlist())
