"""Cross-attention while documents are translated: what was searched, read once more with what it wrote."""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence

from hf_docmt.analysis.attention_share import AttentionShare, check_joined, count_shares
from hf_docmt.data.documents import check_documents, sentences
from hf_docmt.data.samplers import TokenBudgetBatchSampler


def search_shares(
    model, documents, tokenizer, strategy: str | None = None, max_tokens: int = 4096, **search
) -> AttentionShare:
    """As `attention_share`, while documents are translated, as for the paper's table.

    By `strategy` (None: the model's own) and `search`, further arguments of `translate_documents`; nothing is repaired,
    and the attention is that of the chosen hypotheses. ValueError: as there, or a strategy that is not recorded.
    """
    check_joined(model)
    segments = record_search(model, documents, tokenizer, strategy or model.default_strategy(), **search)
    with model.search_alignment(search.get("alignment")):
        return count_shares(model, search_batches(model.config, segments, max_tokens))


def record_search(model, documents, tokenizer, strategy: str, **search) -> list[dict[str, list[int]]]:
    """Translate documents and keep what was searched, in the order of the searches; nothing is repaired.

    For each search: its source; prefix and hypothesis as the decoder reads them, after the start token, and as it
    writes them, with the end token, so that both have T tokens; `is_counted` (T) is 0 for the forced prefix, and for an
    end that the search did not come to. `strategy` and `search` are those of `translate_documents`. ValueError: a
    strategy that keeps a state between the searches, so that they are not known one by one.
    """
    own = model.translator_class
    if strategy in own.repaired_strategies(model.config):
        search = {"repairs": "none"} | search
    segments: list[dict[str, list[int]]] = []

    class Recorder(own):
        def decode(self, jobs, *arguments, **options):
            outputs = super().decode(jobs, *arguments, **options)
            for job, output in zip(jobs, outputs):
                written = [*job.prefix, *output.ids]
                segment = {"input_ids": job.source, "decoder_input_ids": [self.start, *written]}
                segment |= {name.replace("input_ids", "attention_mask"): [1] * len(segment[name]) for name in segment}
                is_counted = [0] * len(job.prefix) + [1] * len(output.ids) + [int(output.finished)]
                segments.append(segment | {"labels": [*written, self.eos], "is_counted": is_counted})
            return outputs

    lang, _ = check_documents(documents)
    model.translator_class = Recorder
    try:
        model.translate_documents([sentences(row, lang) for row in documents], tokenizer, strategy, **search)
    finally:
        model.translator_class = own
    if not segments:
        raise ValueError(
            f"strategy {strategy!r} keeps a state between the sentences, so its searches are not recorded; use "
            "'sequential', 'sliding', 'full' or 'sentence'"
        )
    return segments


def search_batches(
    config, segments: Sequence[dict[str, list[int]]], max_tokens: int
) -> Iterator[dict[str, torch.Tensor]]:
    """The searches as batches: sources, the decoder's inputs, and its predictions that the search made."""
    padding = {"input_ids": config.pad_token_id, "decoder_input_ids": config.pad_token_id, "labels": -100}
    padding |= dict.fromkeys(("is_counted", "attention_mask", "decoder_attention_mask"), 0)
    lengths = np.array([[len(segment[name]) for name in ("input_ids", "labels")] for segment in segments])
    for batch in TokenBudgetBatchSampler(lengths, max_tokens, shuffle=False):
        rows = {name: [torch.tensor(segments[number][name]) for number in batch] for name in padding}
        yield {name: pad_sequence(rows[name], True, value) for name, value in padding.items()}  # (B, S), (B, T)
