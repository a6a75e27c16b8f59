"""Tokenizers: lossless, deterministic, loadable without the package, taken over from pretrained models, separators."""

import hashlib
import json
import subprocess
import sys
import unicodedata

import pytest
import torch
from support.errors import refused
from support.language_models import FAMILIES, TEXT, TOKENIZERS, sentence_model, sentencepiece_model
from support.tiny_models import build
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import AutoTokenizer, BartphoTokenizer, BartTokenizer, BertTokenizer, PreTrainedTokenizerFast

from hf_docmt.data.special_tokens import sequence_format_fields
from hf_docmt.data.tokenizers import SPECIAL_TOKENS, adapt_tokenizer, tokenize_sentences, train_tokenizer
from hf_docmt.modeling.configuration_docmt import DocMTConfig
from hf_docmt.modeling.translation_jobs import token_ids

CORPUS = [
    "The dog sees the cat. It sleeps under the old table.",
    "Der Hund sieht die Katze. Sie schläft unter dem alten Tisch.",
    "Where are you going today? We are going home.",
    "Wohin gehst du heute? Wir gehen nach Hause.",
] * 5

UNSEEN = [
    "Größe, Straße, Übermut: „ja“ – 3,50 €",
    "L’élève où ça naïf œuvre",
    "Он сказал: «Ещё бы!»",
    "他说：“你好，世界！”　全角",
    "これは日本語です。ｶﾀｶﾅ",
    "👩‍👩‍👧 🇩🇪 😀!",
    "  two  spaces\tand a tab  ",
    " ",
    "",
    "e\u0301 is composed",
    "names <sep> of </s> tokens <pad>, ##and ▁ Ġ",
    "x\nline",
]

KINDS = pytest.mark.parametrize("kind", ["bpe", "unigram"])


@pytest.fixture(scope="module", params=["bpe", "unigram"])
def tokenizer(request):
    return train_tokenizer(CORPUS, model=request.param, vocab_size=320)


def digest(tokenizer):
    return hashlib.sha256(tokenizer.backend_tokenizer.to_str().encode()).hexdigest()


def test_special_tokens_have_their_ids(tokenizer):
    assert tokenizer.convert_tokens_to_ids(list(SPECIAL_TOKENS)) == [0, 1, 2, 3, 4, 5]
    assert (tokenizer.pad_token_id, tokenizer.unk_token_id, tokenizer.bos_token_id) == (0, 1, 2)
    assert (tokenizer.eos_token_id, tokenizer.sep_token_id) == (3, 4)
    assert set(SPECIAL_TOKENS) == set(tokenizer.all_special_tokens)
    assert 262 < len(tokenizer) <= 320


@pytest.mark.parametrize("text", UNSEEN)
def test_decoding_gives_the_text_back(tokenizer, text):
    ids = tokenizer(text, add_special_tokens=False, split_special_tokens=True)["input_ids"]
    assert tokenizer.unk_token_id not in ids
    assert not set(ids) & set(range(6))
    assert tokenizer.decode(ids) == unicodedata.normalize("NFC", text)
    ended = tokenizer(text, split_special_tokens=True)["input_ids"]
    assert tokenizer.decode(ended, skip_special_tokens=True) == unicodedata.normalize("NFC", text)


def test_unseen_tokens_change_nothing(tokenizer):
    """No-break spaces, soft hyphens, zero-width spaces, word joiners and byte order marks."""
    plain = tokenizer("The old man.")["input_ids"]
    for text in ("The\u00a0old man.", "The\u202fold\u2007man.", "\ufeffThe o\u00adld\u200b m\u2060an."):
        assert tokenizer(text)["input_ids"] == plain


def test_lower_case_only_when_asked():
    tokenizer = train_tokenizer(CORPUS, vocab_size=300, lowercase=True)
    text = "ÄRGER und Ещё"
    assert tokenizer.decode(tokenizer.encode(text, add_special_tokens=False)) == text.lower()


def test_end_token_only_with_special_tokens(tokenizer):
    bare = tokenizer.encode("The dog sleeps.", add_special_tokens=False)
    assert tokenizer.encode("The dog sleeps.") == bare + [3]
    assert tokenizer.encode("") == [3]
    assert tokenizer.encode("", add_special_tokens=False) == []
    assert list(tokenizer("The dog")) == ["input_ids", "attention_mask"]


