"""Speed of translating documents with a trained model: windows with drafts against windows without, and strategies."""

import tempfile
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from sys import stderr

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from hf_docmt import registry
from hf_docmt.bench.benchmark import Benchmark, OnRow, ignore_row, option
from hf_docmt.bench.measurement import elapsed_seconds, median_seconds
from hf_docmt.bench.models import load_documents
from hf_docmt.bench.results import BenchResult, Check, Row
from hf_docmt.data.documents import sentences
from hf_docmt.data.synthetic.corpus import write_corpus
from hf_docmt.modeling.document_state import DocumentState, read_document
from hf_docmt.training.recipe import load_recipe
from hf_docmt.training.run import train

MIN_RATIO = 2.0  # target of windows with drafts
MAX_TOKENS = 256  # of a sentence, as in `translate_documents`


@dataclass(kw_only=True)
class DocumentTranslation(Benchmark):
    """Sentences a second by greedy search. Each row has a strategy on both sides.

    Ours is `sliding` with drafts, and the peer `sliding` without; the other rows compare strategies. `accepted` is the
    share of tokens that came from drafts, of all that were written in passes with drafts; 0 without drafts.
    """

    report_options = ({"repeats": 3},)

    model: str = option("", "Folder of a trained model of windows. Default: one that is trained before, in a minute.")
    documents: str = option("", "JSON-lines file of documents. Default: the built-in corpus.")
    number: int = option(60, "Documents that are translated.")
    batch_size: int = option(16, "Rows of a batch.")
    repeats: int = option(3, "Measurements of each case, the median is reported.")
    steps: int = 600  # of training, where no model is given
    seed: int = 1

    def run(self, on_row: OnRow = ignore_row) -> BenchResult:
        model, tokenizer = registry.load_model(self.model) if self.model else trained_model(self.steps, self.seed)
        source, target = model.config.source_lang or "en", model.config.target_lang or "de"
        rows = load_documents(self.documents or self.number, source, target)
        texts = [sentences(row, source) for row in rows.select(range(min(self.number, len(rows))))]
        search = Search(model, tokenizer, texts, self.batch_size)
        found = []
        for case, ours, peer in (
            ("sliding, drafts : no drafts", ("sliding", True), ("sliding", False)),
            ("sliding : sentence", ("sliding", True), ("sentence", True)),
            ("sequential : sentence", ("sequential", True), ("sentence", True)),
        ):
            found.append(compare(search, case, ours, peer, self.repeats))
            on_row(found[-1])
        checks = [
            Check.at_least("sliding: ratio of drafts to no drafts", found[0].ratio, MIN_RATIO),
            Check.at_least("sliding: share of equal translations", found[0].more["equal"], 1.0),
        ]
        return self.result(found, checks, model=self.model or "built-in corpus", documents=len(texts))


class Search:
    """Translation of the same documents by any strategy, as in `translate_documents` without texts."""

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        texts: Sequence[Sequence[str]],
        batch_size: int,
    ):
        self.model, self.batch_size = model, batch_size
        self.documents = [read_document(text, tokenizer, MAX_TOKENS) for text in texts]
        self.sentences = sum(map(len, texts))
        self.accepted = 0.0  # share of tokens from drafts in the last translation

    def __call__(self, strategy: str, drafts: bool) -> list[list[int]]:
        """The ids of all translations."""
        states = [DocumentState(state.size, copies(state), number=state.number) for state in self.documents]
        settings = {"num_beams": 1, "do_sample": False}
        translator = self.model.translator_class(self.model, self.batch_size, settings)
        translator.drafts = drafts
        translator.translate(states, strategy)
        self.accepted = translator.accepted / translator.written if translator.written else 0.0
        return [part.target for state in states for part in state.parts]


def copies(document: DocumentState) -> list:
    """The parts of a document, to be translated again."""
    return [type(part)(part.sentence, part.ids) for part in document.parts]


def compare(search: Search, case: str, ours: tuple[str, bool], peer: tuple[str, bool], repeats: int) -> Row:
    """One row: strategies, each with its drafts or without."""
    found: dict[str, list[list[int]]] = {}
    accepted: dict[str, float] = {}

    def side(name: str, arguments: tuple[str, bool]) -> Callable[[], float]:
        def work() -> None:
            found[name] = search(*arguments)
            accepted[name] = search.accepted

        return lambda: elapsed_seconds(work, search.model.device)

    seconds = median_seconds({"ours": side("ours", ours), "peer": side("peer", peer)}, repeats)
    equal = sum(a == b for a, b in zip(found["ours"], found["peer"], strict=True)) / len(found["ours"])
    amounts = dict.fromkeys(found, search.sentences)
    return Row.of_speeds(case, "sentences/s", amounts, seconds, accepted=accepted["ours"], equal=equal)


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
