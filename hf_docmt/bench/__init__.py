"""`docmt bench`: speed and memory, measured side by side. The commands stand here, each benchmark in a file."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module

CLASSES = {  # benchmark, as reports name it: module and class
    "attention": ".attention:AttentionBenchmark",
    "ceilings": ".ceilings:CeilingsBenchmark",
    "contrast": ".contrast:ContrastBenchmark",
    "cost-by-context": ".cost_by_context:CostByContext",
    "cost-by-length": ".cost_by_length:CostByLength",
    "data": ".data:DataBenchmark",
    "decode": ".decode:DecodeBenchmark",
    "documents": ".document_translation:DocumentTranslation",
    "train": ".train:TrainBenchmark",
    "train_memory": ".train_memory:TrainMemoryBenchmark",
    "window-decoding": ".document_translation:WindowDecoding",
}


@dataclass(frozen=True)
class Command:
    """A command of `docmt bench`: one benchmark, or several by the value of an option, the first one by default."""

    help: str
    benchmarks: Mapping[str, str]  # value of the option: benchmark
    option: str | None = None


COMMANDS = {
    "attention": Command(
        "Time and memory of a training step by length: concat, lst and window attention; decoding with lst.\n\n"
        "Every row is printed on standard error as soon as it is measured.",
        {"": "attention"},
    ),
    "ceilings": Command(
        "GFLOP/s of products of large matrices and GB/s of a copy from memory, with nothing of ours.",
        {"": "ceilings"},
    ),
    "contrast": Command(
        "Items per second of contrastive scoring, against scoring one candidate at a time.", {"": "contrast"}
    ),
    "cost": Command(
        "Time and memory of translating, or of training: by length of documents, or by sentences of context.\n\n"
        "By length: sentences alone, with recurrent memory, whole documents. Every row is printed on standard error as "
        "soon as it is measured. On one core (25 ms per token), one repeat over the lengths 500,1000,4000 or the "
        "contexts 0,1,2,10 took eleven minutes; the defaults take longer.\n\n"
        "By context: one encoder, two, caching with sequence shortening, the Document Transformer, routing.",
        {"length": "cost-by-length", "context": "cost-by-context"},
        option="by",
    ),
    "data": Command(
        "Time to the first update, memory and tokens per second of training on so many sentence pairs.",
        {"": "data"},
    ),
    "decode": Command(
        "Sentences per second of generate(), against MarianMT with the same weights (Transformer-base).\n\n"
        "With --engine ctranslate2: document windows by CTranslate2, ours and transformers' class.",
        {"transformers": "decode", "ctranslate2": "window-decoding"},
        option="engine",
    ),
    "documents": Command(
        "Sentences per second of document translation: windows with drafts and without, and strategies.",
        {"": "documents"},
    ),
    "train": Command(
        "Target tokens per second in training, against fixed-size random batches in Seq2SeqTrainer.\n\n"
        "--by memory: time and memory of a training step on a long document, with and without all logits.",
        {"speed": "train", "memory": "train_memory"},
        option="by",
    ),
}


def load_benchmark(name: str) -> type:
    """The class of a benchmark; its file, and torch, is imported only now."""
    module, _, attribute = CLASSES[name].partition(":")
    return getattr(import_module(module, __name__), attribute)
