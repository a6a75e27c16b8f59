"""Strategies with a cache: what is computed of a context sentence is computed once, for all whose context it is."""

from collections.abc import Sequence

import torch
from torch.nn.utils.rnn import pad_sequence

from .context_attention import ContextEncoderOutput
from .context_strategies import ContextSentence, ContextTranslator
from .row_processors import pad_rows
from .shortening import POOLINGS
from .translation_jobs import CurrentSentence, DocumentState, Languages

MISSING = ContextSentence(DocumentState(0, []), 0)  # the lone `</s>` that some models read for a sentence not there


class CachedContextTranslator(ContextTranslator):
    """The strategies of `ContextTranslator` with the vectors of context sentences in `cache`."""

    def __init__(self, model, batch_size: int, generate_kwargs: dict, languages: Languages = (None, None)):
        super().__init__(model, batch_size, generate_kwargs, languages)
        self.cache: dict[ContextSentence, torch.Tensor] = {}

    def translate_known(self, sentences: Sequence[CurrentSentence]) -> None:
        needed = dict.fromkeys(context for sentence in sentences for context in self.needed_for(sentence))
        self.encode([context for context in needed if context not in self.cache])
        super().translate_known(sentences)
        for sentence in sentences:
            self.forget(sentence)

    def needed_for(self, sentence: CurrentSentence) -> list[ContextSentence]:
        """Entries that the cache must hold before a sentence is translated."""
        return self.context_of(sentence)

    @torch.no_grad()
    def encode(self, contexts: Sequence[ContextSentence]) -> None:
        """Read sentences into the cache, longest together."""
        ids = {context: self.context_ids(context) for context in contexts}
        for batch in self.batches(contexts, lambda context: len(ids[context])):
            self.store(batch, *pad_rows([ids[context] for context in batch], self.pad, self.device))

    def store(self, contexts: Sequence[ContextSentence], input_ids: torch.Tensor, mask: torch.Tensor) -> None:
        """Put what the model reads of these sentences, ids and mask (P, L), into the cache."""
        raise NotImplementedError

    def forget(self, sentence: CurrentSentence) -> None:
        """Drop what no sentence after this one reads: the newest `past` sentences stay.

        In `sliding` that is done after several batches, whose sentences are translated in the order of their length.
        """
        document, index = sentence
        ended = index == len(document.parts) - 1
        for old in range(index + 1) if ended else [index - self.past]:
            for kind in ({}, {"is_target": True}, {"is_next": True}):
                self.cache.pop(ContextSentence(document, old, **kind), None)


