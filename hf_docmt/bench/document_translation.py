"""Speed of translating documents: strategies, and windows by other engines with the same weights."""

import copy
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, redirect_stdout
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from pathlib import Path
from sys import stderr
from typing import Any

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from hf_docmt import registry
from hf_docmt.bench.benchmark import Benchmark, OnRow, ignore_row
from hf_docmt.bench.decode import MODES, ctranslate2_model, ctranslate2_version, diversify_translations, random_sources
from hf_docmt.bench.measurement import median_seconds_and_outputs
from hf_docmt.bench.models import NEVER, TRANSFORMER_BASE, build_pair, load_documents
from hf_docmt.bench.options import DocumentsOptions, WindowDecodingOptions
from hf_docmt.bench.results import BenchResult, Check, Row
from hf_docmt.data.documents import sentences
from hf_docmt.data.synthetic.corpus import write_corpus
from hf_docmt.hub.stock import to_stock
from hf_docmt.messages import install_command
from hf_docmt.modeling.document_state import DocumentState, SentencePart, read_document
from hf_docmt.training.recipe import load_recipe
from hf_docmt.training.run import train

MAX_SEQUENTIAL = 4.0  # target of `sequential` on one long document: times the seconds of `sentence`
LONG, JOINED = 100, 30  # sentences in a row
LONG_CASE = f"int8: sequential : sentence, a document of {LONG} sentences"
MAX_TOKENS = 256  # of a sentence, as in `translate_documents`
ENGINES = {"ctranslate2 fp32": "float32", "ctranslate2 int8": "int8"}  # and the type of their weights
MIN_INT8_RATIO = 4.0  # target of int8 beside transformers
MIN_EQUAL = 0.99  # target of fp32: share of sentences that are those of ours
PAST = 3  # sentences before the current one: windows of four


Side = tuple[Any, str]  # an engine and a strategy


@dataclass(kw_only=True)
class DocumentTranslation(DocumentsOptions, Benchmark):
    """Sentences a second by greedy search, each strategy beside `sentence`, also on one document of `LONG` sentences.

    Where CTranslate2 is installed, it walks each strategy beside ours, both with int8 weights, on documents of `JOINED`
    sentences. `equal` is the share of sentences that come out alike.
    """

    report_options = ({"repeats": 3},)

    steps: int = 600  # of training, where no model is given
    seed: int = 1

    def run(self, on_row: OnRow = ignore_row) -> BenchResult:
        model, tokenizer = registry.load_model(self.model) if self.model else trained_model(self.steps, self.seed)
        documents = read_states(self.documents or self.number, self.number, model, tokenizer)
        int8 = copy.deepcopy(model)
        int8.quantize("int8")
        sides: dict[str, tuple[Side, Side, list[DocumentState]]] = {}
        for precision, engine in (("fp32", model), ("int8", int8)):
            for strategy in ("sliding", "sequential"):
                sides[f"{precision}: {strategy} : sentence"] = (engine, strategy), (engine, "sentence"), documents
        long = joined(documents, LONG)[:1]
        sides[LONG_CASE] = (int8, "sequential"), (int8, "sentence"), long
        if ctranslate2_version() is not None:
            peer, many = ctranslate2_model(model, "int8"), joined(documents, JOINED)
            for strategy in ("sentence", "sliding", "sequential"):
                case = f"int8: {strategy} : CTranslate2's, documents of {JOINED} sentences"
                sides[case] = (int8, strategy), (peer, strategy), many
        rows: list[Row] = []
        for case, (ours, other, read) in sides.items():
            search = {"num_beams": 1, "do_sample": False}
            seconds, lines = measure_sides({"ours": ours, "peer": other}, read, search, self.batch_size, self.repeats)
            equal = equal_share(lines["ours"], lines["peer"])
            rows.append(Row.of_speeds(case, "sentences/s", len(lines["ours"]), seconds, equal=equal))
            on_row(rows[-1])
        time = next(row.time_ratio for row in rows if row.case == LONG_CASE)
        checks = [Check.at_most(f"{LONG_CASE}: time", time, MAX_SEQUENTIAL)]
        return self.result(rows, checks, model=self.model or "built-in corpus", documents=len(documents))


