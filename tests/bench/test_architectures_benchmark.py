"""The benchmark of all architectures: each has its row and peer, and writes as many tokens as it reads."""

from hf_docmt import registry
from hf_docmt.bench import architectures, decode
from hf_docmt.bench.architectures import MAX_TIME, PEER, ArchitectureDecoding
from hf_docmt.bench.models import TINY
from hf_docmt.bench.report import BenchmarkRun, BenchReport
from hf_docmt.bench.speed_tables import speed_tables

OPTIONS = {"repeats": 1, "documents": 2, "sentences": 3, "tokens": 4}


def test_rows_and_checks(monkeypatch):
    """One table row for each architecture, whose sizes are those of the name that is asked for."""
    monkeypatch.setitem(decode.NAMED_SIZES, "small", (TINY | {"encoder_layers": 2, "decoder_layers": 2}, 60))
    written, measure_sides = {}, architectures.measure_sides

    def spy(*arguments, **options):
        measured = measure_sides(*arguments, **options)
        for name, translations in measured[1].items():
            written.setdefault(name, set()).update(map(len, translations))
        return measured

    monkeypatch.setattr(architectures, "measure_sides", spy)
    found = ArchitectureDecoding(size="small", **OPTIONS).run().to_json()
    others = registry.ARCHITECTURES.keys() - {PEER}
    assert {row["name"] for row in found["rows"]} == others and len(found["rows"]) == 2 * len(others)
    windows = {row["name"] for row in found["rows"] if "windows of two" in row["case"]}
    assert windows == {"gtransformer", "lst", "window"}
    assert written.pop(PEER) == {4, 9} and all(written[name] == {9} for name in windows)
    assert all(written[name] == {4} for name in others - windows)
    assert {check["name"].split()[1].strip(",") for check in found["checks"]} == set(MAX_TIME)
    run = BenchmarkRun(benchmark="architectures", problem=None, rows=found["rows"], setting=found["setting"])
    setting = dict.fromkeys(("processor", "capability", "threads", "torch", "transformers", "hf_docmt"), "x")
    report = BenchReport(setting=setting, started="2026-01-01", runs=[run])
    caching = [row for row in found["rows"] if row["name"] == "caching"]
    text = speed_tables(report, "markdown", ["architectures"])
    cells = " | ".join(f"{1 / row['ratio']:.2f}" for row in caching)
    assert "width 32:" in text and f"| caching, sentences | {cells} |" in text and text.count("\n|") == 2 + len(others)
