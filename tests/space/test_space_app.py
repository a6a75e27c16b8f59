"""The page without a browser: what its events give, what is there after a reload, errors, the header of the Space."""

import base64
import configparser
import json
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from huggingface_hub import SpaceCard
from packaging.requirements import Requirement
from packaging.utils import parse_wheel_filename
from support.tiny_models import build, word_tokenizer

from hf_docmt.messages import install_command
from hf_docmt.translation.live_translation import Progress

ROOT = Path(__file__).resolve().parents[2]
TEXT = "w6 w7 w8\n\nw9 w10\nw11 w12 w13\n"
EMPTY = {"text": "", "file": None}
SESSION = SimpleNamespace(session_hash="a", headers={"x-forwarded-for": "10.9.9.9, 1.2.3.4"}, client=None)


def downloaded(download) -> tuple[str, bytes]:
    """Name and content of the file in the link."""
    name, data = re.search(r'download="(.*?)" href="data:[^,]*,(.*?)"', download["value"]).groups()
    return name, base64.b64decode(data)


def test_header_of_the_space(space):
    """Read by huggingface_hub; what it names is there, and is what the package asks for."""
    data = SpaceCard.load(space / "README.md").data
    pins = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line)
    assert (data.sdk, data.sdk_version, data.license) == ("gradio", pins["gradio"], "apache-2.0")
    assert (space / data.app_file).is_file() and len(data.short_description) <= 60
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    required = Requirement((space / "requirements.txt").read_text().strip())
    assert (required.name, required.extras) == ("hf-docmt", {"space"}) and "space" in setup["options.extras_require"]
    name, version, *_ = parse_wheel_filename(required.url.split("/")[-1])
    assert (name, str(version)) == ("hf-docmt", setup["metadata"]["version"])