class SharedEncoderTranslator(CachedContextTranslator):
    """For a model whose context goes through the encoder of current sentences.

    Each sentence is encoded and shortened once, for itself and for those whose context it is.
    """

    def __init__(self, model, batch_size: int, generate_kwargs: dict, languages: Languages = (None, None)):
        super().__init__(model, batch_size, generate_kwargs, languages)
        self.states: dict[ContextSentence, torch.Tensor] = {}  # encoder states (L, D) of sentences still to translate
        if self.config.shortening in POOLINGS:  # pooled vectors have learned positions, too
            self.sentence_positions = self.config.max_position_embeddings

    def needed_for(self, sentence: CurrentSentence) -> list[ContextSentence]:
        missing = [MISSING] if self.config.missing_context == "eos" else []
        return [ContextSentence(*sentence), *super().needed_for(sentence), *missing]

    def context_ids(self, context: ContextSentence) -> list[int]:
        return [self.eos] if context is MISSING else super().context_ids(context)

    def context_grid(self, batch: Sequence[CurrentSentence]):
        """As in the base class; if missing sentences are read as `</s>`, a column for every offset."""
        if self.config.missing_context != "eos":
            return super().context_grid(batch)
        flat = []
        for sentence in batch:
            by_offset = {context.index - sentence.index: context for context in self.context_of(sentence)}
            flat += [by_offset.get(offset, MISSING) for offset in self.config.known_offsets]
        offsets = torch.tensor(self.config.known_offsets, device=self.device).expand(len(batch), -1)
        return flat, offsets, torch.zeros_like(offsets, dtype=torch.bool)

    def store(self, contexts: Sequence[ContextSentence], input_ids: torch.Tensor, mask: torch.Tensor) -> None:
        states, vectors, kept = self.model.get_encoder().read(input_ids=input_ids, attention_mask=mask)
        for row, (context, length) in enumerate(zip(contexts, mask.sum(dim=1).tolist())):
            self.cache[context] = vectors[row, kept[row]]  # (K, D)
            if not context.is_target and context is not MISSING and not CurrentSentence(*context[:2]).part.is_known:
                self.states[context] = states[row, :length]

    def forget(self, sentence: CurrentSentence) -> None:
        del self.states[ContextSentence(*sentence)]
        super().forget(sentence)

    @torch.no_grad()
    def context_inputs(self, batch: Sequence[CurrentSentence], source: dict) -> dict:
        encoder = self.model.get_encoder()
        current = [ContextSentence(*sentence) for sentence in batch]
        states = pad_sequence([self.states[sentence] for sentence in current], batch_first=True)  # (B, S, D)
        grid, offsets, is_target = self.context_grid(batch)
        absent = states.new_zeros(0, states.shape[2])
        rows = [self.cache[context] if context else absent for context in grid]
        parts = []
        if any(len(row) for row in rows):
            vectors, kept = (part.unflatten(0, offsets.shape) for part in pad_vectors(rows))  # (B, C, K, D), (B, C, K)
            parts.append(encoder.with_segments(vectors, kept, offsets, is_target))
        if self.config.include_current:
            parts.append(encoder.with_current_segment(*pad_vectors([self.cache[sentence] for sentence in current])))
        context, mask = (torch.cat(part, dim=1) for part in zip(*parts)) if parts else (None, None)
        outputs = ContextEncoderOutput(last_hidden_state=states, context_states=context, context_mask=mask)
        return source | {"encoder_outputs": outputs}


class ContextLayersTranslator(CachedContextTranslator):
    """For a model that reads each context sentence by layers of their own.

    A sentence goes through them once, or once as a sentence before and once as one after, where the model
    distinguishes these.
    """

    def context_of(self, sentence: CurrentSentence) -> list[ContextSentence]:
        distinguishes_next = self.model.get_encoder().distinguishes_next
        return [
            context._replace(is_target=False, is_next=distinguishes_next and context.index > sentence.index)
            for context in super().context_of(sentence)
        ]

    def store(self, contexts: Sequence[ContextSentence], input_ids: torch.Tensor, mask: torch.Tensor) -> None:
        is_next = torch.tensor([context.is_next for context in contexts], device=self.device)
        read = self.model.get_encoder().read_context(input_ids=input_ids, attention_mask=mask, is_next=is_next)
        outputs = torch.stack(read, dim=2)  # (P, L, layers, D)
        for row, (context, length) in enumerate(zip(contexts, mask.sum(dim=1).tolist())):
            self.cache[context] = outputs[row, :length]  # (L, layers, D)

    @torch.no_grad()
    def context_inputs(self, batch: Sequence[CurrentSentence], source: dict) -> dict:
        """Encoder outputs of the sentences, each context sentence in the column of its offset, past ones first."""
        encoder, columns = self.model.get_encoder(), self.config.known_offsets
        by_offset = [
            {context.index - sentence.index: context for context in self.context_of(sentence)} for sentence in batch
        ]
        rows = [self.cache.get(contexts.get(offset)) for contexts in by_offset for offset in columns]
        context = None
        if any(row is not None for row in rows):
            absent = next(row for row in rows if row is not None)[:0]
            outputs, mask = pad_vectors([absent if row is None else row for row in rows])  # (B*C, L, layers, D)
            shape = (len(batch), len(columns))
            layers = [layer.unflatten(0, shape) for layer in outputs.unbind(dim=2)]  # (B, C, L, D) each
            context = layers, mask.unflatten(0, shape)
        outputs = encoder(**source, context=context, return_dict=True)
        return source | {"encoder_outputs": outputs}


def pad_vectors(rows: list[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    """Vectors of some sentences, (K, ..., D) each -> (P, longest K, ..., D) and their mask, (P, K) bool."""
    lengths = torch.tensor([len(row) for row in rows], device=rows[0].device)
    vectors = pad_sequence(rows, batch_first=True)
    return vectors, torch.arange(vectors.shape[1], device=vectors.device) < lengths[:, None]
