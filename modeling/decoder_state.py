"""Encoder states and decoder cache of some sources while their targets are written."""

import torch

from .cache import DecodingCache, cached_length


class DecoderState:
    """Sources that were read, and the cache of their targets: one row of each source, one or more of each target.

    `mask` (B, T) is that of target tokens, 1 = token, None = all. `inputs` are further arguments of `forward` with a
    row for each source, such as its mask and a memory. Without a cache all of the target is read at every step.
    """

    def __init__(self, model, encoder_outputs, cache: DecodingCache | None, mask: torch.Tensor | None = None, **inputs):
        self.model, self.encoder_outputs, self.inputs = model, encoder_outputs, inputs
        self.cache, self.mask, self.is_prompt = cache, mask, True

    def arguments(self, ids: torch.Tensor) -> dict:
        """The arguments of `forward` to read what of target ids (R, T) the cache has not."""
        if self.mask is not None:
            self.mask = torch.nn.functional.pad(self.mask, (0, ids.shape[1] - self.mask.shape[1]), value=1)
        return self.model.prepare_inputs_for_generation(
            ids,
            ids.shape[1] - cached_length(self.cache),
            cache=self.cache,
            encoder_outputs=self.encoder_outputs,
            decoder_attention_mask=self.mask,
            use_cache=self.cache is not None,
            **self.inputs,
        )

    def read(self, ids: torch.Tensor) -> torch.Tensor:
        """Logits (R, V) in float32 of what comes behind target ids (R, T)."""
        logits = self.model(**self.arguments(ids), logits_to_keep=1, return_dict=True).logits[:, -1]
        if self.is_prompt and self.cache is not None:
            self.cache.prompt_was_read()
        self.is_prompt = False
        return logits.to(ids.device, torch.float32)

    def repeat(self, times: int) -> None:
        """Of every target so many rows, next to each other."""
        if self.cache is not None:
            self.cache.batch_repeat_interleave(times)
        if self.mask is not None:
            self.mask = self.mask.repeat_interleave(times, dim=0)

    def reorder(self, rows: torch.Tensor) -> None:
        """Targets go on from these rows (R,), each from one of the same source, so that their masks are the same."""
        if self.cache is not None:
            self.cache.reorder_cache(rows)
