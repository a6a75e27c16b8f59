"""Export to ONNX and OpenVINO in three parts (encoder, first step, later steps), by transformers' own exporters."""

import io
import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from transformers import DynamicCache, EncoderDecoderCache, PreTrainedModel, PreTrainedTokenizerBase

from hf_docmt.hub.export import new_folder
from hf_docmt.hub.export_formats import FORMATS, Arrays, Format
from hf_docmt.hub.sample_inputs import random_inputs
from hf_docmt.hub.stock import check_not_quantized
from hf_docmt.reports.report import Report

ENCODER, FIRST, LATER = PARTS = ("encoder", "first_step", "later_steps")
TOLERANCE = 1e-4  # largest difference of logits and states from the model's own, float32
SHAPES = ((3, 7, 11), (2, 13, 5), (1, 9, 4))  # rows, tokens of the source and of a context sentence; first is traced
PROMPTS = (3, 1, 2)  # tokens of the first step, for each shape; torch.export would fix a traced length of 1


class EncoderPart(nn.Module):
    """Source ids and context to encoder states and all that the decoder reads, as a dict of tensors."""

    def __init__(self, model: PreTrainedModel):
        super().__init__()
        self.encoder = model.get_encoder()

    def forward(self, **inputs: torch.Tensor) -> dict[str, torch.Tensor]:
        return {name: value for name, value in self.encoder(**inputs).items() if torch.is_tensor(value)}


class DecoderPart(nn.Module):
    """New target ids, what the encoder gave and a cache of transformers, to logits (B, T, V) and the cache.

    Of later steps the output has self-attention alone: what was read of the source stays as it is.
    """

    def __init__(self, model: PreTrainedModel, output_class: type, is_first: bool):
        super().__init__()
        self.model, self.output_class, self.is_first = model, output_class, is_first

    def forward(self, encoder_outputs: dict, cache: EncoderDecoderCache, **inputs: torch.Tensor) -> dict[str, Any]:
        outputs = self.model(
            encoder_outputs=self.output_class(**encoder_outputs), past_key_values=cache, use_cache=True, **inputs
        )
        after = cache if self.is_first else {"self_attention_cache": cache.self_attention_cache}
        return {"logits": outputs.logits, "cache": after}


def export_parts(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    folder: str | os.PathLike,
    form: str,
    report: Report | None = None,
    **card,
) -> Path:
    """Write encoder, first step and later steps in a format, "onnx" or "openvino", with tokenizer and configuration.

    The files are read again and run on sentences of other numbers and lengths than they were made with; what they give
    is compared with the model's own. Arguments and errors are those of `export_model`; ValueError, too, where a package
    is missing, for weights in int8, and where the model cannot be exported or the files give something else.

    >>> folder = export_parts(model, tokenizer, "runs/onnx", "onnx")
    >>> sorted(path.name for path in folder.glob("*.onnx"))
    ['encoder.onnx', 'first_step.onnx', 'later_steps.onnx']
    """
    check_exportable(model)
    text = {"form": form, "report": report, **card}
    with new_folder(model, tokenizer, folder, **text) as unfinished, evaluation_mode(model):
        write_parts(model, unfinished, FORMATS[form])
        compare_parts(model, unfinished, FORMATS[form])
    return Path(folder)


def check_exportable(model: PreTrainedModel) -> None:
    """ValueError for weights that are not plain float32 ones."""
    check_not_quantized(model)
    if model.dtype is not torch.float32:
        raise ValueError(f"dtype: got {model.dtype}, expected torch.float32; load the model with dtype='float32'")


@contextmanager
def evaluation_mode(model: PreTrainedModel) -> Iterator[None]:
    """Without dropout and gradients."""
    training = model.training
    try:
        with torch.no_grad():
            yield model.eval()
    finally:
        model.train(training)


def write_parts(model: PreTrainedModel, folder: Path, files: Format) -> None:
    """Trace every part and write it; ValueError, with the part and the cause, for one that cannot be traced."""
    from transformers.exporters.base import ExportedModel

    components = {}
    with quiet():
        exporter, settings = files.new_exporter()
        for name, (part, inputs) in traced_parts(model, random_inputs(model, *SHAPES[0], seed=0)).items():
            try:
                components |= {name: exporter.export(part, inputs, settings).components["model"]}
            except Exception as error:  # what torch, onnxscript and OpenVINO raise has no class in common
                raise ValueError(
                    f"{files.name}: part {name!r} of {type(model).__name__} cannot be exported: {causes(error)}"
                ) from error
        ExportedModel(components, exporter.export_format, model.config, model.generation_config).save_pretrained(folder)


