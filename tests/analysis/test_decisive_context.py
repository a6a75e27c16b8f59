"""Which context decided: against documents translated without a sentence, probabilities by hand, and the command."""

import json

import pytest
import torch
from support.tiny_models import EOS, SEP, build, random_text, word_tokenizer

from hf_docmt.analysis import decisive_context as module
from hf_docmt.analysis.decisive_context import DecisiveContext, LeftOutSentence, decisive_context

TOKENIZER = word_tokenizer()
SOURCE = random_text([3, 5, 4, 2], seed=1)
CASES = [
    ("concat", {"past_context": 3, "context_sides": "source"}, "sliding"),
    ("concat", {"past_context": 3}, "sequential"),
    ("concat", {"past_context": 3, "use_bod": True}, "sequential"),
    ("lst", {"past_context": 3}, "sequential"),
    ("concat", {"view": "chunk"}, "sequential"),
    ("window", {"view": "chunk"}, "sequential"),
    ("multiencoder", {"past_context": 3}, "sliding"),
    ("caching", {"past_context": 3}, "sliding"),
    ("caching", {"past_context": 3, "shortening": "grouping", "context_sides": "both"}, "sequential"),
    ("doct", {"past_context": 3}, "sliding"),
    ("routing", {"past_context": 3}, "sliding"),
    ("memory", {}, "stream"),
]


def translated(model, source, strategy, **search):
    return model.translate_documents([source], TOKENIZER, strategy, max_new_tokens=12, **search)[0]


def found_in(model, strategy, sentence=4, source=SOURCE, **search):
    made = translated(model, source, strategy, **search)
    found = decisive_context(model, source, made, TOKENIZER, sentence, strategy, max_new_tokens=12, **search)
    return found, made


@pytest.mark.parametrize(
    ("architecture", "fields", "strategy", "search"),
    [(*case, {}) for case in CASES] + [(*case, {"num_beams": 2}) for case in CASES[1::5]],
)
def test_as_the_document_without_the_sentence_before(architecture, fields, strategy, search):
    """What stands before the one that is left out is as it was, so the document without it is translated the same."""
    model = build(architecture, **fields)
    found, made = found_in(model, strategy, **search)
    assert found.translation == made[3] and found.alone_because is None
    assert found.alone == translated(model, SOURCE, "sentence", **search)[3]
    assert [one.number for one in found.left_out] == [1, 2, 3]
    assert found.left_out[-1].source == SOURCE[2]
    assert found.left_out[-1].translation == translated(model, [*SOURCE[:2], "", SOURCE[3]], strategy, **search)[3]


def test_windows_are_translated_again():
    """Strategy sliding of a model that writes windows whole."""
    model = build("concat", past_context=1, seed=4)
    for sentence in range(1, 5):
        found, made = found_in(model, "sliding", sentence)
        assert found.translation == made[sentence - 1]
        assert len(found.left_out) == (sentence > 1 and not found.alone_because)
    short = build("concat", past_context=2)
    for left_out in (1, 2):
        found, _ = found_in(short, "sliding", 3)
        if found.left_out:
            rest = ["" if number == left_out else text for number, text in enumerate(SOURCE[:3], 1)]
            assert found.left_out[left_out - 1].translation == translated(short, rest, "sliding")[2]


@torch.no_grad()
@pytest.mark.parametrize("strategy", ["full", "chunk_sequential"])
def test_chunks(strategy):
    """The rest of the chunk as the source, and as the target the translations that stand before the sentence."""
    model = build("concat", view="chunk")
    found, made = found_in(model, strategy)
    assert [one.number for one in found.left_out] == [1, 2, 3]
    if strategy == "chunk_sequential":
        assert found.translation == made[3]
    rest = [TOKENIZER(SOURCE[number], add_special_tokens=False)["input_ids"] for number in (0, 1, 3)]
    before = [TOKENIZER(made[number], add_special_tokens=False)["input_ids"] for number in (0, 1)]
    source = torch.tensor([[*rest[0], SEP, *rest[1], SEP, *rest[2], EOS]])
    written = [model.config.decoder_start_token_id, *before[0], SEP, *before[1], SEP]
    start = len(written)
    while len(written) < start + 12 and written[-1] != EOS and (len(written) == start or written[-1] != SEP):
        logits = model(input_ids=source, decoder_input_ids=torch.tensor([written])).logits[0, -1]
        written.append(int(logits.argmax()))
    assert found.left_out[-1].translation == TOKENIZER.decode(written[start:], skip_special_tokens=True)


@torch.no_grad()
def test_loss_by_hand():
    """Log-probabilities of the first translation with the source segment, and with a shorter one."""
    model = build("concat", past_context=1, context_sides="source")
    found, made = found_in(model, "sliding", 2)
    target = TOKENIZER(made[1], add_special_tokens=False)["input_ids"]

    def log_probability(source):
        read = torch.tensor([[model.config.decoder_start_token_id, *target[:-1]]])
        scores = model(input_ids=torch.tensor([source]), decoder_input_ids=read).logits[0].log_softmax(-1)
        return float(scores[torch.arange(len(target)), target].sum())

    before, current = (TOKENIZER(text)["input_ids"] for text in SOURCE[:2])
    expected = log_probability([*before[:-1], SEP, *current]) - log_probability(current)
    assert found.left_out[0].loss == pytest.approx(expected, abs=1e-4)


