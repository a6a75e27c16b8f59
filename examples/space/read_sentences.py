"""Context that one sentence read during translation: sentences with their shares, words, and slots of a memory."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from hf_docmt.analysis.model_runs import first_characters, forward, on_device
from hf_docmt.data.documents import make_documents
from hf_docmt.loading import registry
from hf_docmt.systems.attention_weights import (
    CROSS_ATTENTION,
    attention_weights,
    eager_attention,
    kept_outputs,
    modules_named,
)
from hf_docmt.systems.model_system import piece_ids, word_spans

Words = tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class Passage:
    """The sentences of a document that are not blank, their translations, and which of them is looked at, from 0."""

    source: tuple[str, ...]
    translation: tuple[str, ...]
    position: int

    def text(self, offset: int, is_target: bool = False) -> str:
        """The sentence or translation at this offset from the chosen one."""
        return (self.translation if is_target else self.source)[self.position + offset]


@dataclass(frozen=True)
class ReadSentence:
    """One sentence that was read: its offset, 0 = the current one, and its share of all that was read, in percent.

    `words` are the pieces of its text, which together are the text, with their percentages; empty where single words
    have none.
    """

    offset: int
    is_target: bool
    text: str
    share: float
    words: Words = ()


@dataclass(frozen=True)
class MemorySlot:
    """A vector of a recurrent memory: side, number from 1, percent of the attention to the memory, and who wrote it.

    `words` are the words of the sentence before that the last update read most for it, with percentages of its
    attention.
    """

    side: str
    slot: int
    share: float
    words: Words


@dataclass(frozen=True)
class ContextUse:
    """Context that the current sentence read. Shares of `sentences` and rest add up to 100.

    `kind` is the kind of measurement: `cross-attention`, `context attention`, `groups`, `gate`, `hierarchical
    attention` or `memory`. `tokens` are those of the current sentence that read, and `by_token` (tokens, sentences)
    their percentages. `gate`: percent of the context that gates let through, None without a gate.
    """

    kind: str
    sentences: tuple[ReadSentence, ...]
    tokens: tuple[str, ...]
    by_token: np.ndarray
    gate: float | None = None
    slots: tuple[MemorySlot, ...] = ()

    @property
    def context(self) -> tuple[ReadSentence, ...]:
        """The sentences that were read in addition to the current one."""
        return tuple(sentence for sentence in self.sentences if sentence.offset)


def read_sentences(
    passage: Passage,
    tokenizer: PreTrainedTokenizerBase,
    places: Sequence[tuple[int, bool]],
    ids: Sequence[int],
    owner: np.ndarray,
    weights: np.ndarray,
) -> tuple[tuple[ReadSentence, ...], np.ndarray]:
    """Weights (T, N) of read tokens as sentences, and shares (T, sentences) of each reading token, in percent.

    `places` are offset and side of the sentences, `owner` (N,) the index among them of the sentence that each read
    token is of, -1 = none; `ids` (N,) are the tokens.
    """
    percent = 100 * weights / np.maximum(weights.sum(axis=1, keepdims=True), np.finfo(float).tiny)  # (T, N)
    by_token = percent @ (owner[:, None] == np.arange(len(places)))  # (T, sentences)
    mean, sentences = percent.mean(axis=0), []
    for number, (offset, is_target) in enumerate(places):
        own = np.flatnonzero(owner == number)
        text = passage.text(offset, is_target)
        words = word_weights(tokenizer, text, [ids[index] for index in own], mean[own], is_target=is_target)
        sentences.append(ReadSentence(offset, is_target, text, float(mean[own].sum()), words))
    return tuple(sentences), by_token


def word_weights(
    tokenizer: PreTrainedTokenizerBase, text: str, ids: Sequence[int], weights: np.ndarray, *, is_target: bool
) -> Words:
    """The pieces of a text, words and what is between them, with the weights of its tokens among `ids`.

    A token belongs to the word of its first character, special tokens around the sentence to none. Empty where the
    tokens are not found, or the tokenizer has no characters for them.
    """
    wanted = piece_ids(tokenizer, text, is_target=is_target)
    starts = [s for s in range(len(ids) - len(wanted) + 1) if list(ids[s : s + len(wanted)]) == wanted]
    if not starts or not wanted:
        return ()
    try:
        firsts = first_characters(tokenizer, text, is_target=is_target)
    except ValueError:
        return ()
    characters = np.zeros(len(text))
    for number, first in enumerate(firsts):
        characters[min(first, len(text) - 1)] += sum(weights[start + number] for start in starts)
    spans = word_spans(text)
    borders = sorted({0, len(text), *(border for span in spans for border in span)})
    return tuple((text[begin:end], float(characters[begin:end].sum())) for begin, end in pairwise(borders))


def training_batch(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, passage: Passage
) -> tuple[dict, dict[str, torch.Tensor]]:
    """The example with the current sentence and its batch of one row, made as in training, on the model's device."""
    config, architecture = model.config, registry.for_config(model.config)
    documents = as_documents(config, passage)
    examples = architecture.examples(documents, tokenizer, config)
    number = passage.position
    if examples.segments is not None:
        number = int(np.searchsorted(examples.segments[:, 0], number, side="right")) - 1
    batch = architecture.collator(config, tokenizer)([examples[number]])
    return examples[number], on_device(model, batch)


def as_documents(config, passage: Passage):
    """The passage as the one document `passage`. ValueError: a model that does not say its languages."""
    source, target = config.source_lang, config.target_lang
    if not source or not target:
        raise ValueError(
            f"the model's languages are needed, its configuration has source_lang={source!r} and "
            f"target_lang={target!r}: set both in config.json"
        )
    pairs = [{source: sentence, target: other} for sentence, other in zip(passage.source, passage.translation)]
    return make_documents([{"doc_id": "passage", "translation": pairs}], source, target)


def mean_attention(model: PreTrainedModel, batch: dict[str, torch.Tensor], modules=None) -> np.ndarray:
    """Weights (B, T, N) of attention modules of the decoder, mean of layers and heads: by default the cross-attention.

    N are the source tokens, or what other modules read.
    """
    cross = modules is None
    modules = modules_named(model.get_decoder(), CROSS_ATTENTION) if cross else modules
    keys = batch["input_ids"].shape[1]
    part = (lambda output: attention_weights(output, keys)) if cross else (lambda output: output[1])
    with eager_attention(model), kept_outputs(modules, part) as layers:
        forward(model, batch, use_cache=False)
    return torch.stack(layers).mean(dim=(0, 2), dtype=torch.double).cpu().numpy()
