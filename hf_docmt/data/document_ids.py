"""The ids of the documents of a corpus of any length, in a few bytes each."""

from array import array
from hashlib import blake2b

NAMED_LOCATIONS = 10_000  # of so many first documents the location is kept for messages


class DocumentIds:
    """Ids that were used, as 64-bit digests in a hash table with open addressing: 18 to 36 bytes a document.

    Two different ids are taken for one with a probability of n^2 / 2^65 for n documents, 3e-8 for a million.
    """

    def __init__(self):
        self._digests = array("Q", bytes(8 << 10))  # a power of two of slots; 0 is a free one
        self._numbers = array("I", bytes(array("I").itemsize << 10))  # of the documents, from 1
        self._locations: list[str] = []
        self._count = 0

    def add(self, doc_id: str, location: str) -> str | None:
        """Note that a document has this id; where the id was used before, or None."""
        digest = int.from_bytes(blake2b(doc_id.encode("utf-8", "surrogatepass"), digest_size=8).digest()) or 1
        slot = self._slot(digest)
        if self._digests[slot]:
            number = self._numbers[slot]
            return self._locations[number - 1] if number <= NAMED_LOCATIONS else f"document {number}"
        self._count += 1
        self._digests[slot], self._numbers[slot] = digest, self._count
        if self._count <= NAMED_LOCATIONS:
            self._locations.append(location)
        if self._count * 3 > len(self._digests) * 2:
            self._grow()
        return None

    def _slot(self, digest: int) -> int:
        """The slot that holds the digest, or the free one where it belongs."""
        digests, last = self._digests, len(self._digests) - 1
        slot = digest & last
        while digests[slot] and digests[slot] != digest:
            slot = (slot + 1) & last
        return slot

    def _grow(self) -> None:
        entries = [(digest, number) for digest, number in zip(self._digests, self._numbers) if digest]
        self._digests = array("Q", bytes(16 * len(self._digests)))
        self._numbers = array("I", bytes(2 * self._numbers.itemsize * len(self._numbers)))
        for digest, number in entries:
            slot = self._slot(digest)
            self._digests[slot], self._numbers[slot] = digest, number
