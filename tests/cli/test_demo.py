"""The whole road on the built-in corpus."""

import json
from pathlib import Path

import pytest
from support.processes import InThisProcess
from support.readme_blocks import blocks_of, run_blocks

from hf_docmt.data.synthetic.corpus import CHANCE, make_corpus
from hf_docmt.hub import demo
from hf_docmt.hub.demo import DOCUMENTS, EXAMPLE, run_demo

TINY = ("training.max_steps=4", "training.eval_steps=2", "training.warmup_steps=1", "model.d_model=32")


def test_the_road_ends_in_a_comparison_and_a_hub_folder(tmp_path, capfd, monkeypatch):
    monkeypatch.setattr(demo, "ProcessPoolExecutor", InThisProcess)
    sizes = {"train": 20, "validation": 2, "test": 2, "suite_items": 2}
    found = run_demo(tmp_path / "demo", documents=sizes, overrides=TINY)
    lines = capfd.readouterr().err.splitlines()
    assert "3 to 5 minutes on two cores" in lines[0] and "concat  step 2 of 4  eval_loss" in "\n".join(lines)
    assert [line[:6] for line in lines if " of 4: " in line] == [f"{phase} of 4" for phase in (1, 2, 3, 4)]
    labels = [row[0] for row in found["rows"]]
    assert labels[:4] == ["s-BLEU", "d-BLEU", "chrF", "TER"]
    assert {f"accuracy {suite}" for suite in CHANCE} < set(labels)
    assert all(0 <= value <= 100 for row in found["rows"] if row[0] != "TER" for value in row[2:])
    for name in ("sentence", "concat"):
        report = json.loads((tmp_path / "demo" / "reports" / f"{name}.json").read_text(encoding="utf-8"))
        pronoun = next(result for result in report["results"] if result["dataset"] == "pronoun")
        row = next(row for row in found["rows"] if row[0] == "accuracy pronoun")
        assert row[2 + ("sentence", "concat").index(name)] == pronoun["value"]
    hub = tmp_path / "demo" / "hub"
    assert {"README.md", "config.json", "model.safetensors", "modeling_concat.py"} <= {p.name for p in hub.iterdir()}
    assert json.dumps(EXAMPLE) in (hub / "README.md").read_text(encoding="utf-8")
    with pytest.raises(ValueError, match="not an empty folder"):
        run_demo(tmp_path / "demo")


def test_example_of_the_card_is_of_the_corpus():
    documents = make_corpus(seed=1, **DOCUMENTS)["train"]
    assert set(EXAMPLE) <= {pair["en"] for row in documents for pair in row["translation"]}


@pytest.mark.slow
def test_it_learns_within_reach_of_its_context(tmp_path):
    """Windows of 4 solve pronouns and register within their reach; the sentence-level model stays at chance.

    The models print what the README shows.
    """
    rows = {}
    suite = None
    for label, _, sentence, concat in run_demo(tmp_path / "runs" / "demo", seed=1)["rows"]:
        suite = label.removeprefix("accuracy ") if label.startswith("accuracy") else suite
        if label.startswith("  distance="):
            rows[suite, label.removeprefix("  distance=")] = (sentence, concat)
    for (suite, distance), (sentence, concat) in rows.items():
        if distance != "0":  # at 0 the sentence itself has the antecedent
            assert sentence == pytest.approx(100 * CHANCE[suite], abs=5), (suite, distance)
        if suite in ("pronoun", "deixis") and distance in "123":
            assert concat >= 95, (suite, distance)
    blocks = blocks_of((Path(__file__).parents[2] / "README.md").read_text("utf-8"))
    block = next(block for block in blocks if block.text.startswith("make demo"))
    assert run_blocks([block], tmp_path, {"make demo": "run_demo"}).printed == 3
