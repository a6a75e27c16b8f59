"""A checkpoint of fairseq, with its dictionaries and subwords, as a model and a tokenizer of this package."""

from collections.abc import Sequence
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import PreTrainedModel, PreTrainedTokenizerBase, PreTrainedTokenizerFast

from hf_docmt.files import check_new_folder, location_of, read_lines
from hf_docmt.hub.export import export_model
from hf_docmt.hub.fairseq_checkpoint import PAD, UNK, FairseqCheckpoint, FairseqTransformer, read_checkpoint
from hf_docmt.hub.fairseq_models import (
    CachingTransformer,
    ConcatTransformer,
    ContextAttentionTransformer,
    MultiEncoderTransformer,
    SentenceTransformer,
    ShorteningTransformer,
)
from hf_docmt.hub.marian_conversion import sentencepiece_tokenizer
from hf_docmt.loading import registry
from hf_docmt.loading.model_folders import give_weights

NEVER = -1000.0  # bias in the logits of what the target dictionary does not have
ARCHITECTURES: dict[str, type[FairseqTransformer]] = {  # beginning of --arch -> its reader, longer ones first
    "caching_contextual_transformer": CachingTransformer,
    "shortening_contextual_transformer": ShorteningTransformer,
    "multienc_contextual_transformer": ContextAttentionTransformer,
    "contextual_transformer": MultiEncoderTransformer,
    "concat_": ConcatTransformer,
    "transformer": FairseqTransformer,
}


