"""Window attention by torch's FlexAttention: one kernel, which leaves out the blocks of keys that no window reaches."""

import torch
from torch.nn.attention.flex_attention import BlockMask
from transformers.integrations.flex_attention import compile_friendly_flex_attention

BLOCK = 128  # queries, and keys, of one block of the kernel


def window_block_mask(windows) -> BlockMask:
    """Which query sees which key; of every block of queries the keys between the lowest and the highest they see."""
    low, high = windows.low, windows.high  # (B or 1, I)
    rows, queries = low.shape
    count = -(-windows.keys // BLOCK)
    empty = low > high
    first = in_blocks(low.masked_fill(empty, windows.keys), windows.keys).amin(dim=-1) // BLOCK  # (B or 1, blocks)
    last = in_blocks(high.masked_fill(empty, -1), -1).amax(dim=-1) // BLOCK
    needed = (last - first + 1).clamp(min=0)
    indices = (first[..., None] + torch.arange(count, device=low.device)) % count  # those needed in front, each once
    low, high = low.flatten(), high.flatten()

    def seen(row, head, query, key) -> torch.Tensor:
        place = query if rows == 1 else row * queries + query
        return (key >= low[place]) & (key <= high[place])

    return BlockMask.from_kv_blocks(
        needed[:, None].int(),
        indices[:, None].int(),
        BLOCK_SIZE=BLOCK,
        mask_mod=seen,
        seq_lengths=(queries, windows.keys),
    )


def in_blocks(limits: torch.Tensor, filling: int) -> torch.Tensor:
    """(B or 1, I) -> (B or 1, blocks, BLOCK), filled up behind the last one."""
    rest = -limits.shape[1] % BLOCK
    return torch.nn.functional.pad(limits, (0, rest), value=filling).unflatten(1, (-1, BLOCK))


def flex_window_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    windows,
    relative: torch.Tensor | None = None,
    dropout: float = 0.0,
) -> torch.Tensor:
    """`window_attention` for scaled queries. Raises `ValueError` for dropout, which FlexAttention has not."""
    if dropout:
        raise ValueError(
            f"attn_implementation='flex_attention' has no dropout, got attention_dropout={dropout}: set it to 0.0 in "
            "the configuration, or use 'sdpa'."
        )
    settings = {"block_mask": windows.block_mask, "scale": 1.0}
    if relative is None:
        return compile_friendly_flex_attention(query, key, value, **settings)
    own = query @ relative.transpose(1, 2)  # (B, H, I, width)
    first = (windows.centres - windows.left).flatten()  # the key at the left end of each whole window
    rows, queries = windows.centres.shape
    last = windows.width - 1

    def with_relative(score, row, head, position, key):
        place = position if rows == 1 else row * queries + position
        return score + own[row, head, position, (key - first[place]).clamp(0, last)]

    return compile_friendly_flex_attention(query, key, value, score_mod=with_relative, **settings)
