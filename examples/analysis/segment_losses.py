"""Loss of each sentence of a window by its offset from the current one, in nats per target token.

    python examples/analysis/segment_losses.py MODEL test.jsonl --picture losses.png

Lupo et al. (2022, 2023) discount the loss of context, since a window is only read for its current sentence. Windows are
cut as in training, references are forced; the separator after a sentence, or `</s>`, counts as a token of it.
"""

import pandas as pd
import torch
from inputs import documents_of, draw_lines, load, parser, show

from hf_docmt.analysis.model_runs import forward, on_device, training_batches
from hf_docmt.loading import registry
from hf_docmt.modeling.segments import sentence_index
from hf_docmt.systems.model_system import evaluation_mode


def segment_losses(model, documents, tokenizer, max_tokens: int = 4096) -> pd.DataFrame:
    """Mean `loss` and number of `tokens` at each `offset`; batches have up to `max_tokens` tokens of both sides."""
    config, tokens = model.config, []
    for rows, batch in training_batches(model, documents, tokenizer, max_tokens):
        batch = on_device(model, batch)
        with torch.inference_mode(), evaluation_mode(model):
            logits, labels = forward(model, batch).logits.float(), batch["labels"]  # (B, T, V), (B, T)
        losses = torch.nn.functional.cross_entropy(logits.mT, labels, reduction="none")
        current = torch.tensor([row["current"] for row in rows], device=labels.device)
        offsets = sentence_index(labels, config.sep_token_id) - current[:, None]  # (B, T)
        counted = labels != -100
        tokens.append(pd.DataFrame({"offset": offsets[counted].cpu(), "loss": losses[counted].double().cpu()}))
    found = pd.concat(tokens).groupby("offset")["loss"].agg(loss="mean", tokens="count")
    return found.reset_index()


def main() -> None:
    made = parser(__doc__, "model", "documents")
    options = made.parse_args()
    model, tokenizer = load(options)
    config, architecture = model.config, registry.for_config(model.config)
    if architecture.separate_context or architecture.carries_state or config.context_sides == "source":
        made.error(f"{config.model_type} writes one sentence at a time; give a model that writes whole windows")
    if architecture.view(config) != "window":
        made.error(f"the model reads a {architecture.view(config)}, expected windows with a current sentence")
    table = segment_losses(model, documents_of(options, model), tokenizer)
    show(table, options)
    if options.picture:
        draw_lines(options.picture, table, "offset", ["loss"], "nats per token")


if __name__ == "__main__":
    main()
