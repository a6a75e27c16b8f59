"""The context that one sentence of a translated document used, for models of every architecture."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from context_attention import context_attention_use, hierarchical_use
from read_sentences import (
    ContextUse,
    MemorySlot,
    Passage,
    ReadSentence,
    as_documents,
    mean_attention,
    read_sentences,
    training_batch,
)
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from hf_docmt.analysis.attention_share import sentences_of_tokens
from hf_docmt.analysis.decisive_context import check_sentence
from hf_docmt.analysis.memory import (
    INPUTS,
    MemoryMap,
    attention_maps,
    document_batches,
    embedding_gradients,
    empty_memory,
    forward_step,
    maps_of_step,
    mean_losses,
    memory_stacks,
)
from hf_docmt.analysis.model_runs import selection_shares, token_texts
from hf_docmt.loading import registry
from hf_docmt.modeling.text_splitting import has_text
from hf_docmt.systems.attention_weights import eager_attention

REACH = 8  # sentences before the current one whose share is computed in a model with a memory
SHOWN = 4  # words of a slot


def context_use(
    model: PreTrainedModel,
    source: Sequence[str],
    translation: Sequence[str],
    tokenizer: PreTrainedTokenizerBase,
    sentence: int,
) -> ContextUse:
    """The context that sentence number `sentence` (from 1) of a document read during translation.

    By architecture: cross-attention to the sentences of the segment (`concat`, `lst`, `window`), attention to context
    sentences (`multiencoder`, `caching`, with groups taken apart into words; `doct`, `han`, with their gates), shares
    that words give to the sentences around (`routing`, `doct` with `selection="routing"`), slots and gradients
    (`memory`). The document is read once more as in training, its translation forced, so that strategies do not matter;
    blank sentences are skipped. ValueError: lists of different lengths, a number outside the document, a blank
    sentence, a model that does not say its languages.
    """
    check_sentence(source, translation, sentence)
    there = [number for number, text in enumerate(source) if has_text(text)]
    sides = [tuple(side[number] for number in there) for side in (source, translation)]
    passage, architecture = Passage(*sides, there.index(sentence - 1)), registry.for_config(model.config)
    if architecture.carries_state:
        return memory_use(model, tokenizer, passage)
    if not architecture.separate_context:
        return segment_use(model, tokenizer, passage)
    if hasattr(model.config, "hierarchical_attention"):
        return hierarchical_use(model, tokenizer, passage)
    if model.config.selects_by_word:
        return gate_use(model, tokenizer, passage)
    return context_attention_use(model, tokenizer, passage)


@torch.inference_mode()
def segment_use(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, passage: Passage) -> ContextUse:
    """Attention while the current sentence is written to each sentence of its source segment, over layers and heads.

    As `attention_share` for one sentence: the segment is cut as in training, translations are forced. A separator
    belongs to the sentence it ends.
    """
    example, batch = training_batch(model, tokenizer, passage)
    weights = mean_attention(model, batch)[0]  # (T, S)
    source, target = (sides[0].cpu() for sides in sentences_of_tokens(model.config, batch))  # (S, N), (T, N)
    first = example["index"] - (example["current"] or 0)  # position of the segment's first sentence
    current = passage.position - first
    rows = target[:, current].bool().numpy()  # of the current sentence
    count = min(len(example["source"]), len(passage.source) - first)  # without what is after the document's end
    places = [(number - current, False) for number in range(count)]
    owner = np.where(source[:, :count].any(dim=1), source.argmax(dim=1), -1)
    ids = batch["input_ids"][0].tolist()
    sentences, by_token = read_sentences(passage, tokenizer, places, ids, owner, weights[rows])
    tokens = token_texts(tokenizer, batch["labels"][0].cpu()[rows].tolist(), is_target=True)
    return ContextUse("cross-attention", sentences, tuple(tokens), by_token)


def gate_use(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, passage: Passage) -> ContextUse:
    """Shares of the context sentences in the context of each source word, mean of the encoder layers."""
    config, position = model.config, passage.position
    reach = range(
        max(0, position - config.past_context), min(len(passage.source), position + 1 + config.future_context)
    )
    offsets = [other - position for other in reach if other != position]
    if not offsets:
        return ContextUse("gate", (), (), np.zeros((0, 0)))
    _, batch = training_batch(model, tokenizer, replace(passage, translation=("",) * len(passage.source)))
    columns = [config.known_offsets.index(offset) for offset in offsets]
    shares = 100 * selection_shares(model, batch).mean(axis=0)[:, columns]  # (tokens, sentences)
    sentences = [
        ReadSentence(offset, False, passage.text(offset), float(share))
        for offset, share in zip(offsets, shares.mean(axis=0))
    ]
    return ContextUse(
        "gate", tuple(sentences), tuple(token_texts(tokenizer, batch["input_ids"][0].tolist(), is_target=False)), shares
    )


def memory_use(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, passage: Passage) -> ContextUse:
    """Shares of the current and of up to 8 sentences before it, and the slots that were read.

    The share of a sentence is that of the gradients which the loss of the current one, its translation forced, has at
    the embeddings of its words, source and target together, as in `gradient_attribution`: attention to the memory does
    not say whose words are in it. Slots have the attention of the current sentence (Feng et al. 2022, figure 7), and
    the words that the sentence before wrote into them (figure 6).
    """
    end = passage.position + 1
    passage = Passage(passage.source[:end], passage.translation[:end], passage.position)
    documents, stacks = as_documents(model.config, passage), memory_stacks(model)
    first = max(0, passage.position - REACH)
    last = {side: stack.memory_layers[-1] for side, stack in stacks.items()}
    memory, earlier, maps = empty_memory(model, 1), [], []
    with eager_attention(model), attention_maps(stacks) as weights, embedding_gradients(model) as embeddings:
        (steps,) = document_batches(model, documents, tokenizer, rows=1)
        for number, step in enumerate(steps):
            embeddings.clear()
            with torch.set_grad_enabled(number >= first):
                outputs, memory = forward_step(model, step, memory)
            if number >= first:
                earlier.insert(0, (step, dict(zip(INPUTS, embeddings, strict=True))))
            if passage.position and number >= passage.position - 1:
                maps += maps_of_step(weights, last, step, number + 1, tokenizer)
        leaves = [leaf[side] for side in INPUTS for _, leaf in earlier]
        loss = mean_losses(outputs.logits, steps[-1]["labels"]).sum()
        gradients = torch.autograd.grad(loss, leaves, materialize_grads=True)
    norms = [gradient[0].norm(dim=1).double().cpu().numpy() for gradient in gradients]  # (T,) each
    places = [(-distance, side == "target") for side in INPUTS for distance in range(len(earlier))]
    ids = [step[name][0].tolist() for name in INPUTS.values() for step, _ in earlier]
    owner = np.repeat(np.arange(len(places)), [len(row) for row in ids])
    flat = [token for row in ids for token in row]
    sentences, by_token = read_sentences(passage, tokenizer, places, flat, owner, np.concatenate(norms)[None])
    order = sorted(range(len(places)), key=lambda number: places[number])
    ordered, slots = tuple(sentences[number] for number in order), memory_slots(maps, passage.position + 1)
    return ContextUse("memory", ordered, ("",), by_token[:, order], slots=slots)


def memory_slots(maps: list[MemoryMap], sentence: int) -> tuple[MemorySlot, ...]:
    """The slots that a sentence (from 1) read, by side, with the tokens that the update before read most for them."""
    slots = []
    written = {entry.side: entry for entry in maps if entry.attention == "update" and entry.sentence == sentence - 1}
    for entry in maps:
        if entry.attention == "output" and entry.sentence == sentence:
            update = written[entry.side]
            for slot, share in enumerate((100 * entry.weights.mean(axis=0)).tolist()):
                weights = update.weights[:, slot]
                most = np.argsort(-weights, kind="stable")[:SHOWN]
                words = tuple((update.tokens[index], 100 * float(weights[index])) for index in most)
                slots.append(MemorySlot(entry.side, slot + 1, share, words))
    return tuple(slots)
