"""Document strategies with a scripted model: what is read, what is written, what is repaired."""

import pytest
import torch
from tiny_models import BOD, BOS, EOS, PAD, SEP, SIZES, build, word_tokenizer
from transformers import GenerationConfig
from transformers.modeling_outputs import BaseModelOutput

from hf_docmt.modeling.configuration_concat import ConcatConfig
from hf_docmt.modeling.generation_docmt import DocumentTranslation
from hf_docmt.tokenization import train_tokenizer

DOCUMENT = ["w6 w7", "w8", "", "w9 w10 w11", "  ", "w12"]
TRANSLATION = ["w18 w19", "w20", "", "w21 w22 w23", "", "w24"]  # every word is translated by the one twelve later
WINDOW = {"past_context": 2}
CHUNK = {"view": "chunk", "chunk_tokens": 7}
CASES = {
    "sentence": {},
    "window": WINDOW,
    "future": {"past_context": 1, "future_context": 1},
    "source": WINDOW | {"context_sides": "source"},
    "chunk": CHUNK,
    "bod": WINDOW | {"use_bod": True},
    "source_bod": WINDOW | {"use_bod": True, "context_sides": "source"},
    "chunk_bod": CHUNK | {"use_bod": True},
}


class Scripted(DocumentTranslation):
    """Writes the true translation of every segment, or what `faults` says for a certain source."""

    device = "cpu"

    def __init__(self, faults: dict[tuple, list[int]] | None = None, **fields):
        self.config = ConcatConfig(**SIZES | fields)
        self.generation_config = GenerationConfig(eos_token_id=[EOS, 29], pad_token_id=PAD)
        self.faults, self.calls, self.training = faults or {}, [], True

    def train(self, mode: bool = True):
        self.training = mode

    def eval(self):
        self.train(False)

    def get_encoder(self):
        return lambda input_ids, attention_mask, **_: BaseModelOutput(last_hidden_state=input_ids[..., None].float())

    def new_cache(self):
        return self

    def keep(self, rows, length):
        """As a cache it is asked to keep the first beam of every row."""

    def batch_select_indices(self, rows):
        """As a cache it is asked to keep some rows."""

    def generate(self, attention_mask, eos_token_id, max_new_tokens, input_ids=None, encoder_outputs=None, **options):
        prompts, prompt_mask = (options.pop(f"decoder_{name}", None) for name in ("input_ids", "attention_mask"))
        assert not self.training
        ids = encoder_outputs.last_hidden_state[..., 0].long() if input_ids is None else input_ids
        if prompts is None:
            prompts = torch.full((len(ids), 1), BOS)
            prompt_mask = torch.ones_like(prompts)
        self.calls.append([])
        new = []
        for source, mask, prompt, kept in zip(ids, attention_mask, prompts, prompt_mask):
            source, prompt = source[mask.bool()].tolist(), prompt[kept.bool()].tolist()
            self.calls[-1].append((source, prompt, max_new_tokens, options))
            new.append(self.answer(source, prompt.count(SEP), eos_token_id)[:max_new_tokens])
        width = max(map(len, new))
        new = torch.tensor([row + [PAD] * (width - len(row)) for row in new], dtype=torch.long).view(len(new), width)
        return torch.cat([prompts, new], dim=1)

    def answer(self, source: list[int], written: int, stops: list[int]) -> list[int]:
        """Ids of the translation behind so many sentences, through the first stop token."""
        sentences = split(source) if self.config.context_sides == "both" else [self.current(split(source))]
        target = [id for sentence in sentences for id in [*translated(sentence), SEP]][:-1] + [EOS]
        target = self.faults.get(tuple(source), target)
        for _ in range(written):
            target = target[target.index(SEP) + 1 :]
        end = next((place for place, id in enumerate(target) if id in stops), len(target))
        return target[: end + 1]

    def current(self, sentences: list[list[int]]) -> list[int]:
        return sentences[len(sentences) - 1 - self.config.future_context]

    @property
    def sources(self) -> list[list[int]]:
        return [source for call in self.calls for source, *_ in call]

    @property
    def prompts(self) -> list[list[int]]:
        return [prompt for call in self.calls for _, prompt, *_ in call]


