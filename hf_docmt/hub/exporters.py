"""Export to ONNX and OpenVINO in three parts (encoder, first step, later steps), by transformers' own exporters."""

import importlib
import io
import json
import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import DynamicCache, EncoderDecoderCache, PreTrainedModel
from transformers.exporters import AutoExportConfig, AutoHfExporter, ExportedComponent, ExportedModel, ExportMetadata
from transformers.exporters.auto import get_exporter_class

from hf_docmt.hub.stock import check_not_quantized
from hf_docmt.messages import install_command

PACKAGES = {"onnx": ("onnx", "onnxscript", "onnxruntime"), "openvino": ("openvino",)}
NAMES = {"onnx": "ONNX", "openvino": "OpenVINO"}
SETTINGS = {"onnx": {}, "openvino": {"stateful": False}}
RUN = {"onnx": {}, "openvino": {"config": {"INFERENCE_PRECISION_HINT": "f32"}}}
ENCODER, FIRST, LATER = PARTS = ("encoder", "first_step", "later_steps")
TOLERANCE = 1e-4  # largest difference of logits and states from the model's own, float32
SHAPES = ((3, 7, 11), (2, 13, 5), (1, 9, 4))  # rows, tokens of the source and of a context sentence; first is traced
PROMPTS = (3, 1, 2)  # tokens of the first step, for each shape; torch.export would fix a traced length of 1

Tensors = dict[str, torch.Tensor]


@torch.no_grad()
def export_parts(model: PreTrainedModel, form: str, folder: Path) -> None:
    """Write encoder, first step and later steps in a format, "onnx" or "openvino", with the configuration.

    The files are read again and run on sentences of other numbers and lengths than they were made with; what they give
    is compared with the model's own. Raises ValueError where a package is missing, for weights other than float32, and
    where the model cannot be exported or the files give something else.
    """
    check_not_quantized(model)
    if model.config.decoder_autoregression != "self_attention":
        raise ValueError(
            f"decoder_autoregression: got {model.config.decoder_autoregression!r}, but the files have room for keys of "
            "self-attention alone; export the model with its code"
        )
    if model.dtype is not torch.float32:
        raise ValueError(f"dtype: got {model.dtype}, expected torch.float32; load the model with dtype='float32'")
    training = model.training
    try:
        write_parts(model.eval(), form, folder)
        compare_parts(model, form, folder)
    finally:
        model.train(training)


class EncoderPart(nn.Module):
    """Source ids and context to encoder states and all that the decoder reads, as a dict of tensors."""

    def __init__(self, model: PreTrainedModel):
        super().__init__()
        self.encoder = model.get_encoder()

    def forward(self, **inputs: torch.Tensor) -> Tensors:
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


def write_parts(model: PreTrainedModel, form: str, folder: Path) -> None:
    """Trace every part and write it; ValueError, with the part and the cause, for one that cannot be traced."""
    components = {}
    with quiet():
        try:
            for package in PACKAGES[form]:
                importlib.import_module(package)
            settings = AutoExportConfig.from_dict({"export_format": form, "dynamic": True, **SETTINGS[form]})
            exporter = AutoHfExporter.from_config(settings)
        except ImportError as error:
            raise ValueError(f"{NAMES[form]}: {error}; install it: {install_command(form)}") from error
        for name, (part, inputs) in traced_parts(model, random_inputs(model, *SHAPES[0], seed=0)).items():
            try:
                components |= {name: exporter.export(part, inputs, settings).components["model"]}
            except Exception as error:  # what torch, onnxscript and OpenVINO raise has no class in common
                raise ValueError(
                    f"{NAMES[form]}: part {name!r} of {type(model).__name__} cannot be exported: {causes(error)}"
                ) from error
        ExportedModel(components, exporter.export_format, model.config, model.generation_config).save_pretrained(folder)


