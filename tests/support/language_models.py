"""Tiny random sentence-level models of the families that people start from, each with its real tokenizer class."""

import json
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import sentencepiece
import torch
from transformers import (
    BartTokenizer,
    M2M100Tokenizer,
    MarianTokenizer,
    MBart50Tokenizer,
    MBartTokenizer,
    NllbTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from support.pretrained_models import SENTENCE_MODELS, SIZES, randomised

FAMILIES = ("marian", "marian_multilingual", "bart", "mbart", "mbart50", "m2m_100", "nllb")
TEXT = [
    "der hund schläft gut heute abend .",
    "die katze hat ein haus und ein auto .",
    "sie bellt laut , er lacht weit weg !",
]
LETTERS = sorted({letter for line in TEXT for letter in line if letter != " "})


class SentenceModel(NamedTuple):
    """A model, its tokenizer, and codes of a source and a target language, None where it has none."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    source_lang: str | None
    target_lang: str | None


def sentence_model(family: str, folder: Path, seed: int = 0) -> SentenceModel:
    """A new model of one of `FAMILIES`; the files of its tokenizer are in the folder."""
    tokenizer = TOKENIZERS[family](folder)
    rows = max(tokenizer.get_vocab().values()) + 1
    if family in ("m2m_100", "nllb"):
        rows = max(rows, *getattr(tokenizer, "lang_code_to_id", {"": 0}).values()) + 3
    name, fields = FIELDS[family]
    if name == "marian":
        fields = {"pad_token_id": tokenizer.pad_token_id, "decoder_start_token_id": tokenizer.pad_token_id} | fields
    model_class, config_class, _ = SENTENCE_MODELS[name]
    torch.manual_seed(seed)
    model = randomised(model_class(config_class(**SIZES | fields, vocab_size=rows)), seed)
    if family == "bart":
        model.generation_config.forced_bos_token_id = 0
    source, target = LANGUAGES.get(family, (None, None))
    if family in ("mbart50", "m2m_100", "nllb"):
        model.generation_config.forced_bos_token_id = tokenizer.convert_tokens_to_ids(
            f"__{target}__" if family == "m2m_100" else target
        )
    if family == "mbart":
        model.config.decoder_start_token_id = tokenizer.convert_tokens_to_ids(target)
        model.generation_config.decoder_start_token_id = model.config.decoder_start_token_id
    if source is not None:
        tokenizer.src_lang = source
    return SentenceModel(model, tokenizer, source, target)


def multilingual(family: str) -> tuple[PreTrainedModel, PreTrainedTokenizerBase, tuple[str, str]]:
    """A new model of `mbart` or `nllb`, its tokenizer, and two of its language codes."""
    with TemporaryDirectory() as folder:
        model, tokenizer, *_ = sentence_model(family, Path(folder))
    return model, tokenizer, ("en_XX", "ro_RO") if family == "mbart" else ("eng_Latn", "fra_Latn")


_MARIAN = ("marian", {"eos_token_id": 0, "forced_eos_token_id": None})
_BART = {"decoder_start_token_id": 2, "forced_eos_token_id": None}
_MBART = ("mbart", _BART | {"scale_embedding": True})
_M2M_100 = ("m2m_100", {"decoder_start_token_id": 2})
FIELDS = {  # name of the model's classes, and of its configuration what is not the default
    "marian": _MARIAN,
    "marian_multilingual": _MARIAN,
    "bart": ("bart", _BART),
    "mbart": _MBART,
    "mbart50": _MBART,
    "m2m_100": _M2M_100,
    "nllb": _M2M_100,
}
LANGUAGES = {
    "marian_multilingual": (None, "fra"),
    "mbart": ("en_XX", "ro_RO"),
    "mbart50": ("en_XX", "uk_UA"),
    "m2m_100": ("en", "de"),
    "nllb": ("eng_Latn", "deu_Latn"),
}


@cache
def sentencepiece_model() -> bytes:
    """A small unigram model."""
    with TemporaryDirectory() as folder:
        prefix = Path(folder) / "spm"
        options = {"model_prefix": str(prefix), "vocab_size": 50, "hard_vocab_limit": False, "minloglevel": 2}
        sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(TEXT * 5), **options)
        return prefix.with_suffix(".model").read_bytes()


def pieces(folder: Path) -> list[str]:
    """The pieces of the unigram model, which is written into the folder, without special tokens."""
    path = folder / "source.spm"
    path.write_bytes(sentencepiece_model())
    processor = sentencepiece.SentencePieceProcessor(model_file=str(path))
    return [processor.id_to_piece(index) for index in range(3, processor.get_piece_size())]


def marian_tokenizer(folder: Path, codes: tuple[str, ...] = ()) -> MarianTokenizer:
    vocab = ["</s>", "<unk>", *pieces(folder), *codes, "<pad>"]
    (folder / "vocab.json").write_text(json.dumps({token: index for index, token in enumerate(vocab)}))
    spm = str(folder / "source.spm")
    languages = {} if codes else {"source_lang": "en", "target_lang": "de"}
    return MarianTokenizer(spm, spm, str(folder / "vocab.json"), **languages)


def m2m_tokenizer(folder: Path) -> M2M100Tokenizer:
    vocab = ["<s>", "<pad>", "</s>", "<unk>", *pieces(folder)]
    (folder / "vocab.json").write_text(json.dumps({token: index for index, token in enumerate(vocab)}))
    return M2M100Tokenizer(str(folder / "vocab.json"), str(folder / "source.spm"))


def bart_tokenizer(folder: Path) -> BartTokenizer:
    letters = [*LETTERS, "Ġ", "Ã", "¤"]
    vocab = {token: index for index, token in enumerate(["<s>", "<pad>", "</s>", "<unk>", *letters, "<mask>"])}
    return BartTokenizer(vocab=vocab, merges=[])


TOKENIZERS = {
    "marian": marian_tokenizer,
    "marian_multilingual": lambda folder: marian_tokenizer(folder, (">>deu<<", ">>fra<<")),
    "bart": bart_tokenizer,
    "mbart": lambda folder: MBartTokenizer(
        vocab=[(token, -float(i)) for i, token in enumerate(["<s>", "<pad>", "</s>", "<unk>", *pieces(folder)])]
    ),
    "mbart50": lambda folder: MBart50Tokenizer(
        vocab=[(token, -float(i)) for i, token in enumerate(["<unk>", "<s>", "</s>", *pieces(folder)])]
    ),
    "m2m_100": m2m_tokenizer,
    "nllb": lambda folder: NllbTokenizer(
        vocab={t: i for i, t in enumerate(["<s>", "<pad>", "</s>", "<unk>", "▁", *LETTERS])}, merges=[]
    ),
}