def split(source: list[int]) -> list[list[int]]:
    assert source[-1] == EOS
    sentences = [[]]
    for id in source[:-1]:
        if id == SEP:
            sentences.append([])
        elif id != BOD:
            sentences[-1].append(id)
    return sentences


def translated(sentence: list[int]) -> list[int]:
    return [(id - 6 + 12) % 24 + 6 for id in sentence]


def segment(*sentences: str, start: tuple = (), end: tuple = (EOS,)) -> list[int]:
    """Ids of a segment of written-out sentences."""
    ids = [[int(word[1:]) for word in sentence.split()] for sentence in sentences]
    return [*start, *[id for sentence in ids for id in [*sentence, SEP]][:-1], *end]


def prefix(*sentences: str, bod: bool = False) -> list[int]:
    """Ids of a decoder prompt with earlier translations."""
    return [BOS, *[BOD] * bod, *(segment(*sentences, end=(SEP,)) if sentences else [])]


# Every strategy


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("strategy", [None, "sentence", "sliding", "sequential", "full"])
@pytest.mark.parametrize("batch_size", [1, 2, 16])
def test_as_many_out_as_in(case, strategy, batch_size):
    if strategy == "full" and CASES[case].get("context_sides") == "source":
        return
    model = Scripted(**CASES[case])
    documents = [DOCUMENT, [], ["", ""], DOCUMENT[::-1], ["w13"], DOCUMENT * 3]
    found, reports = model.translate_documents(
        documents, word_tokenizer(), strategy, batch_size=batch_size, return_report=True
    )
    assert found == [TRANSLATION, [], ["", ""], TRANSLATION[::-1], ["w25"], TRANSLATION * 3]
    assert reports == [[] for _ in documents]
    assert max(map(len, model.calls)) <= batch_size
    assert batch_size < 16 or max(map(len, model.calls)) > 1  # documents are translated together
    assert model.training


@pytest.mark.parametrize(
    ("case", "strategy"),
    [("sentence", "sentence"), ("window", "sliding"), ("future", "sliding"), ("source", "sliding"), ("chunk", "full")],
)
def test_default_strategy(case, strategy):
    models = Scripted(**CASES[case]), Scripted(**CASES[case])
    models[0].translate_documents([DOCUMENT], word_tokenizer())
    models[1].translate_documents([DOCUMENT], word_tokenizer(), strategy)
    assert models[0].calls == models[1].calls


def test_sentence_reads_sentences():
    model = Scripted(**WINDOW)
    model.translate_documents([DOCUMENT], word_tokenizer(), "sentence", batch_size=1)
    assert sorted(model.sources) == [segment(sentence) for sentence in ("w6 w7", "w8", "w9 w10 w11", "w12")]
    assert model.prompts == [[BOS]] * 4


def test_sliding_reads_windows():
    """Blank lines are no context, and the first windows are shorter."""
    model = Scripted(**WINDOW)
    model.translate_documents([DOCUMENT], word_tokenizer(), "sliding")
    assert sorted(model.sources, key=len) == [
        segment("w6 w7"),
        segment("w6 w7", "w8"),
        segment("w8", "w9 w10 w11", "w12"),
        segment("w6 w7", "w8", "w9 w10 w11"),
    ]


def test_future_sentences_that_are_missing():
    """Empty, as in training; also where a sentence is translated alone nothing is put in."""
    model = Scripted(**CASES["future"])
    for strategy in ("sliding", "sequential"):
        model.calls.clear()
        model.translate_documents([["w6 w7", "w8"]], word_tokenizer(), strategy, batch_size=1)
        assert sorted(model.sources) == [segment("w6 w7", "w8"), segment("w6 w7", "w8", "")]


