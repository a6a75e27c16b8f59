"""Tables of what a report of all benchmarks measured, for a terminal and in Markdown."""

from collections.abc import Mapping, Sequence
from functools import partial
from statistics import median
from typing import Any

from hf_docmt.bench.ceilings import COPY
from hf_docmt.bench.decode import MODES
from hf_docmt.bench.report import BenchmarkRun, BenchReport
from hf_docmt.reports.tables import write_table

Cells = list[list[str]]
BYTES = {"fp32": 4, "bf16": 2, "int8": 1}  # of a weight
FURTHER = ("contrast", "data")  # which the Markdown leaves out


def speed_tables(report: BenchReport, style: str, benchmarks: Sequence[str] | None = None) -> str:
    """A table for each of these benchmarks that the report has, machine and versions below; `style`: one of STYLES.

    None: all but `FURTHER`.
    """
    parts = []
    for benchmark in [name for name in TABLES if name not in FURTHER] if benchmarks is None else benchmarks:
        title, make_cells = TABLES[benchmark]
        for run in report.runs_of(benchmark):
            if run.rows:
                if run.problem is None:
                    heading = title.format(**run.setting) + setting_text(run.setting)
                else:
                    heading = f"{benchmark}: {run.problem}"
                parts += [heading, write_table(make_cells(run, report), style)]
    return "\n\n".join([*parts, machine_text(report)])


def report_text(report: BenchReport) -> str:
    """The tables, every check beside its target, and what failed, for a terminal."""
    checks = [("machine", vars(check)) for check in report.checks()]
    checks += [(run.benchmark, check) for run in report.runs for check in run.checks]
    cells = [
        [benchmark, check["name"], number(check["value"]), number(check["target"]), "ok" if check["ok"] else "missed"]
        for benchmark, check in checks
    ]
    failed = [f"{run.benchmark}: failed: {run.problem}" for run in report.failed()]
    table = write_table([["benchmark", "check", "value", "target", ""], *cells])
    return "\n\n".join([speed_tables(report, "text", list(TABLES)), table, *failed])


def decode_cells(run: BenchmarkRun, report: BenchReport) -> Cells:
    """Every mode and batch size with the ratio of each precision to the peer in fp32, and its share of the ceiling."""
    ceilings = {name: median(values) for name, values in report.ceilings().items()}

    def share_reached(row: Mapping[str, Any]) -> float | None:
        has_all = run.setting and row["precision"] in ceilings and COPY in ceilings  # nothing of it has failed
        return ceiling_share(row, run.setting, ceilings) if has_all else None

    cases = dict.fromkeys((row["mode"], row["batch"]) for row in run.rows)
    precisions = list(dict.fromkeys(row["precision"] for row in run.rows))
    measured = {(row["precision"], row["mode"], row["batch"]): row for row in run.rows}
    further = [name for name in precisions if any("ctranslate2" in row for row in run.rows if row["precision"] == name)]
    shares = [f"{name} of ceiling" for name in precisions]
    cells = [["", "MarianMT fp32, sentences/s", *precisions, *(f"CTranslate2 {name}" for name in further), *shares]]
    for mode, batch in cases:
        rows = {name: measured.get((name, mode, batch)) for name in precisions}
        marian = measured[precisions[0], mode, batch]["peer"]
        # the peer of a row is MarianMT in fp32, measured in the same rounds, but for bf16, where it is in bf16
        peers = {name: marian if name == "bf16" else row and row["peer"] for name, row in rows.items()}
        ratios = [number(row and row["ours"] / peers[name]) for name, row in rows.items()]
        ratios += [number(rows[name] and rows[name]["ctranslate2"] / peers[name]) for name in further]
        shares = [number(row and share_reached(row)) for row in rows.values()]
        cells.append([f"{mode}, batch {batch}", number(marian), *ratios, *shares])
    return cells


def ceiling_share(row: Mapping[str, Any], setting: Mapping[str, Any], ceilings: Mapping[str, float]) -> float:
    """The least seconds that a row of the decoding benchmark can take here, over those that it took.

    The least are those of the products of all weights with all tokens at the speed of a large product, or of reading
    the weights once at the speed of a copy, whichever is more, for the source and for every step of the decoder. What
    attention adds at such lengths is left out. `ceilings` are GFLOP/s of each precision, and GB/s of a copy.
    """
    sentences, precision = row["batch"], row["precision"]
    source, step = weights_read(setting["sizes"], setting["vocab_size"])

    def least_seconds(weights: int, tokens: int) -> float:
        products = 2 * weights * tokens / (ceilings[precision] * 1e9)
        return max(products, weights * BYTES[precision] / (ceilings[COPY] * 1e9))

    least = least_seconds(source, sentences * setting["source_tokens"])
    least += setting["target_tokens"] * least_seconds(step, sentences * MODES[row["mode"]])
    return least / row["ours_seconds"]


def weights_read(sizes: Mapping[str, int], vocab_size: int) -> tuple[int, int]:
    """The number of weights of matrices that every source token meets, and of those that every target token meets."""
    width, layers = sizes["d_model"], sizes["decoder_layers"]
    encoder = sizes["encoder_layers"] * (4 * width**2 + 2 * width * sizes["encoder_ffn_dim"])
    cross_keys = layers * 2 * width**2
    step = layers * (6 * width**2 + 2 * width * sizes["decoder_ffn_dim"]) + vocab_size * width
    return encoder + cross_keys, step