@contextmanager
def quiet() -> Iterator[None]:
    """Without the exporters' reports of progress, and their warnings of versions, operators and fixed dimensions."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with redirect_stdout(io.StringIO()):
            yield
    finally:
        logging.disable(before)


def causes(error: BaseException) -> str:
    """The first lines of an error and of what it comes from."""
    lines = []
    while error is not None and len(lines) < 3:
        lines.append(f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}")
        error = error.__cause__
    return "; ".join(lines)


def traced_parts(model: PreTrainedModel, batch: dict[str, torch.Tensor]) -> dict[str, tuple[nn.Module, dict]]:
    """Every part with the inputs that it is traced with; a later step has the first one behind it."""
    target, decoder_inputs, source = batch_parts(model, batch)
    encoder = EncoderPart(model)
    states, output_class = encoder(**source), output_class_of(model, source)
    first, later = (DecoderPart(model, output_class, is_first) for is_first in (True, False))
    cache = EncoderDecoderCache(DynamicCache(), DynamicCache())
    common = {"encoder_outputs": states, "attention_mask": batch["attention_mask"], **decoder_inputs}
    length = PROMPTS[0]
    prompt = {**common, **step_inputs(model, output_class, common, target[:, :length], length)}
    first(**prompt, cache=cache)
    step = {**common, **step_inputs(model, output_class, common, target[:, : length + 1], 1)}
    empty = EncoderDecoderCache(DynamicCache(), DynamicCache())
    return {
        ENCODER: (encoder, source),
        FIRST: (first, {**prompt, "cache": empty}),
        LATER: (later, {**step, "cache": cache}),
    }


def batch_parts(model: PreTrainedModel, batch: dict[str, torch.Tensor]) -> tuple[torch.Tensor, dict, dict]:
    """Target ids (B, T), what the decoder reads besides them and the encoder's outputs, and what the encoder reads."""
    names = ("input_ids", "attention_mask", *model.model.encoder_input_names)
    source = {name: batch[name] for name in names if name in batch}
    decoder = {name: batch[name] for name in model.model.decoder_input_names if name in batch}
    return batch["decoder_input_ids"], decoder, source


def output_class_of(model: PreTrainedModel, source: dict[str, torch.Tensor]) -> type:
    """The class of what the encoder gives, with which the decoder's inputs are put together again."""
    return type(model.get_encoder()(**source))


def step_inputs(model, output_class: type, common: dict, ids: torch.Tensor, new: int) -> dict[str, torch.Tensor]:
    """Inputs of a step that reads the last `new` of all target ids (B, T)."""
    inputs = {"decoder_input_ids": ids[:, -new:].contiguous()}
    outputs = output_class(**common["encoder_outputs"])
    return inputs | model.decoder_inputs_for_generation(ids, {**common, **inputs, "encoder_outputs": outputs})


def compare_parts(model: PreTrainedModel, folder: Path, files: Format) -> dict[str, float]:
    """Largest difference of every part from the model's own states and logits; ValueError above `TOLERANCE`.

    The files read what the files before them gave, so that an error of one part is not hidden by the next.
    """
    sessions = {part: files.session(folder / files.file.format(part=part)) for part in PARTS}
    largest = dict.fromkeys(PARTS, 0.0)
    for seed, (shape, prompt) in enumerate(zip(SHAPES, PROMPTS)):
        batch = random_inputs(model, *shape, seed=seed)
        for part, (actual, expected) in part_results(model, sessions, batch, prompt).items():
            if actual.shape != expected.shape or not np.isfinite(actual).all():
                raise ValueError(f"{files.name}: {part} gives {actual.shape} of some other numbers than the model's")
            largest[part] = max(largest[part], float(np.abs(actual - expected).max()))
    for part, difference in largest.items():
        if difference > TOLERANCE:
            raise ValueError(
                f"{files.name}: {part} differs from the model by {difference:.2g}, expected at most {TOLERANCE}; "
                "the files were removed. Please report it with the model's configuration."
            )
    return largest


def part_results(
    model, sessions: dict, batch: dict[str, torch.Tensor], prompt: int
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """What the files and the model give for one batch: states of tokens, logits of a prompt and of what is behind it.

    The model's logits are those of one pass over all tokens without a cache.
    """
    target, decoder_inputs, source = batch_parts(model, batch)
    output_class, states = output_class_of(model, source), EncoderPart(model)(**source)
    whole = {**source, **decoder_inputs, "decoder_input_ids": target}
    logits, tokens = model(**whole, use_cache=False).logits.numpy(), batch["attention_mask"].bool().numpy()  # (B, T, V)
    encoded = without_prefix(sessions[ENCODER](arrays(source)))
    read_so_far = {f"encoder_outputs.{name}": value for name, value in encoded.items()}
    read_so_far |= arrays({"attention_mask": batch["attention_mask"], **decoder_inputs})
    common = {"encoder_outputs": states, "attention_mask": batch["attention_mask"], **decoder_inputs}
    read = step_inputs(model, output_class, common, target[:, :prompt], prompt)
    first = without_prefix(sessions[FIRST](read_so_far | arrays(read)))
    steps, read_so_far = [], read_so_far | {name: value for name, value in first.items() if name.startswith("cache.")}
    for length in range(prompt + 1, target.shape[1] + 1):
        read = step_inputs(model, output_class, common, target[:, :length], 1)
        after = without_prefix(sessions[LATER](read_so_far | arrays(read)))
        steps.append(after.pop("logits"))
        read_so_far |= after
    return {
        ENCODER: (encoded["last_hidden_state"][tokens], states["last_hidden_state"].numpy()[tokens]),
        FIRST: (first["logits"], logits[:, :prompt]),
        LATER: (np.concatenate(steps, axis=1), logits[:, prompt:]),
    }


def arrays(tensors: Mapping[str, torch.Tensor]) -> Arrays:
    """Tensors as the sessions take them."""
    return {name: value.numpy() for name, value in tensors.items()}


def without_prefix(outputs: Arrays) -> Arrays:
    """Outputs under the names that they have as inputs of the next part."""
    return {name.removeprefix("output."): value for name, value in outputs.items()}
