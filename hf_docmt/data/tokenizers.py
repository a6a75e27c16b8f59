"""Tokenizers: joint subword vocabularies trained from text, and pretrained ones taken over for documents."""

import copy
import json
from collections.abc import Iterable, Iterator

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import BertTokenizer, PreTrainedTokenizerBase, PreTrainedTokenizerFast, RobertaTokenizer

SPECIAL_TOKENS = ("<pad>", "<unk>", "<s>", "</s>", "<sep>", "<bod>")
SEP, BOD = "<sep>", "<bod>"
SEPARATOR = AddedToken(SEP, lstrip=True, rstrip=True, normalized=False, special=True)  # blanks around it are not text
KINDS = ("bpe", "unigram")
OPTIONS = {
    "split_special_tokens": False,
    "clean_up_tokenization_spaces": False,
    "model_input_names": ["input_ids", "attention_mask"],
}
TRAINER_STEP = 1e-4  # between the scores that the unigram trainer gives to bytes it has no use for
SEP_ENDS_TEXTS = (RobertaTokenizer, BertTokenizer)  # loaded again, they would end with the separator that they got
NO_BREAK = "[\u00a0\u2007\u202f]"  # spaces: no-break, figure, narrow
UNSEEN = "[\u00ad\u200b\u2060\ufeff]"  # soft hyphen, zero-width space, word joiner, byte order mark
BYTES = pre_tokenizers.ByteLevel.alphabet()  # one printable character for each of the 256 bytes


def train_tokenizer(
    texts: Iterable[str], model: str = "bpe", vocab_size: int = 32000, lowercase: bool = False
) -> PreTrainedTokenizerFast:
    """Train one vocabulary for source and target sentences together.

    Byte-level BPE (Sennrich et al. 2016, section 3.2; bytes as in Radford et al. 2019, section 2.2) or a byte-level
    unigram model (Kudo 2018, section 3.2). `decode(encode(x)) == x` for every text after normalisation: Unicode NFC,
    no-break spaces as plain ones, no soft hyphens, zero-width spaces, word joiners and byte order marks, and lower case
    if requested. Other white space is unchanged, and no character is `<unk>`.
    A sentence is read with a space before it, so that a word has the same tokens at its start and in its
    middle; decoding takes that space away. Special tokens are `SPECIAL_TOKENS`, ids 0 to 5. A plain call reads
    their names inside a text as these tokens, so that `generate` gets a segment from "A. <sep> B."; data and
    `translate_documents` read them as text, by `split_special_tokens=True`. `encode` ends in `</s>` unless
    `add_special_tokens=False`.

    `vocab_size` counts special tokens and bytes; a small corpus gives fewer. The same texts give the same vocabulary
    in every process. Departure: unigram scores are rounded to 4 decimals for that.

    Raises ValueError for an unknown `model`, a `vocab_size` below 263, texts without a character or not strings.

    >>> tokenizer = train_tokenizer(["Here is a lamp.", "Hier ist eine Lampe."], vocab_size=300)
    >>> tokenizer.decode(tokenizer("It  is OLD.", add_special_tokens=False)["input_ids"])
    'It  is OLD.'
    """
    if model not in KINDS:
        raise ValueError(f"model: got {model!r}, expected one of {', '.join(KINDS)}")
    smallest = len(SPECIAL_TOKENS) + len(BYTES)
    if vocab_size <= smallest:
        raise ValueError(
            f"vocab_size: got {vocab_size}, expected more than {smallest} ({len(SPECIAL_TOKENS)} special tokens and "
            f"{len(BYTES)} bytes); ask for a larger vocabulary"
        )
    backend = _untrained(model, lowercase)
    backend.train_from_iterator(_checked(texts), _trainer(model, vocab_size))
    if model == "unigram":
        _fix_order(backend)
    return trained_tokenizer(backend)


