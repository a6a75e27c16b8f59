"""Sentence-level models of transformers, converted and written as Hub folders."""

import os

from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

from hf_docmt.files import check_new_folder
from hf_docmt.hub.cards import license_of
from hf_docmt.hub.export import export_model
from hf_docmt.modeling.sequence_format import LANGUAGES, some_codes, uses_language
from hf_docmt.pretrained.conversion import from_sentence_model


def convert_sentence_model(
    source: str | os.PathLike | PreTrainedModel,
    output: str | os.PathLike | None = None,
    *,
    tokenizer: PreTrainedTokenizerBase | None = None,
    architecture: str = "concat",
    interpolate_positions: bool = False,
    needs_languages: bool = False,
    **fields,
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase | None]:
    """Convert a Marian, BART, mBART or M2M-100 (NLLB) model to a document model; write it to `output` if given.

    Before it is trained, the new model translates single sentences as the old one. Arguments, results, departures and
    errors are those of `hf_docmt.pretrained.conversion.from_sentence_model`; `output` is a new folder, written by
    `export_model`, whose card states the licence of the source's, and that it is not trained on documents. With
    `needs_languages` a ValueError asks for those that a model with language codes was not given.

    >>> from transformers import MarianConfig, MarianMTModel
    >>> sizes = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16}
    >>> marian = MarianMTModel(MarianConfig(vocab_size=50, pad_token_id=49, decoder_start_token_id=49, **sizes))
    >>> converted, _ = convert_sentence_model(marian, architecture="caching", past_context=2)
    >>> converted.config.model_type
    'docmt-caching'
    """
    if output is not None:
        check_new_folder(output)
    fields |= {"architecture": architecture, "interpolate_positions": interpolate_positions}
    model, tokenizer = from_sentence_model(source, tokenizer=tokenizer, **fields)
    if needs_languages:
        _check_languages(model.config, source)
    if output is not None:
        license = None if isinstance(source, PreTrainedModel) else license_of(source)
        export_model(model, tokenizer, output, license=license, untrained=True)
    return model, tokenizer


def _check_languages(config: PreTrainedConfig, source: str | os.PathLike | PreTrainedModel) -> None:
    """ValueError where a model of several languages does not know which ones it translates between."""
    missing = [name for name in LANGUAGES if uses_language(config, name) and getattr(config, name) is None]
    if config.language_ids and missing:
        flags = " and ".join(f"--{name.replace('_', '-')}" for name in missing)
        raise ValueError(
            f"{source}: a model of {len(config.language_ids)} languages; give {flags}, codes such as "
            f"{some_codes(config.language_ids)}"
        )
