"""A model file of Marian with its SentencePiece vocabularies as a model and a tokenizer of this package."""

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import MarianTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from hf_docmt.files import check_file, check_new_folder
from hf_docmt.hub.export import export_model
from hf_docmt.hub.marian_file import MarianTransformer, read_model_file
from hf_docmt.loading.model_folders import backbone, give_weights
from hf_docmt.loading.pretrained import from_sentence_model
from hf_docmt.loading.remote_code import silence_sacremoses
from hf_docmt.modeling.configuration_docmt import DocMTConfig
from hf_docmt.modeling.modeling_docmt import DocMTForConditionalGeneration

NEVER = -1000.0  # bias in the logits of what is never written
PAD = "<pad>"


def convert_marian_file(
    model_file: str | Path,
    output: str | Path | None = None,
    *,
    vocab: Sequence[str | Path],
    architecture: str = "concat",
    **fields,
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """A `.npz` or `.bin` file of Marian as `(model, tokenizer)`, in float32; written to `output` if it is given.

    `vocab` is one SentencePiece model (`.spm`) for both languages, or those of source and target. The rest is as in
    `convert_sentence_model`. Marian's decoder starts with a vector of zeros: here with `<pad>`, whose embedding is
    zero, and which is never written. Raises ValueError for what cannot be converted, with the reason.

    >>> model, tokenizer = convert_marian_file("model.npz", vocab=["vocab.spm"])
    >>> model.translate_documents([["Hello.", "How are you?"]], tokenizer)
    [['Olá.', 'Como você está?']]
    """
    if output is not None:
        check_new_folder(output)
    reader = MarianTransformer(read_model_file(model_file))
    rows = [len(table) for table in reader.tables.values()]
    tokenizer = make_tokenizer(vocab, rows, (fields.get("source_lang"), fields.get("target_lang")))
    original = backbone_of(reader, max(rows), tokenizer)
    model, tokenizer = from_sentence_model(original, tokenizer=tokenizer, architecture=architecture, **fields)
    if output is not None:
        export_model(model, tokenizer, output, untrained=True)
    return model, tokenizer


def make_tokenizer(
    vocab: Sequence[str | Path], rows: Sequence[int], languages: tuple[str | None, str | None]
) -> PreTrainedTokenizerBase:
    """The tokenizer of SentencePiece models for tables of `rows` rows, and `<pad>` with the id after both."""
    if not 1 <= len(vocab) <= 2:
        raise ValueError(f"vocab: got {len(vocab)} files, expected one for both languages, or two: source, target")
    models = [read_vocabulary(path) for path in vocab]
    for path, model, count in zip((vocab[0], vocab[-1]), (models[0], models[-1]), rows):
        if len(model) > count:
            raise ValueError(
                f"{path}: {len(model)} pieces, but the model has embeddings of {count}; give the vocabulary that the "
                "model was trained with"
            )
    ends = {(model.eos_id(), model.unk_id()) for model in models}
    if len(ends) > 1:
        raise ValueError(f"{vocab[1]}: its </s> and <unk> have other ids than those of {vocab[0]}, expected the same")
    vocabularies = []
    for model, count in zip((models[0], models[-1]), rows):
        vocabulary = {model.id_to_piece(index): index for index in range(len(model))}
        vocabulary |= {f"<unused{index}>": index for index in range(len(model), count)} | {PAD: max(rows)}
        vocabularies.append(vocabulary)
    special = {"eos_token": models[0].id_to_piece(models[0].eos_id()), "pad_token": PAD}
    special["unk_token"] = models[0].id_to_piece(models[0].unk_id())
    return sentencepiece_tokenizer(vocabularies, vocab, special, languages)


def read_vocabulary(path: str | Path) -> Any:
    """A SentencePiece model with end and unknown tokens; ValueError for another file."""
    from sentencepiece import SentencePieceProcessor

    path = check_file(path)
    try:
        model = SentencePieceProcessor(model_file=str(path))
    except (RuntimeError, OSError) as error:
        raise ValueError(
            f"{path}: cannot be read as a SentencePiece model, expected a .spm file; models with other vocabularies "
            "(vocab.yml) are converted by transformers' own convert_marian_to_pytorch.py"
        ) from error
    pieces = {model.id_to_piece(index) for index in range(len(model))}
    if model.eos_id() < 0 or model.unk_id() < 0 or len(pieces) < len(model) or PAD in pieces:
        raise ValueError(f"{path}: expected a SentencePiece model with </s> and <unk>, without <pad>, as Marian's are")
    return model


def backbone_of(
    reader: MarianTransformer, pad: int, tokenizer: PreTrainedTokenizerBase
) -> DocMTForConditionalGeneration:
    """The plain Transformer with the weights of the file, and the row of `<pad>` after those of both tables."""
    size, bias = pad + 1, reader.output_bias()
    tokens = {"pad": pad, "decoder_start": pad, "eos": tokenizer.eos_token_id, "unk": tokenizer.unk_token_id}
    tokens |= dict.fromkeys(("bos", "sep", "bod"))
    weights = reader.named_weights(size)
    config = DocMTConfig(
        vocab_size=size, **reader.fields(), **{f"{name}_token_id": token for name, token in tokens.items()}
    )
    model = backbone(config)
    weights["final_logits_bias"] = torch.full((1, size), NEVER)
    weights["final_logits_bias"][0, : len(bias)] = bias
    give_weights(model, weights, reader.model.path, "Options and parameters do not fit.")
    return model.eval()


def sentencepiece_tokenizer(
    vocabularies: Sequence[dict[str, int]],
    models: Sequence[str | Path],
    special: dict[str, str],
    languages: tuple[str | None, str | None],
) -> MarianTokenizer:
    """The tokenizer with the ids of `vocabularies`, source first, that cuts texts by `models`, source first."""
    separate = vocabularies[0] != vocabularies[-1]
    silence_sacremoses()
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / name for name in ("vocab.json", "target_vocab.json")]
        for file, vocabulary in zip(files, (vocabularies[0], vocabularies[-1])):
            file.write_text(json.dumps(vocabulary), encoding="utf-8")
        return MarianTokenizer(
            source_spm=str(models[0]),
            target_spm=str(models[-1]),
            vocab=str(files[0]),
            target_vocab_file=str(files[1]) if separate else None,
            separate_vocabs=separate,
            source_lang=languages[0],
            target_lang=languages[1],
            split_special_tokens=False,
            clean_up_tokenization_spaces=False,
            model_max_length=int(1e9),
            **special,
        )
