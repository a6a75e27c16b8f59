"""Lexical shortlists: of the output projection the search computes the words that source words are translated by.

Such lists (Le, Allauzen and Yvon 2012; Junczys-Dowmunt et al. 2018) are Marian's `lex.*.bin`. A translation is that of
the whole vocabulary wherever the list has its words; scores of beams are normalised over the list.
"""

import struct
from pathlib import Path

import torch
from torch import nn

from hf_docmt.engine.int8_linear import Int8Linear, is_plain_int8
from hf_docmt.engine.search import DecoderState
from hf_docmt.modeling.layers import is_plain

MAGIC = 0xF11A48D5013417F5  # of Marian's binary shortlists
HEADER = struct.Struct("<6Q")  # magic, checksum, first words, best words, number of offsets, number of words
SPECIAL = ("eos", "unk", "sep", "bod")


class LexicalShortlist:
    """Target words of every source word, ids of a joint vocabulary or of two.

    `offsets` (source words + 1,) and `words` (N,) int64: those of source word s are words[offsets[s]:offsets[s + 1]].
    The `first` ids of the target, special tokens and the source words themselves are always in the list.
    """

    def __init__(self, offsets: torch.Tensor, words: torch.Tensor, first: int, name: str = "shortlist"):
        self.offsets, self.words, self.first, self.name = offsets, words, first, name
        self.largest = int(words.max()) if len(words) else -1

    def __str__(self) -> str:
        return self.name

    @classmethod
    def read(cls, path: str | Path) -> "LexicalShortlist":
        """A binary shortlist of Marian. ValueError for another file, and a damaged one; its checksum is not checked."""
        try:
            data = Path(path).read_bytes()
        except OSError as error:
            raise ValueError(f"{path}: cannot be read ({error.strerror}); give a shortlist of Marian") from error
        magic, _, first, _, offsets, words = HEADER.unpack_from(data) if len(data) >= HEADER.size else [0] * 6
        if magic != MAGIC or HEADER.size + 8 * offsets + 4 * words != len(data) or offsets < 1:
            raise ValueError(f"{path}: not a binary shortlist of Marian (lex.*.bin), or a damaged one; copy it again")
        end = HEADER.size + 8 * offsets
        starts, ids = integers(data[HEADER.size : end], torch.int64), integers(data[end:], torch.int32)
        in_order = starts[0] == 0 and starts[-1] == words and bool((starts[1:] >= starts[:-1]).all())
        if not in_order or first > 2**31 or (ids < 0).any():
            raise ValueError(f"{path}: its lists are not consecutive; copy the file again")
        return cls(starts, ids, first, str(path))

    def write(self, path: str | Path) -> None:
        """As a binary shortlist of Marian, without its checksum (0): Marian reads it with the check off."""
        header = HEADER.pack(MAGIC, 0, self.first, 0, len(self.offsets), len(self.words))
        offsets, words = struct.pack(f"<{len(self.offsets)}q", *self.offsets.tolist()), self.words.tolist()
        Path(path).write_bytes(header + offsets + struct.pack(f"<{len(words)}I", *words))

    def members(self, input_ids: torch.Tensor, config) -> torch.Tensor:
        """Whether a target word is in the list of each source (B, S), (B, V) bool. ValueError: another vocabulary."""
        size = config.vocab_size
        if self.largest >= size:
            raise ValueError(
                f"{self.name}: it has words up to id {self.largest}, the model {size} tokens; give the "
                "shortlist of this model's vocabulary"
            )
        members = torch.zeros(len(input_ids), size, dtype=torch.bool)
        members[:, : self.first] = True
        special = [getattr(config, f"{name}_token_id") for name in SPECIAL]
        special += list((config.language_ids or {}).values())
        members[:, [token for token in special if token is not None]] = True
        ids = input_ids.cpu()
        members.scatter_(1, ids, True)  # names and numbers are copied
        rows, places = (ids < len(self.offsets) - 1).nonzero(as_tuple=True)
        starts = self.offsets[ids[rows, places]]  # (source words,)
        counts = self.offsets[ids[rows, places] + 1] - starts
        before = counts.cumsum(0) - counts
        found = torch.arange(int(counts.sum())) + (starts - before).repeat_interleave(counts)
        members[rows.repeat_interleave(counts), self.words[found]] = True
        members[:, config.pad_token_id] = False
        return members

    def decoder_state(self, model, input_ids: torch.Tensor | None, *arguments, **inputs) -> "ShortlistState":
        """The state of a search for sources (B, S). ValueError without ids."""
        if input_ids is None:
            raise ValueError(f"{self.name}: a shortlist is made from input_ids, got encoder_outputs alone: give both.")
        return ShortlistState(self.members(input_ids, model.config), model, *arguments, **inputs)


def integers(data: bytes, dtype: torch.dtype) -> torch.Tensor:
    """Numbers of a file, little endian as this processor's, as int64."""
    return torch.frombuffer(bytearray(data), dtype=dtype).long() if data else torch.empty(0, dtype=torch.long)


class ShortlistState(DecoderState):
    """Decoding with the rows of the output projection that the lists of all sources in the batch have together."""

    def __init__(self, members: torch.Tensor, model, *arguments, **inputs):
        super().__init__(model, *arguments, **inputs)
        words, device = members.any(dim=0).nonzero()[:, 0], model.device
        self.words = words.to(device)
        if len(members) > 1:
            self.is_absent = ~members.index_select(1, words).to(device)
        self.bias = model.final_logits_bias[0, self.words]
        self.projection = rows_of(model.lm_head, self.words)

    def logits(self, **arguments) -> torch.Tensor:
        states = self.model.model(**arguments, return_dict=True).last_hidden_state[:, -1]  # (R, D)
        return self.projection(states, self.bias)

    def output(self) -> tuple[nn.Module, torch.Tensor]:
        return self.projection, self.bias


def rows_of(layer: nn.Module, rows: torch.Tensor) -> nn.Module:
    """A linear layer with some rows (N,) of another's weights. ValueError for one with an adapter or hooks."""
    if not (is_plain(layer) or is_plain_int8(layer)):
        raise ValueError("a shortlist takes rows of a plain output projection: merge the adapter that is around it.")
    names = ("weight", "weight_scale") if isinstance(layer, Int8Linear) else ("weight",)
    taken = {name: nn.Parameter(getattr(layer, name).detach()[rows], requires_grad=False) for name in names}
    short = object.__new__(type(layer))  # without the time that a module takes to be made
    vars(short).update(vars(layer) | {"_parameters": taken | {"bias": None}, "out_features": len(rows), "_packed": {}})
    return short
