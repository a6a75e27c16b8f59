"""Speed of translating documents: drafts and strategies, and windows by other engines with the same weights."""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, redirect_stdout
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from sys import stderr
from typing import Any

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from hf_docmt import registry
from hf_docmt.bench.benchmark import Benchmark, OnRow, ignore_row
from hf_docmt.bench.decode import MODES, ctranslate2_model, diversify_translations, random_sources
from hf_docmt.bench.measurement import elapsed_seconds, median_seconds
from hf_docmt.bench.models import NEVER, TRANSFORMER_BASE, build_pair, load_documents
from hf_docmt.bench.options import DocumentsOptions, WindowDecodingOptions
from hf_docmt.bench.results import SIDES, BenchResult, Check, Row
from hf_docmt.data.documents import sentences
from hf_docmt.data.synthetic.corpus import write_corpus
from hf_docmt.hub.stock import to_stock
from hf_docmt.messages import install_command
from hf_docmt.modeling.document_state import DocumentState, SentencePart, read_document
from hf_docmt.training.recipe import load_recipe
from hf_docmt.training.run import train

MIN_RATIO = 2.0  # target of windows with drafts
MAX_TOKENS = 256  # of a sentence, as in `translate_documents`
ENGINES = {"ctranslate2 fp32": "float32", "ctranslate2 int8": "int8"}  # and the type of their weights
MIN_INT8_RATIO = 4.0  # target of int8 beside transformers
MIN_EQUAL = 0.99  # target of fp32: share of sentences that are those of ours
PAST = 3  # sentences before the current one: windows of four


@dataclass(kw_only=True)
class DocumentTranslation(DocumentsOptions, Benchmark):
    """Sentences a second by greedy search. Each row has a strategy on both sides.

    Ours is `sliding` with drafts, and the peer `sliding` without; the other rows compare strategies. `accepted` is the
    share of tokens that came from drafts, of all that were written in passes with drafts; 0 without drafts.
    """

    report_options = ({"repeats": 3},)

    steps: int = 600  # of training, where no model is given
    seed: int = 1

    def run(self, on_row: OnRow = ignore_row) -> BenchResult:
        model, tokenizer = registry.load_model(self.model) if self.model else trained_model(self.steps, self.seed)
        documents = read_states(self.documents or self.number, self.number, model, tokenizer)
        rows: list[Row] = []
        for case, ours, peer in (
            ("sliding, drafts : no drafts", ("sliding", True), ("sliding", False)),
            ("sliding : sentence", ("sliding", True), ("sentence", True)),
            ("sequential : sentence", ("sequential", True), ("sentence", True)),
        ):
            sides = {"ours": (model, *ours), "peer": (model, *peer)}
            search = {"num_beams": 1, "do_sample": False}
            measured = measure_sides(sides, documents, search, self.batch_size, self.repeats)
            more = {"accepted": measured.accepted["ours"], "equal": measured.equal("ours", "peer")}
            rows.append(Row.of_speeds(case, "sentences/s", measured.sentences, measured.seconds, **more))
            on_row(rows[-1])
        checks = [
            Check.at_least("sliding: ratio of drafts to no drafts", rows[0].ratio, MIN_RATIO),
            Check.at_least("sliding: share of equal translations", rows[0].more["equal"], 1.0),
        ]
        return self.result(rows, checks, model=self.model or "built-in corpus", documents=len(documents))


@dataclass(kw_only=True)
class WindowDecoding(WindowDecodingOptions, Benchmark):
    """Sentences a second of strategy `sliding`, windows of four sentences, by one set of weights in all engines.

    The peer is transformers' own class with these weights on the same windows. Ours is `translate_documents` as it is,
    with drafts in greedy search; CTranslate2 walks the same strategy. Without a model: random weights of
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
        sides = {name: (engine, "sliding", name == "ours") for name, engine in engines.items()}
        rows = []
        for mode in self.modes:
            search = {"num_beams": MODES[mode], "do_sample": False, **settings}
            repairs = "none" if settings else "all"
            measured = measure_sides(sides, documents, search, self.batch_size, self.repeats, repairs=repairs)
            for name in (engine for engine in engines if engine != "peer"):
                times = {"ours": measured.seconds[name], "peer": measured.seconds["peer"]}
                more = {"equal": measured.equal(name, "ours"), "mode": mode, "engine": name}
                rows.append(Row.of_speeds(f"{mode}: {name}", "sentences/s", measured.sentences, times, **more))
                on_row(rows[-1])
        count = sum(len(document.parts) for document in documents)
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
        documents = [ids[first : first + size] for first in range(0, len(ids), size)]
        states = [DocumentState(len(units), [SentencePart(*part) for part in enumerate(units)]) for units in documents]
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


@dataclass
class MeasuredSides:
    """Seconds, translations (ids of each sentence) and share of tokens from drafts of each side."""

    seconds: dict[str, float]
    translations: dict[str, list[list[int]]]
    accepted: dict[str, float]

    @property
    def sentences(self) -> dict[str, int]:
        """How many sentences each side of a row has translated."""
        return dict.fromkeys(SIDES, len(self.translations["ours"]))

    def equal(self, side: str, other: str) -> float:
        """The share of sentences that come out alike."""
        pairs = zip(self.translations[side], self.translations[other], strict=True)
        return sum(a == b for a, b in pairs) / len(self.translations[side])


def measure_sides(
    sides: Mapping[str, tuple[Any, str, bool]],
    documents: Sequence[DocumentState],
    search: dict,
    batch_size: int,
    repeats: int,
    **options: str,
) -> MeasuredSides:
    """Translate documents by each side (an engine, a strategy, drafts or none), as in `translate_documents`."""
    translations: dict[str, list[list[int]]] = {}
    accepted: dict[str, float] = {}

    def side(name: str, engine: Any, strategy: str, drafts: bool) -> Callable[[], float]:
        def work() -> None:
            states = []
            for state in documents:
                parts = [type(part)(part.sentence, part.ids) for part in state.parts]
                states.append(DocumentState(state.size, parts, number=state.number))
            translator = engine.translator_class(engine, batch_size, search)
            translator.drafts = drafts
            translator.translate(states, strategy, **options)
            translations[name] = [part.target for state in states for part in state.parts]
            search_with_drafts = translator.draft_search
            written = search_with_drafts.written if search_with_drafts else 0
            accepted[name] = search_with_drafts.accepted / written if written else 0.0

        return lambda: elapsed_seconds(work, getattr(engine, "device", "cpu"))

    with torch.inference_mode():
        seconds = median_seconds({name: side(name, *how) for name, how in sides.items()}, repeats)
    return MeasuredSides(seconds, translations, accepted)


def read_states(
    documents: str | int, number: int, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase
) -> list[DocumentState]:
    """The first documents of a file, or of the built-in corpus, to be translated."""
    source, target = model.config.source_lang or "en", model.config.target_lang or "de"
    rows = load_documents(documents, source, target)
    texts = [sentences(row, source) for row in rows.select(range(min(number, len(rows))))]
    return [read_document(text, tokenizer, MAX_TOKENS) for text in texts]


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
