"""The scripts of examples/bench at tiny sizes, the arithmetic that they share, and the published tables of speed."""

import json
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.processes import run_python

BENCH = Path(__file__).resolve().parents[1] / "examples" / "bench"
REPORTS = BENCH.with_name("reports")
TINY = {  # script: options, the first case, and how many rows it has
    "decode": ("--parts fixed --sizes tiny --batch-sizes 2 --tokens 5", "greedy, batch 2", 6),
    "documents": ("--parts strategies --steps 2 --number 2", "fp32: sliding : sentence", 8),
    "train": (
        "--parts speed data --speed-size tiny --documents 6 --max-tokens 500 --pairs 500 --precisions fp32",
        "sentences, fp32",
        3,
    ),
    "cost": ("--size tiny --text-lengths 100 --parts", "sentence", 3),
}


@pytest.fixture(scope="module")
def rows():
    return runpy.run_path(str(BENCH / "rows.py"))


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in ("train", "cost") else []) for name in TINY]
)
def test_script(name):
    options, first, count = TINY[name]
    parts = ["translation by length"] if name == "cost" else []
    done = run_python(BENCH / f"{name}.py", "--json", "--repeats", 1, *options.split(), *parts)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert not [row for row in report["rows"] if row.get("skipped")]
    assert all(row["ours"] > 0 and row["peer"] > 0 for row in report["rows"])
    assert report["rows"][0]["case"] == first and len(report["rows"]) == count and report["setting"]["threads"]
    assert report["columns"].keys() >= {row["part"] for row in report["rows"]}
    if name == "decode":
        assert [row["equal_tokens"] for row in report["rows"] if row["at"] == "fp32"] == [1, 1]
    assert report["targets"] or name == "documents"


def test_works_that_are_measured_apart(monkeypatch):
    """Every case of cost, and what a training step keeps, in this process."""
    monkeypatch.syspath_prepend(str(BENCH))
    shared = {"size": "tiny", "device": "cpu", "tokens": 64}
    cost, train = (runpy.run_path(str(BENCH / f"{name}.py")) for name in ("cost", "train"))
    cases = [{"alone": name} for name in cost["ALONE"]]
    for part in cost["PARTS"]:
        cases += cost["cases_of"](part, 100 if "length" in part else 1, cost["options"]().parse_args([])).values()
    for case in cases:
        cost["build"](shared | case | {"tokens": 64})()
    assert len(cases) == 3 + 5 + 3 + 2 * 10
    for skip_logits, again in train["KEPT"].values():
        train["build"](shared | {"architecture": "window", "skip_logits": skip_logits, "again": again})()


def test_architectures(monkeypatch):
    """Those that read windows, with int8 weights, beside `concat`."""
    monkeypatch.syspath_prepend(str(BENCH))
    documents = runpy.run_path(str(BENCH / "documents.py"))
    options = documents["options"]().parse_args(["--size", "tiny", "--repeats", "1"])
    rows = list(documents["architecture_rows"](options, "int8", documents["WINDOWS"], number=1, length=2))
    assert {row["case"].partition(",")[0] for row in rows} == {"gtransformer", "lst", "window"}
    assert all(row["at"] == "tiny int8" and row["time"] == pytest.approx(1 / row["ratio"]) for row in rows)


def test_sides_alternate(rows):
    order, clock = [], iter(range(100))
    works = {name: lambda name=name: order.append(name) or {"own": next(clock)} for name in "ab"}
    seconds, outputs = rows["alternate"](works, 2, "own")
    assert order == ["a", "b", "b", "a", "a", "b"] and outputs["b"] == {"own": 5}
    assert seconds == {"a": 3.5, "b": 3.5}  # without the first round


