"""Looking into a model: passes with forced references, sentences as tokens, languages of models of many."""

import copy
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import torch
from datasets import Dataset
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from hf_docmt.data.samplers import TokenBudgetBatchSampler
from hf_docmt.loading import registry
from hf_docmt.systems.attention_weights import kept_outputs, modules_named
from hf_docmt.systems.model_system import evaluation_mode, piece_spans

NOT_OF_THE_MODEL = ("labels", "label_weights", "is_counted")  # keys of a batch that are not inputs of forward
SELECTION = "selection"  # name of the module that computes the shares of context sentences in every encoder layer
UNREADABLE = "\ufffd"  # a tokenizer's text for a part of a character
BLANK = "␣"
CONTINUED = "…"  # text of a token that continues a character


def training_batches(
    model: PreTrainedModel, documents: Dataset, tokenizer: PreTrainedTokenizerBase, max_tokens: int
) -> Iterator[tuple[list[dict], dict[str, torch.Tensor]]]:
    """Examples as in training and their batches, of up to `max_tokens` source and target tokens, in order."""
    architecture = registry.for_config(model.config)
    examples = architecture.examples(documents, tokenizer, model.config)
    collate = architecture.collator(model.config, tokenizer)
    for numbers in TokenBudgetBatchSampler(examples.side_lengths, max_tokens, shuffle=False):
        rows = [examples[number] for number in numbers]
        yield rows, collate(rows)


def forward(model: PreTrainedModel, batch: Mapping[str, torch.Tensor], **options):
    """The outputs for a batch with forced references, which is on the model's device."""
    return model(**{name: value for name, value in batch.items() if name not in NOT_OF_THE_MODEL}, **options)


def on_device(model: PreTrainedModel, batch: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The batch on the model's device."""
    return {name: value.to(model.device) for name, value in batch.items()}


@torch.inference_mode()
def selection_shares(model: PreTrainedModel, batch: Mapping[str, torch.Tensor]) -> np.ndarray:
    """Shares (layers, T, C) that each word of the one source in a batch gives to the sentences at `known_offsets`.

    Fei et al. (2022), section 4.3. ValueError: a model whose words do not select among context sentences.
    """
    if not model.config.selects_by_word:
        raise ValueError(
            f"in a model of type {model.config.model_type!r} words do not select among context sentences: expected one "
            "of architecture 'routing', or 'doct' with selection='routing'; give such a model"
        )
    names = [name for name in batch if name.startswith(("input_", "attention_", "context_"))]
    encoder, inputs = model.get_encoder(), on_device(model, {name: batch[name] for name in names})
    with evaluation_mode(model), kept_outputs(modules_named(encoder, SELECTION)) as layers:
        encoder(**inputs)
    return torch.cat(layers).double().cpu().numpy()


def token_texts(tokenizer: PreTrainedTokenizerBase, ids: Sequence[int], *, is_target: bool) -> list[str]:
    """The text of each token of one side, BLANK for one of blanks alone.

    Where several tokens make one character, the first has it, the others CONTINUED.
    """
    if not is_target and getattr(tokenizer, "separate_vocabs", False):  # Marian's reads ids as the target's
        tokenizer = copy.copy(tokenizer)
        tokenizer.decoder, tokenizer.separate_vocabs = {n: token for token, n in tokenizer.encoder.items()}, False
    texts, start = [], 0
    for end in range(1, len(ids) + 1):
        text = tokenizer.decode(ids[start:end])
        if UNREADABLE in text and end < len(ids) and ids[end] not in tokenizer.all_special_ids:
            continue
        texts += [text.strip() or BLANK, *[CONTINUED] * (end - start - 1)]
        start = end
    return texts


def first_characters(tokenizer: PreTrainedTokenizerBase, text: str, *, is_target: bool) -> list[int]:
    """Index of the first character that is not blank, for each token of a sentence. ValueError as in `piece_spans`."""
    spans = piece_spans(tokenizer, text, is_target=is_target)
    return [end - len(text[start:end].lstrip()) for start, end in spans]


# Languages of models whose family has codes of many


def set_languages(model: PreTrainedModel, source_lang: str | None = None, target_lang: str | None = None) -> None:
    """Make the languages that are given those of the model's configuration; analyses read and write these.

    A model without codes takes what its configuration leaves open. ValueError: a code that the model does not have or
    that is missing, another language than that of a model without codes.
    """
    config, languages = model.config, {"source_lang": source_lang, "target_lang": target_lang}
    codes = config.language_codes(**languages)
    unknown = [name for name in languages if name not in codes and getattr(config, name) is None]
    config.sequence_format(**{name: None if name in unknown else language for name, language in languages.items()})
    for name, language in (codes | {name: languages[name] for name in unknown}).items():
        setattr(config, name, language)
