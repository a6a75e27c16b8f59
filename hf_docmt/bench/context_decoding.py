"""Seconds and memory of translating with context, or of training, measured in a subprocess of the cost benchmark."""

import copy
from collections.abc import Callable, Mapping

import torch

from hf_docmt import registry
from hf_docmt.bench.attention_step import SEP
from hf_docmt.bench.benchmark import SPECIAL_TOKENS
from hf_docmt.bench.document_decoding import WARM_UP, random_document, random_model
from hf_docmt.bench.memory import (
    measure_repeats,
    prepare_process,
    return_freed_blocks,
    trim_memory,
)
from hf_docmt.bench.subprocesses import answer_case
from hf_docmt.bench.timing import elapsed_seconds
from hf_docmt.modeling.context_cache import CachedContextTranslator
from hf_docmt.modeling.context_strategies import ContextTranslator
from hf_docmt.modeling.document_state import CurrentSentence, DocumentState
from hf_docmt.modeling.strategies import SegmentTranslator

TRAINING_STEPS = 3  # of a measurement


def measure(case: Mapping) -> dict:
    """`seconds` of translating `sentences` sentences after `context` others, and `memory_mib` at the peak of one.

    Time and memory are measured in two passes: in the second one freed memory returns to the system at once, which
    takes time. The cache of the context counts as memory. The weights and what is left by a first translation, such as
    prepacked weights, are in memory before. For `work` training it is a step on as many sentences at once.
    """
    device = prepare_process(case)
    if case["work"] == "training":
        step = training_step(case, device)
        return measure_repeats(lambda: elapsed_seconds(step, device), TRAINING_STEPS, device)
    begin = translation(case, device)
    seconds = elapsed_seconds(begin(case["context"], case["sentences"]), device)
    trim_memory()
    return_freed_blocks()
    numbers = measure_repeats(lambda: elapsed_seconds(begin(case["context"], 1), device), 1, device)
    return numbers | {"seconds": seconds}


def translation(case: Mapping, device: torch.device) -> Callable[[int, int], Callable[[], list[list[int]]]]:
    """A function (past, sentences) that begins a random document and returns the translation of `sentences` of it.

    The document begins with `past` sentences, of which the model caches its context. The decoder writes as many tokens
    for a sentence as the sentence has, since no special token is ever chosen. The translation returns the ids of each
    sentence and raises `RuntimeError` for other numbers of tokens.
    """
    model = random_model(case["architecture"], case["fields"], case["sizes"], case["vocab_size"]).to(device)
    size, future = case["sentence_tokens"], case["fields"].get("future_context", 0)

    def begin(past: int, sentences: int) -> Callable[[], list[list[int]]]:
        document = random_document(past + sentences + future, size, case["vocab_size"])
        translator = model.translator_class(model, 1, {"max_new_tokens": size, "num_beams": 1, "do_sample": False})
        cache_context(translator, document, past)

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
        return torch.randint(SPECIAL_TOKENS, case["vocab_size"], shape, device=device)

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

    step()  # allocates the gradients
    return step


def cache_context(translator: SegmentTranslator | ContextTranslator, document: DocumentState, end: int) -> None:
    """Let a translator cache the first sentences of a document, as it would after translating them.

    It writes one token each: the context is that of the source.
    """
    if isinstance(translator, CachedContextTranslator):
        short = copy.copy(translator)  # of the same cache
        short.settings = copy.deepcopy(translator.settings)
        short.settings.max_new_tokens = 1
        slide(short, document, 0, end)


def slide(translator: SegmentTranslator | ContextTranslator, document: DocumentState, first: int, end: int) -> None:
    """Translate the sentences from `first` to before `end` by strategy `sliding`."""
    with translator.model.prepacked_weights():
        translator.slide([CurrentSentence(document, index) for index in range(first, end)])


if __name__ == "__main__":
    answer_case(measure)