def test_word_has_the_same_tokens_at_the_start_of_a_sentence(tokenizer):
    first = tokenizer.encode("table", add_special_tokens=False)
    assert tokenizer.encode("the table", add_special_tokens=False)[-len(first) :] == first


def test_same_texts_give_the_same_vocabulary_in_every_process(tmp_path):
    texts = [f"{sentence} {number * 37 % 101} größer" for number, sentence in enumerate(CORPUS * 5)]
    (tmp_path / "texts.json").write_text(json.dumps(texts))
    script = (
        "import hashlib, json, sys; from hf_docmt.data.tokenizers import train_tokenizer\n"
        "for kind in sys.argv[2:]:\n"
        "    tokenizer = train_tokenizer(json.load(open(sys.argv[1])), kind, 400)\n"
        "    print(hashlib.sha256(tokenizer.backend_tokenizer.to_str().encode()).hexdigest())"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "texts.json"), "bpe", "unigram"]
    elsewhere = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    for kind, other in zip(("bpe", "unigram"), elsewhere, strict=True):
        here = {digest(train_tokenizer(iter(texts), model=kind, vocab_size=400)) for _ in range(3)}
        assert here == {other}


def test_saved_again_it_stays_the_same(tokenizer, tmp_path):
    tokenizer.save_pretrained(tmp_path / "first")
    again = AutoTokenizer.from_pretrained(tmp_path / "first")
    again.save_pretrained(tmp_path / "second")
    assert (tmp_path / "first" / "tokenizer.json").read_text() == (tmp_path / "second" / "tokenizer.json").read_text()
    assert again.special_tokens_map == tokenizer.special_tokens_map and type(again) is PreTrainedTokenizerFast
    as_text = {"add_special_tokens": False, "split_special_tokens": True}
    for text in UNSEEN:
        ids = again(text, **as_text)["input_ids"]
        assert ids == tokenizer(text, **as_text)["input_ids"] and again.decode(ids) == unicodedata.normalize(
            "NFC", text
        )
    assert (again.sep_token_id, again.convert_tokens_to_ids("<bod>"), again.padding_side) == (4, 5, "right")
    assert again.encode("a") == tokenizer.encode("a")
    assert not again.split_special_tokens and not again.clean_up_tokenization_spaces


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"texts": CORPUS, "model": "wordpiece"}, "'wordpiece'.*bpe, unigram"),
        ({"texts": CORPUS, "vocab_size": 262}, "got 262, expected more than 262"),
        ({"texts": []}, "no character"),
        ({"texts": ["", "  "]}, "no character"),
        ({"texts": "one text"}, "got one string"),
        ({"texts": ["fine", None]}, "NoneType as number 1"),
    ],
)
@KINDS
def test_bad_input_is_named(arguments, message, kind):
    refused(message, train_tokenizer, **{"model": kind, "vocab_size": 300, **arguments})


@KINDS
def test_smallest_vocabulary_is_lossless(kind):
    tokenizer = train_tokenizer(CORPUS, model=kind, vocab_size=263)
    assert len(tokenizer) == 263
    assert tokenizer.decode(tokenizer.encode(UNSEEN[3], add_special_tokens=False)) == UNSEEN[3]


def foreign_tokenizer(**tokens):
    """A pretrained tokenizer of another kind, with its padding and end tokens under ids that are not ours."""
    backend = train_tokenizer(CORPUS, vocab_size=300).backend_tokenizer
    return PreTrainedTokenizerFast(tokenizer_object=backend, **{"pad_token": "<unk>", "eos_token": "<s>", **tokens})


def test_adapted_tokenizer_keeps_its_tokens():
    original = foreign_tokenizer(sep_token="</s>")
    adapted, rows = adapt_tokenizer(original)
    assert (adapted.pad_token, adapted.eos_token, adapted.sep_token) == ("<unk>", "<s>", "<sep>")
    assert "<bod>" in adapted.all_special_tokens
    assert rows == len(original)  # both names are in this vocabulary
    assert original.sep_token == "</s>" and "<bod>" not in original.all_special_tokens
    assert adapted.encode("a dog", add_special_tokens=False) == original.encode("a dog", add_special_tokens=False)
    again, same = adapt_tokenizer(adapted)
    assert same == rows and again.get_vocab() == adapted.get_vocab()


def test_adapting_needs_padding_and_end_tokens():
    refused("no eos_token", adapt_tokenizer, foreign_tokenizer(eos_token=None))


BART = ["<s>", "<pad>", "</s>", "<unk>", "Ġ", *"abcdefghijklmnopqrstuvwxyz", "<mask>"]
BERT = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "dog"]


