"""Which context one sentence of a translated document used, for models of every architecture."""

from collections.abc import Sequence

import numpy as np
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from hf_docmt import registry
from hf_docmt.analysis.context_attention import context_attention_use
from hf_docmt.analysis.gate_maps import NOTHING, gate_map
from hf_docmt.analysis.memory_use import memory_use
from hf_docmt.analysis.model_runs import token_texts
from hf_docmt.analysis.read_sentences import (
    ContextUse,
    Passage,
    ReadSentence,
    mean_attention,
    read_sentences,
    training_batch,
)
from hf_docmt.modeling.document_state import has_text
from hf_docmt.modeling.segments import sentence_index


def context_use(
    model: PreTrainedModel,
    source: Sequence[str],
    translation: Sequence[str],
    tokenizer: PreTrainedTokenizerBase,
    sentence: int,
) -> ContextUse:
    """What sentence number `sentence` (from 1) of a document read while it was translated.

    By architecture: cross-attention to the sentences of the segment (`concat`, `lst`, `window`), attention to context
    sentences (`multiencoder`, `caching`, with groups taken apart into words; `doct`, with its gate), shares that words
    give to the sentences around (`routing`, `doct` with `selection="routing"`), slots and gradients (`memory`). The
    document is read once more as in training, its translation forced, so that strategies do not matter; blank sentences
    are left out. ValueError: lists of different lengths, a number outside the document, a blank sentence, a model that
    does not say its languages.
    """
    passage = passage_of(source, translation, sentence)
    architecture = registry.for_config(model.config)
    if architecture.carries_state:
        return memory_use(model, tokenizer, passage)
    if not architecture.separate_context:
        return segment_use(model, tokenizer, passage)
    if model.config.selects_by_word:
        return gate_use(model, tokenizer, passage)
    return context_attention_use(model, tokenizer, passage)


def passage_of(source: Sequence[str], translation: Sequence[str], sentence: int) -> Passage:
    """The sentences that are not blank, with the one looked at. ValueError as in `context_use`."""
    if len(source) != len(translation):
        raise ValueError(
            f"{len(source)} source sentences but {len(translation)} translations: give a translation of each sentence"
        )
    if not 1 <= sentence <= len(source):
        raise ValueError(f"sentence {sentence} of {len(source)}: expected a number from 1 to {len(source)}")
    if not has_text(source[sentence - 1]):
        raise ValueError(f"sentence {sentence} is blank, and blank sentences are not translated: choose another one")
    there = [number for number, text in enumerate(source) if has_text(text)]
    sides = [tuple(side[number] for number in there) for side in (source, translation)]
    return Passage(*sides, there.index(sentence - 1))


@torch.inference_mode()
def segment_use(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, passage: Passage) -> ContextUse:
    """Attention while the current sentence is written to each sentence of its source segment, over layers and heads.

    As `attention_share` for one sentence: the segment is cut as in training, translations are forced. A separator
    belongs to the sentence it ends.
    """
    example, batch = training_batch(model, tokenizer, passage)
    weights = mean_attention(model, batch)[0]  # (T, S)
    sep = model.config.sep_token_id
    source = sentence_index(batch["input_ids"], sep)[0].cpu().numpy()  # (S,)
    first = example["index"] - (example["current"] or 0)  # position of the segment's first sentence
    current = passage.position - first
    labels = batch["labels"][0]
    rows = (labels != -100).cpu().numpy()
    if model.config.context_sides == "both" or example["current"] is None:
        rows &= sentence_index(batch["labels"], sep)[0].cpu().numpy() == current
    count = min(len(example["source"]), len(passage.source) - first)  # without what is after the document's end
    places = [(number - current, False) for number in range(count)]
    owner = np.where(source < count, source, -1)
    ids = batch["input_ids"][0].tolist()
    sentences, by_token = read_sentences(passage, tokenizer, places, ids, owner, weights[rows])
    tokens = token_texts(tokenizer, labels[torch.from_numpy(rows).to(labels.device)].tolist())
    return ContextUse("cross-attention", sentences, tuple(tokens), by_token)


def gate_use(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, passage: Passage) -> ContextUse:
    """Shares of the context sentences in the context of each source word, mean of the encoder layers."""
    config, position = model.config, passage.position
    first = max(0, position - config.past_context)
    if len(passage.source[first : position + 1 + config.future_context]) < 2:
        return ContextUse("gate", (), (), np.zeros((0, 0)))
    gates = gate_map(model, passage.source, tokenizer, position + 1)
    there = [number for number, name in enumerate(gates.columns) if name != NOTHING]
    shares = 100 * gates.mean[:, there]  # (tokens, sentences)
    offsets = [int(gates.columns[number]) for number in there]
    sentences = [
        ReadSentence(offset, False, passage.text(offset), float(share))
        for offset, share in zip(offsets, shares.mean(axis=0))
    ]
    return ContextUse("gate", tuple(sentences), gates.tokens, shares)