def trained_tokenizer(backend: Tokenizer) -> PreTrainedTokenizerFast:
    """The result of `train_tokenizer`, from the tokenizer of the library tokenizers inside it."""
    backend.add_special_tokens([SEPARATOR])  # a token it has already; the blanks are new
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        pad_token="<pad>",
        unk_token="<unk>",
        bos_token="<s>",
        eos_token="</s>",
        sep_token=SEPARATOR,
        extra_special_tokens=[BOD],
        **OPTIONS,
    )


def adapt_tokenizer(tokenizer: PreTrainedTokenizerBase) -> tuple[PreTrainedTokenizerBase, int]:
    """Copy a pretrained tokenizer and give it `<sep>` and `<bod>`; also return how many embedding rows its ids need.

    Everything else stays: vocabulary, ids, padding and end tokens. A model whose embedding table already has more rows
    keeps them. A plain call reads `<sep>` in a text as the separator, with `split_special_tokens=True` as text. BART's
    tokenizer, and BERT's, come back as a plain `PreTrainedTokenizerFast`. With two vocabularies (Marian) the new tokens
    follow both, with the same ids. Adapting twice changes nothing. Raises ValueError where the tokenizer has no
    padding or end token, where new tokens would get the ids of others, as in a vocabulary with holes, and where it ends
    texts with its separator, whatever that is (BARTpho).

    >>> adapted, rows = adapt_tokenizer(tokenizer)
    >>> rows == len(adapted)
    True
    """
    for name in ("pad_token", "eos_token"):
        if getattr(tokenizer, name, None) is None:
            raise ValueError(f"{type(tokenizer).__name__}: got no {name}, expected one; set tokenizer.{name}")
    adapted = copy.deepcopy(tokenizer)
    _occupy_language_ids(adapted)
    _occupy_target_ids(adapted)
    taken = set(adapted.get_vocab().values())
    adapted.add_special_tokens({"sep_token": SEPARATOR})
    if BOD not in adapted.all_special_tokens:
        adapted.add_special_tokens({"extra_special_tokens": [BOD]}, replace_extra_special_tokens=False)
    for name in ("split_special_tokens", "clean_up_tokenization_spaces"):
        setattr(adapted, name, False)
        adapted.init_kwargs[name] = False  # what save_pretrained writes
    new = {token: adapted.convert_tokens_to_ids(token) for token in {SEP, BOD} - tokenizer.get_vocab().keys()}
    if clash := [token for token, index in new.items() if index in taken]:
        raise ValueError(
            f"{type(tokenizer).__name__}: {clash[0]} would get the id {new[clash[0]]}, which another token has, since "
            f"the {len(taken)} ids of the vocabulary reach to {max(taken)}; number its tokens without holes"
        )
    if adapted("a")["input_ids"] != tokenizer("a")["input_ids"]:
        raise ValueError(
            f"{type(tokenizer).__name__} ends texts with its sep_token, so that it would end them with {SEP}; give "
            "another tokenizer of the same vocabulary, such as a PreTrainedTokenizerFast"
        )
    if isinstance(adapted, SEP_ENDS_TEXTS):
        adapted = PreTrainedTokenizerFast(
            tokenizer_object=adapted.backend_tokenizer,
            **adapted.special_tokens_map | {"sep_token": SEPARATOR},
            **OPTIONS,
        )
    return adapted, max(adapted.get_vocab().values()) + 1


def tokenize_sentences(texts: list[str], tokenizer: PreTrainedTokenizerBase, *, is_target: bool) -> list[list[int]]:
    """The token ids of each sentence, without special tokens; text that looks like one is read as plain text."""
    rows = tokenizer(
        **{"text_target" if is_target else "text": texts},
        add_special_tokens=False,
        split_special_tokens=True,
        return_attention_mask=False,
        return_token_type_ids=False,
        verbose=False,
    )["input_ids"]
    unknown, special = tokenizer.unk_token_id, set(tokenizer.all_special_ids) - {tokenizer.unk_token_id}
    if unknown is None:
        return rows
    # a word of the text that the vocabulary only has as a special token
    return [
        row if special.isdisjoint(row) else [unknown if token in special else token for token in row] for row in rows
    ]