def test_a_case_that_does_not_end(rows, tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import json, sys, time\ncase = json.loads(sys.argv[2])\ntime.sleep(case)\nsys.exit('no memory')")
    assert rows["measured_apart"](str(script), 60, 1) == {"skipped": "not done after 1 s"}
    assert rows["measured_apart"](str(script), 0, 60) == {"skipped": "no memory"}


def test_table_and_targets(rows, capsys):
    found = {"a": {"seconds": 2.0, "memory_mib": 120.4}, "b": {"seconds": 1.0, "memory_mib": 10.0}}
    made = list(rows["cost_rows"]("training by length", "9 tokens", 8, "tokens/s", found, "b"))
    made += list(rows["cost_rows"]("training by length", "10 tokens", 8, "tokens/s", {"b": found["b"]}, "b"))
    assert rows["table"](made, ("time", "memory_mib", "absent")).splitlines() == [
        "|  | time, 9 tokens | time, 10 tokens | memory_mib, 9 tokens | memory_mib, 10 tokens |",
        "| --- | ---: | ---: | ---: | ---: |",
        "| a | 2.00 | - | 120 | - |",
        "| b | 1.00 | 1.00 | 10.0 | 10.0 |",
    ]
    lst = rows["row"]("lst", "tokens/s", 2.0, 1.0, part="training by length", at="9 tokens", time=1.2)
    skipped = rows["row"]("lst", "tokens/s", None, 1.0, part="training by length", at="10 tokens", time=None)
    first, second = rows["targets"]([lst, skipped])
    assert (first["case"], first["most"], first["value"], first["ok"]) == (
        "target of training by length: lst, 9 tokens", 1.15, 1.2, False,
    )  # fmt: skip
    assert second["value"] is None and not second["ok"]


def test_real_text(monkeypatch, tmp_path):
    """All sides translate lines of several lengths equally; fxtranslate gets the files of Marian and each line."""
    monkeypatch.syspath_prepend(str(BENCH))
    decode = runpy.run_path(str(BENCH / "decode.py"))
    (tmp_path / "text").write_text("It ends.\n\nThe steamer is behind the hat and it fits me well.\n", "utf-8")
    options = "--steps 2 --repeats 1 --batch-sizes 2 --precisions fp32 bf16 --text".split()
    rows = list(decode["real_rows"](decode["options"]().parse_args([*options, str(tmp_path / "text")]), tmp_path))
    cases = [f"{mode}, batch 2: {peer}" for mode in ("greedy", "beam 4") for peer in ("transformers", "CTranslate2")]
    assert [row["case"] for row in rows] == cases
    assert all(row["ours"] / row["peer"] == pytest.approx(row["ratio"]) for row in rows)
    assert [row["equal"] for row in rows[:2]] == [1, 1]
    engine = SimpleNamespace(Translator=lambda *files: SimpleNamespace(translate=lambda line: f"{line} {files}"))
    monkeypatch.setitem(sys.modules, "fxtranslate", engine)
    for name in ("model.bin", "vocab.spm", "lex.bin"):
        (tmp_path / name).write_bytes(name.encode())
    translate = decode["marian"](tmp_path)["fxtranslate"]
    files = (b"model.bin", b"vocab.spm", b"vocab.spm", b"lex.bin")
    assert translate(["a", "b"], 64, 1) == [f"a {files}", f"b {files}"]


@pytest.mark.parametrize("path", sorted(REPORTS.glob("*_xeon.json")) + sorted(REPORTS.glob("*_epyc*.json")), ids=str)
def test_tables_of_speed(path, monkeypatch, capsys):
    """Made by `rows.py` of the reports in that folder."""
    monkeypatch.setattr(sys, "argv", ["rows.py", str(path)])
    runpy.run_path(str(BENCH / "rows.py"), run_name="__main__")
    begin = f"<!-- python examples/bench/rows.py examples/reports/{path.name} -->\n"
    printed = (REPORTS / "README.md").read_text("utf-8").partition(begin)[2].partition("<!-- end -->")[0]
    assert printed.strip() == capsys.readouterr().out.strip()
