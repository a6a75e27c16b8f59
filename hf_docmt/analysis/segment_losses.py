"""Loss of each sentence of a window: whether a model writes later sentences better for the ones before them."""

from dataclasses import dataclass

import pandas as pd
import torch
from datasets import Dataset
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from hf_docmt import registry
from hf_docmt.analysis.model_runs import context_result, forward, on_device, training_batches
from hf_docmt.modeling.segments import sentence_index
from hf_docmt.reports.result import Result
from hf_docmt.systems.model_system import evaluation_mode


@dataclass(frozen=True)
class SegmentLosses:
    """Mean loss in nats per target token and number of tokens, {offset: (loss, tokens)}; 0 is the current sentence."""

    offsets: dict[int, tuple[float, int]]

    def result(self, dataset: str) -> Result:
        """The result of a report: the loss of the current sentence, with a part for each offset."""
        signature = {"unit": "nats", "per": "token", "target-context": "reference"}
        parts = {f"offset={offset}": loss for offset, loss in sorted(self.offsets.items())}
        return context_result("loss", *self.offsets[0], dataset, signature, parts)


def segment_losses(
    model: PreTrainedModel, documents: Dataset, tokenizer: PreTrainedTokenizerBase, max_tokens: int = 4096
) -> SegmentLosses:
    """The loss of a model of windows by the offset of the sentence in the window, references being forced.

    Lupo et al. (2022, 2023) discount the loss of context, since a window is only read for its current sentence. Windows
    are cut as in training, so those at the start of a document have fewer sentences. The separator behind a sentence,
    or `</s>`, counts as a token of it. No label smoothing, no discount. Batches have up to `max_tokens` source and
    target tokens. ValueError: a model that writes one sentence at a time, or chunks, which have no current sentence.
    """
    config, architecture = model.config, registry.for_config(model.config)
    if architecture.separate_context or architecture.carries_state or config.context_sides == "source":
        raise ValueError(f"{config.model_type} writes one sentence at a time; give a model that writes whole windows")
    if architecture.view(config) != "window":
        raise ValueError(f"the model reads a {architecture.view(config)}, expected windows with a current sentence")
    tokens = []
    for rows, batch in training_batches(model, documents, tokenizer, max_tokens):
        batch = on_device(model, batch)
        with torch.inference_mode(), evaluation_mode(model):
            logits, labels = forward(model, batch).logits.float(), batch["labels"]  # (B, T, V), (B, T)
        losses = torch.nn.functional.cross_entropy(logits.mT, labels, reduction="none")
        current = torch.tensor([row["current"] for row in rows], device=labels.device)
        offsets = sentence_index(labels, config.sep_token_id) - current[:, None]  # (B, T)
        counted = labels != -100
        tokens.append(pd.DataFrame({"offset": offsets[counted].cpu(), "loss": losses[counted].double().cpu()}))
    by_offset = pd.concat(tokens).groupby("offset")["loss"].agg(["mean", "count"])
    return SegmentLosses({int(offset): (float(mean), int(n)) for offset, mean, n in by_offset.itertuples()})
