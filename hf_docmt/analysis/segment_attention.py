"""Cross-attention of one sentence to the sentences of its segment, with models that read several as one sequence."""

import numpy as np
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from hf_docmt import registry
from hf_docmt.analysis.model_runs import (
    CROSS_ATTENTION,
    NOT_OF_THE_MODEL,
    eager_attention,
    forward_hooks,
    modules_named,
    token_texts,
)
from hf_docmt.analysis.read_sentences import ContextUse, Passage, read_sentences
from hf_docmt.data.documents import make_documents
from hf_docmt.modeling.segments import sentence_index


@torch.inference_mode()
def segment_use(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, passage: Passage) -> ContextUse:
    """Attention while the current sentence is written to each sentence of its source segment, over layers and heads.

    As `attention_share` for one sentence: the segment is cut as in training, translations are forced. A separator
    belongs to the sentence it ends.
    """
    example, batch = training_batch(model, tokenizer, passage)
    weights = attention_weights(model, batch)[0]  # (T, S)
    sep = model.config.sep_token_id
    source = sentence_index(batch["input_ids"], sep)[0].cpu().numpy()  # (S,)
    first = example["index"] - (example["current"] or 0)  # position of the segment's first sentence
    current = passage.position - first
    labels = batch["labels"][0]
    rows = (labels != -100).cpu().numpy()
    if model.config.context_sides == "both" or example["current"] is None:
        rows &= sentence_index(batch["labels"], sep)[0].cpu().numpy() == current
    count = min(len(example["source"]), len(passage.source) - first)  # without what is after the document's end
    places = [(number - current, False) for number in range(count)]
    owner = np.where(source < count, source, -1)
    ids = batch["input_ids"][0].tolist()
    sentences, by_token = read_sentences(passage, tokenizer, places, ids, owner, weights[rows])
    tokens = token_texts(tokenizer, labels[torch.from_numpy(rows).to(labels.device)].tolist())
    return ContextUse("cross-attention", sentences, tuple(tokens), by_token)


def training_batch(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, passage: Passage
) -> tuple[dict, dict[str, torch.Tensor]]:
    """The example with the current sentence and its batch of one row, made as in training, on the model's device."""
    config, architecture = model.config, registry.for_config(model.config)
    documents = as_documents(config, passage)
    examples = architecture.examples(documents, tokenizer, config)
    number = passage.position
    if examples.borders is not None:
        number = int(np.searchsorted(examples.borders, number, side="right")) - 1
    batch = architecture.collator(config, tokenizer)([examples[number]])
    return examples[number], {name: value.to(model.device) for name, value in batch.items()}


def as_documents(config, passage: Passage):
    """The passage as the one document `passage`. ValueError: a model that does not say its languages."""
    source, target = config.source_lang, config.target_lang
    if not source or not target:
        raise ValueError(
            f"the model's languages are needed, its configuration has source_lang={source!r} and "
            f"target_lang={target!r}: set both in config.json"
        )
    pairs = [{source: one, target: other} for one, other in zip(passage.source, passage.translation)]
    return make_documents([{"doc_id": "passage", "translation": pairs}], source, target)


def attention_weights(model: PreTrainedModel, batch: dict[str, torch.Tensor], modules=None) -> np.ndarray:
    """Weights (B, T, S) of attention modules of the decoder, cross-attention by default, mean of layers and heads."""
    found: list[torch.Tensor] = []
    keys = batch["input_ids"].shape[1]

    def keep(module, inputs, output):
        _, weights, *more = output
        if more and more[0] is not None:  # of chosen keys (B, H, T, K), with their positions (B, T, K)
            positions = more[0].clamp(0, keys - 1)[:, None].expand(weights.shape)
            weights = weights.new_zeros(*weights.shape[:3], keys).scatter_add_(3, positions, weights)
        found.append(weights.mean(dim=1).double())

    modules = modules_named(model.get_decoder(), CROSS_ATTENTION) if modules is None else modules
    with eager_attention(model), forward_hooks((module, keep) for module in modules):
        model(**{name: value for name, value in batch.items() if name not in NOT_OF_THE_MODEL}, use_cache=False)
    return torch.stack(found).mean(dim=0).cpu().numpy()
