"""Training: target tokens per second vs. `Seq2SeqTrainer`, memory of long documents, starts of runs on large data.

python examples/bench/train.py
python examples/bench/train.py --parts speed --precisions bf16 --device cuda
python examples/bench/train.py --parts data --pairs 5000000 --repeats 1

`speed` is an epoch of `DocMTTrainer` vs. MarianMT in an unmodified `Seq2SeqTrainer`: the same examples, sizes,
initial weights, dropout and label smoothing. Ours has batches of similar lengths and at most `--max-tokens` tokens; the
peer's are random, with the number of examples that gives the same number of updates. Only real target tokens count.
`memory` is a step on one long document, by the states that are kept; `data` a run's second start vs. its first.
"""

import argparse
import copy
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import count
from pathlib import Path

import torch
from random_models import SIZES, marian_pair, random_model, random_segment, training_step
from rows import Row, alternate, apart, cost_rows, main, parser, row
from transformers import DataCollatorForSeq2Seq, PrinterCallback, Seq2SeqTrainer, Seq2SeqTrainingArguments, Trainer

import hf_docmt
from hf_docmt.data.documents import sentences

SPEED, MEMORY, DATA = "speed", "memory", "data"
COLUMNS = {
    SPEED: ("ours", "peer", "ratio", "ours_loss", "peer_loss", "unit"),
    MEMORY: ("time", "memory_mib"),
    DATA: ("ours", "peer", "ratio", "memory_mib", "unit"),
}
VIEWS = {"sentences": 0, "windows of four": 3}  # name: sentences of past context
SMOOTHING = 0.1
COMMON = {
    "num_train_epochs": 1,
    "learning_rate": 1e-4,
    "dataloader_pin_memory": False,
    "save_strategy": "no",
    "logging_strategy": "no",
    "report_to": "none",
    "disable_tqdm": True,
}
KEPT = {  # case: whether the loss is computed in chunks, whether layers are computed again in the backward pass
    "all logits": (False, False),
    "loss in chunks": (True, False),
    "all logits, checkpointing": (False, True),
    "loss in chunks, checkpointing": (True, True),
}


def options() -> argparse.ArgumentParser:
    """The arguments of all scripts, and the training data."""
    made = parser(__doc__)
    made.add_argument("--parts", nargs="+", default=[SPEED, MEMORY, DATA])
    made.add_argument("--precisions", nargs="+", default=["fp32", "bf16"], help="of speed")
    made.add_argument("--speed-size", default="small", help="of the models of speed")
    made.add_argument("--documents", type=int, default=150, help="of the built-in corpus")
    made.add_argument("--max-tokens", type=int, default=4000, help="of a batch, on both sides, padding included")
    made.add_argument("--tokens", type=int, default=8192, help="of the long document")
    made.add_argument("--architecture", default="window", help="of memory")
    made.add_argument("--pairs", type=int, default=100_000, help="of data")
    return made


def rows(options: argparse.Namespace) -> Iterator[Row]:
    """Speed by precision and view, memory, and starts."""
    if SPEED in options.parts:
        for precision in options.precisions:
            for view, past_context in VIEWS.items():
                yield from speed_rows(options, precision, view, past_context)
    if MEMORY in options.parts:
        names = {"tokens": options.tokens, "architecture": options.architecture}
        cases = {name: {"skip_logits": kept[0], "again": kept[1], **names} for name, kept in KEPT.items()}
        found = apart(__file__, cases, options)
        yield from cost_rows(MEMORY, f"{options.tokens} tokens", options.tokens, "target tokens/s", found, "all logits")
    if DATA in options.parts:
        yield data_row(options)


# Speed


def speed_rows(options: argparse.Namespace, precision: str, view: str, past_context: int) -> Iterator[Row]:
    """Ours vs. the peer; in bf16 also ours vs. ours in fp32, with the losses of the last epoch."""
    documents = corpus(options.documents)
    texts = (text for made in documents for lang in ("en", "de") for text in sentences(made, lang))
    tokenizer = hf_docmt.train_tokenizer(texts, vocab_size=max(300, SIZES[options.speed_size][1]))
    fields = {"source_lang": "en", "target_lang": "de", "past_context": past_context, "label_smoothing": SMOOTHING}
    ours, peer = marian_pair(options.speed_size, **fields)
    with tempfile.TemporaryDirectory() as folder:
        makers, tokens = trainers(options, precision, (ours, peer), (documents, tokenizer), folder)
        seeds = {side: count(1) for side in makers}

        def epoch(side: str) -> dict:
            return train_epoch(makers[side](next(seeds[side])))

        seconds, last = alternate({side: partial(epoch, side) for side in makers}, options.repeats, "train_runtime")
    for other in list(makers)[1:]:
        case = f"{view}, {precision}" + ("" if other == "peer" else f" : {other.removeprefix('ours in ')}")
        losses = {"ours_loss": last["ours"]["train_loss"], "peer_loss": last[other]["train_loss"]}
        speeds = (tokens / seconds["ours"], tokens / seconds[other])
        yield row(case, "target tokens/s", *speeds, part=SPEED, **losses)