def test_sequential_forces_earlier_translations():
    model = Scripted(**WINDOW)
    model.translate_documents([DOCUMENT], word_tokenizer(), "sequential")
    assert model.sources == [
        segment("w6 w7"),
        segment("w6 w7", "w8"),
        segment("w6 w7", "w8", "w9 w10 w11"),
        segment("w8", "w9 w10 w11", "w12"),
    ]
    assert model.prompts == [
        prefix(),
        prefix("w18 w19"),
        prefix("w18 w19", "w20"),
        prefix("w20", "w21 w22 w23"),
    ]


def test_sequential_on_chunks_reads_a_chunk_once():
    """Six tokens with separators and six: the source stays, the prefix grows to the end of the chunk."""
    model = Scripted(**CHUNK)
    model.translate_documents([DOCUMENT], word_tokenizer(), "sequential", batch_size=1)
    first, second = segment("w6 w7", "w8"), segment("w9 w10 w11", "w12")
    assert model.sources == [first, first, second, second]
    assert model.prompts == [prefix(), prefix("w18 w19"), prefix(), prefix("w21 w22 w23")]


def test_full_reads_parts_that_do_not_overlap():
    """Chunks of about equal length; windows side by side."""
    model = Scripted(view="chunk", chunk_tokens=10)
    document = ["w6 w7 w8"] * 6  # 24 tokens with separators: three parts of 8
    model.translate_documents([document], word_tokenizer(), "full")
    assert model.sources == [segment(*["w6 w7 w8"] * 2)] * 3
    model = Scripted(**WINDOW)
    model.translate_documents([document[:4]], word_tokenizer(), "full", batch_size=1)
    assert sorted(model.sources, key=len) == [segment("w6 w7 w8"), segment(*["w6 w7 w8"] * 3)]


def test_parts_of_sentences_longer_than_a_chunk():
    model = Scripted(view="chunk", chunk_tokens=2)
    document = ["w6 w7 w8 w9 w10", "w6", "w7 w8 w9"]
    found = model.translate_documents([document], word_tokenizer(), "full")
    assert found == [["w18 w19 w20 w21 w22", "w18", "w19 w20 w21"]]
    assert sorted(id for source in model.sources for id in source if id > BOD) == [6, 6, 7, 7, 8, 8, 9, 9, 10]


def test_start_of_a_document_is_marked_as_in_training():
    """`<bod>` opens a side that begins with the document's first sentence, source and target each for itself."""
    model = Scripted(**CASES["bod"])
    for strategy in ("sliding", "sequential"):
        model.calls.clear()
        model.translate_documents([["w6", "w7", "w8", "w9"]], word_tokenizer(), strategy, batch_size=1)
        marked = [(source[0] == BOD, prompt[1:2] == [BOD]) for source, prompt in zip(model.sources, model.prompts)]
        assert sorted(marked) == [(False, False), (True, True), (True, True), (True, True)]
    model = Scripted(**CASES["source_bod"])
    for strategy in ("sliding", "sequential"):
        model.calls.clear()
        model.translate_documents([["w6", "w7", "w8", "w9"]], word_tokenizer(), strategy, batch_size=1)
        marked = {tuple(source): prompt for source, prompt in zip(model.sources, model.prompts)}
        assert marked == {
            tuple(segment("w6", start=(BOD,))): [BOS, BOD],
            tuple(segment("w6", "w7", start=(BOD,))): [BOS],
            tuple(segment("w6", "w7", "w8", start=(BOD,))): [BOS],
            tuple(segment("w7", "w8", "w9")): [BOS],
        }


# Repairs


