"""`docmt bench`: speed and memory, measured side by side."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Annotated

import typer

from hf_docmt.cli.options import AsJson

bench = typer.Typer(help="Speed and memory, measured side by side.", no_args_is_help=True)


@bench.command("decode")
def decode_bench(
    repeats: Annotated[int, typer.Option(help="Measurements of each case, of which the median counts.")] = 5,
    as_json: AsJson = False,
) -> None:
    """Sentences a second of generate(), Transformer-base, same weights on both sides."""
    from hf_docmt.bench.decode import bench_decode

    show_bench(bench_decode(repeats=repeats), as_json)


@bench.command("train")
def train_bench(
    repeats: Annotated[int, typer.Option(help="Rounds, of which the median counts.")] = 5,
    as_json: AsJson = False,
) -> None:
    """Target tokens a second in training, against fixed-size random batches in Seq2SeqTrainer."""
    from hf_docmt.bench.train import bench_train

    show_bench(bench_train(repeats=repeats), as_json)


@bench.command("contrast")
def contrast_bench(
    repeats: Annotated[int, typer.Option(help="Measurements of each case, of which the median counts.")] = 5,
    as_json: AsJson = False,
) -> None:
    """Items a second of contrastive scoring, against one candidate at a time."""
    from hf_docmt.bench.contrast import bench_contrast

    show_bench(bench_contrast(repeats=repeats), as_json)


@bench.command("attention")
def attention_bench(
    repeats: Annotated[int, typer.Option(help="Steps of each case, of which the median counts.")] = 3,
    lengths: Annotated[str, typer.Option(help="Tokens of the documents, with commas.")] = "736,1472,2208,4096,8192",
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    time_limit: Annotated[float, typer.Option(help="Seconds that a case may take at one length.")] = 600,
    as_json: AsJson = False,
) -> None:
    """Time and memory of a training step by length: concat, lst and window attention.

    Every row is told on standard error as soon as it is measured.
    """
    from hf_docmt.bench.attention import bench_attention

    options = {"lengths": whole_numbers("lengths", lengths), "device": device, "time_limit": time_limit}
    show_bench(bench_attention(repeats, **options, tell=tell), as_json)


@bench.command("cost")
def cost_bench(
    call: typer.Context,
    by: Annotated[str, typer.Option(help="length of documents, or context: sentences read before each.")] = "length",
    repeats: Annotated[int, typer.Option(help="Measurements of each system, of which the median counts.")] = 3,
    lengths: Annotated[str, typer.Option(help="Tokens of the documents, with commas.")] = "500,1000,2000,4000,8000",
    contexts: Annotated[str, typer.Option(help="Numbers of context sentences, with commas.")] = "0,1,2,5,10,20",
    work: Annotated[str, typer.Option(help="By context: translation or training.")] = "translation",
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    time_limit: Annotated[float, typer.Option(help="Seconds that one measurement may take.")] = 600,
    stream_sentences: Annotated[int, typer.Option(help="Length of a stream to watch the memory of; 0 = none.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Time and memory of translating, or of training: by length of documents, or by sentences of context.

    By length: sentences alone, with recurrent memory, whole documents. By context: one encoder, two, caching with
    sequence shortening, the Document Transformer, routing. Every row is told on standard error as soon as it is
    measured. A token took 25 ms on one core, one repeat over the lengths 500,1000,4000 or the contexts 0,1,2,10
    eleven minutes each; the defaults take longer.
    """
    from hf_docmt.bench.contexts import bench_contexts
    from hf_docmt.bench.cost import bench_cost
    from hf_docmt.cli import refuse

    options = {"device": device, "time_limit": time_limit, "tell": tell}
    if by == "length":
        refuse(call, ("contexts", "work"), "is for --by context")
        options |= {"lengths": whole_numbers("lengths", lengths), "stream_sentences": stream_sentences}
        show_bench(bench_cost(repeats, **options), as_json)
    elif by == "context":
        refuse(call, ("lengths", "stream_sentences"), "is for --by length")
        options |= {"contexts": whole_numbers("contexts", contexts), "work": work}
        show_bench(bench_contexts(repeats, **options), as_json)
    else:
        raise ValueError(f"--by is {by!r}, expected length or context")


def whole_numbers(option: str, text: str) -> tuple[int, ...]:
    """Numbers with commas between them."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() for part in parts):
        raise ValueError(f"--{option} is {text!r}, expected whole numbers with commas between them")
    return tuple(map(int, parts))


def tell(row: Mapping) -> None:
    """A row on standard error, as soon as it is measured: what a killed bench has found is not lost."""
    from hf_docmt.bench.scaling import row_line

    print(row_line(row), file=sys.stderr, flush=True)


def show_bench(result: dict, as_json: bool) -> None:
    from hf_docmt.bench.timing import format_bench

    print(json.dumps(result) if as_json else format_bench(result))
