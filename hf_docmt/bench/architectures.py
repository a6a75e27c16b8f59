"""Decoding speed of every architecture beside `concat` of the same size."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from transformers import PreTrainedModel

from hf_docmt import registry
from hf_docmt.bench.benchmark import Benchmark, OnRow, ignore_row
from hf_docmt.bench.decode import NAMED_SIZES
from hf_docmt.bench.document_translation import measure_sides
from hf_docmt.bench.models import random_model, random_units
from hf_docmt.bench.options import ArchitecturesOptions
from hf_docmt.bench.results import BenchResult, Check, Row
from hf_docmt.modeling.cpu_kernels import are_used

PEER = "concat"
SENTENCES, WINDOWS = "sentences", "windows of two"
MAX_TIME = dict.fromkeys(("caching", "window", "memory", "routing"), 1.3)  # in int8, times the peer's


@dataclass(kw_only=True)
class ArchitectureDecoding(ArchitecturesOptions, Benchmark):
    """Sentences a second of translating documents, greedy, by each architecture with its own strategy.

    `documents` documents of `sentences` random sentences of `tokens` tokens, one batch; random weights, equal for equal
    names. One sentence before each is its context. Models that read it with the current one write windows of two, their
    peer is `concat` on windows; beside the others it reads sentences without context. As no special token is ever
    chosen, as many tokens are written as are read. `kernels` of the setting: whether int8 runs on the compiled
    primitives.
    """

    report_options = ({"repeats": 3}, {"size": "small", "repeats": 3})

    precisions: Sequence[str] = ("fp32", "int8")
    sizes: Mapping[str, int] | None = None  # in place of those of `size`
    vocab_size: int | None = None
    documents: int = 4
    sentences: int = 8
    tokens: int = 25

    def run(self, on_row: OnRow = ignore_row) -> BenchResult:
        rows: list[Row] = []
        for precision in self.precisions:
            for unit in (SENTENCES, WINDOWS):
                for row in self.rows_of(precision, unit):
                    rows.append(row)
                    on_row(row)
        checks = [
            Check.at_most(f"{row.case}: time", row.time_ratio, MAX_TIME[row.more["name"]])
            for row in rows
            if row.more["precision"] == "int8" and row.more["name"] in MAX_TIME
        ]
        sizes, vocab_size = self.model_sizes()
        return self.result(rows, checks, sizes=dict(sizes), vocab_size=vocab_size, context=1, kernels=are_used())

    def model_sizes(self) -> tuple[Mapping[str, int], int]:
        """Sizes of the layers and of the vocabulary."""
        sizes, vocab_size = NAMED_SIZES[self.size]
        return self.sizes or sizes, self.vocab_size or vocab_size

    def rows_of(self, precision: str, unit: str) -> Iterator[Row]:
        """The rows of the architectures that read these units, measured in the same rounds."""
        models = {PEER: self.model(PEER, precision, {} if unit == SENTENCES else {"past_context": 1})}
        for name, entry in registry.ARCHITECTURES.items():
            reads_sentences = entry.separate_context or entry.carries_state
            if name != PEER and reads_sentences == (unit == SENTENCES):
                models[name] = self.model(name, precision, {} if entry.carries_state else {"past_context": 1})
        torch.manual_seed(1)
        vocab_size = models[PEER].config.vocab_size
        documents = [random_units(self.sentences, self.tokens, vocab_size) for _ in range(self.documents)]
        written = self.tokens if unit == SENTENCES else 2 * self.tokens + 1  # with the separator that was read
        search = {"num_beams": 1, "do_sample": False, "max_new_tokens": written}
        sides = {name: (model, model.default_strategy()) for name, model in models.items()}
        measured, _ = measure_sides(sides, documents, search, self.documents, self.repeats, repairs="none")
        for name in (name for name in models if name != PEER):
            seconds = {"ours": measured[name], "peer": measured[PEER]}
            case, amount = f"{precision} {name}, {unit}", self.documents * self.sentences
            yield Row.of_speeds(case, "sentences/s", amount, seconds, precision=precision, name=name)

    def model(self, architecture: str, precision: str, fields: Mapping) -> PreTrainedModel:
        """A random model in a precision."""
        model = random_model(architecture, fields, *self.model_sizes())
        if precision == "int8":
            model.quantize("int8")
        return model