def compare_parts(model: PreTrainedModel, form: str, folder: Path) -> dict[str, float]:
    """Largest difference of every part from the model's own states and logits; ValueError above `TOLERANCE`.

    The files read what the files before them gave, so that an error of one part is not hidden by the next.
    """
    files = read_parts(form, folder)
    largest = dict.fromkeys(PARTS, 0.0)
    for seed, (shape, prompt) in enumerate(zip(SHAPES, PROMPTS)):
        batch = random_inputs(model, *shape, seed=seed)
        try:
            results = part_results(model, files, batch, prompt)
        except Exception as error:  # what the engines raise has no class in common
            raise ValueError(
                f"{NAMES[form]}: the files do not run on {shape[0]} rows of {shape[1]} tokens: {causes(error)}"
            ) from error
        for part, (actual, expected) in results.items():
            if actual.shape != expected.shape or not actual.isfinite().all():
                raise ValueError(
                    f"{NAMES[form]}: {part} gives {tuple(actual.shape)} of some other numbers than the model's"
                )
            largest[part] = max(largest[part], float((actual - expected).abs().max()))
    for part, difference in largest.items():
        if difference > TOLERANCE:
            raise ValueError(
                f"{NAMES[form]}: {part} differs from the model by {difference:.2g}, expected at most {TOLERANCE}; "
                "the files were removed. Please report it with the model's configuration."
            )
    return largest


def read_parts(form: str, folder: Path) -> dict[str, Callable]:
    """The files as functions with the arguments and results of the parts, on the CPU."""
    parts = json.loads((folder / "export.json").read_text("utf-8"))["components"]
    load = get_exporter_class(form).load_program  # `from_pretrained` would run the configuration's code
    components = {
        name: ExportedComponent(load(folder / part["file"]), ExportMetadata.from_dict(part["metadata"]))
        for name, part in parts.items()
    }
    return ExportedModel(components, form).to("cpu", **RUN[form]).runners


def traced_parts(model: PreTrainedModel, batch: Tensors) -> dict[str, tuple[nn.Module, dict]]:
    """Every part with the inputs that it is traced with; a later step has the first one behind it."""
    target, decoder_inputs, source = batch_parts(model, batch)
    encoder, output_class = EncoderPart(model), type(model.get_encoder()(**source))
    first, later = (DecoderPart(model, output_class, is_first) for is_first in (True, False))
    common = {"encoder_outputs": encoder(**source), **decoder_inputs}
    prompt, cache = step_inputs(model, output_class, common, target[:, : PROMPTS[0]], PROMPTS[0]), empty_cache()
    first(**prompt, cache=cache)
    step = step_inputs(model, output_class, common, target[:, : PROMPTS[0] + 1], 1)
    return {
        ENCODER: (encoder, source),
        FIRST: (first, {**prompt, "cache": empty_cache()}),
        LATER: (later, {**step, "cache": cache}),
    }


def part_results(
    model: PreTrainedModel, files: dict[str, Callable], batch: Tensors, prompt: int
) -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
    """What the files and the model give for one batch: states of tokens, logits of a prompt and of what is behind it.

    The model's logits are those of one pass over all tokens without a cache.
    """
    target, decoder_inputs, source = batch_parts(model, batch)
    outputs = model.get_encoder()(**source)
    logits = model(**source | decoder_inputs, decoder_input_ids=target, use_cache=False).logits  # (B, T, V)
    encoded = files[ENCODER](**source)
    common = {"encoder_outputs": encoded, **decoder_inputs}
    read = step_inputs(model, type(outputs), common, target[:, :prompt], prompt)
    first = files[FIRST](**read, cache=empty_cache())
    cache, steps = first["cache"], []
    for length in range(prompt + 1, target.shape[1] + 1):
        read = step_inputs(model, type(outputs), common, target[:, :length], 1)
        after = files[LATER](**read, cache=cache)
        cache = EncoderDecoderCache(after["cache"]["self_attention_cache"], cache.cross_attention_cache)
        steps.append(after["logits"])
    tokens = batch["attention_mask"].bool()
    return {
        ENCODER: (encoded["last_hidden_state"][tokens], outputs["last_hidden_state"][tokens]),
        FIRST: (first["logits"], logits[:, :prompt]),
        LATER: (torch.cat(steps, dim=1), logits[:, prompt:]),
    }


