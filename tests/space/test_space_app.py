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

from hf_docmt.messages import __version__, install_command

ROOT = Path(__file__).resolve().parents[2]
TEXT = "w6 w7 w8\n\nw9 w10\nw11 w12 w13\n"
EMPTY = {"text": "", "file": None}
SESSION = SimpleNamespace(session_hash="a", headers={"x-forwarded-for": "10.9.9.9, 1.2.3.4"}, client=None)


NAMES = ("result", "status", "rows", "panel", "research", "download", "comparison", "stop")


def downloaded(download) -> tuple[str, bytes]:
    """Name and content of the file in the link."""
    name, data = re.search(r'download="(.*?)" href="data:[^,]*,(.*?)"', download["value"]).groups()
    return name, base64.b64decode(data)


def shown(update) -> SimpleNamespace:
    """What is shown of a translation, by its name."""
    return SimpleNamespace(**dict(zip(NAMES, update[-len(NAMES) :], strict=True)))


def live_progress(*fields):
    from live_translation import LiveProgress

    return LiveProgress(*fields)


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
    assert (name, str(version)) == ("hf-docmt", __version__)


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


def translated(made, text=TEXT, draft=EMPTY, strategy="sliding", langs=None, compare=False):
    return made.translate(text, draft, strategy, *(langs or made.bench.langs), compare, SESSION)


def last(updates) -> SimpleNamespace:
    *_, update = updates
    return shown(update)


def at(sentence: int, document: int = 0) -> SimpleNamespace:
    return SimpleNamespace(document=document, sentence=sentence)


def test_translation_explanation_and_reload(made):
    done = last(translated(made))
    assert "3 sentences translated" in done.status and done.panel is not None and done.rows.count('class="why"') == 3
    assert (done.download["visible"], done.stop["visible"], done.comparison) == (True, False, "")
    name, content = downloaded(done.download)
    lines = content.decode().split("\n")
    assert name == "text.de.txt"
    (translation,) = done.result["translations"]
    assert lines == [translation[0], "", translation[1], translation[2], ""]

    panel, research = made.explain(stored(done.result), at(3))
    assert "Why? Sentence 3" in panel and "w11 w12 w13" in panel and research == ""
    seen = made.show_research(stored(done.result), at(3), SESSION)
    assert "Cross-attention" in seen and "w9" in seen

    *_, strategy, source, target = made.restore(EMPTY, stored(done.result))[: -len(NAMES)]
    again = shown(made.restore(EMPTY, stored(done.result)))
    assert (strategy, source, target) == ("sliding", "en", "de") and again.rows == done.rows
    assert stored(again.result) == stored(done.result) and downloaded(again.download) == (name, content)


def test_reload_in_the_middle(made):
    """What was translated so far is there again, can be looked at, and the document can be translated again."""
    result = last(translated(made)).result
    result["translations"][0][2], result["repairs"], result["file"] = None, None, None
    again = shown(made.restore(EMPTY, stored(result)))
    assert "Stopped at 2 of 3" in again.status and again.rows.count("waiting") == 1
    assert (again.download["visible"], again.stop["visible"]) == (False, False)
    assert "Sentence 2" in made.explain(stored(result), at(2))[0]


def test_stop(made, monkeypatch):
    """What has been translated stays, with a download that has the source of the rest; nothing comes after it."""
    running = (live_progress(done, 3, [["a"] * done + [None] * (3 - done)]) for done in range(4))
    monkeypatch.setattr(made.bench, "translate", lambda *_: running)
    updates = translated(made)
    next(updates)
    made.ask_to_stop(SimpleNamespace(session_hash="another"))
    assert shown(next(updates)).stop["visible"]
    made.ask_to_stop(SESSION)
    (update,) = updates
    end = shown(update)
    assert "Stopped at 2 of 3. The download has the source text of the others." in end.status
    assert end.rows.count("waiting") == 1 and not end.stop["visible"]
    assert downloaded(end.download) == ("text.de.txt", b"a\n\na\nw11 w12 w13\n")
    assert not made.runs


def test_comparison_with_sentence_by_sentence(made):
    """By the switch before or afterwards; off again, and where there is nothing to compare."""
    done = last(translated(made, strategy="sequential", compare=True))
    alone = made.bench.model.translate_documents([["w6 w7 w8", "w9 w10", "w11 w12 w13"]], word_tokenizer(), "sentence")
    assert done.result["alone"] == alone
    count = sum(one != other for one, other in zip(done.result["translations"][0], alone[0]))
    assert count and f"{count} of 3 differ" in done.comparison and done.rows.count(" differs") == count
    assert done.rows.count('class="alone"') == count and "Only these" in done.comparison
    without = last(made.compare_now(False, stored(done.result), SESSION))
    assert without.result["alone"] is None and " differs" not in without.rows and without.comparison == ""
    again = last(made.compare_now(True, stored(without.result), SESSION))
    assert again.rows == done.rows and again.comparison == done.comparison
    assert shown(made.restore(EMPTY, stored(done.result))).comparison == done.comparison
    assert list(made.compare_now(True, None, SESSION)) == []
    assert last(translated(made, strategy="sentence", compare=True)).comparison == ""


