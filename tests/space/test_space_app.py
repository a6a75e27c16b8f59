"""The page without a browser: what its events give, what is there after a reload, errors, the header of the Space."""

import configparser
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from huggingface_hub import SpaceCard
from support.tiny_models import build, word_tokenizer

ROOT = Path(__file__).resolve().parents[2]
TEXT = "w6 w7 w8\n\nw9 w10\nw11 w12 w13\n"
EMPTY = {"text": "", "file": None}


def test_header_of_the_space(space):
    """Read by huggingface_hub; what it names is there, and is what the package asks for."""
    data = SpaceCard.load(space / "README.md").data
    pins = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line)
    assert (data.sdk, data.sdk_version, data.license) == ("gradio", pins["gradio"], "apache-2.0")
    assert (space / data.app_file).is_file() and len(data.short_description) <= 60
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    name, _, version = (space / "requirements.txt").read_text().strip().partition(">=")
    assert name == "hf-docmt[space]" and "space" in setup["options.extras_require"]
    assert setup["metadata"]["version"] == version


def test_missing_packages(space, tmp_path):
    """One line that says what to install."""
    (tmp_path / "gradio.py").write_text("raise ImportError('no gradio')")
    (tmp_path / "docx.py").write_text("")
    done = subprocess.run(
        [sys.executable, space / "app.py"],
        env={"PYTHONPATH": str(tmp_path), "PATH": ""},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert done.stderr == "the page needs more packages (no gradio): pip install 'hf-docmt[space]'\n"


def test_wrong_model_is_one_line():
    pytest.importorskip("gradio")
    import app

    with pytest.raises(SystemExit, match="the page has no model: no/such/model: no such folder") as error:
        app.main(["--model", "no/such/model"])
    assert "\n" not in str(error.value)


@pytest.fixture
def made(monkeypatch):
    pytest.importorskip("gradio")
    import app
    import workbench

    model = build("concat", past_context=1)
    model.generation_config.max_new_tokens = 8
    monkeypatch.setattr(workbench.hf_docmt, "load_model", lambda name: (model, word_tokenizer()))
    return app.Page(workbench.Workbench("tiny"))


def stored(value):
    """What a browser gives back."""
    return json.loads(json.dumps(value))


def test_translation_explanation_and_reload(made):
    *_, (result, status, rows, panel, download, start, stop) = made.translate(TEXT, EMPTY, "sliding")
    assert "3 of 3 sentences" in status and panel == "" and rows.count("<button") == 3
    assert (download["visible"], start["visible"], stop["visible"]) == (True, True, False)
    assert Path(download["value"]).name == "text.de.txt"
    lines = Path(download["value"]).read_text().split("\n")
    (translation,) = result["translations"]
    assert lines == [translation[0], "", translation[1], translation[2], ""]

    shown = made.explain(stored(result), SimpleNamespace(document=0, sentence=2))
    assert "Sentence 2" in shown and "w6" in shown and "w9 w10" in shown

    *outputs, strategy, kept, status, again, panel, download, start, stop = made.restore(EMPTY, stored(result))
    assert (strategy, kept, again) == ("sliding", stored(result), rows)
    assert "3 of 3 sentences" in status and Path(download["value"]).read_text().split("\n") == lines


def test_reload_in_the_middle(made):
    """What was translated so far is there again, can be looked at, and the document can be translated again."""
    *_, (result, *_) = made.translate(TEXT, EMPTY, "sliding")
    result["translations"][0][2], result["repairs"] = None, None
    *_, strategy, _, status, rows, _, download, start, stop = made.restore(EMPTY, stored(result))
    assert "2 of 3 sentences" in status and rows.count("waiting") == 1
    assert (download["visible"], start["visible"], stop["visible"]) == (False, True, False)
    assert "Sentence 2" in made.explain(stored(result), SimpleNamespace(document=0, sentence=2))


def test_files(made, tmp_path):
    path = tmp_path / "film.srt"
    path.write_text("1\n00:00:01,000 --> 00:00:02,000\nw6 w7\n")
    draft, text, file, button, remove = made.open_file(str(path), {"text": "typed", "file": None})
    assert (text["visible"], file["visible"], remove["visible"]) == (False, True, True)
    assert "film.srt" in file["value"] and draft["text"] == "typed"
    *_, (result, _, _, _, download, _, _) = made.translate("typed", stored(draft), "sentence")
    assert (
        Path(download["value"]).name == "film.de.srt"
        and "00:00:01,000 --> 00:00:02,000" in Path(download["value"]).read_text()
    )
    text, file, *_ = made.restore(stored(draft), None)
    assert not text["visible"] and "film.srt" in file["value"]
    draft, text, file, *_ = made.remove_file(draft)
    assert draft == {"text": "typed", "file": None} and text["visible"] and not file["visible"]


def test_errors_are_shown(made, tmp_path):
    import gradio as gr

    with pytest.raises(gr.Error, match="text.txt has no text"):
        next(made.translate(" ", EMPTY, "sliding"))
    (tmp_path / "a.pdf").write_bytes(b"x")
    with pytest.raises(gr.Error, match=r"a\.pdf ends in"):
        made.open_file(str(tmp_path / "a.pdf"), EMPTY)
    with pytest.raises(gr.Error, match="there is no translation"):
        made.explain(None, SimpleNamespace(document=0, sentence=1))


@pytest.mark.parametrize(
    "change",
    [
        {"strategy": "stream"},
        {"translations": [["a"]]},
        {"upload": {"name": "a.txt", "data": "?"}},
        {"translations": [["a", 1, "b"]]},
    ],
)
def test_storage_of_another_page(made, change):
    """A result that does not fit is forgotten, not shown."""
    *_, (result, *_) = made.translate(TEXT, EMPTY, "sliding")
    *_, kept, status, rows, _, _, _, _ = made.restore({"text": "", "file": {"name": 3}}, stored(result | change))
    assert kept is None and "value" not in rows
