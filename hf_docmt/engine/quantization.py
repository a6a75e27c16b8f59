"""Models with int8 weights: `model.quantize("int8")`, or a `quantization_config` for `from_pretrained`.

    model.quantize("int8")
    AutoModelForSeq2SeqLM.from_pretrained(folder, quantization_config={"quant_method": "docmt-int8"}, ...)

The weights of `Linear` layers become int8, see `int8_linear`; embeddings, norms, softmax and the products inside
attention stay unchanged. An output projection that is tied with the embedding gets its own int8 weights. Layers of
fewer than `MIN_ELEMENTS` weights stay, too: int8 does not make them faster. Saved folders hold the int8 weights.
"""

import copy
from collections.abc import Iterable

import torch
from torch import nn
from transformers.quantizers import HfQuantizer, register_quantization_config, register_quantizer
from transformers.quantizers.auto import AUTO_QUANTIZATION_CONFIG_MAPPING, AUTO_QUANTIZER_MAPPING
from transformers.utils.quantization_config import QuantizationConfigMixin

from hf_docmt.engine.cpu_kernels import MIN_ELEMENTS
from hf_docmt.engine.int8_linear import Int8Linear
from hf_docmt.modeling.layers import is_plain

QUANT_METHOD = "docmt-int8"


def quantize(model, precision: str):
    """Make the weights of `Linear` layers int8, in place; returns the model, which cannot be trained any more.

    `precision` is "int8". Raises `ValueError` for another one, a model in training mode, on another device than the
    CPU, or quantized before, and for layers that are not plain: with hooks, or with an adapter inside or around.
    """
    if precision != "int8":
        raise ValueError(f"quantize: expected 'int8', got {precision!r}")
    if getattr(model, "hf_quantizer", None) is not None:
        raise ValueError(f"the model is quantized already, by {model.quantization_method}; load it again without")
    if model.training:
        raise ValueError("the model is in training mode, and int8 weights cannot be trained: call eval() first")
    check_device(parameter.device for parameter in model.parameters())
    config = Int8Config()
    replace_linear(model, config)
    before, own = model.config, copy.deepcopy(model.config)  # other models may have the one of before, and stay float
    for module in model.modules():
        if getattr(module, "config", None) is before:
            module.config = own
    model.hf_quantizer = Int8Quantizer(config)
    model.is_quantized, model.quantization_method = True, QUANT_METHOD
    model.hf_quantizer.postprocess_model(model)
    return model


def replace_linear(model, config: "Int8Config", weights_follow: bool = False) -> None:
    """Replace the `Linear` layers that `config` does not exclude, with their weights or, if those follow, none."""
    convert = Int8Linear.like if weights_follow else Int8Linear.of
    modules = model.named_modules(remove_duplicate=False)
    linear = {name: module for name, module in modules if isinstance(module, nn.Linear)}
    kept = config.modules_to_not_convert
    if kept is None:
        kept = config.modules_to_not_convert = [
            name for name, layer in linear.items() if layer.weight.numel() < MIN_ELEMENTS
        ]
    check_layers(linear, kept)
    converted = {layer: convert(layer) for name, layer in linear.items() if name not in kept}
    for name in linear.keys() - set(kept):
        parent, _, child = name.rpartition(".")
        setattr(model.get_submodule(parent), child, converted[linear[name]])
    untied = {f"{name}.weight" for name in linear.keys() - set(kept)}
    for field in ("_tied_weights_keys", "all_tied_weights_keys"):
        tied = getattr(model, field) or {}
        setattr(model, field, {name: source for name, source in tied.items() if name not in untied})


def check_layers(linear: dict[str, nn.Linear], kept: list[str]) -> None:
    """ValueError for layers that cannot be quantized, and for a configuration that does not fit them."""
    unknown = [name for name in kept if name not in linear]
    if unknown:
        raise ValueError(f"modules_to_not_convert: the model has no Linear layer {unknown[0]!r}; remove it")
    special = [name for name, layer in linear.items() if name not in kept and not is_plain(layer)]
    if special:
        raise ValueError(
            f"{special[0]} is not a plain Linear layer, got {type(linear[special[0]]).__name__} or one with hooks; "
            "merge adapters into the model, and remove hooks, before you quantize it"
        )
    if len(kept) == len(linear):
        raise ValueError(
            f"no layer of the model has {MIN_ELEMENTS} weights or more, and int8 does not make smaller ones faster: "
            "use the model unquantized"
        )


def check_device(devices: Iterable[torch.device]) -> None:
    """ValueError for another device than the CPU."""
    others = [device for device in devices if device.type != "cpu"]
    if others:
        raise ValueError(f"int8 weights are for the CPU, got the device {others[0]}; keep the model on the CPU")


class Int8Config(QuantizationConfigMixin):
    """The entry of `config.json` for int8 weights: the names of `Linear` layers that stay unchanged."""

    def __init__(self, modules_to_not_convert: list[str] | None = None, quant_method: str = QUANT_METHOD, **unknown):
        if unknown or quant_method != QUANT_METHOD:
            got = ", ".join(unknown) or f"quant_method {quant_method!r}"
            raise ValueError(f"quantization_config: expected {QUANT_METHOD!r} and modules_to_not_convert, got {got}")
        self.quant_method = quant_method
        self.modules_to_not_convert = modules_to_not_convert


class Int8Quantizer(HfQuantizer):
    """How transformers loads and saves models with int8 weights, which replace their layers.

    The code of a folder of 0.2 has its own quantizer; in a process with both, either is for models of both.
    """

    @property
    def is_trainable(self) -> bool:
        return False

    def is_serializable(self) -> bool:
        return True

    def validate_environment(self, *args, device_map=None, **kwargs) -> None:
        """ValueError for a `device_map` with anything but the CPU."""
        devices = device_map.values() if isinstance(device_map, dict) else [device_map]
        others = [device for device in devices if device is not None and str(device).partition(":")[0] != "cpu"]
        if others:
            raise ValueError(f"int8 weights are for the CPU, got device_map={device_map!r}; omit it")

    def _process_model_before_weight_loading(self, model, **kwargs):
        if not hasattr(model, "replace_linear"):
            raise ValueError(
                f"{QUANT_METHOD} quantizes models of hf_docmt, got {type(model).__name__} of "
                f"{type(model).__module__}; load the folder by hf_docmt.load_model"
            )
        if self.pre_quantized:
            model.replace_linear(self.quantization_config, weights_follow=True)

    def _process_model_after_weight_loading(self, model, **kwargs):
        if not self.pre_quantized:
            model.replace_linear(self.quantization_config)
            self.pre_quantized = True
        model.requires_grad_(False)


if QUANT_METHOD not in AUTO_QUANTIZER_MAPPING:  # the code of a folder of 0.2 may have done it
    register_quantizer(QUANT_METHOD)(Int8Quantizer)
if QUANT_METHOD not in AUTO_QUANTIZATION_CONFIG_MAPPING:
    register_quantization_config(QUANT_METHOD)(Int8Config)
