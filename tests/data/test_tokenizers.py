"""Tokenizers: lossless, deterministic, loadable without the package, and taken over from pretrained models."""

import hashlib
import json
import os
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest
from support.language_models import sentencepiece_model
from tokenizers import Tokenizer, models
from transformers import AutoTokenizer, BartphoTokenizer, BartTokenizer, BertTokenizer, PreTrainedTokenizerFast

from hf_docmt.data.tokenizers import SPECIAL_TOKENS, adapt_tokenizer, train_tokenizer

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


def run_without_package(script, *arguments):
    """Run a script in a process in which `hf_docmt` cannot be imported."""
    block = "import sys; sys.modules['hf_docmt'] = None\n"
    done = subprocess.run(
        [sys.executable, "-c", block + script, *map(str, arguments)],
        capture_output=True,
        text=True,
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


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


@KINDS
def test_vocabulary_learns_words(kind):
    tokenizer = train_tokenizer(CORPUS, model=kind, vocab_size=400)
    assert len(tokenizer.tokenize(CORPUS[1])) < 0.75 * len(CORPUS[1])


@KINDS
def test_same_texts_give_the_same_vocabulary_in_every_process(kind, tmp_path):
    texts = [f"{sentence} {number * 37 % 101} größer" for number, sentence in enumerate(CORPUS * 5)]
    (tmp_path / "texts.json").write_text(json.dumps(texts))
    script = (
        "import hashlib, json, sys; from hf_docmt.data.tokenizers import train_tokenizer\n"
        "tokenizer = train_tokenizer(json.load(open(sys.argv[1])), sys.argv[2], 400)\n"
        "print(hashlib.sha256(tokenizer.backend_tokenizer.to_str().encode()).hexdigest())"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "texts.json"), kind]
    elsewhere = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    here = {digest(train_tokenizer(iter(texts), model=kind, vocab_size=400)) for _ in range(3)}
    assert here == {elsewhere}


def test_plain_autotokenizer_loads_it_without_the_package(tmp_path):
    trained = {kind: train_tokenizer(CORPUS, model=kind, vocab_size=320) for kind in ("bpe", "unigram")}
    for kind, tokenizer in trained.items():
        tokenizer.save_pretrained(tmp_path / kind)
    script = (
        "import json; from transformers import AutoTokenizer\n"
        "for folder in sys.argv[2:]:\n"
        "    tokenizer = AutoTokenizer.from_pretrained(folder)\n"
        "    as_text = {'add_special_tokens': False, 'split_special_tokens': True}\n"
        "    ids = [tokenizer(text, **as_text)['input_ids'] for text in json.loads(sys.argv[1])]\n"
        "    sep, bod = tokenizer.sep_token_id, tokenizer.convert_tokens_to_ids('<bod>')\n"
        "    texts = [tokenizer.decode(row) for row in ids]\n"
        "    print(json.dumps([ids, texts, tokenizer.encode('a'), sep, bod, tokenizer.padding_side]))"
    )
    printed = run_without_package(script, json.dumps(UNSEEN), *(tmp_path / kind for kind in trained)).splitlines()
    for line, tokenizer in zip(printed, trained.values(), strict=True):
        ids, texts, with_end, sep, bod, side = json.loads(line)
        as_text = {"add_special_tokens": False, "split_special_tokens": True}
        assert ids == [tokenizer.encode(text, **as_text) for text in UNSEEN]
        assert texts == [unicodedata.normalize("NFC", text) for text in UNSEEN]
        assert with_end == tokenizer.encode("a") and with_end[-1] == 3
        assert (sep, bod, side) == (4, 5, "right")


def test_saved_again_it_stays_the_same(tokenizer, tmp_path):
    tokenizer.save_pretrained(tmp_path / "first")
    again = AutoTokenizer.from_pretrained(tmp_path / "first")
    again.save_pretrained(tmp_path / "second")
    assert (tmp_path / "first" / "tokenizer.json").read_text() == (tmp_path / "second" / "tokenizer.json").read_text()
    assert again.special_tokens_map == tokenizer.special_tokens_map
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
    with pytest.raises(ValueError, match=message):
        train_tokenizer(**{"model": kind, "vocab_size": 300, **arguments})


@KINDS
def test_smallest_vocabulary_is_lossless(kind):
    tokenizer = train_tokenizer(CORPUS, model=kind, vocab_size=263)
    assert len(tokenizer) == 263
    assert tokenizer.decode(tokenizer.encode(UNSEEN[3], add_special_tokens=False)) == UNSEEN[3]


def test_real_documents_come_back(tokenizer):
    path = Path(__file__).resolve().parents[3] / "shared" / "data" / "ende_docs" / "validation.jsonl"
    if not path.exists():
        pytest.skip("no local documents")
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()[:50]]
    texts = [text for row in rows for text in row["source"] + row["target"]]
    ids = tokenizer(texts, add_special_tokens=False)["input_ids"]
    assert tokenizer.batch_decode(ids) == [unicodedata.normalize("NFC", text) for text in texts]


def foreign_tokenizer(**tokens):
    """A pretrained tokenizer of another kind, with its padding and end tokens under ids that are not ours."""
    backend = train_tokenizer(CORPUS, vocab_size=300).backend_tokenizer
    return PreTrainedTokenizerFast(tokenizer_object=backend, **{"pad_token": "<unk>", "eos_token": "<s>", **tokens})


def test_adapted_tokenizer_keeps_what_it_had():
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
    with pytest.raises(ValueError, match="no eos_token"):
        adapt_tokenizer(foreign_tokenizer(eos_token=None))


