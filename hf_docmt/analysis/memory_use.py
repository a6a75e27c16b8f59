"""What one sentence read from a recurrent memory: its slots, and the earlier sentences that bear on its translation."""

import numpy as np
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from hf_docmt.analysis.gradient_attribution import embedding_gradients, sentence_losses
from hf_docmt.analysis.memory_maps import MemoryMap, memory_maps
from hf_docmt.analysis.memory_steps import INPUTS, document_batches
from hf_docmt.analysis.read_sentences import ContextUse, MemorySlot, Passage, read_sentences
from hf_docmt.analysis.segment_attention import as_documents

REACH = 8  # sentences before the current one whose share is computed
WORDS = 4  # of a slot


def memory_use(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, passage: Passage) -> ContextUse:
    """Shares of the current and of up to 8 sentences before it, and the slots that were read.

    The share of a sentence is that of the gradients which the loss of the current one, its translation forced, has at
    the embeddings of its words, source and target together, as in `gradient_attribution`: attention to the memory does
    not say whose words are in it. Slots have the attention of the current sentence (Feng et al. 2022, figure 7), and
    the words that the sentence before wrote into them (figure 6).
    """
    passage = passage.until(passage.position)
    documents = as_documents(model.config, passage)
    reach = max(1, min(REACH, passage.position))
    with embedding_gradients(model) as embeddings:
        (steps,) = document_batches(model, documents, tokenizer, rows=1)
        *_, (_, earlier, loss) = sentence_losses(model, steps, embeddings, reach)
        leaves = [words.embeddings[side] for side in INPUTS for words in earlier]
        found = torch.autograd.grad(loss, leaves, materialize_grads=True)
    norms = [one[0].norm(dim=1).double().cpu().numpy() for one in found]  # (T,) each
    sides = list(INPUTS)
    places = [(-distance, side != sides[0]) for side in sides for distance in range(len(earlier))]
    ids = [words.ids[side][0].tolist() for side in sides for words in earlier]
    owner = np.repeat(np.arange(len(places)), [len(row) for row in ids])
    flat = [token for row in ids for token in row]
    sentences, by_token = read_sentences(passage, tokenizer, places, flat, owner, np.concatenate(norms)[None])
    order = sorted(range(len(places)), key=lambda number: places[number])
    maps = memory_maps(model, documents, tokenizer, "passage") if passage.position else []
    return ContextUse(
        "memory",
        tuple(sentences[number] for number in order),
        ("",),
        by_token[:, order],
        slots=tuple(memory_slots(maps, passage.position + 1)),
    )


def memory_slots(maps: list[MemoryMap], sentence: int) -> list[MemorySlot]:
    """The slots that a sentence (from 1) read, by side."""
    found = []
    written = {one.side: one for one in maps if one.attention == "update" and one.sentence == sentence - 1}
    for one in maps:
        if one.attention != "output" or one.sentence != sentence:
            continue
        shares = 100 * one.weights.mean(axis=0)  # (slots,)
        for slot, share in enumerate(shares.tolist()):
            found.append(MemorySlot(one.side, slot + 1, share, most_read(written[one.side], slot)))
    return found


def most_read(update: MemoryMap, slot: int) -> tuple[tuple[str, float], ...]:
    """The tokens that an update read most for a slot, with percentages."""
    weights = update.weights[:, slot]
    order = np.argsort(-weights, kind="stable")[:WORDS]
    return tuple((update.tokens[index], 100 * float(weights[index])) for index in order)
