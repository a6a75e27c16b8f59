"""Losses of finished runs: what is read, the table, the picture, folders that hold none."""

import json

import pytest
from support.errors import refused
from typer.testing import CliRunner

from hf_docmt.analysis.losses import read_losses
from hf_docmt.cli import app


def write_run(folder, losses, validation=((10, 2.5), (20, 2.25))):
    folder.mkdir()
    (folder / "training.json").write_text(json.dumps({"losses": losses, "validation_losses": validation}))
    return str(folder)


def test_table_and_picture(tmp_path):
    one = write_run(tmp_path / "one", [[step, 8.0 / step] for step in range(1, 9)])
    other = write_run(tmp_path / "other", [[1, 4.0], [2, 2.0]], [])
    (run, last) = read_losses([one, other])
    assert run.summary() == {
        "run": "one",
        "updates": 8,
        "training loss": round((8 / 7 + 1) / 2, 4),
        "deviation": round((8 / 7 - 1) / 2, 4),
        "validation loss": 2.25,
    }
    assert (last.summary()["updates"], last.summary()["training loss"]) == (2, 2.0)
    facts = json.loads((tmp_path / "other" / "training.json").read_text())
    (tmp_path / "other" / "training.json").write_text(json.dumps(facts | {"steps": 3}))  # the last one was not logged
    assert read_losses([other])[0].summary()["updates"] == 3
    assert last.summary()["validation loss"] is None
    picture = tmp_path / "losses.png"
    done = CliRunner().invoke(app, ["analyze", "losses", one, other, "--picture", str(picture)])
    assert done.exit_code == 0 and "1.0714" in done.output and "other" in done.output
    assert picture.read_bytes()[:4] == b"\x89PNG"
    done = CliRunner().invoke(app, ["analyze", "losses", one, "--json"])
    assert json.loads(done.output)[0]["losses"][0] == [1, 8.0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "no finished run"),
        ("{}", "logged"),
        *((text, "no finished run") for text in ("{", "[]", '{"losses": [1]}', '{"losses": [[1, null]]}')),
    ],
)
def test_folders_that_hold_none(tmp_path, text, message):
    if text is not None:
        (tmp_path / "training.json").write_text(text)
    refused(message, read_losses, [str(tmp_path)])


def test_too_many_and_equal_names(tmp_path):
    runs = [write_run(tmp_path / str(number), [[1, 1.0]]) for number in range(8)]
    done = CliRunner().invoke(app, ["analyze", "losses", *runs, "--picture", str(tmp_path / "a.png")])
    assert done.exit_code != 0 and not (tmp_path / "a.png").exists()
    refused("runs are named by their folders", read_losses, [runs[0], runs[0]])