@pytest.fixture(scope="module")
def marian_tokenizer(tmp_path_factory):
    sentencepiece = pytest.importorskip("sentencepiece")
    from transformers import MarianTokenizer

    folder = tmp_path_factory.mktemp("marian")
    (folder / "text.txt").write_text("\n".join(CORPUS), encoding="utf-8")
    for side in ("source", "target"):
        sentencepiece.SentencePieceTrainer.train(
            input=str(folder / "text.txt"), model_prefix=str(folder / side), vocab_size=50, minloglevel=2
        )
        (folder / f"{side}.model").rename(folder / f"{side}.spm")
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(folder / "source.spm"))
    names = ["</s>", "<unk>"] + [pieces.id_to_piece(i) for i in range(3, pieces.get_piece_size())] + ["<pad>"]
    (folder / "vocab.json").write_text(json.dumps({name: i for i, name in enumerate(names)}), encoding="utf-8")
    return MarianTokenizer(
        source_spm=str(folder / "source.spm"), target_spm=str(folder / "target.spm"), vocab=str(folder / "vocab.json")
    )


def test_marian_tokenizer_is_adapted(marian_tokenizer, tmp_path):
    before = len(marian_tokenizer)
    text = "The dog sees the cat."
    adapted, rows = adapt_tokenizer(marian_tokenizer)
    assert len(marian_tokenizer) == before and rows == before + 2
    assert (adapted.sep_token_id, adapted.convert_tokens_to_ids("<bod>")) == (before, before + 1)
    assert (adapted.pad_token_id, adapted.eos_token_id) == (before - 1, 0)
    bare = adapted.encode(text, add_special_tokens=False)
    assert bare == marian_tokenizer.encode(text, add_special_tokens=False)
    assert adapted.encode(text) == bare + [0]
    assert (
        adapted.decode(bare + [adapted.sep_token_id] + bare, skip_special_tokens=True).replace("  ", " ")
        == f"{text} {text}"
    )
    assert adapted.sep_token_id not in adapted.encode("a <sep> b", split_special_tokens=True)

    adapted.save_pretrained(tmp_path)
    loaded = AutoTokenizer.from_pretrained(tmp_path)
    assert loaded.encode(text) == bare + [0]
    assert (loaded.sep_token_id, loaded.convert_tokens_to_ids("<bod>")) == (before, before + 1)
    assert loaded.encode("a <sep> b") == adapted.encode("a <sep> b")


def test_bart_tokenizer_ends_with_its_end_token_when_loaded_again(tmp_path):
    tokens = ["<s>", "<pad>", "</s>", "<unk>", "Ġ", *"abcdefghijklmnopqrstuvwxyz", "<mask>"]
    bart = BartTokenizer(vocab={token: number for number, token in enumerate(tokens)}, merges=[])
    adapted, rows = adapt_tokenizer(bart)
    adapted.save_pretrained(tmp_path)
    loaded = AutoTokenizer.from_pretrained(tmp_path)
    assert loaded("the dog")["input_ids"] == bart("the dog")["input_ids"]
    assert (loaded.sep_token, loaded.eos_token, rows) == ("<sep>", "</s>", len(tokens) + 2)
    assert loaded.sep_token_id not in loaded("a <sep> b", split_special_tokens=True)["input_ids"]


def test_bert_tokenizer_ends_with_its_end_token_when_loaded_again(tmp_path):
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "dog"]
    bert = BertTokenizer(vocab={token: number for number, token in enumerate(tokens)})
    bert.eos_token, bert.bos_token = "[SEP]", "[CLS]"
    adapted, rows = adapt_tokenizer(bert)
    adapted.save_pretrained(tmp_path)
    loaded = AutoTokenizer.from_pretrained(tmp_path)
    for found in (adapted, loaded):
        assert found("The dog")["input_ids"] == bert("The dog")["input_ids"] == [2, 5, 6, 3]
    assert (loaded.sep_token, loaded.eos_token, rows) == ("<sep>", "[SEP]", len(tokens) + 2)


def test_a_tokenizer_that_ends_with_whatever_separator_it_has_is_refused(tmp_path):
    sentencepiece = pytest.importorskip("sentencepiece")
    (tmp_path / "pieces.model").write_bytes(sentencepiece_model())
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "pieces.model"))
    words = [pieces.id_to_piece(number) for number in range(3, pieces.get_piece_size())]
    (tmp_path / "dict.txt").write_text("".join(f"{word} 1\n" for word in words), encoding="utf-8")
    tokenizer = BartphoTokenizer(str(tmp_path / "pieces.model"), str(tmp_path / "dict.txt"))
    with pytest.raises(ValueError, match="BartphoTokenizer ends texts with its sep_token, .* with <sep>; give another"):
        adapt_tokenizer(tokenizer)


def test_a_vocabulary_with_holes_is_refused():
    """New tokens get the number of tokens as their id, which another one has."""
    vocabulary, names = {"</s>": 0, "a": 1, ".": 3}, {"pad_token": "</s>", "eos_token": "</s>"}
    holes = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.WordLevel(vocabulary, "a")), **names)
    with pytest.raises(ValueError, match="would get the id 3, which another token has, since the 3 ids .* reach to 3"):
        adapt_tokenizer(holes)
    whole = Tokenizer(models.WordLevel(vocabulary | {".": 2}, "a"))
    whole = PreTrainedTokenizerFast(tokenizer_object=whole, **names)
    adapted, rows = adapt_tokenizer(whole)
    assert (adapted.sep_token_id, rows) == (3, 5)