def test_window_with_other_separators_is_translated_alone():
    faults = {tuple(segment("w6 w7", "w8")): segment("w18 w19 w20"), tuple(segment("w6 w7", "w8", "w9 w10 w11")): [EOS]}
    model = Scripted(faults, **WINDOW)
    (found,), (report,) = model.translate_documents([DOCUMENT], word_tokenizer(), return_report=True)
    assert found == TRANSLATION
    assert [(repair["sentence"], repair["kind"]) for repair in report] == [(1, "separators"), (3, "separators")]
    assert report[0]["detail"] == "1 sentences for 2: translated again by strategy sentence"
    assert segment("w8") in model.sources and segment("w12") not in model.sources


def test_too_many_separators_are_repaired():
    faults = {tuple(segment("w6 w7", "w8")): segment("w18", "w19", "w20")}
    model = Scripted(faults, **WINDOW)
    (found,), (report,) = model.translate_documents([["w6 w7", "w8"]], word_tokenizer(), return_report=True)
    assert found == ["w18 w19", "w20"] and [repair["sentence"] for repair in report] == [1]


@pytest.mark.parametrize("fault", [segment("w18 w19"), segment("w18", "w19", "w20"), segment("w18 w19", "w20", end=())])
def test_chunk_with_other_separators_is_translated_in_order(fault):
    """Also one that stops before its end."""
    source = segment("w6 w7", "w8")

    class Faulty(Scripted):
        def answer(self, ids, written, stops):
            whole = SEP not in stops and ids == source
            return fault if whole else super().answer(ids, written, stops)

    model = Faulty(**CHUNK)
    (found,), (report,) = model.translate_documents([DOCUMENT], word_tokenizer(), return_report=True)
    assert found == TRANSLATION
    assert [(repair["sentence"], repair["kind"]) for repair in report] == [(0, "separators"), (1, "separators")]
    assert "translated again by strategy sequential" in report[0]["detail"]
    assert model.sources.count(source) == 3 and model.prompts[-1] == prefix("w18 w19")


@pytest.mark.parametrize("context_sides", ["both", "source"])
def test_separators_in_a_sentence_alone_are_taken_out_and_reported(context_sides):
    fields = {"context_sides": context_sides} | (WINDOW if context_sides == "source" else {})
    model = Scripted({tuple(segment("w6 w7")): segment("w18", "w19")}, **fields)
    (found,), (report,) = model.translate_documents([["w6 w7", "w8"]], word_tokenizer(), return_report=True)
    assert found == ["w18 w19", "w20"]
    assert [(repair["sentence"], repair["kind"]) for repair in report] == [(0, "separators")]


@pytest.mark.parametrize(
    ("strategy", "fields"),
    [
        ("sentence", {}),
        ("sliding", WINDOW),
        ("sequential", WINDOW),
        ("sequential", CHUNK),
        ("full", CHUNK),
    ],
)
def test_translation_without_end_is_reported(strategy, fields):
    model = Scripted(**fields)
    document = ["w6 w7 w8 w9"]
    (found,), (report,) = model.translate_documents(
        [document], word_tokenizer(), strategy, max_new_tokens=3, return_report=True
    )
    assert found == ["w18 w19 w20"]
    assert [(repair["sentence"], repair["kind"]) for repair in report if repair["kind"] == "length"] == [(0, "length")]
    assert "stopped after 3 tokens without an end" in report[-1]["detail"]


def test_end_forced_by_generation_settings_is_no_end():
    """Pretrained models force the end at the last position; what is cut off is reported all the same."""
    model = build()
    model.generation_config.forced_eos_token_id = EOS
    model.final_logits_bias[0, EOS] = -100
    for strategy in ("sentence", "sequential"):
        _, (report,) = model.translate_documents(
            [["w6 w7"]], word_tokenizer(), strategy, max_new_tokens=4, return_report=True
        )
        assert [repair["kind"] for repair in report] == ["length"]