@dataclass(kw_only=True)
class WindowDecoding(WindowDecodingOptions, Benchmark):
    """Sentences a second of strategy `sliding`, windows of four sentences, by one set of weights in all engines.

    The peer is transformers' own class with these weights on the same windows. Ours is `translate_documents` as it is,
    and CTranslate2 walks the same strategy. Without a model: random weights of
    Transformer-base, sentences of 25 random tokens, and translations as long as their windows. `equal` is the share of
    sentences that come out as by ours; without a trained model one other token changes all that follow it in a window.
    """

    modes: Sequence[str] = tuple(MODES)
    sizes: Mapping[str, int] | None = None  # of random weights; None: Transformer-base
    vocab_size: int = 32000
    tokens: int = 25  # of a random sentence
    seed: int = 1

    def run(self, on_row: OnRow = ignore_row) -> BenchResult:
        model, documents, settings = self._trained() if self.model else self._random()
        engines = {"ours": model, "peer": StockEngine(model), **ctranslate2_engines(model)}
        sides = {name: (engine, "sliding") for name, engine in engines.items()}
        rows, count = [], sum(len(document.parts) for document in documents)
        for mode in self.modes:
            search = {"num_beams": MODES[mode], "do_sample": False, **settings}
            repairs = "none" if settings else "all"
            seconds, lines = measure_sides(sides, documents, search, self.batch_size, self.repeats, repairs=repairs)
            for name in (engine for engine in engines if engine != "peer"):
                times = {"ours": seconds[name], "peer": seconds["peer"]}
                more = {"equal": equal_share(lines[name], lines["ours"]), "mode": mode, "engine": name}
                rows.append(Row.of_speeds(f"{mode}: {name}", "sentences/s", count, times, **more))
                on_row(rows[-1])
        setting = {"model": self.model or "random Transformer-base", "strategy": "sliding", "sentences": count}
        setting["ctranslate2"] = engines["ctranslate2 int8"].engine
        return self.result(rows, window_checks(rows), **setting)

    def _trained(self) -> tuple[PreTrainedModel, list[DocumentState], dict]:
        model, tokenizer = registry.load_model(self.model)
        return model, read_states(self.documents or self.number, self.number, model, tokenizer), {}

    def _random(self) -> tuple[PreTrainedModel, list[DocumentState], dict]:
        """Weights with which no window ends before its last token, and documents of eight sentences."""
        sizes = self.sizes or TRANSFORMER_BASE
        model, _ = build_pair(sizes, self.vocab_size, self.seed, past_context=PAST)
        diversify_translations(model.eval())
        model.final_logits_bias[:, [model.config.eos_token_id, model.config.sep_token_id]] = NEVER
        ids = random_sources(self.batch_size, self.tokens + 1, self.vocab_size, self.seed)[:, :-1].tolist()
        size = 2 * (PAST + 1)
        states = joined([DocumentState(len(ids), [SentencePart(*part) for part in enumerate(ids)])], size)
        return model, states, {"max_new_tokens": (PAST + 1) * (self.tokens + 1)}


class StockEngine:
    """What strategies need of a model, by transformers' own class with its weights."""

    prepacked_weights = nullcontext

    def __init__(self, model: PreTrainedModel):
        self.model, self.config, self.generation_config = to_stock(model), model.config, model.generation_config
        self.translator_class, self.device = model.translator_class, model.device
        self.generate, self.modules = self.model.generate, self.model.modules


def ctranslate2_engines(model: PreTrainedModel) -> dict:
    """The model in CTranslate2's format, with each type of weights; ValueError where it is not installed."""
    try:
        return {name: ctranslate2_model(model, quantization) for name, quantization in ENGINES.items()}
    except ImportError as error:
        raise ValueError(f"--engine ctranslate2 needs CTranslate2: {install_command('ctranslate2')}") from error


def measure_sides(
    sides: Mapping[str, Side],
    documents: Sequence[DocumentState],
    search: dict,
    batch_size: int,
    repeats: int,
    **options: str,
) -> tuple[dict[str, float], dict[str, list[list[int]]]]:
    """Translate documents by each side, as in `translate_documents`: its seconds, and the ids of each sentence."""

    def translate(engine: Any, strategy: str) -> list[list[int]]:
        states = []
        for state in documents:
            parts = [type(part)(part.sentence, part.ids) for part in state.parts]
            states.append(DocumentState(state.size, parts, number=state.number))
        translator = engine.translator_class(engine, batch_size, search)
        translator.translate(states, strategy, **options)
        return [part.target for state in states for part in state.parts]

    with torch.inference_mode():
        return median_seconds_and_outputs({name: partial(translate, *how) for name, how in sides.items()}, repeats)


def equal_share(translations: Sequence[list[int]], others: Sequence[list[int]]) -> float:
    """The share of sentences that come out alike."""
    return sum(a == b for a, b in zip(translations, others, strict=True)) / len(translations)


def read_states(
    documents: str | int, number: int, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase
) -> list[DocumentState]:
    """The first documents of a file, or of the built-in corpus, to be translated."""
    source, target = model.config.source_lang or "en", model.config.target_lang or "de"
    rows = load_documents(documents, source, target)
    texts = [sentences(row, source) for row in rows.select(range(min(number, len(rows))))]
    return [read_document(text, tokenizer, MAX_TOKENS) for text in texts]


def joined(documents: Sequence[DocumentState], sentences: int) -> list[DocumentState]:
    """Documents of so many sentences, the sentences of these in a row; the last may have fewer."""
    ids = [part.ids for document in documents for part in document.parts]
    pieces = [ids[first : first + sentences] for first in range(0, len(ids), sentences)]
    return [DocumentState(len(piece), [SentencePart(*part) for part in enumerate(piece)]) for piece in pieces]


def window_checks(rows: Sequence[Row]) -> list[Check]:
    """int8 beside transformers, and the same sentences in fp32."""
    checks = []
    for row in rows:
        if row.more["engine"] == "ctranslate2 int8":
            checks.append(Check.at_least(f"{row.case}: ratio", row.ratio, MIN_INT8_RATIO))
        if row.more["engine"] == "ctranslate2 fp32":
            checks.append(Check.at_least(f"{row.case}: equal sentences", row.more["equal"], MIN_EQUAL))
    return checks


def trained_model(steps: int, seed: int) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """The window model of the demo, trained for so many steps on the built-in corpus."""
    with tempfile.TemporaryDirectory() as folder, redirect_stdout(stderr):
        corpus = Path(folder, "corpus")
        write_corpus(corpus, seed=seed, train=2000, validation=20, test=1)
        overrides = (
            f"seed={seed}",
            f"output_dir={folder}/model",
            f"data.train.path={corpus / 'train.jsonl'}",
            f"data.validation.path={corpus / 'validation.jsonl'}",
            f"training.max_steps={steps}",
        )
        recipe = load_recipe(files("hf_docmt.recipes").joinpath("demo_concat4.yaml"), overrides)
        return registry.load_model(train(recipe))