def batch_parts(model: PreTrainedModel, batch: Tensors) -> tuple[torch.Tensor, Tensors, Tensors]:
    """Target ids (B, T), what the decoder reads besides them and the encoder's outputs, and what the encoder reads."""
    names = ("input_ids", "attention_mask", *model.model.encoder_input_names)
    source = {name: batch[name] for name in names if name in batch}
    decoder = {name: batch[name] for name in model.model.decoder_input_names if name in batch}
    return batch["decoder_input_ids"], {"attention_mask": batch["attention_mask"], **decoder}, source


def empty_cache() -> EncoderDecoderCache:
    """The cache before the first step."""
    return EncoderDecoderCache(DynamicCache(), DynamicCache())


def step_inputs(model, output_class: type, common: dict, ids: torch.Tensor, new: int) -> dict[str, Any]:
    """Inputs of a step that reads the last `new` of all target ids (B, T)."""
    inputs = {**common, "decoder_input_ids": ids[:, -new:].contiguous()}
    outputs = output_class(**common["encoder_outputs"])
    return inputs | model.decoder_inputs_for_generation(ids, {**inputs, "encoder_outputs": outputs})


def random_inputs(model: PreTrainedModel, rows: int, length: int, context: int, seed: int) -> Tensors:
    """Source and target ids (B, S) with padding and separators, and all context or memory that the model reads.

    A context sentence has `context` tokens; the last row lacks the first one, and the first row starts a document.
    """
    config, generator = model.config, torch.Generator().manual_seed(seed)
    ids, mask = random_ids(config, (rows, length), generator)
    target, _ = random_ids(config, (rows, 6), generator)
    target[:, 0] = config.decoder_start_token_id
    batch = {"input_ids": ids, "attention_mask": mask, "decoder_input_ids": target}
    names = (*model.model.encoder_input_names, *model.model.decoder_input_names)
    if "context_input_ids" in names:
        offsets = torch.tensor(config.known_offsets, dtype=torch.long).expand(rows, -1).clone()
        ids, mask = random_ids(config, (rows, offsets.shape[1], context), generator)
        ids[..., context // 2] = ids[..., 0]  # one sentence a row
        mask[-1, :1], offsets[-1, :1] = 0, 0
        batch |= {"context_input_ids": ids, "context_attention_mask": mask, "context_offsets": offsets}
        if config.context_sides != "source":
            batch["context_is_target"] = (offsets < 0) & (config.context_sides == "target")
    if "document_start" in names:
        batch["document_start"] = torch.arange(rows) == 0
        for side, stack in (("encoder", model.get_encoder()), ("decoder", model.get_decoder())):
            if stack.memory_layers:
                shape = (rows, *stack.initial_memory.weight.shape)  # (B, M, D)
                batch[f"{side}_memory"] = torch.randn(shape, generator=generator)
    return batch


def random_ids(config, shape: tuple[int, ...], generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Ids and mask, with a separator in the middle, an end, and in the last row padding."""
    special = {config.pad_token_id, config.sep_token_id, config.bos_token_id, config.decoder_start_token_id}
    words = torch.tensor([id for id in range(min(config.vocab_size, 1000)) if id not in special])
    ids = words[torch.randint(len(words), shape, generator=generator)]
    eos = config.eos_token_id if isinstance(config.eos_token_id, int) else config.eos_token_id[0]
    ids[..., shape[-1] // 2], ids[..., -1] = config.sep_token_id, eos
    mask = torch.ones_like(ids)
    if shape[0] > 1:
        mask[-1, ..., -1], ids[-1, ..., -1], ids[-1, ..., -2] = 0, config.pad_token_id, eos
    return ids, mask


@contextmanager
def quiet() -> Iterator[None]:
    """Without the exporters' reports of progress, and their warnings of versions, operators and fixed dimensions."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
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
