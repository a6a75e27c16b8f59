"""Dictionaries of fairseq with SentencePiece models or BPE codes, as a tokenizer with the same ids."""

from collections.abc import Sequence
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from hf_docmt.files import location_of, read_lines
from hf_docmt.hub.sentencepiece_tokenizer import sentencepiece_tokenizer

SPECIAL_SYMBOLS = ("<s>", "<pad>", "</s>", "<unk>")  # ids 0 to 3 of every dictionary
WORD_END = "</w>"
MORE = "@@"  # ends a piece of BPE that does not end its word


def read_dictionary(path: str | Path, task_symbols: Sequence[str] = ()) -> list[str]:
    """The symbols of a dictionary `dict.LANG.txt` in the order of their ids, lines `symbol count`.

    `task_symbols` are those that the task adds behind them. Raises ValueError.
    """
    symbols = [*SPECIAL_SYMBOLS]
    taken = set(symbols)
    for number, line in read_lines(path):
        symbol, blank, count = line.removesuffix(" #fairseq:overwrite").rpartition(" ")
        if not (symbol and blank and count.isdecimal()):
            raise ValueError(f"{location_of(path, number)}: got {line!r}, expected 'symbol count' of a dictionary")
        if symbol in taken:
            raise ValueError(f"{location_of(path, number)}: {symbol!r} is there twice; expected every symbol once")
        symbols.append(symbol)
        taken.add(symbol)
    return symbols + [symbol for symbol in task_symbols if symbol not in taken]


def make_tokenizer(
    dictionaries: tuple[list[str], list[str]],
    subwords: Sequence[str | Path],
    *,
    end: str,
    separator: str,
    languages: tuple[str | None, str | None],
) -> tuple[PreTrainedTokenizerBase, list[str]]:
    """The tokenizer of source and target dictionary, and what stands behind them: the symbols of the further ids.

    `subwords` is one file for both languages or one for each: SentencePiece models (`.model`), for raw text, or codes
    of subword-nmt or fastBPE, for text with tokens between blanks, prepared as for training. Ids are those of the
    dictionaries. Further ids are those of `separator` where the dictionaries do not have it, and of pieces on the way
    to others in BPE, which fairseq reads as unknown. Two dictionaries need SentencePiece. Raises ValueError.
    """
    if not 1 <= len(subwords) <= 2:
        raise ValueError(f"subwords: got {len(subwords)} files, expected one for both languages or one for each")
    for path in subwords:
        if not Path(path).is_file():
            raise ValueError(f"{path}: the file of subwords is not there, expected a SentencePiece model or BPE codes")
    is_model = {Path(path).suffix == ".model" for path in subwords}
    if len(is_model) == 2:
        raise ValueError("subwords: got a SentencePiece model beside BPE codes, expected two files of one kind")
    special = {"eos_token": end, "sep_token": separator, "pad_token": "<pad>", "unk_token": "<unk>"}
    if is_model == {True}:
        return _sentencepiece_tokenizer(dictionaries, subwords, special, languages)
    if dictionaries[0] != dictionaries[1] or len(subwords) == 2:
        raise ValueError(
            "subwords: got BPE codes for two dictionaries, expected one dictionary for both languages; two "
            "can be converted with SentencePiece models alone"
        )
    return _bpe_tokenizer(dictionaries[0], subwords[0], special)


def _sentencepiece_tokenizer(dictionaries, subwords, special, languages):
    """Marian's tokenizer has one or two vocabularies over SentencePiece models."""
    size, separator = max(map(len, dictionaries)), special["sep_token"]
    further = [] if all(separator in dictionary for dictionary in dictionaries) else [separator]
    vocabularies = [
        {symbol: number for number, symbol in enumerate(dictionary)} | dict.fromkeys(further, size)
        for dictionary in dictionaries
    ]
    return sentencepiece_tokenizer(vocabularies, subwords, special, languages), further


def _bpe_tokenizer(dictionary: list[str], codes: str | Path, special: dict[str, str]):
    merges = _read_codes(codes)
    vocabulary = {_piece(symbol): number for number, symbol in enumerate(dictionary)}
    pieces = [piece for left, right in merges for piece in (left, right, left + right)]
    further = [piece for piece in dict.fromkeys(pieces) if piece not in vocabulary]
    if special["sep_token"] not in vocabulary:
        further.append(special["sep_token"])
    vocabulary |= {piece: len(dictionary) + number for number, piece in enumerate(further)}
    model = models.BPE(vocabulary, merges, unk_token="<unk>", end_of_word_suffix=WORD_END)
    backend = Tokenizer(model)
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    backend.decoder = decoders.BPEDecoder(suffix=WORD_END)
    end = (special["eos_token"], vocabulary[special["eos_token"]])
    backend.post_processor = processors.TemplateProcessing(f"$A {end[0]}", f"$A {end[0]} $B {end[0]}", [end])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend, split_special_tokens=False, clean_up_tokenization_spaces=False, **special
    )
    return tokenizer, further


def _read_codes(path: str | Path) -> list[tuple[str, str]]:
    """The pairs that BPE joins, in order: lines `left right`, of fastBPE with a count behind."""
    merges = []
    for number, line in read_lines(path):
        if number == 1 and line.startswith("#version:"):
            if line.split(":")[1].strip() != "0.2":
                raise ValueError(f"{path}: BPE codes of {line[1:]!r}, expected version 0.2; learn them again")
            continue
        fields = line.split(" ")
        if len(fields) not in (2, 3) or not all(fields):
            raise ValueError(f"{location_of(path, number)}: got {line!r}, expected two pieces, and a count or none")
        merges.append((fields[0], fields[1]))
    return merges


def _piece(symbol: str) -> str:
    """A symbol of the dictionary as `tokenizers` writes it: `pre@@` is `pre`, `fix` is `fix</w>`."""
    if symbol in SPECIAL_SYMBOLS or (symbol.startswith("<") and symbol.endswith(">")):
        return symbol
    return symbol.removesuffix(MORE) if symbol.endswith(MORE) else symbol + WORD_END
