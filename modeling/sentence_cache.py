"""Translation with a cache of sentences: each is encoded and shortened once, and kept as long as it is context."""

import torch
from torch.nn.utils.rnn import pad_sequence

from .context import ContextEncoderOutput
from .context_translation import ContextTranslation, ContextTranslator
from .generation_docmt import Walk, pad_right


class CachedTranslation(ContextTranslation):
    """`ContextTranslation` for a model whose context goes through the encoder of current sentences."""

    def translator(self, tokenizer, batch_size: int, generate_kwargs: dict) -> "CachedTranslator":
        return CachedTranslator(self, tokenizer, batch_size, generate_kwargs)


class CachedTranslator(ContextTranslator):
    """The strategies over kept sentences; a key is (walk, number of the unit, is it the translation)."""

    def __init__(self, *args):
        super().__init__(*args)
        self.states: dict[tuple, torch.Tensor] = {}  # encoder states (L, D) of sentences that are still to translate
        self.vectors: dict[tuple, torch.Tensor] = {}  # what context attention reads of them (K, D)

    def translate(self, places: list[tuple[Walk, int]]) -> None:
        needed = dict.fromkeys((id(walk), place, False) for walk, place in places)
        walks = {id(walk): walk for walk, _ in places}
        for walk, place in places:
            needed |= dict.fromkeys((id(walk), *other) for other in self.around(walk, place))
        self.encode(walks, [key for key in needed if key not in self.vectors])
        super().translate(places)
        for walk, place in places:
            self.forget(walk, place)

    @torch.no_grad()
    def encode(self, walks: dict[int, Walk], keys: list[tuple]) -> None:
        """Encode and shorten sentences, longest together."""
        ids = {key: self.context_ids(walks[key[0]], *key[1:]) for key in keys}
        order = sorted(keys, key=lambda key: -len(ids[key]))
        for start in range(0, len(order), self.batch_size):
            batch = order[start : start + self.batch_size]
            source = pad_right([ids[key] for key in batch], self.pad, self.model.device)
            states, vectors, kept = self.model.get_encoder().read(**source)
            for row, key in enumerate(batch):
                self.vectors[key] = vectors[row, kept[row]]
                if not key[2]:
                    self.states[key] = states[row, : len(ids[key])]

    def forget(self, walk: Walk, place: int) -> None:
        """Drop what no sentence after this one reads: the newest `past_context` stay."""
        self.states.pop((id(walk), place, False))
        ended = place == len(walk.units) - 1
        for old in range(place + 1) if ended else [place - self.past]:
            for is_target in (False, True):
                self.vectors.pop((id(walk), old, is_target), None)

    def inputs(self, batch: list[tuple[Walk, int]], source: dict) -> dict:
        encoder = self.model.get_encoder()
        states = pad_sequence([self.states[id(walk), place, False] for walk, place in batch], batch_first=True)
        around, offsets, is_target = self.grid(batch)
        absent = states.new_zeros(0, states.shape[2])
        rows = [
            self.vectors[id(walk), *other] if other else absent
            for (walk, _), context in zip(batch, around)
            for other in context
        ]
        parts = []
        if any(len(row) for row in rows):
            vectors, kept = (part.unflatten(0, offsets.shape) for part in padded(rows))  # (B, C, K, D), (B, C, K)
            parts.append(encoder.placed(vectors, kept, offsets, is_target))
        if self.config.include_current:
            current = [self.vectors[id(walk), place, False] for walk, place in batch]
            parts.append(encoder.placed_current(*padded(current)))
        context, mask = (torch.cat(part, dim=1) for part in zip(*parts)) if parts else (None, None)
        outputs = ContextEncoderOutput(last_hidden_state=states, context_states=context, context_mask=mask)
        return {"encoder_outputs": outputs, "attention_mask": source["attention_mask"]}


def padded(rows: list[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    """Vectors of some sentences, (K, D) each, as (P, longest K, D), and which are there (P, K)."""
    lengths = torch.tensor([len(row) for row in rows], device=rows[0].device)
    vectors = pad_sequence(rows, batch_first=True)
    return vectors, torch.arange(vectors.shape[1], device=vectors.device) < lengths[:, None]