def _occupy_language_ids(tokenizer: PreTrainedTokenizerBase) -> None:
    """Add M2M-100's language codes as tokens: their ids are those after the vocabulary, which new tokens would get."""
    codes = getattr(tokenizer, "lang_token_to_id", {})
    tokens = sorted(codes, key=codes.get)
    tokenizer.add_special_tokens({"extra_special_tokens": tokens}, replace_extra_special_tokens=False)
    if moved := [token for token in tokens if tokenizer.added_tokens_encoder[token] != codes[token]]:
        raise ValueError(f"{type(tokenizer).__name__}: added tokens have the ids of {moved[:3]}; use one without them")


def _occupy_target_ids(tokenizer: PreTrainedTokenizerBase) -> None:
    """Fill up a source vocabulary to the size of a larger target vocabulary, so that new tokens get no id of that."""
    if getattr(tokenizer, "separate_vocabs", False):
        ids = range(max(tokenizer.encoder.values()) + 1, max(tokenizer.target_encoder.values()) + 1)
        tokenizer.encoder |= {f"<unused{index}>": index for index in ids if index not in tokenizer.added_tokens_decoder}


def _untrained(model: str, lowercase: bool) -> Tokenizer:
    """The steps around the vocabulary: normalise, split into words of byte characters, join, add `</s>`."""
    backend = Tokenizer(models.BPE() if model == "bpe" else models.Unigram())
    steps = [
        normalizers.NFC(),
        normalizers.Replace(Regex(NO_BREAK), " "),
        normalizers.Replace(Regex(UNSEEN), ""),
        *([normalizers.Lowercase()] if lowercase else []),
        normalizers.Prepend(" "),
    ]
    backend.normalizer = normalizers.Sequence(steps)
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.Sequence([decoders.ByteLevel(), decoders.Strip(" ", 1, 0)])
    eos = ("</s>", SPECIAL_TOKENS.index("</s>"))
    backend.post_processor = processors.TemplateProcessing("$A </s>", "$A </s> $B </s>", special_tokens=[eos])
    return backend


def _trainer(model: str, vocab_size: int) -> trainers.Trainer:
    options = {"special_tokens": list(SPECIAL_TOKENS), "initial_alphabet": BYTES, "show_progress": False}
    if model == "bpe":
        return trainers.BpeTrainer(vocab_size=vocab_size, **options)
    return trainers.UnigramTrainer(vocab_size=vocab_size, unk_token="<unk>", max_piece_length=32, **options)


def _checked(texts: Iterable[str]) -> Iterator[str]:
    if isinstance(texts, str):
        raise ValueError("texts: got one string, expected an iterable of sentences; pass [text]")
    characters = 0
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise ValueError(f"texts: got {type(text).__name__} as number {number}, expected str")
        characters += len(text.strip())
        yield text
    if not characters:
        raise ValueError("texts: got no character, expected sentences to train on; check that the files are not empty")


def _fix_order(backend: Tokenizer) -> None:
    """Remove from a trained unigram model what depends on hash order and thread timing.

    The trainer sums in hash order (differences of 1e-14) and gives bytes that it did not need a score just above the
    lowest, in hash order. Here scores are rounded, those bytes share the lowest score, and ties are in character order.
    """
    vocab = json.loads(backend.to_str())["model"]["vocab"]
    special, learned = vocab[: len(SPECIAL_TOKENS)], vocab[len(SPECIAL_TOKENS) :]
    lowest = min(score for _, score in learned)
    spare = lowest + TRAINER_STEP * len(BYTES)
    learned = [(p, round(lowest if len(p) == 1 and score <= spare else score, 4)) for p, score in learned]
    learned.sort(key=lambda entry: (-entry[1], entry[0]))
    backend.model = models.Unigram([tuple(entry) for entry in special] + learned, SPECIAL_TOKENS.index("<unk>"))
