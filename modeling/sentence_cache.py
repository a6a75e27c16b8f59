"""Translation with a cache of sentences: what is computed of a context sentence is computed once, and kept."""

import torch
from torch.nn.utils.rnn import pad_sequence

from .context_attention import ContextEncoderOutput
from .context_translation import ContextTranslation, ContextTranslator
from .generation_docmt import Walk, pad_right


class KeepingTranslator(ContextTranslator):
    """The strategies over kept sentences; a key is (walk, number of the unit, what of it, as `around` tells)."""

    def __init__(self, *args):
        super().__init__(*args)
        self.vectors: dict[tuple, torch.Tensor] = {}  # what is read of each context sentence

    def translate(self, places: list[tuple[Walk, int]]) -> None:
        walks = {id(walk): walk for walk, _ in places}
        needed = dict.fromkeys(key for place in places for key in self.keys(*place))
        self.encode(walks, [key for key in needed if key not in self.vectors])
        super().translate(places)
        for walk, place in places:
            self.forget(walk, place)

    def keys(self, walk: Walk, place: int) -> list[tuple]:
        """What has to be there before a sentence is translated."""
        return [(id(walk), *other) for other in self.around(walk, place)]

    @torch.no_grad()
    def encode(self, walks: dict[int, Walk], keys: list[tuple]) -> None:
        """Read sentences, longest together."""
        ids = {key: self.context_ids(walks[key[0]], *key[1:]) for key in keys}
        order = sorted(keys, key=lambda key: -len(ids[key]))
        for start in range(0, len(order), self.batch_size):
            batch = order[start : start + self.batch_size]
            self.keep(batch, pad_right([ids[key] for key in batch], self.pad, self.model.device))

    def keep(self, keys: list[tuple], source: dict) -> None:
        """Put what is read of these sentences, `input_ids` and `attention_mask` (P, L), into `vectors`."""
        raise NotImplementedError

    def forget(self, walk: Walk, place: int) -> None:
        """Drop what no sentence after this one reads: the newest `past_context` stay.

        In `sliding` that is done after a run of sentences, which are translated in the order of their length.
        """
        ended = place == len(walk.units) - 1
        for old in range(place + 1) if ended else [place - self.past]:
            for kind in (False, True):
                self.vectors.pop((id(walk), old, kind), None)


class CachedTranslation(ContextTranslation):
    """`ContextTranslation` for a model whose context goes through the encoder of current sentences."""

    def translator(self, tokenizer, batch_size: int, generate_kwargs: dict) -> "CachedTranslator":
        return CachedTranslator(self, tokenizer, batch_size, generate_kwargs)


class CachedTranslator(KeepingTranslator):
    """Each sentence is encoded and shortened once, for itself and for those whose context it is."""

    def __init__(self, *args):
        super().__init__(*args)
        self.states: dict[tuple, torch.Tensor] = {}  # encoder states (L, D) of sentences that are still to translate

    def keys(self, walk: Walk, place: int) -> list[tuple]:
        return [(id(walk), place, False), *super().keys(walk, place)]

    def keep(self, keys: list[tuple], source: dict) -> None:
        states, vectors, kept = self.model.get_encoder().read(**source)
        for row, (key, length) in enumerate(zip(keys, source["attention_mask"].sum(dim=1).tolist())):
            self.vectors[key] = vectors[row, kept[row]]  # (K, D)
            if not key[2]:  # no translation
                self.states[key] = states[row, :length]

    def forget(self, walk: Walk, place: int) -> None:
        self.states.pop((id(walk), place, False))
        super().forget(walk, place)

    @torch.no_grad()
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


class SelectedTranslation(ContextTranslation):
    """`ContextTranslation` for a model that reads each context sentence by layers of their own."""

    def translator(self, tokenizer, batch_size: int, generate_kwargs: dict) -> "SelectedTranslator":
        return SelectedTranslator(self, tokenizer, batch_size, generate_kwargs)


class SelectedTranslator(KeepingTranslator):
    """Each sentence goes through the context layers once, or once as a previous and once as a next one."""

    def around(self, walk: Walk, place: int) -> list[tuple[int, bool]]:
        """The context of a sentence: places, and whether the one there is read as a next sentence."""
        tells = self.model.get_encoder().tells_next
        return [(other, tells and other > place) for other, _ in super().around(walk, place)]

    def context_ids(self, walk: Walk, place: int, is_next: bool) -> list[int]:
        return super().context_ids(walk, place, False)

    def keep(self, keys: list[tuple], source: dict) -> None:
        is_next = torch.tensor([key[2] for key in keys], device=self.model.device)
        outputs = torch.stack(self.model.get_encoder().read_context(**source, is_next=is_next), dim=2)
        for row, (key, length) in enumerate(zip(keys, source["attention_mask"].sum(dim=1).tolist())):
            self.vectors[key] = outputs[row, :length]  # (L, layers, D)

    @torch.no_grad()
    def inputs(self, batch: list[tuple[Walk, int]], source: dict) -> dict:
        """Encoder outputs of the sentences, each context sentence in its place, past ones first."""
        encoder, config = self.model.get_encoder(), self.config
        found = [{other[0] - place: (id(walk), *other) for other in self.around(walk, place)} for walk, place in batch]
        offsets = config.context_places
        rows = [self.vectors.get(places.get(offset)) for places in found for offset in offsets]
        context = None
        if any(row is not None for row in rows):
            absent = next(row for row in rows if row is not None)[:0]
            outputs, mask = padded([absent if row is None else row for row in rows])  # (B*C, L, layers, D), (B*C, L)
            shape = (len(batch), len(offsets))
            context = [one.unflatten(0, shape) for one in outputs.unbind(dim=2)], mask.unflatten(0, shape)
        outputs = encoder(**source, context=context, return_dict=True)
        return {"encoder_outputs": outputs, "attention_mask": source["attention_mask"]}


def padded(rows: list[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    """Vectors of some sentences, (K, ..., D) each, as (P, longest K, ..., D), and which are there (P, K)."""
    lengths = torch.tensor([len(row) for row in rows], device=rows[0].device)
    vectors = pad_sequence(rows, batch_first=True)
    return vectors, torch.arange(vectors.shape[1], device=vectors.device) < lengths[:, None]