@pytest.mark.parametrize(
    "kind, tokens, end, options",
    [
        (BartTokenizer, BART, "</s>", {"merges": []}),
        (BertTokenizer, BERT, "[SEP]", {"eos_token": "[SEP]", "bos_token": "[CLS]"}),
    ],
)
def test_a_tokenizer_ends_with_its_end_token_when_loaded_again(kind, tokens, end, options, tmp_path):
    original = kind(vocab={token: number for number, token in enumerate(tokens)}, **options)
    adapted, rows = adapt_tokenizer(original)
    adapted.save_pretrained(tmp_path)
    loaded = AutoTokenizer.from_pretrained(tmp_path)
    for tokenizer in (adapted, loaded):
        ids = original("the dog")["input_ids"]
        assert tokenizer("the dog")["input_ids"] == ids and ids[-1] == tokens.index(end)
    assert (loaded.sep_token, loaded.eos_token, rows) == ("<sep>", end, len(tokens) + 2)
    assert loaded.sep_token_id not in loaded("a <sep> b", split_special_tokens=True)["input_ids"]


def test_a_tokenizer_that_ends_with_whatever_separator_it_has_is_refused(tmp_path):
    sentencepiece = pytest.importorskip("sentencepiece")
    (tmp_path / "pieces.model").write_bytes(sentencepiece_model())
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "pieces.model"))
    words = [pieces.id_to_piece(number) for number in range(3, pieces.get_piece_size())]
    (tmp_path / "dict.txt").write_text("".join(f"{word} 1\n" for word in words), encoding="utf-8")
    tokenizer = BartphoTokenizer(str(tmp_path / "pieces.model"), str(tmp_path / "dict.txt"))
    refused("BartphoTokenizer ends texts with its sep_token, .* with <sep>; give another", adapt_tokenizer, tokenizer)


def test_a_vocabulary_with_holes_is_refused():
    """New tokens get the number of tokens as their id, which another one has."""
    vocabulary, names = {"</s>": 0, "a": 1, ".": 3}, {"pad_token": "</s>", "eos_token": "</s>"}
    holes = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.WordLevel(vocabulary, "a")), **names)
    refused("would get the id 3, which another token has, since the 3 ids .* reach to 3", adapt_tokenizer, holes)
    whole = Tokenizer(models.WordLevel(vocabulary | {".": 2}, "a"))
    whole = PreTrainedTokenizerFast(tokenizer_object=whole, **names)
    adapted, rows = adapt_tokenizer(whole)
    assert (adapted.sep_token_id, rows) == (3, 5)


FIRST, SECOND = "der hund .", "die katze ."


def make_tokenizer(kind: str, folder):
    if kind in FAMILIES:
        return adapt_tokenizer(TOKENIZERS[kind](folder))[0]
    return train_tokenizer(TEXT * 3, model=kind, vocab_size=290)


@pytest.mark.parametrize("kind", ["bpe", "unigram", *FAMILIES])
def test_separators_in_a_text(kind, tmp_path):
    """Also of a tokenizer that was saved and loaded; blanks around a separator are no text."""
    made = make_tokenizer(kind, tmp_path)
    made.save_pretrained(tmp_path / "saved")
    for tokenizer in (made, AutoTokenizer.from_pretrained(tmp_path / "saved")):
        first, second = (tokenizer(text, add_special_tokens=False)["input_ids"] for text in (FIRST, SECOND))
        whole = [*first, tokenizer.sep_token_id, *second]
        for text in (f"{FIRST}<sep>{SECOND}", f"{FIRST} <sep> {SECOND}"):
            assert tokenizer(text, add_special_tokens=False)["input_ids"] == whole
            inputs = tokenizer(text)
            assert set(inputs) == {"input_ids", "attention_mask"}
            assert str(whole)[1:-1] in str(inputs["input_ids"])
            assert tokenizer.sep_token_id not in token_ids(text, tokenizer)
            read = tokenize_sentences([text], tokenizer, is_target=False)[0]
            assert read == token_ids(text, tokenizer)
            assert tokenizer(text, add_special_tokens=False)["input_ids"] == whole  # as before


