"""Model files of Marian, `.npz` and `.bin`: parameters and options, sizes checked before memory is taken."""

import io
import math
import struct
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import yaml

from hf_docmt.files import check_file

OPTIONS = "special:model.yml"
MAX_OPTIONS = 1 << 16  # bytes of the options
VERSION = 1  # of the binary container; 2 is an encrypted one
MAX_RANK = 8
FLOATS = {0x404: np.dtype("<f4"), 0x402: np.dtype("<f2")}
INTGEMM8 = (0x4101, 0x10001)  # int8, not yet arranged for a processor; the number in Bergamot's Marian and in Marian's
TEXT = 0x101
ACTIVATIONS = "_QuantMultA"  # names of the multipliers of activations ("alphas") end so


@dataclass(frozen=True)
class MarianModel:
    """Options, texts or lists of texts, and parameters by Marian's names, matrices (in, out), in float32."""

    path: Path
    options: dict[str, str | list[str]]
    weights: dict[str, torch.Tensor]


def read_model_file(path: str | Path) -> MarianModel:
    """Read a `.npz` or `.bin` file of Marian, floats or intgemm's int8; multipliers of activations are left out.

    int8 weights are read as the numbers that they stand for, value over multiplier. ValueError for a file of another
    kind, a damaged one, and one arranged for a single kind of processor.
    """
    path = check_file(path)
    data = path.read_bytes()
    try:
        items = read_archive(data) if data[:2] == b"PK" else read_container(data)
        options = parse_options(items.pop(OPTIONS, None))
    except (ValueError, RuntimeError, struct.error, zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise ValueError(f"{path}: not a model file of Marian, or a damaged one ({error}); copy it again") from error
    weights = {}
    for name, values in items.items():
        if values.dtype.kind != "f" or not np.isfinite(values).all():
            raise ValueError(f"{path}: {name} holds other values than finite numbers; copy the file again")
        weights[name] = torch.from_numpy(values.astype(np.float32))
    return MarianModel(path, options, weights)


def parse_options(item: np.ndarray | None) -> dict[str, str | list[str]]:
    """The options, YAML in a text; values that are no texts or lists of them are left out."""
    if item is None:
        raise ValueError(f"it has no {OPTIONS}")
    text = item.tobytes().rstrip(b"\0")
    if len(text) > MAX_OPTIONS:
        raise ValueError(f"{OPTIONS} has {len(text)} bytes, expected at most {MAX_OPTIONS}")
    try:
        values = yaml.load(text.decode("utf-8"), yaml.BaseLoader)  # every value a text
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError(f"{OPTIONS} is no YAML") from error
    if not isinstance(values, dict):
        raise ValueError(f"{OPTIONS} holds no options")
    return {
        name: value
        for name, value in values.items()
        if isinstance(name, str)
        and (isinstance(value, str) or isinstance(value, list) and all(isinstance(one, str) for one in value))
    }


# The binary container


class Cursor:
    """A place in bytes, little endian; ValueError where they end before what is asked for."""

    def __init__(self, data: bytes):
        self.data, self.position = memoryview(data), 0

    def take(self, size: int) -> memoryview:
        """The next bytes."""
        left = len(self.data) - self.position
        if size > left:
            raise ValueError(f"{size} bytes are announced at byte {self.position}, {left} are left")
        self.position += size
        return self.data[self.position - size : self.position]

    def numbers(self, count: int, code: str = "Q") -> tuple[int, ...]:
        """So many numbers, of 8 bytes without sign, or of another code of `struct`."""
        return struct.unpack(f"<{count}{code}", self.take(count * struct.calcsize(code)))


def read_container(data: bytes) -> dict[str, np.ndarray]:
    """The items of a `.bin` file by name: headers, names, shapes, padding, then the data one behind the other."""
    cursor = Cursor(data)
    version, count = cursor.numbers(2)
    if version != VERSION:
        raise ValueError(f"version {version} of the container, expected {VERSION}")
    headers = list(struct.iter_unpack("<4Q", cursor.take(32 * count)))
    names = [bytes(cursor.take(length)).rstrip(b"\0").decode("utf-8") for length, *_ in headers]
    shapes = []
    for name, (_, _, rank, _) in zip(names, headers):
        if rank > MAX_RANK:
            raise ValueError(f"{name} has {rank} dimensions, expected at most {MAX_RANK}")
        shapes.append(cursor.numbers(rank, "i"))
    (padding,) = cursor.numbers(1)
    cursor.take(padding)
    items = {}
    for name, shape, (_, kind, _, size) in zip(names, shapes, headers):
        content = cursor.take(size)
        if name in items:
            raise ValueError(f"{name} is there twice")
        if not name.endswith(ACTIVATIONS):
            items[name] = item_values(name, kind, shape, content)
    return items


def item_values(name: str, kind: int, shape: tuple[int, ...], content: memoryview) -> np.ndarray:
    """The values of an item in its shape."""
    if any(size < 1 for size in shape):
        raise ValueError(f"{name} has the shape {shape}")
    count, dtype = math.prod(shape), FLOATS.get(kind)
    if kind == TEXT:
        return np.frombuffer(content, np.int8)
    if dtype is None and kind not in INTGEMM8:
        known = ", ".join(f"{number:#x}" for number in (*FLOATS, *INTGEMM8))
        raise ValueError(
            f"{name} is of type {kind:#x}, expected one of {known}; write the model anew with marian-conv as float32 "
            "or intgemm8, which fit every processor"
        )
    needed = count * dtype.itemsize if dtype is not None else count + 4
    if needed > len(content):
        raise ValueError(f"{name} of shape {shape} needs {needed} bytes, it has {len(content)}")
    if dtype is not None:
        return np.frombuffer(content[:needed], dtype).reshape(shape)
    return int8_values(name, shape, np.frombuffer(content[:count], np.int8), content[count:needed])


def int8_values(name: str, shape: tuple[int, ...], values: np.ndarray, behind: memoryview) -> np.ndarray:
    """int8 values over the multiplier behind them; all matrices but embeddings stand transposed in the file."""
    (multiplier,) = struct.unpack("<f", behind)
    if not (math.isfinite(multiplier) and multiplier > 0):
        raise ValueError(f"{name} has the multiplier {multiplier}")
    if name.endswith("Wemb") or len(shape) != 2:
        matrix = values.reshape(shape)
    else:
        matrix = values.reshape(shape[::-1]).T
    with np.errstate(over="ignore"):  # what is too large is refused later
        return matrix.astype(np.float32) / np.float32(multiplier)


# The archive of arrays


def read_archive(data: bytes) -> dict[str, np.ndarray]:
    """The items of a `.npz` file by name. Its members are not packed, as Marian writes them."""
    items = {}
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for member in archive.infolist():
            if member.compress_type != zipfile.ZIP_STORED or member.flag_bits & 1 or member.file_size > len(data):
                raise ValueError(f"{member.filename} is packed or encrypted, expected an archive as Marian writes it")
            name = member.filename.removesuffix(".npy")
            if name in items:
                raise ValueError(f"{name} is there twice")
            items[name] = array_values(name, archive.read(member))
    return items


def array_values(name: str, content: bytes) -> np.ndarray:
    """The array of a `.npy` file in memory."""
    file = io.BytesIO(content)
    if np.lib.format.read_magic(file) != (1, 0):
        raise ValueError(f"{name} is an array of another version than 1.0")
    try:
        shape, is_fortran, dtype = np.lib.format.read_array_header_1_0(file)
    except (SyntaxError, TypeError, RecursionError) as error:  # a header is a Python literal
        raise ValueError(f"{name} has a damaged header") from error
    if dtype.kind not in "fiSu" or is_fortran or dtype.itemsize > 8:
        raise ValueError(f"{name} is of type {dtype}, expected numbers in the order of rows")
    needed, left = math.prod(shape) * dtype.itemsize, len(content) - file.tell()
    if needed != left:
        raise ValueError(f"{name} of shape {shape} needs {needed} bytes, it has {left}")
    return np.frombuffer(content, dtype, offset=file.tell()).reshape(shape)
