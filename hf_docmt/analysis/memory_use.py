"""What one sentence read from a recurrent memory: its slots, and the earlier sentences that bear on its translation."""

import numpy as np
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from hf_docmt.analysis.gradient_attribution import embedding_gradients, mean_losses
from hf_docmt.analysis.memory_maps import (
    INPUTS,
    MemoryMap,
    attention_maps,
    document_batches,
    empty_memory,
    forward_step,
    maps_of_step,
    memory_stacks,
)
from hf_docmt.analysis.model_runs import eager_attention
from hf_docmt.analysis.read_sentences import ContextUse, MemorySlot, Passage, as_documents, read_sentences

REACH = 8  # sentences before the current one whose share is computed
SHOWN = 4  # of a slot


def memory_use(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, passage: Passage) -> ContextUse:
    """Shares of the current and of up to 8 sentences before it, and the slots that were read.

    The share of a sentence is that of the gradients which the loss of the current one, its translation forced, has at
    the embeddings of its words, source and target together, as in `gradient_attribution`: attention to the memory does
    not say whose words are in it. Slots have the attention of the current sentence (Feng et al. 2022, figure 7), and
    the words that the sentence before wrote into them (figure 6).
    """
    passage = passage.until(passage.position)
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
    sides = list(INPUTS)
    places = [(-distance, side != sides[0]) for side in sides for distance in range(len(earlier))]
    ids = [step[name][0].tolist() for name in INPUTS.values() for step, _ in earlier]
    owner = np.repeat(np.arange(len(places)), [len(row) for row in ids])
    flat = [token for row in ids for token in row]
    sentences, by_token = read_sentences(passage, tokenizer, places, flat, owner, np.concatenate(norms)[None])
    order = sorted(range(len(places)), key=lambda number: places[number])
    return ContextUse(
        "memory",
        tuple(sentences[number] for number in order),
        ("",),
        by_token[:, order],
        slots=tuple(memory_slots(maps, passage.position + 1)),
    )


def memory_slots(maps: list[MemoryMap], sentence: int) -> list[MemorySlot]:
    """The slots that a sentence (from 1) read, by side."""
    slots = []
    written = {entry.side: entry for entry in maps if entry.attention == "update" and entry.sentence == sentence - 1}
    for entry in maps:
        if entry.attention != "output" or entry.sentence != sentence:
            continue
        shares = 100 * entry.weights.mean(axis=0)  # (slots,)
        for slot, share in enumerate(shares.tolist()):
            slots.append(MemorySlot(entry.side, slot + 1, share, most_read(written[entry.side], slot)))
    return slots


def most_read(update: MemoryMap, slot: int) -> tuple[tuple[str, float], ...]:
    """The tokens that an update read most for a slot, with percentages."""
    weights = update.weights[:, slot]
    order = np.argsort(-weights, kind="stable")[:SHOWN]
    return tuple((update.tokens[index], 100 * float(weights[index])) for index in order)
