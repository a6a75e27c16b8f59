"""Formats that transformers' exporters write: what each needs installed, and how its files are read and run again."""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hf_docmt.messages import install_command

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Format:
    """A format of files: what it needs installed, its exporter in transformers, and how its files are named and run."""

    name: str
    packages: tuple[str, ...]
    module: str
    exporter: str
    config: str
    file: str
    settings: Mapping[str, Any]
    session: Callable[[Path], Callable[[Arrays], Arrays]]

    def new_exporter(self) -> tuple[Any, Any]:
        """The exporter and its settings; ValueError where a package is missing or too old."""
        try:
            for package in self.packages:
                importlib.import_module(package)
            module = importlib.import_module(f"transformers.exporters.{self.module}")
            return getattr(module, self.exporter)(), getattr(module, self.config)(dynamic=True, **self.settings)
        except ImportError as error:
            extra = self.module.split("_")[1]
            raise ValueError(f"{self.name}: {error}; install it: {install_command(extra)}") from error


def onnx_session(path: Path) -> Callable[[Arrays], Arrays]:
    """A file in onnxruntime, as a function of named arrays."""
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    inputs = {tensor.name for tensor in session.get_inputs()}
    outputs = [tensor.name for tensor in session.get_outputs()]

    def call(values: Arrays) -> Arrays:
        return dict(zip(outputs, session.run(outputs, matching(inputs, values))))

    return call


def openvino_session(path: Path) -> Callable[[Arrays], Arrays]:
    """An IR file in OpenVINO on the CPU, in float32, as a function of named arrays."""
    import openvino

    compiled = openvino.Core().compile_model(str(path), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    inputs = {name for port in compiled.inputs for name in port.names}

    def call(values: Arrays) -> Arrays:
        outputs = compiled(matching(inputs, values))
        return {name: np.array(outputs[port]) for port in compiled.outputs for name in port.names}

    return call


def matching(names: set[str], values: Arrays) -> Arrays:
    """Of the values those that a part takes; where input and output share a name, the input's begins with `input.`."""
    values_by_name = {name if name in names else f"input.{name}": value for name, value in values.items()}
    return {name: value for name, value in values_by_name.items() if name in names}


FORMATS = {
    "onnx": Format(
        "ONNX",
        ("onnx", "onnxscript", "onnxruntime"),
        "exporter_onnx",
        "OnnxExporter",
        "OnnxConfig",
        "{part}.onnx",
        {},
        onnx_session,
    ),
    "openvino": Format(
        "OpenVINO",
        ("openvino",),
        "exporter_openvino",
        "OpenVINOExporter",
        "OpenVINOConfig",
        "openvino_{part}.xml",
        {"stateful": False},
        openvino_session,
    ),
}
