"""The report on a GPU: its steps at small sizes on a CPU, and what becomes of steps that fail or take too long."""

import json
import os
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from hf_docmt.loading import registry

SCRIPT = Path(__file__).resolve().parents[1] / "examples" / "gpu_report.py"
STEPS = SCRIPT.with_name("gpu_report_steps.py")
ROW = {"case": "greedy, batch 1", "ours": 123.456, "peer": 100.0, "ratio": 1.2345, "unit": "sentences/s"}
COMMANDS = {
    "decode": f"print('a line before'); print('{json.dumps(ROW)}')",
    "train": "import sys; print('{\"case\": \"begun\"}', flush=True); sys.exit('out of memory')",
    "cost": 'import time; print(\'{"case": "first"}\', flush=True); time.sleep(60)',
    "attention": 'print(\'{"case": "second", "error": "ValueError: no"}\')',
}


@pytest.fixture
def script():
    return module_of(SCRIPT)


def module_of(path):
    spec = spec_from_file_location(path.stem, path)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def command_of(name, *_):
    return [sys.executable, "-S", "-c", COMMANDS[name]] if name in COMMANDS else None


def test_a_step_that_fails_does_not_end_the_rest(script, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(script, "command_of", command_of)
    shares = {"train": 60, "battery": 1, "attention": 60, "cost": 20, "decode": 60}
    monkeypatch.setattr(script, "SHARES", shares)
    names = ["train", "battery", "attention", "cost", "decode"]
    script.main(str(tmp_path), "cpu", True, 0.25, names, "demo_concat4")
    report = json.loads((tmp_path / "gpu_report.json").read_text())
    steps = {step["step"]: step for step in report["steps"]}
    statuses = {name: step["status"] for name, step in steps.items()}
    assert list(steps) == names and statuses == {
        "train": "failed",
        "battery": "left out",
        "attention": "failed",
        "cost": "out of time",
        "decode": "passed",
    }
    assert steps["train"]["rows"] == [{"case": "begun"}] and steps["train"]["errors"].strip() == "out of memory"
    assert steps["cost"]["rows"] == [{"case": "first"}] and steps["cost"]["seconds"] < 10
    assert steps["decode"]["rows"] == [ROW] and "errors" not in steps["decode"]
    assert sum(step["seconds"] for step in steps.values()) < 15 and report["machine"]["device"] == "cpu"
    table = (tmp_path / "gpu_report.md").read_text()
    assert capsys.readouterr().out == table
    assert "| | greedy, batch 1 | ours 123.5, peer 100, ratio 1.234, unit sentences/s |" in table


@pytest.mark.parametrize(
    ("minutes", "steps", "message"),
    [
        (9, ["decode", "battle"], "steps: unknown battle, expected some of architectures, decode"),
        (0, ["decode"], "got 0"),
    ],
)
def test_bad_options(script, tmp_path, minutes, steps, message):
    with pytest.raises(ValueError, match=message):
        script.main(str(tmp_path / "new"), "cpu", True, minutes, steps, "demo_concat4")
    assert not (tmp_path / "new").exists()


def test_rows_of_the_battery(script):
    lines = ["tests/a.py::test_x[case one] PASSED  [ 50%]", "tests/a.py::test_y SKIPPED (no)", "tests/b.py::z FAILED"]
    row = {"case": "tests", "passed": 1, "skipped": 1, "failed": 1, "failures": ["tests/b.py::z"]}
    assert script.rows_of("battery", [*lines, "=== 1 passed in 3 s"]) == [row]


def test_checks_of_architectures(monkeypatch, capsys):
    """On the CPU nothing differs from the CPU; one that fails is a row, too."""
    steps = module_of(STEPS)
    known = {"window": registry.get("window"), "nonsense": registry.Architecture("nonsense")}
    with monkeypatch.context() as patch:
        patch.setattr(registry, "ARCHITECTURES", known)
        steps.main("architectures", "cpu", True, "")
    row, failed = map(json.loads, capsys.readouterr().out.splitlines())
    assert failed["case"] == "nonsense" and failed["error"].startswith("ModuleNotFoundError: ")
    assert row["case"] == "window" and row["greedy_equal"] and row["beams_equal"]
    assert row["logits_difference"] == row["updates_difference"] == row["bf16_difference"] == 0
    steps.main("decode", "cpu", True, "")
    rows = list(map(json.loads, capsys.readouterr().out.splitlines()))
    assert rows[0].keys() >= {"case", "ours", "peer", "ratio"} and rows[-1]["case"].startswith("target of ")


@pytest.mark.slow
def test_all_steps(tmp_path):
    command = [sys.executable, str(SCRIPT), "--output", str(tmp_path), "--device", "cpu", "--small", "--minutes", "9"]
    done = subprocess.run(command, env=os.environ | {"OMP_NUM_THREADS": "1"}, capture_output=True, text=True)
    report = json.loads((tmp_path / "gpu_report.json").read_text())
    assert done.returncode == 0, done.stderr
    for step in report["steps"]:
        assert step["status"] == "passed" and step["rows"], step
    assert {row["case"] for row in report["steps"][0]["rows"]} == registry.ARCHITECTURES.keys()
