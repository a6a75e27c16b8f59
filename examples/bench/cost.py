"""Time and memory by the length of documents and by sentences of context, each system vs. a plain one.

python examples/bench/cost.py
python examples/bench/cost.py --parts "translation by context" --contexts 0 1 2 5 10 20

Every measurement is a separate process; memory is its peak beyond weights and the memory that a short document leaves.
`training by length` is a forward and backward pass on one document of random sentences (Herold and Ney 2023,
table 2); `translation by length` are sentences of 100 tokens, alone or with a state, and all tokens as one (Feng et
al. 2022, figure 8); by context (Maka et al. 2024, figure 5) it is a document of eight sentences after the context, or
the training step of those eight.
"""

import argparse
from collections.abc import Callable, Iterator, Mapping

import torch
from random_models import SENTENCE, random_documents, random_model, random_segment, served, training_step
from rows import Row, apart, cost_rows, main, parser
from torch.nn import functional as F

import hf_docmt
from hf_docmt.modeling.limited_attention import limit_inputs, limited_attention, limits_of

STEPS, TEXTS = "training by length", "translation by length"
TRANSLATION, TRAINING = "translation by context", "training by context"
PARTS = (STEPS, TEXTS, TRANSLATION, TRAINING)
COLUMNS = dict.fromkeys(PARTS, ("time", "memory_mib"))
LENGTHS = {  # case: architecture, implementation of attention, fields of its configuration
    "concat sdpa": ("concat", "sdpa", {}),
    "concat eager": ("concat", "eager", {}),
    "lst": ("lst", "sdpa", {}),
    "window w=10": ("window", "sdpa", {"window": 10}),
    "window w=20": ("window", "sdpa", {"window": 20}),
}
FLEX = {  # on CUDA alone: on a CPU its kernels have no backward pass
    "lst flex": ("lst", "flex_attention", {}),
}
ALONE = ("sdpa", "eager", "window")  # attention alone, at the last length: 8 heads of 64, w = 20
UNITS = {"sentence": ("concat", 100), "memory": ("memory", 100), "document": ("concat", None)}  # tokens of a sentence
CONTEXTS = {  # case: architecture, fields of its configuration other than context
    "sentence": ("concat", {}),
    "single-encoder": ("concat", {"context_sides": "source"}),
    "multi-encoder": ("multiencoder", {}),
    "tokens": ("caching", {"shortening": "none"}),
    **{name: ("caching", {"shortening": name}) for name in ("avg", "linear", "grouping", "selecting")},
    "doct": ("doct", {}),
    "routing": ("routing", {}),
}
MEASURED = 8  # sentences


def options() -> argparse.ArgumentParser:
    """The arguments of all scripts, and the lengths and contexts."""
    made = parser(__doc__)
    made.add_argument("--parts", nargs="+", default=list(PARTS))
    made.add_argument("--lengths", nargs="+", type=int, default=[1024, 2208, 4096, 8192], help="of training, in tokens")
    made.add_argument("--text-lengths", nargs="+", type=int, default=[500, 1000, 2000], help="of translation")
    made.add_argument("--contexts", nargs="+", type=int, default=[1, 2, 10], help="sentences of context")
    return made


def rows(options: argparse.Namespace) -> Iterator[Row]:
    """Each part, from the shortest to the longest; what was stopped is not tried again on more."""
    measured = {STEPS: options.lengths, TEXTS: options.text_lengths}
    measured |= {TRANSLATION: options.contexts, TRAINING: options.contexts}
    for part in options.parts:
        stopped: dict[str, dict] = {}
        for amount in measured[part]:
            cases = {name: case for name, case in cases_of(part, amount, options).items() if name not in stopped}
            found = apart(__file__, cases, options) | stopped
            stopped = {name: numbers for name, numbers in found.items() if "skipped" in numbers}
            by_length = part in (STEPS, TEXTS)
            at = f"{amount} tokens" if by_length else f"{amount} context sentences"
            unit = "target tokens/s" if by_length else "sentences/s"
            peer = "concat sdpa" if part == STEPS else "sentence"
            yield from cost_rows(part, at, amount if by_length else MEASURED, unit, found, peer)
        if part == STEPS:
            last = options.lengths[-1]
            cases = {f"attention alone, {name}": {"alone": name, "tokens": last} for name in ALONE}
            found = apart(__file__, cases, options)
            yield from cost_rows(part, f"{last} tokens", last, "tokens/s", found, "attention alone, sdpa")