def test_languages_of_a_family(made, monkeypatch):
    """Chosen by name where the model has codes; kept with the translation, and read and written by the model."""
    family = {"source_format": "[source_lang] X </s>", "target_format": "<start> [target_lang] X </s>"}
    codes = {"en": 26, "de": 27, "arb_Arab": 28}
    model = build("concat", past_context=1, **family, language_ids=codes)
    model.generation_config.max_new_tokens = 8
    monkeypatch.setattr(made.bench, "model", model)
    import app

    assert made.bench.language_choices == (["arb_Arab", "de", "en"],) * 2
    choice = app.language_choice(made.bench, 1)
    assert choice.visible and not made.langs[1].visible
    assert ("Standard Arabic (Arabic), arb_Arab", "arb_Arab") in choice.choices and choice.value == "de"
    assert "3 languages → 3 languages" in app.page.header(made.bench)
    done = last(translated(made, langs=("arb_Arab", "en")))
    expected = model.translate_documents(
        [["w6 w7 w8", "w9 w10", "w11 w12 w13"]], word_tokenizer(), "sliding", source_lang="arb_Arab", target_lang="en"
    )
    assert done.result["translations"] == expected and 'lang="ar"' in done.rows
    assert "Sentence 2" in made.explain(stored(done.result), at(2))[0]
    assert (model.config.source_lang, model.config.target_lang) == ("en", "de")
    *_, strategy, source, target = made.restore(EMPTY, stored(done.result))[: -len(NAMES)]
    assert (strategy, source, target) == ("sliding", "arb_Arab", "en")


def test_files(made, tmp_path):
    path = tmp_path / "film.srt"
    path.write_text("1\n00:00:01,000 --> 00:00:02,000\nw6 w7\n")
    draft, text, file, button, remove = made.open_file(str(path), {"text": "typed", "file": None}, "en")
    assert (text["visible"], file["visible"], remove["visible"]) == (False, True, True)
    assert "film.srt" in file["value"] and draft["text"] == "typed"
    name, content = downloaded(last(translated(made, "typed", stored(draft), "sentence")).download)
    assert name == "film.de.srt" and b"00:00:01,000 --> 00:00:02,000" in content and not path.exists()
    text, file, *_ = made.restore(stored(draft), None)
    assert not text["visible"] and "film.srt" in file["value"]
    draft, text, file, *_ = made.remove_file(draft)
    assert draft == {"text": "typed", "file": None} and text["visible"] and not file["visible"]


def test_markup(made, tmp_path, monkeypatch):
    """On the words by the model's attention; in the download after a reload, and of what was stopped, too."""
    pytest.importorskip("markdown_it")
    path = tmp_path / "a.md"
    path.write_text("# w6 **w7** w8\n\n[w9](x) w10\n")
    draft, *_ = made.open_file(str(path), EMPTY, "en")
    done = last(translated(made, "", stored(draft)))
    name, content = downloaded(done.download)
    assert name == "a.de.md" and content.startswith(b"# ") and (content.count(b"**"), content.count(b"](x)")) == (2, 1)
    assert downloaded(shown(made.restore(stored(draft), stored(done.result))).download) == (name, content)
    running = iter([live_progress(1, 2, [["w7 w8", None]])])
    monkeypatch.setattr(made.bench, "translate", lambda *_: running)
    made.turns.longest = 0.0
    assert b"[w9](x) w10" in downloaded(shown(next(translated(made, "", stored(draft)))).download)[1]


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
    result = last(translated(made)).result
    other = made.turns.ask("another")
    assert made.turns.wait(other, 0)
    updates = translated(made)
    update = shown(next(updates))
    assert "1 before you: you are next" in update.status and update.stop["visible"]
    assert "Sentence 2" in made.explain(stored(result), at(2))[0], "the panel waits for nobody"
    second = translated(made)
    assert "2 before you" in shown(next(second)).status
    with pytest.raises(gr.Error, match="2 of your translations are under way"):
        next(translated(made))
    second.close()
    made.ask_to_stop(SESSION)
    made.turns.end(other)
    *_, update = updates
    assert shown(update).result["translations"][0][0] is not None
    assert made.turns.current is None and not made.turns.waiting


def test_time_limit(made, monkeypatch):
    """What has been translated is shown, and why it ends."""
    import gradio as gr

    running = (live_progress(done, 3, [["a"] * done + [None] * (3 - done)]) for done in range(4))
    monkeypatch.setattr(made.bench, "translate", lambda *_: running)
    made.turns.longest = 0.0
    updates = translated(made)
    assert not shown(next(updates)).stop["visible"]
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
        made.explain(None, at(1))


@pytest.mark.parametrize(
    "change",
    [
        {"strategy": "stream"},
        {"langs": ["en", "fr"]},
        {"translations": [["a"]]},
        {"upload": {"name": "a.txt", "data": "?"}},
        {"translations": [["a", 1, "b"]]},
        {"alone": [["a"]]},
    ],
)
def test_storage_of_another_page(made, change):
    """A result that does not fit is forgotten, not shown."""
    result = last(translated(made)).result
    again = shown(made.restore({"text": "", "file": {"name": 3}}, stored(result | change)))
    assert again.result is None and "value" not in again.rows
