"""What one process of the cost bench by context measures: a case as JSON to seconds and memory of sentences as JSON."""

import copy
import json
import sys
from collections.abc import Callable, Mapping

import torch

from hf_docmt import registry
from hf_docmt.bench.attention_step import SEP
from hf_docmt.bench.document_decoding import SPECIAL, WARM_UP, random_document, random_model
from hf_docmt.bench.memory import gauged, prepare, release_at_once, timed, trim_memory
from hf_docmt.modeling.context_cache import CachedContextTranslator
from hf_docmt.modeling.context_strategies import ContextTranslator
from hf_docmt.modeling.document_state import CurrentSentence, DocumentState
from hf_docmt.modeling.strategies import SegmentTranslator

STEPS = 3  # training steps of a measurement


def measure(case: Mapping) -> dict:
    """`seconds` of translating the `sentences` that follow as many as are `context`, `memory_mib` at the peak of one.

    Each has a pass of its own: so that memory is what is in use, it is released at once, which takes time. What is kept
    of the sentences before counts as memory; weights, and what stays of a first translation such as packed weights, are
    there before. For `work` training it is a step on as many sentences at once.
    """
    device = prepare(case)
    if case["work"] == "training":
        step = training_step(case, device)
        return gauged(lambda: timed(step, device), STEPS, device)
    begin = translation(case, device)
    seconds = timed(begin(case["context"], case["sentences"]), device)
    trim_memory()
    release_at_once()
    return gauged(lambda: timed(begin(case["context"], 1), device), 1, device) | {"seconds": seconds}


def translation(case: Mapping, device: torch.device) -> Callable[[int, int], Callable[[], list[list[int]]]]:
    """What begins a random document: it comes past so many sentences, and returns what translates those that follow.

    The decoder writes as many tokens for a sentence as that has, since no special token is ever chosen. What is
    returned gives the ids of each; `RuntimeError` for other numbers.
    """
    model = random_model(case["architecture"], case["fields"], case["sizes"], case["vocab_size"]).to(device)
    size, future = case["sentence_tokens"], case["fields"].get("future_context", 0)

    def begin(past: int, sentences: int) -> Callable[[], list[list[int]]]:
        document = random_document(past + sentences + future, size, case["vocab_size"])
        translator = model.translator_class(model, 1, {"max_new_tokens": size, "num_beams": 1, "do_sample": False})
        pass_by(translator, document, past)

        def translate() -> list[list[int]]:
            slide(translator, document, past, past + sentences)
            targets = [part.target for part in document.parts[past : past + sentences]]
            wrong = {len(ids) for ids in targets} - {size}
            if wrong:
                raise RuntimeError(f"expected {size} target tokens a sentence, got {sorted(wrong)}")
            return targets

        return translate

    begin(0, WARM_UP)()
    return begin


def training_step(case: Mapping, device: torch.device) -> Callable[[], object]:
    """Forward and backward pass of a batch of random sentences, each with its context."""
    model = random_model(case["architecture"], case["fields"], case["sizes"], case["vocab_size"]).train().to(device)
    rows, size, context = case["sentences"], case["sentence_tokens"], case["context"]

    def random_ids(*shape: int) -> torch.Tensor:
        return torch.randint(SPECIAL, case["vocab_size"], shape, device=device)

    batch = {"labels": random_ids(rows, size)}
    if registry.get(case["architecture"]).separate_context:
        past, future = (case["fields"].get(f"{side}_context", 0) for side in ("past", "future"))
        offsets = torch.tensor([*range(-past, 0), *range(1, future + 1)], device=device)
        batch |= {"input_ids": random_ids(rows, size)}
        if context:
            ids = random_ids(rows, context, size)
            batch |= {"context_input_ids": ids, "context_attention_mask": torch.ones_like(ids)}
            batch |= {"context_offsets": offsets.expand(rows, context)}
    else:
        batch["input_ids"] = random_ids(rows, size * (case["fields"].get("past_context", 0) + 1))
        batch["input_ids"][:, size - 1 : -1 : size] = SEP
    batch["attention_mask"] = torch.ones_like(batch["input_ids"])

    def step() -> None:
        model(**batch).loss.backward()

    step()  # gradients are there
    return step


def pass_by(translator: SegmentTranslator | ContextTranslator, document: DocumentState, end: int) -> None:
    """Bring a translator past the first sentences of a document: of these its cache holds what it would have kept.

    One token each is written, as context of the source needs no more.
    """
    if isinstance(translator, CachedContextTranslator):
        short = copy.copy(translator)  # of the same cache
        short.settings = copy.deepcopy(translator.settings)
        short.settings.max_new_tokens = 1
        slide(short, document, 0, end)


def slide(translator: SegmentTranslator | ContextTranslator, document: DocumentState, first: int, end: int) -> None:
    """Strategy `sliding` from one sentence of a document to another, as it goes on from those before."""
    with translator.model.prepacked_weights():
        translator.slide([CurrentSentence(document, index) for index in range(first, end)])


if __name__ == "__main__":
    print(json.dumps(measure(json.load(sys.stdin))))
