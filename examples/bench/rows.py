"""Shared code of the scripts here: alternating rounds, memory of a process, targets, one JSON format and one table.

python examples/bench/rows.py runs/bench/decode.json  # the tables of reports
"""

import argparse
import json
import platform
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path

import pandas as pd
import psutil  # which accelerate requires
import torch
import transformers
from torch.utils.benchmark import Measurement, TaskSpec, timer

import hf_docmt

TARGETS = Path(__file__).with_name("targets.json")
RESERVED = 2**30  # bytes that are left to the machine
Row = dict[str, object]


# Measurements


def alternate(works: Mapping[str, Callable], repeats: int, seconds_in: str | None = None, clock=timer) -> tuple:
    """Median seconds of each work over `repeats` rounds, and what each returned last.

    A first round warms up. Every other round runs in reverse order, so that what slows the machine for a while slows
    all sides. `seconds_in`: the key of the seconds in what a work returns, where it takes its own time.
    """
    times: dict[str, list[float]] = {name: [] for name in works}
    outputs = {}
    for number in range(repeats + 1):
        for name in list(works)[:: -1 if number % 2 else 1]:
            started = clock()
            outputs[name] = works[name]()
            times[name].append(outputs[name][seconds_in] if seconds_in else clock() - started)
    return {name: Measurement(1, found[1:], TaskSpec(name, "")).median for name, found in times.items()}, outputs


def row(case: str, unit: str, ours: float | None, peer: float | None, **more) -> Row:
    """One case: the number of each side, their ratio, and further columns; None: not measured."""
    ratio = ours / peer if ours and peer else None
    return {"case": case, "ours": ours, "peer": peer, "ratio": ratio, "unit": unit, **more}


def apart(script: str, cases: Mapping[str, Mapping], options: argparse.Namespace) -> dict[str, dict]:
    """`seconds` and `memory_mib` of each case, measured in processes of their own, or why it was `skipped`."""
    runs: dict[str, list[dict]] = {name: [] for name in cases}
    for number in range(options.repeats):
        for name in list(cases)[:: -1 if number % 2 else 1]:
            if not any("skipped" in run for run in runs[name]):
                shared = {"size": options.size, "device": options.device, "threads": torch.get_num_threads()}
                runs[name].append(measured_apart(script, shared | cases[name], options.time_limit))
    found = {}
    for name, measured in runs.items():
        skipped = [run for run in measured if "skipped" in run]
        found[name] = skipped[0] if skipped else pd.DataFrame(measured).median().to_dict()
    return found


def measured_apart(script: str, case: Mapping, limit: float) -> dict:
    """The result of `run_case` for a case in a new process, which is stopped after this number of seconds."""
    command = [sys.executable, script, "--case", json.dumps(case)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return {"skipped": f"not done after {limit:g} s"}
    if done.returncode:
        return {"skipped": (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]}
    return json.loads(done.stdout.splitlines()[-1])


def run_case(build: Callable[[Mapping], Callable[[], object]], case: Mapping) -> None:
    """Print the seconds of the work that `build` returns for a case, and the MiB at its peak beyond those before it."""
    torch.set_num_threads(case["threads"])
    torch.manual_seed(1)
    limit_memory(case["device"])
    work = build(case)
    before, _ = memory(case["device"], reset=True)
    started = timer()
    work()
    seconds = timer() - started
    print(json.dumps({"seconds": seconds, "memory_mib": (memory(case["device"])[1] - before) / 2**20}))


def limit_memory(device: str) -> None:
    """Make it an error to allocate more memory than the machine has (Linux); a GPU has its own limit."""
    if sys.platform == "linux" and device == "cpu":
        import resource

        limit = max(psutil.virtual_memory().available - RESERVED, RESERVED)
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


def memory(device: str, reset: bool = False) -> tuple[int, int]:
    """Bytes in use now and at the peak since the last `reset`; of a CPU what is resident, by Linux."""
    if device != "cpu":
        if reset:
            torch.cuda.reset_peak_memory_stats(device)
        return torch.cuda.memory_allocated(device), torch.cuda.max_memory_allocated(device)
    if reset:
        Path("/proc/self/clear_refs").write_text("5", "utf-8")  # sets the peak to what is in use
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text("utf-8").splitlines())
    resident, peak = (int(lines[name].split()[0]) * 1024 for name in ("VmRSS", "VmHWM"))
    return resident, peak


def cost_rows(part: str, at: str, amount: float, unit: str, found: Mapping[str, Mapping], peer: str) -> Iterator[Row]:
    """The rows of systems that were measured apart: their speed, their time over the peer's, and their memory."""
    times = {name: numbers.get("seconds") for name, numbers in found.items()}
    for name, numbers in found.items():
        ours, other = (amount / times[one] if times[one] else None for one in (name, peer))
        time = times[name] / times[peer] if times[name] and times[peer] else None
        yield row(name, unit, ours, other, part=part, at=at, time=time, **numbers)


