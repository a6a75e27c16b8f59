"""How a score was measured: the keys and values of a signature, `case:mixed|tok:13a|version:2.5.1`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Signature:
    """The entries of a signature in their order, each a key and its value, None for an entry without a colon.

    This is the form of sacrebleu's signatures. A signature that joins several, as `alignment + metric` does, may hold a
    key more than once; `signature[key]` is the last of its values.

        >>> signature = Signature.parse("past:3|context:true|version:0.2.0")
        >>> signature["context"], signature.get("seed", "none")
        ('true', 'none')
        >>> str(signature.without("version"))
        'past:3|context:true'
    """

    entries: tuple[tuple[str, str | None], ...] = ()

    @classmethod
    def parse(cls, text: str) -> Signature:
        """The signature that is written so; `str` of it gives the same text."""
        parts = (part.partition(":") for part in text.split("|"))
        return cls(tuple((key, value if colon else None) for key, colon, value in parts))

    @classmethod
    def of(cls, values: Mapping[str, object]) -> Signature:
        """A signature with these keys and values, in this order."""
        return cls.parse("|".join(f"{key}:{value}" for key, value in values.items()))

    def __str__(self) -> str:
        return "|".join(key if value is None else f"{key}:{value}" for key, value in self.entries)

    def __getitem__(self, key: str) -> str:
        return self.values()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.values())

    def __add__(self, other: Signature) -> Signature:
        return Signature(self.entries + other.entries)

    def get(self, key: str, default: str | None = None) -> str | None:
        return self.values().get(key, default)

    def values(self) -> dict[str, str]:
        """{key: value}; an entry without a colon has the value ''."""
        return {key: value or "" for key, value in self.entries}

    def without(self, *keys: str) -> Signature:
        return Signature(tuple(entry for entry in self.entries if entry[0] not in keys))


def content_digest(documents: Iterable[Sequence]) -> str:
    """Eight digits of a hash of documents, or items: what JSON can hold, in any order."""
    digests = sorted(hashlib.sha256(json.dumps(document).encode()).hexdigest() for document in documents)
    return hashlib.sha256("".join(digests).encode()).hexdigest()[:8]


def extra_digits(signature: str) -> int:
    """How many digits after the point a score has more than others: two in nats, of which a thousandth matters."""
    return 2 if "unit:nats" in signature.split("|") else 0
