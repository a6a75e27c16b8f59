"""Random inputs with all context that a model reads, to trace it and to compare results."""

import torch
from transformers import PreTrainedModel


def random_inputs(model: PreTrainedModel, rows: int, length: int, context: int, seed: int) -> dict[str, torch.Tensor]:
    """Source and target ids with padding and separators, (B, S), and context or memory; `context` tokens a sentence."""
    generator = torch.Generator().manual_seed(seed)
    ids, mask = random_ids(model, (rows, length), generator)
    target, _ = random_ids(model, (rows, 6), generator)
    target[:, 0] = model.config.decoder_start_token_id
    batch = {"input_ids": ids, "attention_mask": mask, "decoder_input_ids": target}
    names = (*model.model.encoder_input_names, *model.model.decoder_input_names)
    if "context_input_ids" in names:
        batch |= random_context(model, rows, context, generator)
    if "document_start" in names:
        batch |= random_memory(model, rows, generator)
    return batch


def random_ids(model: PreTrainedModel, shape: tuple[int, ...], generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Ids and mask, with a separator in the middle, an end, and in the last row padding."""
    config = model.config
    special = {config.pad_token_id, config.sep_token_id, config.bos_token_id, config.decoder_start_token_id}
    words = torch.tensor([id for id in range(min(config.vocab_size, 1000)) if id not in special])
    ids = words[torch.randint(len(words), shape, generator=generator)]
    eos = config.eos_token_id if isinstance(config.eos_token_id, int) else config.eos_token_id[0]
    ids[..., shape[-1] // 2], ids[..., -1] = config.sep_token_id, eos
    mask = torch.ones_like(ids)
    if shape[0] > 1:
        mask[-1, ..., -1], ids[-1, ..., -1], ids[-1, ..., -2] = 0, config.pad_token_id, eos
    return ids, mask


def random_context(model: PreTrainedModel, rows: int, length: int, generator) -> dict[str, torch.Tensor]:
    """Context sentences (B, C, L) of all offsets, of which the last row has the first one not."""
    config = model.config
    offsets = torch.tensor(config.known_offsets, dtype=torch.long).expand(rows, -1).clone()
    ids, mask = random_ids(model, (rows, offsets.shape[1], length), generator)
    ids[..., length // 2] = ids[..., 0]  # one sentence a row
    mask[-1, :1], offsets[-1, :1] = 0, 0
    batch = {"context_input_ids": ids, "context_attention_mask": mask, "context_offsets": offsets}
    if config.context_sides != "source":
        batch["context_is_target"] = (offsets < 0) & (config.context_sides == "target")
    return batch


def random_memory(model: PreTrainedModel, rows: int, generator) -> dict[str, torch.Tensor]:
    """Memories (B, slots, D) of the stacks that have one; the first row starts a document."""
    batch = {"document_start": torch.arange(rows) == 0}
    for side, stack in (("encoder", model.get_encoder()), ("decoder", model.get_decoder())):
        if stack.memory_layers:
            shape = (rows, *stack.initial_memory.weight.shape)
            batch[f"{side}_memory"] = torch.randn(shape, generator=generator)
    return batch