def test_generate_reads_segments():
    """Plain `generate` on two sentences gives what the strategy `full` makes of them."""
    tokenizer = train_tokenizer(TEXT * 3, vocab_size=290)
    model = build("concat", vocab_size=len(tokenizer), past_context=1, seed=2)
    ids = model.generate(**tokenizer(f"{FIRST} <sep> {SECOND}", return_tensors="pt"), max_new_tokens=9)
    segment = [*token_ids(FIRST, tokenizer), tokenizer.sep_token_id, *token_ids(SECOND, tokenizer), 3]
    assert torch.equal(ids, model.generate(torch.tensor([segment]), max_new_tokens=9))
    assert not torch.equal(ids, model.generate(**tokenizer(FIRST, return_tensors="pt"), max_new_tokens=9))


FORMATS = {  # family: source and target format, number of language codes
    "marian": (None, None, 0),
    "marian_multilingual": ("[target_lang] X </s>", None, 2),
    "bart": ("<s> X </s>", "<start> <s> X </s>", 0),
    "mbart": ("X </s> [source_lang]", "[target_lang] X </s>", 25),
    "mbart50": ("[source_lang] X </s>", "<start> [target_lang] X </s>", 52),
    "m2m_100": ("[source_lang] X </s>", "<start> [target_lang] X </s>", 100),
    "nllb": ("[source_lang] X </s>", "<start> [target_lang] X </s>", 202),
}


@pytest.mark.parametrize("family", FORMATS)
def test_family(family, tmp_path):
    model, tokenizer, source_lang, target_lang = sentence_model(family, tmp_path)
    adapted, rows = adapt_tokenizer(tokenizer)
    fields = sequence_format_fields(model.config.model_type, adapted)
    codes = fields.get("language_ids") or {}
    assert (fields.get("source_format"), fields.get("target_format"), len(codes)) == FORMATS[family]
    ids = {name: getattr(model.config, name) for name in ("bos_token_id", "eos_token_id", "decoder_start_token_id")}
    config = DocMTConfig(vocab_size=max(rows, model.config.vocab_size), **fields, **ids)
    sequence_format = config.sequence_format(source_lang, target_lang)

    text = "der hund schläft"
    plain = tokenizer(text, add_special_tokens=False)["input_ids"]
    written = f">>{target_lang}<< {text}" if family == "marian_multilingual" else text
    assert sequence_format.source(plain) == tokenizer(written)["input_ids"]
    assert sequence_format.target_before == [
        token for token in [model.generation_config.forced_bos_token_id] if token is not None
    ]
    assert sequence_format.start == model.generation_config.decoder_start_token_id

    adapted.save_pretrained(tmp_path / "adapted")
    loaded = AutoTokenizer.from_pretrained(tmp_path / "adapted")
    assert sequence_format_fields(model.config.model_type, loaded) == fields
    new = [loaded.sep_token_id, loaded.convert_tokens_to_ids("<bod>")]
    assert new == [adapted.sep_token_id, adapted.convert_tokens_to_ids("<bod>")]
    assert not {*new} & {*codes.values()}, "a new token has the id of a language code"


def test_marian_names_its_languages(tmp_path):
    fields = sequence_format_fields("marian", sentence_model("marian", tmp_path).tokenizer)
    assert fields == {"source_lang": "en", "target_lang": "de"}


def test_legacy_nllb(tmp_path):
    tokenizer = sentence_model("nllb", tmp_path).tokenizer
    tokenizer.legacy_behaviour = True
    fields = sequence_format_fields("m2m_100", tokenizer)
    assert fields["source_format"] == "X </s> [source_lang]"
    assert fields["target_format"] == "<start> [target_lang] X </s>"


@pytest.mark.parametrize("template, source_format", [("$A </s>", None), ("<s> $A </s>", "<s> X </s>")])
def test_tokens_around_a_text(template, source_format):
    assert sequence_format_fields("bart", around(template)).get("source_format") == source_format


@pytest.mark.parametrize("template", ["$A", "<s> $A", "<s> $A <s> </s>"])
def test_texts_that_do_not_end_in_the_end_token(template):
    with pytest.raises(ValueError, match=r"puts \[.*\] after a text, expected its eos_token \(</s>\)"):
        sequence_format_fields("bart", around(template))


def around(template):
    """A tokenizer of words with this template."""
    backend = Tokenizer(models.WordLevel({"<s>": 0, "</s>": 1, "a": 2}, unk_token="a"))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    special = [("<s>", 0), ("</s>", 1)]
    backend.post_processor = processors.TemplateProcessing(template, special_tokens=special)
    return PreTrainedTokenizerFast(tokenizer_object=backend, bos_token="<s>", eos_token="</s>", pad_token="</s>")
