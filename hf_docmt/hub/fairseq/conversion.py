"""A checkpoint of fairseq as a model and a tokenizer of this package."""

from collections.abc import Sequence
from pathlib import Path

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from hf_docmt import registry
from hf_docmt.files import check_new_folder
from hf_docmt.hub.export import export_model
from hf_docmt.hub.fairseq.checkpoint import FairseqCheckpoint, read_checkpoint
from hf_docmt.hub.fairseq.lupo2023 import ConcatTransformer
from hf_docmt.hub.fairseq.maka2024 import (
    CachingTransformer,
    ContextAttentionTransformer,
    MultiEncoderTransformer,
    SentenceTransformer,
    ShorteningTransformer,
)
from hf_docmt.hub.fairseq.tokenizer import make_tokenizer, read_dictionary
from hf_docmt.hub.fairseq.transformer import PAD, UNK, FairseqTransformer

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
    given; the search is the paper's. Ids and logits are those of fairseq; two dictionaries keep their two tables, the
    shorter one filled up with rows that are never chosen. The order of context sentences is that of training, which the
    authors' scripts for translation turn round (see examples/recipes/README.md); where a context sentence is missing,
    the model reads a lone `</s>`, as there (`missing_context` of its config). Raises ValueError for what cannot be
    converted, with the reason.
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
    """The weights into the model, tables of tokens with `size` rows and copies of rows behind; all names must fit."""
    weights, expected = reader.named_weights(model.config), model.state_dict()
    unknown = sorted(weights.keys() - expected.keys())
    missing = sorted(expected.keys() - weights.keys() - {"final_logits_bias"})
    if unknown or missing:
        raise ValueError(
            f"{reader.checkpoint.path}: parameters that a {reader.architecture} model does not have: "
            f"{', '.join(unknown) or 'none'}; that it has not: {', '.join(missing) or 'none'}; only models of the "
            "published code can be converted"
        )
    for name in ("shared", "encoder.embed_tokens", "decoder.embed_tokens", "lm_head"):
        full = f"{name}.weight" if name == "lm_head" else f"model.{name}.weight"
        if full in weights:
            table = weights[full]
            table = torch.cat([table, table.new_zeros(size - len(table), table.shape[1])])
            weights[full] = torch.cat([table, table[copied]])
    wrong = [name for name, weight in weights.items() if weight.shape != expected[name].shape]
    if wrong:
        shapes = f"{tuple(weights[wrong[0]].shape)}, expected {tuple(expected[wrong[0]].shape)}"
        raise ValueError(f"{reader.checkpoint.path}: {wrong[0]} is {shapes}; settings and weights do not fit")
    model.load_state_dict(weights, strict=False)