def corpus(number: int):
    """This number of documents of the built-in corpus, English to German."""
    with tempfile.TemporaryDirectory() as folder:
        hf_docmt.write_corpus(folder, seed=1, train=number, validation=1, test=1)
        return hf_docmt.read_documents(path=f"{folder}/train.jsonl", source_lang="en", target_lang="de")


def trainers(
    options: argparse.Namespace, precision: str, models: tuple, data: tuple, folder: str
) -> tuple[dict[str, Callable[[int], Trainer]], int]:
    """Functions that make the trainer of each side from a seed, and the target tokens of an epoch."""
    (ours, peer), (documents, tokenizer) = models, data
    architecture = hf_docmt.get_architecture("concat")
    examples = architecture.examples(documents, tokenizer, ours.config)
    collator = architecture.collator(ours.config, tokenizer)
    batches = [collator([examples[number]]) for number in range(len(examples))]
    plain = [{name: batch[name][0].tolist() for name in ("input_ids", "labels")} for batch in batches]
    shared = COMMON | {"output_dir": folder, "use_cpu": options.device == "cpu"}

    def our_trainer(seed: int, model=ours, bf16: bool = precision == "bf16") -> Trainer:
        arguments = hf_docmt.DocMTTrainingArguments(seed=seed, bf16=bf16, max_tokens=options.max_tokens, **shared)
        return hf_docmt.DocMTTrainer(model=model, args=arguments, train_dataset=examples, data_collator=collator)

    size = max(1, round(len(examples) / len(our_trainer(1).get_train_dataloader())))

    def peer_trainer(seed: int) -> Trainer:
        more = {"per_device_train_batch_size": size, "label_smoothing_factor": SMOOTHING, "bf16": precision == "bf16"}
        arguments = Seq2SeqTrainingArguments(seed=seed, **more, **shared)
        padder = DataCollatorForSeq2Seq(tokenizer, model=peer)
        return Seq2SeqTrainer(model=peer, args=arguments, train_dataset=plain, data_collator=padder)

    makers = {"ours": our_trainer, "peer": peer_trainer}
    if precision == "bf16":
        makers["ours in fp32"] = partial(our_trainer, model=copy.deepcopy(ours), bf16=False)
    return makers, sum(len(made["labels"]) for made in plain)


def train_epoch(trainer: Trainer) -> dict[str, float]:
    """Train; the seconds and the mean loss of the epoch, as the trainer measures them."""
    trainer.remove_callback(PrinterCallback)
    return trainer.train().metrics


# Memory and data, in processes of their own


def build(case: Mapping) -> Callable[[], object]:
    """The measurements of a case."""
    if "recipe" in case:
        recipe = hf_docmt.load_recipe(case["recipe"])
        return partial(hf_docmt.train, recipe)
    model = random_model(case["architecture"], case["size"], label_smoothing=SMOOTHING).train().to(case["device"])
    if case["again"]:
        model.activation_checkpointing_enable()

    def step(tokens: int) -> None:
        source, target = (random_segment(tokens, model.config.vocab_size).to(model.device) for _ in range(2))
        batch = {"input_ids": source, "attention_mask": torch.ones_like(source), "labels": target}
        training_step(model, batch | {"skip_logits": case["skip_logits"]})

    step(50)
    return lambda: step(case["tokens"])


def data_row(options: argparse.Namespace) -> Row:
    """The seconds of a run of ten updates of a tiny model, first and second start, and its memory."""
    with tempfile.TemporaryDirectory() as folder:
        rows = [json.dumps(made, ensure_ascii=False) for made in corpus(min(5000, options.pairs))]
        pairs = sum(len(json.loads(made)["translation"]) for made in rows)
        with Path(folder, "train.jsonl").open("w", encoding="utf-8") as file:
            for number in range(-(-options.pairs // pairs)):
                file.writelines(made.replace('"doc_id": "', f'"doc_id": "{number}-', 1) + "\n" for made in rows)
        Path(folder, "validation.jsonl").write_text("\n".join(rows[:20]) + "\n", encoding="utf-8")
        files = {part: {"path": f"{folder}/{part}.jsonl"} for part in ("train", "validation")}
        recipe = {
            "output_dir": f"{folder}/run",
            "architecture": "concat",
            "model": SIZES["tiny"][0] | {"past_context": 3},
            "tokenizer": {"vocab_size": 8000},
            "data": {"source_lang": "en", "target_lang": "de", "cache": f"{folder}/cache", **files},
            "training": {"max_tokens": options.max_tokens, "max_steps": 10, "eval_steps": 10},
        }
        found = []
        for start in ("first", "second"):
            recipe["output_dir"] = f"{folder}/{start}"
            Path(folder, f"{start}.yaml").write_text(json.dumps(recipe), encoding="utf-8")
            found.append(apart(__file__, {start: {"recipe": f"{folder}/{start}.yaml"}}, one_round(options))[start])
    first, second = (numbers.get("seconds") for numbers in found)
    more = {name: found[1][name] for name in ("memory_mib", "skipped") if name in found[1]}
    return row(f"{options.pairs} pairs, second start : first", "s", second, first, part=DATA, **more)


def one_round(options: argparse.Namespace) -> argparse.Namespace:
    """These options, measured once: a third start would not be a first one."""
    return argparse.Namespace(**vars(options) | {"repeats": 1})


if __name__ == "__main__":
    main(rows, options(), COLUMNS, build)