def convert_fairseq_checkpoint(
    checkpoint: str | Path,
    output: str | Path | None = None,
    *,
    data: str | Path,
    subwords: Sequence[str | Path],
    source_lang: str | None = None,
    target_lang: str | None = None,
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """A checkpoint of Maka et al. (2024), Lupo et al. (2023) or a plain Transformer as `(model, tokenizer)`.

    They are written to the new folder `output` if it is given, see `export_model`. `data` is the folder with
    `dict.SOURCE.txt` and `dict.TARGET.txt`; `subwords` see `make_tokenizer`. Languages are those of the training unless
    given; the search is the paper's, or the default of fairseq-generate. Ids and logits are those of fairseq; two
    dictionaries keep their two tables, the shorter one filled up with rows that are never chosen. The order of context
    sentences is that of training, which the authors' scripts for translation turn round (see
    examples/recipes/README.md); where a context sentence is missing, the model reads a lone `</s>`, as there
    (`missing_context` of its config). Raises ValueError for what cannot be converted, with the reason.
    """
    if output is not None:
        check_new_folder(output)
    read = read_checkpoint(checkpoint)
    reader = reader_of(read)
    languages = (source_lang or read.get("source_lang", None), target_lang or read.get("target_lang", None))
    if not all(languages):
        raise ValueError(f"{checkpoint}: names no languages, expected two; give source_lang and target_lang")
    dictionaries = _dictionaries(reader, Path(data), languages)
    tokenizer, further = make_tokenizer(
        dictionaries, subwords, end=reader.end, separator=reader.separator, languages=languages
    )
    row = dictionaries[0].index(reader.separator_row) if reader.separator_row in dictionaries[0] else UNK
    copied = [row if symbol == reader.separator else UNK for symbol in further]
    size = max(map(len, dictionaries))
    config_class = registry.get(reader.architecture).config_class
    config = config_class(
        **reader.fields(),
        vocab_size=size + len(further),
        pad_token_id=PAD,
        unk_token_id=UNK,
        bos_token_id=0,
        eos_token_id=tokenizer.eos_token_id,
        sep_token_id=tokenizer.sep_token_id,
        bod_token_id=None,
        decoder_start_token_id=tokenizer.eos_token_id,
        source_lang=languages[0],
        target_lang=languages[1],
    )
    model = registry.get(reader.architecture).model_class(config).eval()
    _load(model, reader, size, copied)
    model.generation_config.update(**reader.search)
    model.final_logits_bias[0, len(dictionaries[1]) :] = NEVER
    if output is not None:
        export_model(model, tokenizer, output)
    return model, tokenizer


def reader_of(checkpoint: FairseqCheckpoint) -> FairseqTransformer:
    """The reader of a checkpoint, by its `arch` and `task`."""
    arch = str(checkpoint.get("arch", checkpoint.get("_name", None)))
    if checkpoint.get("task", None) == "doc2doc_translation":
        return ConcatTransformer(checkpoint)
    if arch.startswith("contextual_transformer") and not checkpoint.get("source_context_size", 0):
        return SentenceTransformer(checkpoint)
    for name, reader in ARCHITECTURES.items():
        if arch.startswith(name):
            return reader(checkpoint)
    names = ", ".join(f"{name}..." for name in ARCHITECTURES)
    raise ValueError(f"{checkpoint.path}: arch is {arch!r}, expected one of {names}")


def _dictionaries(reader: FairseqTransformer, data: Path, languages: tuple) -> tuple[list[str], list[str]]:
    """Source and target dictionary, as long as the tables of embeddings are."""
    dictionaries = []
    for side, lang in zip(("encoder", "decoder"), languages):
        path = data / f"dict.{lang}.txt"
        symbols, rows = read_dictionary(path, reader.task_symbols), reader.rows_of(side)
        if len(symbols) != rows:
            raise ValueError(
                f"{path}: {len(symbols)} symbols with the special ones, but the {side} of {reader.checkpoint.path} has "
                f"{rows} embeddings; give the folder of dictionaries that the model was trained with"
            )
        dictionaries.append(symbols)
    ends = [symbols.index(reader.end) for symbols in dictionaries]
    if ends[0] != ends[1]:
        raise ValueError(
            f"{data}: {reader.end} has id {ends[0]} in the dictionary of the source and {ends[1]} in that of the "
            "target; models here have one end token for both sides, so that this checkpoint cannot be converted"
        )
    return dictionaries[0], dictionaries[1]


def _load(model: PreTrainedModel, reader: FairseqTransformer, size: int, copied: list[int]) -> None:
    """The weights into the model, tables of tokens with `size` rows and copies of rows after; all names must fit."""
    weights = {"final_logits_bias": model.final_logits_bias} | reader.named_weights(model.config)
    for name in ("shared", "encoder.embed_tokens", "decoder.embed_tokens", "lm_head"):
        full = f"{name}.weight" if name == "lm_head" else f"model.{name}.weight"
        if full in weights:
            table = weights[full]
            table = torch.cat([table, table.new_zeros(size - len(table), table.shape[1])])
            weights[full] = torch.cat([table, table[copied]])
    give_weights(model, weights, reader.checkpoint.path, "Only models of the published code can be converted.")


SPECIAL_SYMBOLS = ("<s>", "<pad>", "</s>", "<unk>")  # ids 0 to 3 of every dictionary
WORD_END = "</w>"
MORE = "@@"  # ends a piece of BPE that does not end its word


def read_dictionary(path: str | Path, task_symbols: Sequence[str] = ()) -> list[str]:
    """The symbols of a dictionary `dict.LANG.txt` in the order of their ids, lines `symbol count`.

    `task_symbols` are those that the task adds after them. Raises ValueError.
    """
    symbols = [*SPECIAL_SYMBOLS]
    taken = set(symbols)
    for number, line in read_lines(path):
        symbol, blank, count = line.removesuffix(" #fairseq:overwrite").rpartition(" ")
        if not (symbol and blank and count.isdecimal()):
            raise ValueError(f"{location_of(path, number)}: got {line!r}, expected 'symbol count' of a dictionary")
        if symbol in taken:
            raise ValueError(f"{location_of(path, number)}: {symbol!r} appears twice; expected every symbol once")
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
    """The tokenizer of source and target dictionary, and the symbols of the further ids after them.

    `subwords` is one file for both languages or one for each: SentencePiece models (`.model`), for raw text, or codes
    of subword-nmt or fastBPE, for text with tokens between blanks, prepared as for training. Ids are those of the
    dictionaries. Further ids are those of `separator` where the dictionaries do not have it, and of pieces on the way
    to others in BPE, which fairseq reads as unknown. Two dictionaries need SentencePiece. Raises ValueError.
    """
    if not 1 <= len(subwords) <= 2:
        raise ValueError(f"subwords: got {len(subwords)} files, expected one for both languages or one for each")
    for path in subwords:
        if not Path(path).is_file():
            raise ValueError(f"{path}: the file of subwords is missing, expected a SentencePiece model or BPE codes")
    is_model = {Path(path).suffix == ".model" for path in subwords}
    if len(is_model) == 2:
        raise ValueError("subwords: got a SentencePiece model and BPE codes, expected two files of one kind")
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
    """The pairs that BPE joins, in order: lines `left right`, of fastBPE with a count after."""
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