def test_missing_packages(space, tmp_path):
    """One line that says what to install."""
    (tmp_path / "gradio.py").write_text("raise ImportError('no gradio')")
    done = subprocess.run(
        [sys.executable, space / "app.py"],
        env={"PYTHONPATH": str(tmp_path), "PATH": ""},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert done.stderr == f"the page needs more packages (no gradio): {install_command('space')}\n"


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


def translated(made, text=TEXT, draft=EMPTY, strategy="sliding", langs=None):
    return made.translate(text, draft, strategy, *(langs or made.bench.langs), SESSION)


def test_translation_explanation_and_reload(made):
    *_, (result, status, rows, panel, download, start, stop) = translated(made)
    assert "3 of 3 sentences" in status and panel == "" and rows.count("<button") == 3
    assert (download["visible"], start["visible"], stop["visible"]) == (True, True, False)
    name, content = downloaded(download)
    lines = content.decode().split("\n")
    assert name == "text.de.txt"
    (translation,) = result["translations"]
    assert lines == [translation[0], "", translation[1], translation[2], ""]

    shown = made.explain(stored(result), SimpleNamespace(document=0, sentence=2), SESSION)
    assert "Sentence 2" in shown and "w6" in shown and "w9 w10" in shown

    *outputs, strategy, source, target, kept, status, again, panel, download, start, stop = made.restore(
        EMPTY, stored(result)
    )
    assert (strategy, source, target, kept, again) == ("sliding", "en", "de", stored(result), rows)
    assert "3 of 3 sentences" in status and downloaded(download) == (name, content)


def test_reload_in_the_middle(made):
    """What was translated so far is there again, can be looked at, and the document can be translated again."""
    *_, (result, *_) = translated(made)
    result["translations"][0][2], result["repairs"], result["file"] = None, None, None
    *_, status, rows, _, download, start, stop = made.restore(EMPTY, stored(result))
    assert "2 of 3 sentences" in status and rows.count("waiting") == 1
    assert (download["visible"], start["visible"], stop["visible"]) == (False, True, False)
    assert "Sentence 2" in made.explain(stored(result), SimpleNamespace(document=0, sentence=2), SESSION)


def test_stop(made, monkeypatch):
    """What has been translated is shown, the page can begin anew, and nothing comes after it."""
    running = (Progress(done, 3, [["a"] * done + [None] * (3 - done)]) for done in range(4))
    monkeypatch.setattr(made.bench, "translate", lambda *_: running)
    updates = translated(made)
    next(updates)
    made.ask_to_stop(SimpleNamespace(session_hash="another"))
    *_, start, stop = next(updates)
    assert (start["visible"], stop["visible"]) == (False, True)
    made.ask_to_stop(SESSION)
    (last,) = updates
    *_, status, rows, _, download, start, stop = last
    assert "2 of 3 sentences, strategy sliding." in status and rows.count("waiting") == 1
    assert (download["visible"], start["visible"], stop["visible"]) == (False, True, False)
    assert not made.runs


def test_languages_of_a_family(made, monkeypatch):
    """Chosen where the model has codes; kept with the translation, and read and written by the model."""
    family = {"source_format": "[source_lang] X </s>", "target_format": "<start> [target_lang] X </s>"}
    model = build("concat", past_context=1, **family, language_ids={"en": 26, "de": 27, "fr": 28})
    model.generation_config.max_new_tokens = 8
    monkeypatch.setattr(made.bench, "model", model)
    import app

    assert made.bench.language_choices == (["de", "en", "fr"], ["de", "en", "fr"])
    assert app.language_choice(made.bench, 1).visible and not made.langs[1].visible
    assert "3 languages → 3 languages" in app.page.header(made.bench)
    *_, (result, _, rows, *_) = translated(made, langs=("fr", "en"))
    expected = model.translate_documents(
        [["w6 w7 w8", "w9 w10", "w11 w12 w13"]], word_tokenizer(), "sliding", source_lang="fr", target_lang="en"
    )
    assert result["translations"] == expected and 'lang="fr"' in rows
    assert "Sentence 2" in made.explain(stored(result), SimpleNamespace(document=0, sentence=2), SESSION)
    assert (model.config.source_lang, model.config.target_lang) == ("en", "de")
    *_, strategy, source, target, kept, _, _, _, _, _, _ = made.restore(EMPTY, stored(result))
    assert (strategy, source, target) == ("sliding", "fr", "en") and kept


def test_files(made, tmp_path):
    path = tmp_path / "film.srt"
    path.write_text("1\n00:00:01,000 --> 00:00:02,000\nw6 w7\n")
    draft, text, file, button, remove = made.open_file(str(path), {"text": "typed", "file": None}, "en")
    assert (text["visible"], file["visible"], remove["visible"]) == (False, True, True)
    assert "film.srt" in file["value"] and draft["text"] == "typed"
    *_, (result, _, _, _, download, _, _) = translated(made, "typed", stored(draft), "sentence")
    name, content = downloaded(download)
    assert name == "film.de.srt" and b"00:00:01,000 --> 00:00:02,000" in content and not path.exists()
    text, file, *_ = made.restore(stored(draft), None)
    assert not text["visible"] and "film.srt" in file["value"]
    draft, text, file, *_ = made.remove_file(draft)
    assert draft == {"text": "typed", "file": None} and text["visible"] and not file["visible"]


def test_markup(made, tmp_path):
    """On the words by the model's attention; the markup is in the download after a reload, too."""
    pytest.importorskip("markdown_it")
    path = tmp_path / "a.md"
    path.write_text("# w6 **w7** w8\n\n[w9](x) w10\n")
    draft, *_ = made.open_file(str(path), EMPTY, "en")
    *_, (result, _, _, _, download, _, _) = translated(made, "", stored(draft))
    name, content = downloaded(download)
    assert name == "a.de.md" and content.startswith(b"# ") and (content.count(b"**"), content.count(b"](x)")) == (2, 1)
    *_, again, _, _ = made.restore(stored(draft), stored(result))
    assert downloaded(again) == (name, content)


def test_nothing_stays_on_the_server(made, tmp_path, monkeypatch):
    monkeypatch.setenv("GRADIO_TEMP_DIR", str(tmp_path / "cache"))
    path = tmp_path / "a.txt"
    path.write_text("w6 w7\n")
    draft, *_ = made.open_file(str(path), EMPTY, "en")
    list(translated(made, "", stored(draft)))
    assert not [file for file in tmp_path.rglob("*") if file.is_file()]


def test_turns_of_the_page(made):
    """Another's translation is waited for; one address has two of them at most; what is stopped waits no more."""
    import gradio as gr

    made.turns.longest = 60
    other = made.turns.ask("another")
    assert made.turns.wait(other, 0)
    updates = translated(made)
    _, status, *_, start, stop = next(updates)
    assert "Others are before you" in status and (start["visible"], stop["visible"]) == (False, True)
    second = translated(made)
    next(second)
    with pytest.raises(gr.Error, match="2 of your translations are under way"):
        next(translated(made))
    second.close()
    made.ask_to_stop(SESSION)
    made.turns.end(other)
    *_, (result, *_) = updates
    assert result["translations"][0][0] is not None and made.turns.current is None and not made.turns.waiting


def test_time_limit(made, monkeypatch):
    """What has been translated is shown, and why it ends."""
    import gradio as gr

    running = (Progress(done, 3, [["a"] * done + [None] * (3 - done)]) for done in range(4))
    monkeypatch.setattr(made.bench, "translate", lambda *_: running)
    made.turns.longest = 0.0
    updates = translated(made)
    *_, start, stop = next(updates)
    assert (start["visible"], stop["visible"]) == (True, False)
    with pytest.raises(gr.Error, match="took more than 0.0 s: split the document"):
        next(updates)
    assert made.turns.current is None


def test_errors_are_shown(made, tmp_path):
    import gradio as gr

    with pytest.raises(gr.Error, match="text.txt has no text"):
        next(translated(made, " "))
    (tmp_path / "a.pdf").write_bytes(b"x")
    with pytest.raises(gr.Error, match=r"a\.pdf ends in"):
        made.open_file(str(tmp_path / "a.pdf"), EMPTY, "en")
    with pytest.raises(gr.Error, match="there is no translation"):
        made.explain(None, SimpleNamespace(document=0, sentence=1), SESSION)


@pytest.mark.parametrize(
    "change",
    [
        {"strategy": "stream"},
        {"langs": ["en", "fr"]},
        {"translations": [["a"]]},
        {"upload": {"name": "a.txt", "data": "?"}},
        {"translations": [["a", 1, "b"]]},
    ],
)
def test_storage_of_another_page(made, change):
    """A result that does not fit is forgotten, not shown."""
    *_, (result, *_) = translated(made)
    *_, kept, status, rows, _, _, _, _ = made.restore({"text": "", "file": {"name": 3}}, stored(result | change))
    assert kept is None and "value" not in rows
