"""`docmt bench`: speed and memory, measured side by side."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Annotated

import typer

from hf_docmt.cli.options import AsJson, refuse, whole_numbers

bench_app = typer.Typer(help="Speed and memory, measured side by side.", no_args_is_help=True)


@bench_app.command("decode")
def decode_bench(
    repeats: Annotated[int, typer.Option(help="Measurements of each case, the median is reported.")] = 5,
    as_json: AsJson = False,
) -> None:
    """Sentences per second of generate(), against MarianMT with the same weights (Transformer-base)."""
    from hf_docmt.bench.decode import bench_decode

    print_bench(bench_decode(repeats=repeats), as_json)


@bench_app.command("train")
def train_bench(
    repeats: Annotated[int, typer.Option(help="Rounds, the median is reported.")] = 5,
    as_json: AsJson = False,
) -> None:
    """Target tokens per second in training, against fixed-size random batches in Seq2SeqTrainer."""
    from hf_docmt.bench.train import bench_train

    print_bench(bench_train(repeats=repeats), as_json)


@bench_app.command("contrast")
def contrast_bench(
    repeats: Annotated[int, typer.Option(help="Measurements of each case, the median is reported.")] = 5,
    as_json: AsJson = False,
) -> None:
    """Items per second of contrastive scoring, against scoring one candidate at a time."""
    from hf_docmt.bench.contrast import bench_contrast

    print_bench(bench_contrast(repeats=repeats), as_json)


@bench_app.command("attention")
def attention_bench(
    repeats: Annotated[int, typer.Option(help="Steps of each case, the median is reported.")] = 3,
    lengths: Annotated[
        str, typer.Option(help="Tokens of the documents, separated by commas.")
    ] = "736,1472,2208,4096,8192",
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    time_limit: Annotated[float, typer.Option(help="Longest time of a case at one length, in seconds.")] = 600,
    as_json: AsJson = False,
) -> None:
    """Time and memory of a training step by length: concat, lst and window attention.

    Every row is printed on standard error as soon as it is measured.
    """
    from hf_docmt.bench.attention import bench_attention

    options = {"lengths": whole_numbers("lengths", lengths), "device": device, "time_limit": time_limit}
    print_bench(bench_attention(repeats, **options, tell=print_row), as_json)


@bench_app.command("cost")
def cost_bench(
    call: typer.Context,
    by: Annotated[str, typer.Option(help="length (tokens per document) or context (context sentences).")] = "length",
    repeats: Annotated[int, typer.Option(help="Measurements of each system, the median is reported.")] = 3,
    lengths: Annotated[
        str, typer.Option(help="Tokens of the documents, separated by commas.")
    ] = "500,1000,2000,4000,8000",
    contexts: Annotated[str, typer.Option(help="Numbers of context sentences, separated by commas.")] = "0,1,2,5,10,20",
    work: Annotated[str, typer.Option(help="By context: translation or training.")] = "translation",
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    time_limit: Annotated[float, typer.Option(help="Longest time of one measurement, in seconds.")] = 600,
    stream_sentences: Annotated[
        int, typer.Option(help="Sentences of a stream whose memory is measured; 0 = none.")
    ] = 0,
    as_json: AsJson = False,
) -> None:
    """Time and memory of translating, or of training: by length of documents, or by sentences of context.

    By length: sentences alone, with recurrent memory, whole documents. By context: one encoder, two, caching with
    sequence shortening, the Document Transformer, routing. Every row is printed on standard error as soon as
    it is measured. On one core (25 ms per token), one repeat over the lengths 500,1000,4000 or the contexts 0,1,2,10
    took eleven minutes; the defaults take longer.
    """
    from hf_docmt.bench.cost_by_context import bench_contexts
    from hf_docmt.bench.cost_by_length import bench_cost

    options = {"device": device, "time_limit": time_limit, "tell": print_row}
    if by == "length":
        refuse(call, ("contexts", "work"), "is for --by context")
        options |= {"lengths": whole_numbers("lengths", lengths), "stream_sentences": stream_sentences}
        print_bench(bench_cost(repeats, **options), as_json)
    elif by == "context":
        refuse(call, ("lengths", "stream_sentences"), "is for --by length")
        options |= {"contexts": whole_numbers("contexts", contexts), "work": work}
        print_bench(bench_contexts(repeats, **options), as_json)
    else:
        raise ValueError(f"--by is {by!r}, expected length or context")


def print_row(row: Mapping) -> None:
    """Print a measured row on standard error at once, so that an interrupted benchmark keeps it."""
    from hf_docmt.bench.scaling import row_line

    print(row_line(row), file=sys.stderr, flush=True)


def print_bench(result: dict, as_json: bool) -> None:
    """Print the result of a benchmark as text or JSON."""
    from hf_docmt.bench.timing import format_bench

    print(json.dumps(result) if as_json else format_bench(result))
