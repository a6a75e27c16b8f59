"""Speed of engines on windows of documents: ours, transformers' class with the same weights, and CTranslate2."""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import torch
from transformers import PreTrainedModel

from hf_docmt import registry
from hf_docmt.bench.benchmark import Benchmark, OnRow, ignore_row, option
from hf_docmt.bench.decode import MODES, diversify_translations, random_sources
from hf_docmt.bench.document_translation import MAX_TOKENS, copies
from hf_docmt.bench.measurement import elapsed_seconds, median_seconds
from hf_docmt.bench.models import NEVER, TRANSFORMER_BASE, build_pair, load_documents
from hf_docmt.bench.results import BenchResult, Check, Row
from hf_docmt.data.documents import sentences
from hf_docmt.hub.stock import to_stock
from hf_docmt.messages import install_command
from hf_docmt.modeling.document_state import DocumentState, SentencePart, read_document

ENGINES = {"ctranslate2 fp32": "float32", "ctranslate2 int8": "int8"}  # and the type of their weights
MIN_RATIO = 4.0  # target of int8 beside transformers
MIN_EQUAL = 0.99  # target of fp32: share of sentences that are those of ours
PAST = 3  # sentences before the current one: windows of four


@dataclass(kw_only=True)
class WindowDecoding(Benchmark):
    """Sentences a second of strategy `sliding`, windows of four sentences, by one set of weights in all engines.

    The peer is transformers' own class with these weights on the same windows. Ours is `translate_documents` as it is,
    with drafts in greedy search; CTranslate2 walks the same strategy. Without a model: random weights of
    Transformer-base, sentences of 25 random tokens, and translations as long as their windows. `equal` is the share of
    sentences that come out as by ours; without a trained model one other token changes all that follow it in a window.
    """

    model: str = option("", "Folder of a concat model of windows or chunks. Default: random Transformer-base.")
    documents: str = option("", "JSON-lines file of documents, for a model. Default: the built-in corpus.")
    number: int = option(20, "Documents that are translated, of a model.")
    batch_size: int = option(16, "Rows of a batch.")
    repeats: int = option(5, "Measurements of each case, the median is reported.")
    modes: Sequence[str] = tuple(MODES)
    sizes: Mapping[str, int] | None = None  # of random weights; None: Transformer-base
    vocab_size: int = 32000
    tokens: int = 25  # of a random sentence
    seed: int = 1

    def run(self, on_row: OnRow = ignore_row) -> BenchResult:
        model, documents, settings = self._trained() if self.model else self._random()
        rows = []
        with tempfile.TemporaryDirectory() as folder:
            engines = {"ours": model, "peer": StockEngine(model), **ctranslate2_engines(model, Path(folder))}
            for mode in self.modes:
                search = {"num_beams": MODES[mode], "do_sample": False, **settings}
                found = compare(mode, engines, documents, search, self.batch_size, self.repeats)
                rows += found
                for row in found:
                    on_row(row)
            versions = {"ctranslate2": engines["ctranslate2 int8"].engine}
        count = sum(len(document.parts) for document in documents)
        setting = {"model": self.model or "random Transformer-base", "strategy": "sliding", "sentences": count}
        return self.result(rows, target_checks(rows), **setting, **versions)

    def _trained(self) -> tuple[PreTrainedModel, list[DocumentState], dict]:
        model, tokenizer = registry.load_model(self.model)
        source, target = model.config.source_lang or "en", model.config.target_lang or "de"
        found = load_documents(self.documents or self.number, source, target)
        texts = [sentences(row, source) for row in found.select(range(min(self.number, len(found))))]
        return model, [read_document(text, tokenizer, MAX_TOKENS) for text in texts], {}

    def _random(self) -> tuple[PreTrainedModel, list[DocumentState], dict]:
        """Weights with which no window ends before its last token, and documents of eight sentences."""
        sizes = self.sizes or TRANSFORMER_BASE
        model, _ = build_pair(sizes, self.vocab_size, self.seed, past_context=PAST)
        diversify_translations(model.eval())
        model.final_logits_bias[:, [model.config.eos_token_id, model.config.sep_token_id]] = NEVER
        ids = random_sources(self.batch_size, self.tokens + 1, self.vocab_size, self.seed)[:, :-1].tolist()
        size = 2 * (PAST + 1)
        documents = [ids[first : first + size] for first in range(0, len(ids), size)]
        states = [DocumentState(len(one), [SentencePart(*part) for part in enumerate(one)]) for one in documents]
        return model, states, {"max_new_tokens": (PAST + 1) * (self.tokens + 1)}


class StockEngine:
    """What strategies need of a model, by transformers' own class with its weights."""

    prepacked_weights = nullcontext

    def __init__(self, model: PreTrainedModel):
        self.model, self.config, self.generation_config = to_stock(model), model.config, model.generation_config
        self.translator_class, self.device = model.translator_class, model.device
        self.generate, self.modules = self.model.generate, self.model.modules


def ctranslate2_engines(model: PreTrainedModel, folder: Path) -> dict:
    """The model in CTranslate2's format, with each type of weights; ValueError where it is not installed."""
    try:
        from hf_docmt.hub.ctranslate2_conversion import write_ctranslate2_folder
        from hf_docmt.translation.ctranslate2_model import CTranslate2Model
    except ImportError as error:
        raise ValueError(f"--engine ctranslate2 needs CTranslate2: {install_command('ctranslate2')}") from error
    found = {}
    for name, quantization in ENGINES.items():
        (folder / quantization).mkdir()
        write_ctranslate2_folder(
            model, list(map(str, range(model.config.vocab_size))), folder / quantization, quantization
        )
        found[name] = CTranslate2Model(folder / quantization)
    return found


def compare(
    mode: str, engines: Mapping, documents: Sequence[DocumentState], search: dict, batch_size: int, repeats: int
) -> list[Row]:
    """A row for each engine but the peer, beside it; all are measured in the same rounds."""
    found: dict[str, list[list[int]]] = {}

    def side(name: str) -> Callable[[], float]:
        def work() -> None:
            states = [DocumentState(state.size, copies(state)) for state in documents]
            translator = engines[name].translator_class(engines[name], batch_size, search)
            translator.drafts = name == "ours"
            translator.translate(states, "sliding", repairs="all" if "max_new_tokens" not in search else "none")
            found[name] = [part.target for state in states for part in state.parts]

        return lambda: elapsed_seconds(work)

    with torch.inference_mode():
        seconds = median_seconds({name: side(name) for name in engines}, repeats)
    amounts = dict.fromkeys(("ours", "peer"), len(found["ours"]))
    rows = []
    for name in (one for one in engines if one != "peer"):
        equal = sum(a == b for a, b in zip(found[name], found["ours"])) / len(found["ours"])
        times = {"ours": seconds[name], "peer": seconds["peer"]}
        rows.append(
            Row.of_speeds(f"{mode}: {name}", "sentences/s", amounts, times, equal=equal, mode=mode, engine=name)
        )
    return rows


def target_checks(rows: Sequence[Row]) -> list[Check]:
    """int8 beside transformers, and the same sentences in fp32."""
    checks = []
    for row in rows:
        if row.more["engine"] == "ctranslate2 int8":
            checks.append(Check.at_least(f"{row.case}: ratio", row.ratio, MIN_RATIO))
        if row.more["engine"] == "ctranslate2 fp32":
            checks.append(Check.at_least(f"{row.case}: equal sentences", row.more["equal"], MIN_EQUAL))
    return checks
