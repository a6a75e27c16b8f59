"""Checks, benchmarks and a short training on a GPU in under nine minutes: one JSON file and one table.

python examples/gpu_report.py --output runs/gpu
python examples/gpu_report.py --output runs/try --device cpu --small --minutes 3

Every step is a process with a time limit of its own. What fails, or runs out of time, is recorded with what it found so
far, and the rest goes on. Time that a step leaves goes to those after it.
"""

import argparse
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[1]
STEPS = Path(__file__).with_name("gpu_report_steps.py")
TESTS = ROOT / "tests" / "modeling"
SHARES = {  # of the time, for each step
    "architectures": 40,
    "decode": 70,
    "train": 50,
    "attention": 130,
    "cost": 80,
    "training": 50,
    "compiled": 60,
    "battery": 60,
}


def main(output: str, device: str, small: bool, minutes: float, steps: list[str], recipe: str) -> dict:
    """Run the steps, write `gpu_report.json` and `gpu_report.md` into the folder `output`, and print the table."""
    unknown = sorted(set(steps) - SHARES.keys())
    if unknown:
        raise ValueError(f"steps: unknown {', '.join(unknown)}, expected some of {', '.join(SHARES)}")
    if not minutes > 0:
        raise ValueError(f"minutes: expected more than 0, got {minutes}")
    if Path(recipe).is_file():
        recipe = str(Path(recipe).resolve())  # steps run in another folder
    folder = Path(output)
    folder.mkdir(parents=True, exist_ok=True)
    ends = time.monotonic() + 60 * minutes - 5
    report = {"machine": machine(device), "small": small, "minutes": minutes, "steps": []}
    for number, name in enumerate(steps):
        left = ends - time.monotonic()
        limit = max(0.0, left) * SHARES[name] / sum(SHARES[later] for later in steps[number:])
        print(f"{name}: at most {limit:.0f} of {left:.0f} s", file=sys.stderr, flush=True)
        step = run_step(name, command_of(name, device, small, recipe), device, limit)
        print(f"{name}: {step['status']} after {step['seconds']} s", file=sys.stderr, flush=True)
        report["steps"].append(step)
        (folder / "gpu_report.json").write_text(json.dumps(report, indent=1), encoding="utf-8")  # the steps so far
    (folder / "gpu_report.md").write_text(table(report), encoding="utf-8")
    print(table(report), end="")
    return report


def machine(device: str) -> dict:
    """The machine and versions of the measurements."""
    found = {name: version(name) for name in ("torch", "transformers", "hf-docmt")}
    found |= {"device": device, "cores": os.cpu_count(), "processor": platform.processor() or platform.machine()}
    if device.startswith("cuda") and torch.cuda.is_available():
        properties = torch.cuda.get_device_properties(device)
        found |= {"gpu": properties.name, "gpu_gib": round(properties.total_memory / 2**30), "cuda": torch.version.cuda}
    return found


def command_of(name: str, device: str, small: bool, recipe: str) -> list[str] | None:
    """The command of a step; None where this machine has no tests, or nothing to run them with."""
    if name != "battery":
        size = ["--small"] if small else []
        return [sys.executable, str(STEPS), name, "--device", device, "--recipe", recipe, *size]
    if not TESTS.is_dir() or find_spec("pytest") is None:
        return None
    chosen = ["-k", "reduction"] if small else []
    options = ["-v", "-p", "no:cacheprovider", "--device", device, "--cases", "1", "--continue-on-collection-errors"]
    options += chosen
    return [sys.executable, "-m", "pytest", *options, str(TESTS)]


def run_step(name: str, command: list[str] | None, device: str, limit: float) -> dict:
    """Run one command; its status, seconds, rows, and the end of its standard error where it did not pass."""
    step = {"step": name, "status": "left out", "limit": round(limit, 1), "seconds": 0.0, "rows": []}
    if command is None:
        return step
    started = time.monotonic()
    hidden = {"CUDA_VISIBLE_DEVICES": ""} if device == "cpu" else {}
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            command, cwd=ROOT, env=os.environ | hidden, stdout=output, stderr=errors, start_new_session=True
        )
        try:
            step["status"] = "failed" if process.wait(timeout=limit) else "passed"
        except subprocess.TimeoutExpired:
            step["status"] = "out of time"
        finally:
            end_processes(process)
        output.seek(0)
        errors.seek(0)
        lines, last = output.read().splitlines(), errors.read()[-2000:]
    step |= {"seconds": round(time.monotonic() - started, 1), "rows": rows_of(name, lines)}
    if any("error" in row for row in step["rows"]) and step["status"] == "passed":
        step["status"] = "failed"
    return step if step["status"] == "passed" else step | {"errors": last or "\n".join(lines[-20:])}


def end_processes(process: subprocess.Popen) -> None:
    """End a process and those that it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def rows_of(name: str, lines: list[str]) -> list[dict]:
    """Rows from what a step printed: JSON, or the verdicts of pytest."""
    if name == "battery":
        verdicts = [line for line in lines if "::" in line]
        failed = [line.split(" ")[0] for line in verdicts if " FAILED" in line or " ERROR" in line]
        counts = {word.lower(): sum(f" {word}" in line for line in verdicts) for word in ("PASSED", "SKIPPED")}
        return [{"case": "tests", **counts, "failed": len(failed), "failures": failed}]
    return [json.loads(line) for line in lines if line.startswith("{")]


def table(report: dict) -> str:
    """Steps, and below each what it found, as Markdown."""
    facts = ", ".join(f"{name} {value}" for name, value in report["machine"].items())
    lines = [facts, "", "| step | case | found |", "|---|---|---|"]
    for step in report["steps"]:
        lines.append(f"| {step['step']} | **{step['status']}** | {step['seconds']} of {step['limit']} s |")
        for row in step["rows"]:
            values = {key: value for key, value in row.items() if key != "case" and not isinstance(value, dict | list)}
            found = ", ".join(
                f"{key} {value:.4g}" if isinstance(value, float) else f"{key} {value}" for key, value in values.items()
            )
            lines.append(f"| | {row.get('case', '')} | {found} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", default="runs/gpu_report", help="folder of the report")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--small", action="store_true", help="sizes for a CPU")
    parser.add_argument("--minutes", type=float, default=9.0, help="for all steps together")
    parser.add_argument("--steps", nargs="+", default=list(SHARES), help="some of them")
    parser.add_argument("--recipe", default="demo_concat4", help="of the short training: a name, or a file of your own")
    main(**vars(parser.parse_args()))