def cases_of(part: str, amount: int, options: argparse.Namespace) -> dict[str, dict]:
    """The measurements of a part at a length, or with this number of context sentences."""
    cases: dict[str, dict] = {}
    if part == STEPS:
        for name, (architecture, implementation, fields) in (
            LENGTHS | (FLEX if options.device != "cpu" else {})
        ).items():
            cases[name] = {"architecture": architecture, "fields": fields, "implementation": implementation}
            cases[name]["tokens"] = amount
    elif part == TEXTS:
        for name, (architecture, unit) in UNITS.items():
            sizes = {"sentences": amount // unit if unit else 1, "sentence_tokens": unit or amount}
            cases[name] = {"architecture": architecture, "fields": {}, "measured": sizes["sentences"], **sizes}
    else:
        for name, (architecture, fields) in CONTEXTS.items():
            future = amount // 2 if name == "routing" else 0
            context = {} if name == "sentence" else {"past_context": amount - future, "future_context": future}
            sizes = {"sentences": amount + MEASURED, "measured": MEASURED, "sentence_tokens": SENTENCE}
            case = {"architecture": architecture, "fields": fields | context, "trains": part == TRAINING, **sizes}
            if amount or name not in ("doct", "routing"):  # which need context
                cases[name] = case
    return cases


def build(case: Mapping) -> Callable[[], object]:
    """The work of a case; what exists before it, such as gradients, is made here."""
    if "alone" in case:
        return attention_alone(case)
    model = random_model(case["architecture"], case["size"], **case["fields"]).to(case["device"])
    if "implementation" in case:
        return long_step(model.train(), case)
    return context_step(model.train(), case) if case.get("trains") else translation(model, case)


def long_step(model, case: Mapping) -> Callable[[], object]:
    """A training step on one document with this number of tokens on either side."""
    model.set_attn_implementation(case["implementation"])

    def step(tokens: int) -> None:
        source, target = (random_segment(tokens, model.config.vocab_size).to(model.device) for _ in range(2))
        training_step(model, {"input_ids": source, "attention_mask": torch.ones_like(source), "labels": target})

    step(min(2 * SENTENCE, case["tokens"]))
    if case["implementation"] == "flex_attention":
        step(case["tokens"])  # compiles its kernels
    return lambda: step(case["tokens"])


def attention_alone(case: Mapping) -> Callable[[], object]:
    """Forward and backward pass of one attention of a sequence to itself."""

    def eager(query, key, value):
        return F.softmax(query @ key.transpose(2, 3) * query.shape[-1] ** -0.5, dim=-1) @ value

    def window(query, key, value):
        keys = key.shape[2]
        positions = torch.arange(keys, device=key.device)[None]
        limits = limit_inputs("own", (positions - 20).clamp(min=0), (positions + 20).clamp(max=keys - 1), keys)
        return limited_attention(query, key, value, limits_of(limits, "own"))[0]

    attend = {"sdpa": F.scaled_dot_product_attention, "eager": eager, "window": window}[case["alone"]]

    def step_for(tokens: int) -> Callable[[], object]:
        inputs = [torch.randn(1, 8, tokens, 64, device=case["device"], requires_grad=True) for _ in range(3)]
        gradient = torch.randn(1, 8, tokens, 64, device=case["device"])
        return lambda: torch.autograd.grad(attend(*inputs), inputs, gradient)

    step_for(min(2 * SENTENCE, case["tokens"]))()
    return step_for(case["tokens"])


def translation(model, case: Mapping) -> Callable[[], object]:
    """The greedy translation of a document; no special token is chosen, so a sentence keeps its length."""
    model, tokenizer = served(model, device=case["device"])
    size = case["sentence_tokens"]
    settings = {"max_new_tokens": size, "max_sentence_tokens": size + 1, "num_beams": 1, "do_sample": False}

    def translate(sentences: int, tokens: int) -> None:
        documents = random_documents(1, sentences, case["size"], tokens)
        model.translate_documents(documents, tokenizer, batch_size=1, **settings)

    translate(2, min(size, 100))
    return lambda: translate(case["sentences"], size)


def context_step(model, case: Mapping) -> Callable[[], object]:
    """A training step of the last sentences of a document, each with its context, encoded again."""
    architecture = hf_docmt.get_architecture(case["architecture"])
    _, tokenizer = served(model)
    sentences = random_documents(1, case["sentences"], case["size"])[0]
    pairs = [{"en": sentence, "de": sentence} for sentence in sentences]
    documents = hf_docmt.make_documents([{"doc_id": "random", "translation": pairs}], "en", "de")
    model.config.source_lang, model.config.target_lang = "en", "de"
    examples = architecture.examples(documents, tokenizer, model.config)
    last = [examples[number] for number in range(len(examples) - case["measured"], len(examples))]
    batch = architecture.collator(model.config, tokenizer)(last)
    batch = {name: value.to(case["device"]) for name, value in batch.items()}
    training_step(model, batch)  # allocates the gradients
    return lambda: training_step(model, batch)


if __name__ == "__main__":
    main(rows, options(), COLUMNS, build)