# Reports


def parser(text: str, size: str = "base", repeats: int = 3) -> argparse.ArgumentParser:
    """The options that all scripts have."""
    made = argparse.ArgumentParser(description=text.splitlines()[0])
    made.add_argument("--size", default=size, help="of the models: base, small or tiny")
    made.add_argument("--repeats", type=int, default=repeats, help="measurements of each side; medians are reported")
    made.add_argument("--device", default="cpu")
    made.add_argument("--time-limit", type=float, default=600, help="seconds of a measurement in a process of its own")
    made.add_argument("--json", action="store_true", help="print the rows as JSON instead of tables")
    made.add_argument("--case", type=json.loads, help=argparse.SUPPRESS)  # of a process of its own
    return made


def main(rows: Callable, made: argparse.ArgumentParser, columns: Mapping, build: Callable | None = None) -> None:
    """Print the report of a script: `rows` measures with options, `columns` are those of the table of each part."""
    options = made.parse_args()
    transformers.utils.logging.disable_progress_bar()
    if options.case:
        return run_case(build, options.case)
    found = []
    for one in rows(options):
        found.append(one)
        print(f"{one['part']}: {one['case']}, {one.get('at', '')}: ratio {one['ratio']}", file=sys.stderr, flush=True)
    options = {name: value for name, value in vars(options).items() if name not in ("json", "case")}
    report = {"setting": machine(options["device"]) | options, "columns": columns, "rows": found}
    report["targets"] = targets(found)
    print(json.dumps(report, indent=1, default=str) if "--json" in sys.argv else tables(report))


def machine(device: str) -> dict:
    """Processor, threads and versions of this process; of a GPU its name, too."""
    info = Path("/proc/cpuinfo")
    names = re.findall(r"^model name\s*: (.+)$", info.read_text("utf-8") if info.is_file() else "", re.MULTILINE)
    gpu = {"gpu": torch.cuda.get_device_name(device)} if device != "cpu" else {}
    return gpu | {
        "processor": names[0] if names else platform.machine(),
        "capability": torch.backends.cpu.get_cpu_capability(),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "hf_docmt": hf_docmt.__version__,
    }


def targets(rows: Sequence[Row]) -> list[Row]:
    """The targets for these rows in `targets.json`: minimum or maximum of a column, by part and cases."""
    found = []
    for one in rows:
        for target in json.loads(TARGETS.read_text("utf-8")):
            case = f"{one['part']}: {one['case']}, {one.get('at', '')}"
            if re.fullmatch(target["case"], case):
                value = one.get(target["column"])
                ok = value is not None and target.get("least", value) <= value <= target.get("most", value)
                found.append({**target, "case": f"target of {case}", "value": value, "ok": ok})
    return found


def tables(report: Mapping) -> str:
    """The tables of a report in Markdown, a table for each part, and the targets that were missed."""
    text = []
    for part, rows in groupby(report["rows"], key=lambda one: one["part"]):
        text += [f"**{part}**", table(list(rows), report["columns"][part])]
    missed = [target for target in report["targets"] if not target["ok"]]
    text += [f"{len(report['targets']) - len(missed)} of {len(report['targets'])} targets are reached."]
    text += ["; ".join(f"{name}: {value}" for name, value in report["setting"].items())]
    return "\n\n".join(text)


def table(rows: Sequence[Row], columns: Sequence[str]) -> str:
    """One line a case; where rows have an `at`, each of these columns for each of its values."""
    frame = pd.DataFrame(rows)
    if "at" in frame:
        order = [(column, at) for column in columns if column in frame for at in frame["at"].unique()]
        frame = frame.pivot(index="case", columns="at", values=list(dict.fromkeys(column for column, _ in order)))
        frame = frame.reindex(index=dict.fromkeys(one["case"] for one in rows), columns=order).dropna(axis=1, how="all")
        frame.columns = [f"{column}, {at}" for column, at in frame.columns]
    else:
        frame = frame.set_index("case")[[column for column in columns if column in frame]]
    lines = [["", *frame.columns], ["---", *(["---:"] * frame.shape[1])]]
    lines += [[case, *map(number, values)] for case, values in zip(frame.index, frame.itertuples(index=False))]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def number(value: object) -> str:
    """A number with three digits or so; whole from a hundred on."""
    if isinstance(value, str):
        return value
    if value is None or pd.isna(value):
        return "-"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def print_tables(paths: Iterable[str]) -> None:
    """The tables of the reports in these files."""
    print("\n\n".join(tables(json.loads(Path(path).read_text("utf-8"))) for path in paths))


if __name__ == "__main__":
    print_tables(sys.argv[1:])
