"""SCAT: tags that can be read and those that cannot; attention against marked words, by hand and by a slow loop."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from support.errors import refused
from support.pretrained_models import sentence_model
from support.tiny_models import build

from hf_docmt.analysis.rationales import (
    Word,
    attention_on_marked_words,
    parse_marked_text,
    rationale_agreement,
    read_scat,
)
from hf_docmt.data.tokenizers import train_tokenizer
from hf_docmt.files import DataError
from hf_docmt.systems import DocMTSystem, Seq2SeqSystem

SCAT = Path(__file__).resolve().parents[3] / "shared" / "data" / "scat"


def marked(text, spans):
    return [text[start:end] for start, end in spans]


@pytest.mark.parametrize(
    ("line", "text", "rationale", "pronouns"),
    [
        ("Plain text.", "Plain text.", [], []),
        ("That's why <p>they</p>'d go.", "That's why they'd go.", [], ["they"]),
        ("mes  <hon>hommes<hoff>  m'aimaient.", "mes hommes m'aimaient.", ["hommes"], []),
        (
            "<hon>Elles<hoff>  n'ont plus qu'<p>elles</p>-mêmes.",
            "Elles n'ont plus qu'elles-mêmes.",
            ["Elles"],
            ["elles"],
        ),
        ("ma  <hon>décision<hoff> , <p>elle</p>", "ma décision, elle", ["décision"], ["elle"]),
        ("L' <hon>idée<hoff>  du", "L'idée du", ["idée"], []),
        ("ces  <hon>Japonais<hoff>  !", "ces Japonais !", ["Japonais"], []),
        ("cette  <hon>vie<hoff> -là", "cette vie-là", ["vie"], []),
        ("le  <hon>vieux loup<hoff>   <hon>gris<hoff> ...", "le vieux loup gris...", ["vieux loup", "gris"], []),
        ("w<p>it</p>h <p>it</p>, f<p>il</p>le", "with it, fille", [], ["it"]),
        ("All  <hon><p>they</p><hoff>  want", "All they want", ["they"], ["they"]),
        ("think  <hon><p>they</p>'ve</hoff>  won", "think they've won", ["they've"], ["they"]),
        ("you  <hon>might <hoff>  now", "you might  now", ["might"], []),
        ("- <hon>Ils<hoff>  ne", "- Ils ne", ["Ils"], []),
        ("  <hon>Ils<hoff>", "Ils", ["Ils"], []),
        ("", "", [], []),
    ],
)
def test_tagged_words(line, text, rationale, pronouns):
    found = parse_marked_text(line)
    assert found.text == text
    assert marked(text, found.rationale) == rationale and marked(text, found.pronouns) == pronouns


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("rebels.  <ho<hoff>ff>  Deserters", "tag cut in two"),
        ("a < b", "tag cut in two"),
        ("Your  <hon>hor <hon>ses<hoff><hoff>  and", "nested tags"),
        ("<p>it <p>is</p></p>", "nested tags"),
        ("men<hoff>  are", "tag not opened"),
        ("men</p> are", "tag not opened"),
        ("the  <hon>men are", "tag not closed"),
        ("<p>it is", "tag not closed"),
        ("the  <hon> - <hoff>  men", "mark without a word"),
        ("the  <hon>robb<hoff>ers", "mark that cuts a word"),
        ("cons<hon>ultant<hoff> .", "mark that cuts a word"),
        ("t <hon>he men<hoff>  are", "unclear word border"),
        ("la  <hon>mienn<hoff> e", "unclear word border"),
        ("whe <hon><p>they</p><hoff>  are", "unclear word border"),
    ],
)
def test_tags_that_cannot_be_read(line, reason):
    refused(f"^{reason}$", parse_marked_text, line)


def write(folder, **texts):
    for part, lines in texts.items():
        name = part.replace("context_", "context.")
        (folder / f"highlighted.train.{name}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return folder


FILES = {
    "context_en": ["The dogs.", "The cats.", ""],
    "en": ["<p>They</p> sleep.", "<p>They</p> sleep.", "<p>It</p> is."],
    "context_fr": ["Les  <hon>chiens<hoff> .", "L <hon>es chats<hoff> .", ""],
    "fr": ["<p>Ils</p> dorment.", "<p>Ils</p> dorment.", "<hon>C<hoff><hoff>"],
}


def test_files(tmp_path):
    scat = read_scat(write(tmp_path, **FILES))
    assert [example.example_id for example in scat.examples] == ["scat-train:1"]
    assert scat.examples[0].target_context.text == "Les chiens." and scat.examples[0].source.text == "They sleep."
    assert scat.lines == 3 and scat.reasons == {"unclear word border": 1, "tag not opened": 1}


def test_bad_files(tmp_path):
    write(tmp_path, **FILES | {"fr": FILES["fr"][:2]})
    with pytest.raises(DataError, match="highlighted.train.fr ends after line 2, but .* goes on; the files"):
        read_scat(tmp_path)
    with pytest.raises(DataError, match="highlighted.valid.context.en: the file does not exist"):
        read_scat(tmp_path, split="valid")


@pytest.mark.skipif(not SCAT.is_dir(), reason="shared/data/scat is not there")
def test_published_files():
    """Every line is read or reported; texts without tags are the sentences of the set that SCAT marks."""
    scat = read_scat(SCAT)
    assert scat.lines == 6509 and len(scat.examples) + sum(scat.reasons.values()) == 6509
    assert len(scat.examples) == 4987
    lopes = SCAT.parent / "lopes2020_enfr"
    for side, suffix in (("source", "src"), ("target", "trg")):
        known = set((lopes / f"OpenSubs.current.{suffix}").read_text(encoding="utf-8").splitlines())
        other = [getattr(example, side).text for example in scat.examples]
        assert sum(text not in known for text in other) < 25


def test_attention_on_marked_words_by_hand():
    weights = np.array([[0.1, 0.2, 0.0, 0.3, 0.4], [0.5, 0.1, 0.1, 0.1, 0.2]])
    words = [Word((0,), False, False), Word((1, 2), True, False), Word((3,), True, False)]
    found = attention_on_marked_words(weights, words, 5, (1, 2, 9))
    expected = [[0.5, 1.0, 1.0, 2 / 3], [0.3, 0.0, 0.5, 2 / 3], [3 / 5, 2 / 3, 2 / 3, 2 / 3]]
    np.testing.assert_allclose(found, expected)
    assert attention_on_marked_words(weights, [Word((0,), False, True)], 5, (1,)) is None
    np.testing.assert_allclose(
        attention_on_marked_words(weights[:, :4], words, 4, ())[:, 0], [0.5 / 0.6, 0.3 / 0.8, 3 / 4]
    )


EN = ["They sleep here", "The dogs and the cats", "It is red", "the house is there"]
FR = ["Ils dorment ici", "Les chiens et les chats", "Elle est rouge", "la maison est là"]


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer(EN * 3 + FR * 3, vocab_size=320)


@pytest.fixture(scope="module")
def scat(tmp_path_factory):
    texts = {
        "context_en": [
            "The  <hon>dogs<hoff>  and the  <hon>cats<hoff> .",
            "The house is there.",
            "",
            "the house is red",
        ],
        "en": ["<p>They</p> sleep here.", "<p>It</p> is red, <p>it</p> is.", "<p>It</p> is red.", "the dogs sleep"],
        "context_fr": ["Les  <hon>chiens<hoff>  et les chats.", "La  <hon>maison<hoff>  est là.", "", "la maison"],
        "fr": ["<p>Ils</p> dorment ici.", "<p>Elle</p> est rouge, <p>elle</p> est.", "<p>Elle</p> est.", "ils dorment"],
    }
    return read_scat(write(tmp_path_factory.mktemp("scat"), **texts))


def concat(tokenizer, **changes):
    model = build("concat", **{"vocab_size": len(tokenizer), "decoder_attention_heads": 2, "past_context": 1} | changes)
    model.set_attn_implementation("eager")
    return model


def marian(tokenizer):
    special = {"pad_token_id": 0, "eos_token_id": 3, "decoder_start_token_id": 0, "vocab_size": len(tokenizer)}
    sizes = {"decoder_layers": 2, "decoder_attention_heads": 2, "max_position_embeddings": 128}
    model = sentence_model("marian", **special, **sizes)
    model.set_attn_implementation("eager")
    return model


def tokens_of(tokenizer, text, spans, start):
    """Positions of the tokens that begin in one of the spans, counted from `start`."""
    found = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
    firsts = [begin + len(text[begin:end]) - len(text[begin:end].lstrip()) for begin, end in found["offset_mapping"]]
    return [start + n for n, first in enumerate(firsts) if any(a <= first < b for a, b in spans)], len(firsts)


def slow_share(model, tokenizer, example, attention, step, layer=None, head=None):
    """The definition of the share, one example, one pronoun at a time, with the segment built by hand."""
    sep, eos = tokenizer.sep_token_id, tokenizer.eos_token_id
    rows, positions, pronouns = {}, {}, {}
    for side in ("source", "target"):
        before, current = getattr(example, f"{side}_context"), getattr(example, side)
        ids = [tokenizer(text.text, add_special_tokens=False)["input_ids"] for text in (before, current)]
        rows[side] = [*ids[0], sep, *ids[1], eos]
        marked, length = tokens_of(tokenizer, before.text, before.rationale, 0)
        more, _ = tokens_of(tokenizer, current.text, current.rationale, length + 1)
        positions[side] = marked + more
        pronouns[side] = [tokens_of(tokenizer, current.text, [span], length + 1)[0] for span in current.pronouns]
    decoder = torch.tensor([[model.config.decoder_start_token_id, *rows["target"][:-1]]])
    with torch.no_grad():
        source = torch.tensor([rows["source"]])
        output = model(input_ids=source, decoder_input_ids=decoder, output_attentions=True)
    weights = torch.stack(output[f"{attention}_attentions"])[:, 0]  # (layers, heads, queries, keys)
    weights = weights.mean((0, 1)) if layer is None else weights[layer, head]
    side = "source" if attention == "encoder" else "target"
    shares = []
    for pronoun in pronouns[side]:
        later = 1 if step == "reads" and attention != "encoder" else 0
        marked = [position + 1 for position in positions["target"]] if attention == "decoder" else positions["source"]
        shares.append(sum(weights[q + later, k].item() for q in pronoun for k in marked) / len(pronoun))
    return sum(shares) / len(shares)


def ids_of(result):
    return result.details["statistics"]["ids"]


@pytest.mark.parametrize("attention", ["encoder", "cross", "decoder"])
@pytest.mark.parametrize("kind", ["concat", "marian"])
def test_share_equals_a_slow_loop(tokenizer, scat, attention, kind):
    model = concat(tokenizer) if kind == "concat" else marian(tokenizer)
    windows = {"past_context": 1, "context_sides": "both"}
    system = DocMTSystem(model, tokenizer) if kind == "concat" else Seq2SeqSystem(model, tokenizer, **windows)
    used = [scat.examples[0]] if attention != "decoder" else list(scat.examples[:2])
    for step in ("writes", "reads"):
        share, *_ = rationale_agreement(system, scat.examples, attention=attention, step=step, batch_size=3)
        assert ids_of(share) == [example.example_id for example in used]
        assert list(share.breakdown) == ["layer=1 head=1", "layer=1 head=2", "layer=2 head=1", "layer=2 head=2"]
        reason = {"no marked pronoun": 1, "no marked word in reach": 3 - len(used)}
        assert share.details["unused"] == reason
        expected = [slow_share(model, tokenizer, example, attention, step) for example in used]
        assert [value for value, _ in share.statistics.rows] == pytest.approx(expected, abs=1e-6)
        expected = [slow_share(model, tokenizer, example, attention, step, 1, 0) for example in used]
        assert share.breakdown["layer=2 head=1"].value == pytest.approx(100 * np.mean(expected), abs=1e-4)
    alone, *_ = rationale_agreement(system, scat.examples, attention=attention, step="reads", batch_size=1)
    np.testing.assert_allclose(alone.statistics.rows, share.statistics.rows, atol=1e-6)


def test_chance(tokenizer, scat):
    """Encoder, first example: the marked words among the others, and their tokens among all."""
    found = rationale_agreement(DocMTSystem(concat(tokenizer), tokenizer), scat.examples, attention="encoder", at=(2,))
    before, current = scat.examples[0].source_context, scat.examples[0].source
    marked, length = tokens_of(tokenizer, before.text, before.rationale, 0)
    total = length + len(tokenizer(current.text, add_special_tokens=False)["input_ids"]) + 2
    words = 6 + 4  # The dogs and the cats . | They sleep here .
    chance = [result.details["chance"] for result in found]
    np.testing.assert_allclose(chance, [100 * len(marked) / total, 200 / (words - 1)])


def test_own_word_and_later_words_do_not_count(tokenizer, tmp_path):
    """A pronoun marked as its own support has no value; in the decoder words behind the pronoun are out of reach."""
    texts = {
        "context_en": ["the house"] * 2,
        "en": ["<hon><p>It</p><hoff>  is red", "<p>It</p> is red"],
        "context_fr": ["la maison"] * 2,
        "fr": ["<p>Elle</p> est", "<p>Elle</p> est  <hon>rouge<hoff> ."],
    }
    system = DocMTSystem(concat(tokenizer), tokenizer)
    examples = read_scat(write(tmp_path, **texts)).examples
    for attention in ("encoder", "decoder"):
        message = "no example .*'no marked word in reach': 2"
        refused(message, rationale_agreement, system, examples, attention=attention)
    assert ids_of(rationale_agreement(system, examples, attention="cross")[0]) == ["scat-train:1"]


def test_models_without_context_on_a_side(tokenizer, scat):
    """Target context is in reach only where the model writes or is given it; without context none is."""
    source_only = DocMTSystem(concat(tokenizer, context_sides="source", segment_encoding="learned"), tokenizer)
    assert ids_of(rationale_agreement(source_only, scat.examples, attention="cross")[0]) == ["scat-train:1"]
    refused("no marked word in reach", rationale_agreement, source_only, scat.examples, attention="decoder")
    alone = Seq2SeqSystem(marian(tokenizer), tokenizer)
    refused("no marked word in reach", rationale_agreement, alone, scat.examples, attention="cross")
    future = DocMTSystem(concat(tokenizer, future_context=1, segment_encoding="learned"), tokenizer)
    assert rationale_agreement(future, scat.examples)[0].n == 2


def test_results(tokenizer, scat):
    results = rationale_agreement(DocMTSystem(concat(tokenizer), tokenizer), scat.examples, at=(1, 3))
    assert [result.metric for result in results] == ["attention on marked words", "precision@1", "precision@3"]
    share = results[0]
    assert share.task == "context use" and share.n == 2
    rows = np.array(share.details["statistics"]["rows"])
    assert share.value == pytest.approx(100 * rows[:, 0].sum() / rows[:, 1].sum())
    low, high = share.details["interval"]
    assert low <= share.value <= high
    assert share.details["unused"] == {"no marked pronoun": 1, "no marked word in reach": 1}
    assert str(share.signature).startswith("attention:decoder|step:writes|words:letters|context:one sentence|version:")


def test_examples_longer_than_learned_positions_are_named(tokenizer, scat):
    system = DocMTSystem(concat(tokenizer, position_type="learned", max_position_embeddings=8), tokenizer)
    with pytest.raises(ValueError, match="^scat-train:1: .* source tokens .* has learned positions for 8; give less"):
        rationale_agreement(system, scat.examples)


def test_bad_arguments(tokenizer, scat):
    def bad(message, system, **options):
        refused(message, rationale_agreement, system, scat.examples, **options)

    model = concat(tokenizer)
    system = DocMTSystem(model, tokenizer)
    bad("unknown attention 'self': expected one of encoder, cross, decoder", system, attention="self")
    model.set_attn_implementation("sdpa")
    bad("attn_implementation is 'sdpa', which gives no weights; load .*'eager'", system)
    recurrent = DocMTSystem(concat(tokenizer, decoder_autoregression="ssru"), tokenizer)
    bad(r"a recurrent decoder \(ssru\) has no self-attention; choose attention cross", recurrent)
    assert rationale_agreement(recurrent, scat.examples, attention="encoder")[0].n
    bad("encoder-decoder systems only", SimpleNamespace(name="a language model"))
    caching = DocMTSystem(build("caching", vocab_size=len(tokenizer)), tokenizer)
    bad("caching reads other sentences apart from the source", caching)
