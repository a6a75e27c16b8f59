"""Export of plain concatenation models to folders of other libraries: stock transformers, CTranslate2."""

import os
from pathlib import Path

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from hf_docmt.hub.export import new_folder
from hf_docmt.hub.stock import stock_class, to_stock
from hf_docmt.messages import closest_hint, install_command
from hf_docmt.reports.report import Report

QUANTIZATIONS = ("float32", "float16", "bfloat16", "int16", "int8", "int8_float32", "int8_float16", "int8_bfloat16")


def export_stock_model(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    folder: str | os.PathLike,
    report: Report | None = None,
    **card,
) -> Path:
    """Write a concatenation model without sentence encodings as transformers' own class: no code, same logits.

    The class is Marian, Pegasus, BART, mBART or M2M-100, as the layers are (`stock_class`). Arguments and errors are
    those of `export_model`; ValueError, too, for a model that no class computes.

    >>> folder = export_stock_model(model, tokenizer, "runs/marian")
    >>> AutoModelForSeq2SeqLM.from_pretrained(folder).config.model_type
    'marian'
    """
    stock = stock_class(model.config)
    text = {"form": "stock", "model_class": stock.__name__, "report": report, **card}
    with new_folder(model, tokenizer, folder, **text) as unfinished:
        to_stock(model).save_pretrained(unfinished)
    return Path(folder)


def export_ctranslate2_model(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    folder: str | os.PathLike,
    quantization: str = "int8",
    report: Report | None = None,
    **card,
) -> Path:
    """Write such a model for `docmt translate --engine ctranslate2`, with weights of the type `quantization`.

    The folder has configuration, generation settings and tokenizer; in `ctranslate2/` are the files that
    `ctranslate2.Translator` loads. Further arguments and errors are those of `export_stock_model`; ValueError, too, for
    an unknown type and where CTranslate2 is not installed.

    >>> folder = export_ctranslate2_model(model, tokenizer, "runs/int8")
    >>> sorted(path.name for path in (folder / "ctranslate2").iterdir())
    ['config.json', 'model.bin', 'shared_vocabulary.json']
    """
    if quantization not in QUANTIZATIONS:
        hint = closest_hint(quantization, QUANTIZATIONS)
        raise ValueError(
            f"weights of CTranslate2: got {quantization!r}, expected one of {', '.join(QUANTIZATIONS)}{hint}"
        )
    try:
        from hf_docmt.hub.ctranslate2_conversion import write_ctranslate2_folder
    except ImportError as error:
        raise ValueError(f"CTranslate2 is not installed: {install_command('ctranslate2')}") from error
    stock_class(model.config)
    with new_folder(model, tokenizer, folder, **{"form": "ctranslate2", "report": report, **card}) as unfinished:
        tokens = token_names(tokenizer, model.config.vocab_size)
        write_ctranslate2_folder(model, tokens, unfinished, quantization)
    return Path(folder)


def token_names(tokenizer: PreTrainedTokenizerBase, size: int) -> list[str]:
    """The token of each id of a table of `size` rows; rows without a token are named by their number."""
    names = {index: token for token, index in tokenizer.get_vocab().items()}
    return [names.get(index, f"<row {index}>") for index in range(size)]
