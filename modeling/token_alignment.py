"""Which source token every target token is aligned to, from token ids and lengths (Herold and Ney 2023, section 3.3).

The paper's b_i counts from 1, and its query i is the one that predicts target token i. Here an alignment is a column of
the source for every token that the decoder reads, (B, T); what would pass the last source token is aligned to it.
"""

import torch


def source_borders(input_ids: torch.Tensor, attention_mask: torch.Tensor | None, sep_token_id: int) -> torch.Tensor:
    """Columns where the sentences of a source begin, and the one behind its last token: ids (B, S) -> (B, N + 1).

    N is the largest number of sentences (under `torch.compile` the largest possible); in a row that has fewer the
    others begin behind its last token. A mask (B, S), 1 = token, may have padding on either side. Raises `ValueError`
    for padding between tokens.
    """
    batch, length = input_ids.shape
    tokens = torch.ones_like(input_ids) if attention_mask is None else attention_mask.long()
    if attention_mask is not None and not torch.compiler.is_compiling():
        check_padding(tokens)
    columns = torch.arange(1, length + 1, device=input_ids.device)
    end = (columns * tokens).amax(dim=1) if length else input_ids.new_zeros(batch)
    is_sep = (input_ids == sep_token_id) & (tokens == 1)
    number = is_sep.cumsum(dim=1)  # of the sentence that begins behind a separator
    if torch.compiler.is_compiling():
        last = length + 1  # N, as if every token could be a separator
    else:
        last = int(number.max()) + 1 if number.numel() else 1  # N
    borders = end[:, None].repeat(1, last + 2)  # one column more for what is no separator
    borders[:, 0] = end - tokens.sum(dim=1)
    return borders.scatter(1, number.where(is_sep, last + 1), columns.expand(batch, -1))[:, :-1]


def check_padding(tokens: torch.Tensor) -> None:
    """ValueError where a row of `tokens` (B, S), 0 for padding, has padding between tokens."""
    begins = (tokens[:, 1:] > tokens[:, :-1]).sum(dim=1) + tokens[:, :1].sum(dim=1)
    if bool((begins > 1).any()):
        raise ValueError(
            f"attention_mask of row {int(begins.argmax())} has padding between tokens, where windows would see fewer "
            "of them: put all padding on one side."
        )


def proportional(positions: torch.Tensor, lengths: torch.Tensor, borders: torch.Tensor) -> torch.Tensor:
    """b_i = round(J / I * i), halves up: token positions (B or 1, T) from 0, target lengths I (B,) -> (B, T)."""
    source, target = (borders[:, -1] - borders[:, 0])[:, None], lengths.clamp(min=1)[:, None]
    return in_source((2 * source * (positions + 1) + target) // (2 * target) - 1, borders)


def linear(positions: torch.Tensor, length_ratio: float, borders: torch.Tensor) -> torch.Tensor:
    """b_i = round(train_ratio * i), halves up; with a ratio of 1 b_i = i."""
    precise = torch.float32 if positions.device.type == "mps" else torch.float64
    aligned = (length_ratio * (positions + 1).to(precise) + 0.5).floor().long() - 1
    return in_source(aligned, borders)


def by_sentence(
    input_ids: torch.Tensor, positions: torch.Tensor, sep_token_id: int, borders: torch.Tensor
) -> torch.Tensor:
    """A target sentence begins with its source sentence, from there on b_i = b_{i-1} + 1: all ids (B, T) -> (B, T).

    Target sentences that the source has not are aligned to its last token.
    """
    is_sep = input_ids == sep_token_id
    number = is_sep.cumsum(dim=1)
    begin = torch.where(is_sep, positions, 0).cummax(dim=1).values
    first = borders.gather(1, number.clamp(max=borders.shape[1] - 1)) - borders[:, :1]
    return in_source(first + positions - begin, borders)


def in_source(positions: torch.Tensor, borders: torch.Tensor) -> torch.Tensor:
    """Positions of source tokens (B or 1, T), from 0, as columns (B, T) of those that there are."""
    first, end = borders[:, :1], borders[:, -1:]
    return (first + positions.clamp(min=0)).clamp(max=end - 1).clamp(min=first)
