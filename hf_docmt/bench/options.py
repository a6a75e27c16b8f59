"""Options of the benchmarks that the command line has, without torch, so that their help is quick."""

from dataclasses import dataclass
from functools import partial

from hf_docmt.options import option

CASE_REPEATS = "Measurements of each case, the median is reported."
SYSTEM_REPEATS = option(3, "Measurements of each system, the median is reported.")
ROUNDS = option(5, "Rounds, the median is reported.")
DEVICE = option("cpu", "cpu or cuda.")
PRECISION = option("fp32", "fp32 or bf16.")
TIME_LIMIT = option(600, "Longest time of one measurement, in seconds.")
SIZE = option("base", "Models: base (Transformer-base, 32,000 tokens) or small (d = 256, 3 + 3 layers, 8,000).")
BATCH_SIZE = option(16, "Rows of a batch.")


def whole_numbers(option: str, text: str) -> tuple[int, ...]:
    """Whole numbers separated by commas."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() for part in parts):
        raise ValueError(f"--{option} is {text!r}, expected whole numbers with commas between them")
    return tuple(map(int, parts))


def document_lengths(*lengths: int):
    """The option of these lengths."""
    return option(lengths, "Tokens of the documents, separated by commas.", read=partial(whole_numbers, "lengths"))


@dataclass(kw_only=True)
class ArchitecturesOptions:
    """Of decoding by architecture."""

    size: str = SIZE
    repeats: int = option(5, CASE_REPEATS)


@dataclass(kw_only=True)
class AttentionOptions:
    """Of attention by length."""

    repeats: int = option(3, CASE_REPEATS)
    lengths: tuple[int, ...] = document_lengths(1024, 2208, 4096, 8192)
    device: str = DEVICE
    time_limit: float = TIME_LIMIT


@dataclass(kw_only=True)
class CeilingsOptions:
    """Of ceilings of the machine."""

    repeats: int = option(5, "Measurements of each, the median is reported.")
    device: str = DEVICE


@dataclass(kw_only=True)
class ContrastOptions:
    """Of contrastive scoring."""

    repeats: int = option(5, CASE_REPEATS)


@dataclass(kw_only=True)
class CostByLengthOptions:
    """Of cost by length of documents."""

    repeats: int = SYSTEM_REPEATS
    lengths: tuple[int, ...] = document_lengths(500, 1000, 2000, 4000, 8000)
    device: str = DEVICE
    time_limit: float = TIME_LIMIT
    stream_sentences: int = option(0, "Sentences of a stream whose memory is measured; 0 = none.")


@dataclass(kw_only=True)
class CostByContextOptions:
    """Of cost by sentences of context."""

    repeats: int = SYSTEM_REPEATS
    contexts: tuple[int, ...] = option(
        (0, 1, 2, 5, 10, 20),
        "Numbers of context sentences, separated by commas.",
        read=partial(whole_numbers, "contexts"),
    )
    work: str = option("translation", "By context: translation or training.")
    device: str = DEVICE
    time_limit: float = TIME_LIMIT


@dataclass(kw_only=True)
class DataOptions:
    """Of training data."""

    pairs: int = option(5_000_000, "Sentence pairs of the large corpus.")
    memory_pairs: int = option(50_000, "Sentence pairs of the corpus that is trained on both ways.")
    updates: int = option(200, "Updates of a measurement.")
    repeats: int = option(3, "Rounds over the smaller corpus, the median is reported.")
    time_limit: float = option(7200.0, "Most seconds of one start with its updates.")


@dataclass(kw_only=True)
class DecodeOptions:
    """Of decoding."""

    size: str = SIZE
    repeats: int = option(5, CASE_REPEATS)
    device: str = DEVICE


@dataclass(kw_only=True)
class WindowDecodingOptions:
    """Of decoding of windows."""

    model: str = option("", "Folder of a concat model of windows or chunks. Default: random Transformer-base.")
    documents: str = option("", "JSON-lines file of documents, for a model. Default: the built-in corpus.")
    number: int = option(20, "Documents that are translated, of a model.")
    batch_size: int = BATCH_SIZE
    repeats: int = option(5, CASE_REPEATS)


@dataclass(kw_only=True)
class DocumentsOptions:
    """Of document translation."""

    model: str = option("", "Folder of a trained model of windows. Default: one that is trained before, in a minute.")
    documents: str = option("", "JSON-lines file of documents. Default: the built-in corpus.")
    number: int = option(60, "Documents that are translated.")
    batch_size: int = BATCH_SIZE
    repeats: int = option(3, CASE_REPEATS)


@dataclass(kw_only=True)
class TrainOptions:
    """Of training."""

    repeats: int = ROUNDS
    device: str = DEVICE
    precision: str = PRECISION


@dataclass(kw_only=True)
class TrainMemoryOptions:
    """Of memory of training."""

    repeats: int = ROUNDS
    tokens: int = option(8192, "Tokens of the document.")
    architecture: str = option("window", "Architecture of the model.")
    precision: str = PRECISION
    device: str = DEVICE
    time_limit: float = option(600, "Longest time of a measurement, in seconds.")