def architecture_cells(run: BenchmarkRun, report: BenchReport) -> Cells:
    """Every architecture with its time over that of `concat` in each precision."""
    precisions = list(dict.fromkeys(row["precision"] for row in run.rows))
    times: dict[str, dict[str, float]] = {}
    for row in run.rows:
        times.setdefault(row["case"].removeprefix(f"{row['precision']} "), {})[row["precision"]] = 1 / row["ratio"]
    cells = [
        [name, *(number(by_precision.get(precision)) for precision in precisions)]
        for name, by_precision in times.items()
    ]
    return [["", *precisions], *cells]


def ratio_cells(run: BenchmarkRun, report: BenchReport) -> Cells:
    """Every case with both sides and their ratio."""
    columns = ["ours", "peer", "ratio"]
    cells = [[row["case"], row["unit"], *(number(row[name]) for name in columns)] for row in run.rows]
    return [["", "unit", *columns], *cells]


def time_cells(run: BenchmarkRun, report: BenchReport, option: str, column: str, unit: str) -> Cells:
    """Every system with its time over that of its peer, and its memory, at each value of an option, in a column."""
    values = run.options.get(option) or run.setting.get(option) or sorted({row[column] for row in run.rows})
    rows = [row for row in run.rows if row["unit"] == run.rows[0]["unit"] and row[column] in values]
    measured = {(row["name"], row[column]): row for row in rows}
    titles = [f"{value} {unit if value != 1 else unit.removesuffix('s')}" for value in values]
    cells = [["", *titles, *(f"MiB, {value}" for value in values)]]
    for name in dict.fromkeys(row["name"] for row in rows):
        at_values = [measured.get((name, value), {}) for value in values]
        times = [number(row.get("ratio") and 1 / row["ratio"]) for row in at_values]
        cells.append([name, *times, *(number(row.get("memory_mib")) for row in at_values)])
    return cells


length_cells = partial(time_cells, option="lengths", column="tokens", unit="tokens")
context_cells = partial(time_cells, option="contexts", column="context", unit="context sentences")


def setting_text(setting: Mapping[str, Any]) -> str:
    """Behind the title: whether nothing of it was compiled, and how often each case was measured, where it is known."""
    kernels = "" if setting.get("kernels", True) else " By torch alone, without the compiled primitives."
    rounds = setting.get("repeats")
    return kernels + ("" if rounds is None else " Measured once." if rounds == 1 else f" Medians of {rounds} rounds.")


def machine_text(report: BenchReport) -> str:
    """One paragraph: machine, versions, ceilings."""
    units = {row["case"]: row["unit"] for run in report.runs_of("ceilings") for row in run.rows}
    ceilings = [f"{name} {number(median(values))} {units[name]}" for name, values in report.ceilings().items()]
    steady = min((check.value for check in report.checks()), default=None)
    setting = report.setting
    return (
        f"Measured on {report.started[:10]} on {setting['processor']} ({setting['capability']}), threads: "
        f"{setting['threads']}, torch {setting['torch']}, transformers {setting['transformers']}, hf-docmt "
        f"{setting['hf_docmt']}. Ceilings measured between the benchmarks: {', '.join(ceilings)} (products of large "
        f"matrices, a copy from memory); their lowest values are at least {number(steady)} of the highest."
    )


def number(value: float | None) -> str:
    """A number with three digits or so; whole above a hundred."""
    if value is None:
        return "-"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


TABLES = {  # benchmark: title, in which names stand for its setting, and the cells
    "decode": (
        "Decoding, {source_tokens} to {target_tokens} tokens, width {sizes[d_model]}, vocabulary {vocab_size}: "
        "times the sentences/s of transformers' MarianMT in fp32 with the same weights (bf16 in rounds of its own), "
        "and the share of what the machine can do at most.",
        decode_cells,
    ),
    "architectures": (
        "Translating documents by every architecture with one sentence of context, width {sizes[d_model]}: time over "
        "that of `concat`, on windows of two, or on sentences alone beside models that read their context apart.",
        architecture_cells,
    ),
    "train": (
        "Training in {precision}: `DocMTTrainer` beside transformers' MarianMT in `Seq2SeqTrainer`, the same examples "
        "and sizes.",
        ratio_cells,
    ),
    "train_memory": (
        "A training step on one long document by what is kept in memory: time over that with all logits, and memory.",
        length_cells,
    ),
    "documents": ("Documents, greedy, strategies side by side (ours : peer).", ratio_cells),
    "attention": (
        "A training step on one document by its length: time over that of `concat` with sdpa, and memory.",
        length_cells,
    ),
    "cost-by-length": (
        "Translating a document by its length: time over that of sentences alone, and memory.",
        length_cells,
    ),
    "cost-by-context": (
        "Context of each sentence, {work}: time over that of the sentence alone, and memory.",
        context_cells,
    ),
    "contrast": ("Contrastive scoring beside one candidate at a time.", ratio_cells),
    "data": ("Starts of training from files beside documents in memory.", ratio_cells),
}
