"""`docmt bench`: speed and memory, measured side by side, each benchmark in a file."""

from importlib import import_module

CLASSES = {  # benchmark, as reports name it: module and class
    "architectures": ".architectures:ArchitectureDecoding",
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


def load_benchmark(name: str) -> type:
    """The class of a benchmark; its file, and torch, is imported only now."""
    module, _, attribute = CLASSES[name].partition(":")
    return getattr(import_module(module, __name__), attribute)