@pytest.mark.parametrize("strategy", ["sentence", "sliding", "sequential", "full"])
def test_long_sentence_is_split_and_joined(strategy):
    long = "w6 w7 w8 w9 w10 w11 w12"
    model = Scripted(**WINDOW)
    (found,), (report,) = model.translate_documents(
        [["w13", long, "w14"]], word_tokenizer(), strategy, max_sentence_tokens=3, return_report=True
    )
    assert found == ["w25", "w18 w19 w20 w21 w22 w23 w24", "w26"]
    assert report == [{"sentence": 1, "kind": "split", "detail": "7 tokens, limit 3: translated in 3 parts"}]
    assert all(len(sentence) <= 3 for source in model.sources for sentence in split(source))


@pytest.mark.parametrize(("text", "limit", "parts"), [("a" * 40, 16, 4), ("𝒳" * 8, 3, 8)])
def test_word_that_is_too_long(text, limit, parts):
    """Without a blank it is cut in the middle, and a single character of more tokens is left as it is."""
    tokenizer = train_tokenizer(["b c"] * 3, vocab_size=300)  # every byte is a token
    model = Scripted()
    _, (report,) = model.translate_documents([[text]], tokenizer, max_sentence_tokens=limit, return_report=True)
    read = [tokenizer.decode(source[:-1]) for source in model.sources]
    assert len(read) == parts and "".join(read) == text
    assert [repair["kind"] for repair in report] == ["split"]


def test_names_of_special_tokens_in_the_text():
    tokenizer = train_tokenizer(["a b c <sep> </s>"] * 3, vocab_size=300)
    model = build(vocab_size=len(tokenizer), past_context=1, segment_encoding="learned")
    documents = [["a <sep> b <sep>", "</s> c", "<pad>", "<bod> a"]]
    for strategy in ("sentence", "sliding", "sequential", "full"):
        found = model.translate_documents(documents, tokenizer, strategy, max_new_tokens=4)
        assert len(found[0]) == 4


def test_room_for_the_translation():
    """Twice the longest source and 32 tokens, unless asked for otherwise; other arguments go to generate."""
    model = Scripted(**WINDOW)
    model.translate_documents([["w6 w7", "w8"]], word_tokenizer(), num_beams=5)
    (((_, _, length, options), _),) = model.calls
    assert length == 2 * 5 + 32 and options["num_beams"] == 5
    model.calls.clear()
    model.translate_documents([["w6 w7"]], word_tokenizer(), max_new_tokens=9)
    assert model.calls[0][0][2] == 9


# Bad arguments


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"strategy": "beam"}, "strategy must be one of sentence, sliding, sequential, full, got 'beam'"),
        ({"documents": "w6 w7"}, "got a plain string"),
        ({"documents": ["w6", "w7"]}, "documents must be a list of documents, each a list of sentences"),
        ({"documents": [["w6"], ["w6", None]]}, "sentence 1 of document 1 must be a string, got NoneType"),
        ({"batch_size": 0}, "batch_size and max_sentence_tokens must be at least 1, got 0 and 256"),
        ({"max_sentence_tokens": 0}, "must be at least 1, got 16 and 0"),
        ({"num_return_sequences": 2}, "leave num_return_sequences at 1"),
    ],
)
def test_bad_arguments(arguments, message):
    model = Scripted(**WINDOW)
    with pytest.raises(ValueError, match=message):
        model.translate_documents(**{"documents": [DOCUMENT], "tokenizer": word_tokenizer()} | arguments)
    assert not model.calls and model.training


def test_full_needs_a_target_with_all_sentences():
    with pytest.raises(ValueError, match="context_sides='source': use 'sliding' or 'sentence'"):
        Scripted(**CASES["source"]).translate_documents([DOCUMENT], word_tokenizer(), "full")


def test_training_mode_is_restored_after_an_error():
    model = Scripted(**WINDOW)
    with pytest.raises(KeyError):
        model.translate_documents([DOCUMENT], lambda *_, **__: {}["input_ids"])
    assert model.training
