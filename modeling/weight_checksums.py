"""Checksums of weights, for changes of them that torch does not count."""

from functools import lru_cache

import torch

from .cpu_kernels import checksum_of

BLOCK = 251  # consecutive words of 8 bytes that are summed; prime, so that blocks do not line up with rows of a matrix
LANES = 4096  # words of 4 bytes after which the next one of the same weighted sum comes; more than are in a block


def checksum(weight: torch.Tensor) -> torch.Tensor:
    """Of the bits of a matrix, in little more than the time of reading it: by the kernels, else by sums of integers.

    For changes that torch does not count (`.data`, memory shared with numpy or other processes). A block is 251 words
    of 8 bytes side by side, and summed. A lane is every 4096th word of 4 bytes, and summed with random odd weights
    modulo 2**32: it sees what is moved to another lane or another place in it. Words of one lane are never in one
    block. Signs and largest bits, of which a lane tells only whether an even number changed, change the sums of blocks.
    A change is missed only if it leaves all sums of blocks as they were, and all lanes, each of which a change of more
    than one word leaves so by chance once in 2**32 (in 512 if of exponents alone, every second time if of signs alone).
    """
    whole = checksum_of(weight)
    if whole is not None:
        return whole
    words = weight.reshape(-1)
    size = words.numel() * words.itemsize
    if words.storage_offset() * words.itemsize % 8 or size % 8:
        words = torch.cat([words, words.new_zeros(-words.numel() % 8)])  # a copy: aligned, whole words
    blocks, lanes = words.view(torch.int64), words.view(torch.int32)
    end = blocks.numel() // BLOCK * BLOCK
    sums = blocks[:end].view(-1, BLOCK).sum(dim=1)
    rows = lanes.numel() // LANES
    weighted = odd_numbers(rows) @ lanes[: rows * LANES].view(rows, LANES)  # (LANES,)
    return torch.cat([sums, blocks[end:], weighted, lanes[rows * LANES :]])


@lru_cache(maxsize=32)
def odd_numbers(count: int) -> torch.Tensor:
    """So many random odd numbers, (count,) int32, always the same."""
    generator = torch.Generator().manual_seed(count)
    return torch.randint(-(2**31), 2**31, (count,), generator=generator, device="cpu").to(torch.int32) | 1