def test_translated_alone():
    """Nothing is left out where nothing was read, and the reason is told."""
    model = build("concat", past_context=1)
    assert "strategy 'sentence'" in found_in(model, "sentence")[0].alone_because
    reason = found_in(model, "sequential", 1)[0].alone_because
    assert "'sequential' reads no other sentence for it, or those around are too long (context: 1 past" in reason
    model = next(model for seed in range(20) if has_repairs(model := build("concat", past_context=1, seed=seed)))
    found, made = found_in(model, "sliding", 2)
    assert "another number of sentences" in found.alone_because and "was read" in found.verdict
    assert (found.left_out, found.translation, found.alone) == ((), made[1], made[1])


def has_repairs(model) -> bool:
    """Whether the window of the second sentence comes out in another number of sentences."""
    settings = {"max_new_tokens": 12, "return_report": True}
    _, (repairs,) = model.translate_documents([SOURCE], TOKENIZER, "sliding", **settings)
    return any((one["sentence"], one["kind"]) == (1, "separators") for one in repairs)


def test_blank_sentences_and_many():
    model = build("memory")
    source = [SOURCE[0], " ", *random_text([2] * 20, seed=3)]
    found, made = found_in(model, "stream", 22, source)
    assert found.translation == made[21] and found.is_cut
    assert [one.number for one in found.left_out] == list(range(22 - module.REACH, 22))
    assert found.left_out[-1].translation == translated(model, [*source[:20], "", source[21]], "stream")[21]
    found, _ = found_in(model, "stream", 5, source)
    assert [one.number for one in found.left_out] == [1, 3, 4] and not found.is_cut


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((SOURCE, SOURCE[:2], TOKENIZER, 1), "4 source sentences but 2 translations"),
        ((SOURCE, SOURCE, TOKENIZER, 5), "sentence 5 of 4: expected a number from 1 to 4"),
        (([" ", *SOURCE], ["", *SOURCE], TOKENIZER, 1), "sentence 1 is blank"),
        ((SOURCE, SOURCE, TOKENIZER, 2, "stream"), "strategy 'stream' carries a state"),
        ((SOURCE, SOURCE, TOKENIZER, 2, "slide"), "strategy must be one of"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        decisive_context(build("concat", past_context=1), *arguments)


LEFT_OUT = (
    LeftOutSentence(1, "A", "Es ist da.", 0.5),
    LeftOutSentence(2, "B", "Er ist da.", 3.0),
    LeftOutSentence(3, "C", "Sie ist da.", 4.0),
    LeftOutSentence(4, "D", "Es ist da.", 9.0, is_usable=False),
)
FOUND = DecisiveContext(5, "It is there.", "Sie ist da.", "Es ist da.", "sliding", LEFT_OUT)


def test_what_decided():
    """The sentence that costs most of those that change the translation, where its window came out whole."""
    assert FOUND.decisive == LEFT_OUT[1] and FOUND.changing == (LEFT_OUT[1], LEFT_OUT[0])
    assert FOUND.strongest == LEFT_OUT[2] and FOUND.verdict == "Sentence 2 decided."
    weak = DecisiveContext(5, "It is there.", "Sie ist da.", "Es ist da.", "sliding", LEFT_OUT[2:3])
    assert "Sentence 3 matters most: without it this translation is 2 % as probable" in weak.verdict
    none = DecisiveContext(5, "It is there.", "Sie ist da.", "Es ist da.", "sliding", ())
    assert "removing any one of them changes nothing" in none.verdict
    same = DecisiveContext(5, "It is there.", "Sie ist da.", "Sie ist da.", "sliding", LEFT_OUT[2:3])
    assert "Context changed nothing" in same.verdict
    chance = DecisiveContext(5, "It is there.", "Sie ist da.", "Sie ist da.", "sliding", LEFT_OUT)
    assert chance.verdict.startswith("Sentence 2 decided. Without any context")


@pytest.fixture
def folder(tmp_path, capsys):
    build("concat", past_context=1, context_sides="source").save_pretrained(tmp_path / "model")
    TOKENIZER.save_pretrained(tmp_path / "model")
    rows = [{"doc_id": name, "translation": [{"en": text} for text in SOURCE]} for name in ("a", "b")]
    (tmp_path / "talks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    capsys.readouterr()
    return tmp_path


def test_command(run, folder):
    arguments = ("analyze", "why", folder / "model", folder / "talks.jsonl", "--sentence", 3)
    code, out, err = run(*arguments, "--json", "--document", "b")
    found = json.loads(out)
    assert (code, err) == (0, "") and (found["document"], found["number"], found["strategy"]) == ("b", 3, "sliding")
    assert [one["number"] for one in found["left_out"]] == [2] and found["left_out"][0]["source"] == SOURCE[1]
    code, out, _ = run(*arguments, "--beams", 2, "--strategy", "sequential")
    lines = out.splitlines()
    assert code == 0 and lines[0] == "a, sentence 3, strategy sequential" and lines[1].split(maxsplit=1)[1] == SOURCE[2]
    assert [line.split("  ")[1] for line in lines[2:5]] == ["translation", "alone", "without 2"]
    for more, message in (
        (("--document", "c"), "has no document 'c'"),
        (("--sentence", 9), "sentence 9 of 4"),
        (("--strategy", "stream"), "carries a state"),
    ):
        code, out, err = run(*arguments, *more)
        assert (code, out) == (1, "") and message in err and err.count("\n") == 1
