"""The page in headless Chromium, as wide as a desk, a tablet and a phone: layout, keys, files, reloads, stopping."""

import os
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from support.tiny_models import build, random_text, word_tokenizer

WIDTHS = {"desk": (1440, 900), "tablet": (768, 1024), "phone": (375, 812)}
DONE = ".status:has-text('translated')"


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """A running page with a model of random weights, which translates sentence by sentence."""
    pytest.importorskip("gradio")
    folder = tmp_path_factory.mktemp("model")
    model = build("memory")
    model.generation_config.max_new_tokens = 12
    model.save_pretrained(folder)
    word_tokenizer().save_pretrained(folder)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    root = Path(__file__).resolve().parents[2]
    own = {"GRADIO_SERVER_PORT": str(port), "GRADIO_ANALYTICS_ENABLED": "False", "PYTHONPATH": str(root)}
    own["PYTHONPATH"] += os.pathsep + os.environ.get("PYTHONPATH", "")
    command = [sys.executable, root / "examples" / "space" / "app.py", "--model", folder]
    server = subprocess.Popen(command, env=os.environ | own)
    url = f"http://127.0.0.1:{port}/"
    try:
        for _ in range(300):
            try:
                urllib.request.urlopen(url, timeout=5).close()
                break
            except OSError:
                assert server.poll() is None, "the page did not start"
                time.sleep(1)
        else:
            pytest.fail("the page did not start in five minutes")
        yield url
    finally:
        server.terminate()
        server.wait(30)


@pytest.fixture(params=[pytest.param(name, marks=pytest.mark.slow) for name in WIDTHS])
def tab(request, browser, address):
    """An open page; nothing is asked for elsewhere, and no script fails."""
    yield from open_tab(browser, address, *WIDTHS[request.param])


@pytest.fixture
def desk_tab(browser, address):
    """The same on a desk, for the fast tests."""
    yield from open_tab(browser, address, *WIDTHS["desk"])


def open_tab(browser, address, width: int, height: int):
    context = browser.new_context(viewport={"width": width, "height": height}, accept_downloads=True)
    context.grant_permissions(["clipboard-read", "clipboard-write"], origin=address)
    context.set_default_timeout(30_000)
    tab = context.new_page()
    faults = []
    tab.on("pageerror", lambda error: faults.append(str(error)))
    tab.on("request", lambda made: faults.append(made.url) if is_elsewhere(made.url) else None)
    tab.goto(address)
    tab.wait_for_selector("#text textarea")
    yield tab
    assert not faults
    assert tab.evaluate("document.documentElement.scrollWidth") <= width, "nothing sticks out"
    context.close()


def is_elsewhere(url: str) -> bool:
    return url.startswith("http") and not url.startswith("http://127.0.0.1")


def translate(tab, text):
    tab.fill("#text textarea", text)
    tab.click("#start")
    tab.wait_for_selector(DONE, timeout=120_000)


def stored_text(tab, text):
    """Wait until the browser has kept what was typed."""
    tab.wait_for_function("length => (localStorage['docmt-draft'] || '').length > length", arg=len(text))


def ask_why(tab, sentence):
    tab.locator(f"#sentence-0-{sentence} .why").click()
    tab.wait_for_selector(f".explanation h2:has-text('Sentence {sentence}')")
    tab.wait_for_function("!document.querySelector('#side').classList.contains('busy')")
    tab.wait_for_timeout(300)


BOXES = """sentence => ['#side', `#sentence-0-${sentence}`, '#state', '#download a'].map(name => {
  const {left, top, right, bottom} = document.querySelector(name).getBoundingClientRect();
  return {left, top, right, bottom};
})"""


def test_three_hundred_sentences(tab):
    """The panel, its sentence and the download are in view for the first row, and far down."""
    text = "\n".join(random_text([3] * 300, seed=1))
    tab.fill("#text textarea", text)
    tab.click("#start")
    tab.wait_for_selector(".status progress")
    tab.wait_for_function("document.querySelector('#state').getBoundingClientRect().bottom <= innerHeight + 1")
    tab.wait_for_selector("#stop")
    tab.wait_for_selector(DONE, timeout=120_000)
    assert tab.locator(".pair").count() == 300 and not tab.locator(".waiting").count()
    assert not tab.is_visible("#stop")
    width, height = tab.viewport_size["width"], tab.viewport_size["height"]
    for sentence in (1, 31, 251):
        ask_why(tab, sentence)
        side, row, state, link = tab.evaluate(BOXES, sentence)
        for box in (side, row, link):
            assert min(box["left"], box["top"]) >= -1 and box["right"] <= width + 1 and box["bottom"] <= height + 1
        assert side["bottom"] - side["top"] >= 100
        assert row["top"] >= state["bottom"] - 1, "nothing sticks over the sentence"
        assert side["left"] >= row["right"] or side["top"] >= row["bottom"], "nor does the panel"
    tab.click(".researchers")
    tab.wait_for_selector(".research .bar")
    tab.locator(".research summary").last.click()  # the whole panel can be scrolled to
    with tab.expect_download() as found:
        tab.click("#download a")
    assert found.value.suggested_filename == "text.de.txt"
    lines = Path(found.value.path()).read_text().split("\n")
    assert len(lines) == 300
    tab.click("#download .copy")
    tab.wait_for_selector("#live:has-text('Copied')", state="attached")
    assert tab.evaluate("navigator.clipboard.readText()").split("\n") == lines

    tab.reload()
    tab.wait_for_selector(DONE)
    assert tab.input_value("#text textarea") == text and tab.locator(".pair").count() == 300
    ask_why(tab, 3)


def test_rows_are_text(tab):
    """Source and translation can be selected, which opens nothing."""
    translate(tab, "w6 w7\nw8 w9")
    text = tab.locator("#sentence-0-2 .source")
    text.dblclick(position={"x": 8, "y": 10})
    assert tab.evaluate("getSelection().toString().trim()") in ("w8", "w9")
    assert not tab.locator(".explanation").count()


@pytest.mark.slow
def test_page_in_a_browser(desk_tab):
    """In the fast tests, too: a document, why a sentence reads so, the download."""
    translate(desk_tab, "w6 w7\nw8 w9")
    ask_why(desk_tab, 2)
    side, row, *_ = desk_tab.evaluate(BOXES, 2)
    assert side["left"] >= row["right"] and side["bottom"] <= desk_tab.viewport_size["height"] + 1
    with desk_tab.expect_download() as found:
        desk_tab.click("#download a")
    assert len(Path(found.value.path()).read_text().split("\n")) == 2


def test_keys(tab):
    """The whole way by keys; the focus never falls to the body, and what happens is told."""
    tab.focus("#text textarea")
    assert tab.get_attribute("#text textarea", "dir") == "auto"
    tab.keyboard.type("w6 w7")
    tab.keyboard.press("Enter")
    tab.keyboard.type("w8 w9")
    tab.keyboard.press("Shift+Enter")
    tab.wait_for_selector(DONE)
    tab.wait_for_selector("#live:has-text('2 sentences translated')", state="attached")
    tab.focus(".why[tabindex='0']")
    tab.keyboard.press("ArrowDown")
    here = "document.activeElement.closest('.pair')?.dataset.sentence"
    assert tab.evaluate(here) == "2"
    tab.keyboard.press("Enter")
    tab.wait_for_selector(".explanation:has-text('Sentence 2')")
    tab.wait_for_selector("#live:has-text('Sentence 2.')", state="attached")
    assert tab.evaluate(here) == "2"
    tab.keyboard.press("Escape")
    tab.wait_for_selector(".explanation", state="detached")
    assert tab.evaluate(here) == "2"
    tab.keyboard.press("Home")
    tab.keyboard.press("Space")
    tab.wait_for_selector(".explanation:has-text('Sentence 1')")
    tab.click(".explanation .close")
    tab.wait_for_selector(".explanation", state="detached")
    assert tab.evaluate(here) == "1"


def test_comparison(tab):
    """Sentences that differ alone are counted; these alone are shown, one after the other."""
    tab.click("#compare input")
    translate(tab, "\n".join(random_text([3] * 20, seed=3)))
    tab.wait_for_selector(".comparison:has-text('of 20 differ')")
    count = int(tab.inner_text(".comparison span").split()[0])
    assert count == tab.locator(".pair.differs").count() > 1
    tab.click("[data-show]")
    assert tab.locator(".pair:visible").count() == count
    tab.click("[data-step='1']")
    tab.click("[data-step='1']")
    second = tab.locator(".pair.differs").nth(1)
    assert second.get_attribute("id") == tab.get_attribute(".pair.reached", "id")
    tab.click("[data-step='-1']")
    assert tab.locator(".pair.differs").first.get_attribute("id") == tab.get_attribute(".pair.reached", "id")
    tab.click("[data-show]")
    assert tab.locator(".pair:visible").count() == 20
    tab.click("#compare input")
    tab.wait_for_selector(".comparison", state="detached")
    tab.fill("#text textarea", "\n".join(random_text([3] * 300, seed=4)))
    tab.click("#start")
    tab.wait_for_selector("#stop:has-text('Stop')")
    tab.click("#stop")
    tab.wait_for_selector("#stop", state="hidden")


def test_example_and_changed_text(tab):
    """A translation of another text is marked until the text is as it was."""
    tab.click("#example")
    tab.wait_for_function("document.querySelector('#text textarea').value.includes('camera')")
    tab.click("#start")
    tab.wait_for_selector(DONE)
    text = tab.input_value("#text textarea")
    tab.wait_for_timeout(500)
    height = "document.querySelector('#state').offsetHeight"
    before = tab.evaluate(height)
    tab.fill("#text textarea", f"{text}w6")
    tab.wait_for_selector("#state.stale")
    tab.fill("#text textarea", text)
    tab.wait_for_selector("#state:not(.stale)")
    assert tab.evaluate(height) == before


def test_nothing_typed_is_lost(tab):
    text = "w6 w7 w8. " * 50
    tab.fill("#text textarea", text)
    stored_text(tab, text)
    tab.reload()
    tab.wait_for_function("text => document.querySelector('#text textarea')?.value === text", arg=text)


def test_reload_and_stop_in_the_middle(tab):
    text = "\n".join(random_text([3] * 600, seed=2))
    tab.fill("#text textarea", text)
    stored_text(tab, text)
    tab.click("#start")
    tab.wait_for_selector(".pair .text")
    tab.reload()
    tab.wait_for_selector(".pair")
    assert tab.input_value("#text textarea") == text
    assert 0 < tab.locator(".pair .text").count() < 600
    tab.click("#start")
    tab.wait_for_selector("#stop")
    tab.wait_for_selector(".status progress")
    tab.focus("#stop")
    tab.keyboard.press("Enter")
    tab.wait_for_selector(".status:has-text('Stopped at')")
    tab.wait_for_selector("#stop", state="hidden")
    assert tab.evaluate("document.activeElement.id") == "start"
    count = tab.locator(".pair .text").count()
    assert f"Stopped at {count} of 600" in tab.inner_text(".status") and 0 < count < 600
    with tab.expect_download() as found:
        tab.click("#download a")
    lines = Path(found.value.path()).read_text().split("\n")
    waiting = tab.evaluate("[...document.querySelectorAll('.pair')].map(row => !!row.querySelector('.waiting'))")
    assert len(lines) == len(waiting) == 600
    kept = [line for line, is_waiting in zip(lines, waiting) if is_waiting]
    assert kept == [line for line, is_waiting in zip(text.split("\n"), waiting) if is_waiting]
    ask_why(tab, 2)
    translate(tab, "w6 w7")
    tab.wait_for_function("document.querySelectorAll('.pair').length === 1")


def test_two_users(tab, browser, address):
    """The second one sees his place, and looks at a sentence of his own meanwhile."""
    other = browser.new_context(viewport=tab.viewport_size).new_page()
    other.goto(address)
    other.wait_for_selector("#text textarea")
    translate(other, "w6 w7\nw8 w9")
    tab.fill("#text textarea", "\n".join(random_text([3] * 600, seed=5)))
    tab.click("#start")
    tab.wait_for_selector(".status progress")
    other.fill("#text textarea", "w8")
    other.click("#start")
    other.wait_for_selector(".status:has-text('1 before you')")
    ask_why(other, 2)
    assert tab.locator(".status progress").count(), "the first one is still at it"
    tab.click("#stop")
    other.wait_for_selector(".status:has-text('1 sentence translated')")
    other.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_accessibility(tab, scheme):
    """No finding of axe-core with a comparison and an open panel."""
    axe = pytest.importorskip("axe_core_python.sync_playwright").Axe()
    tab.emulate_media(color_scheme=scheme)
    tab.click("#compare input")
    translate(tab, "\n".join(random_text([3] * 5, seed=3)))
    tab.wait_for_selector(".comparison:has-text('of 5 differ')")
    ask_why(tab, 4)
    tab.click(".researchers")
    tab.wait_for_selector(".research .bar")
    found = axe.run(tab)["violations"]
    assert [(one["id"], node["html"]) for one in found for node in one["nodes"]] == []


def test_files(tab, tmp_path):
    path = tmp_path / "film.srt"
    path.write_text("1\n00:00:01,000 --> 00:00:02,000\nw6 w7 w8\n")
    with tab.expect_file_chooser() as chooser:
        tab.click("#open")
    chooser.value.set_files(path)
    tab.wait_for_selector(".file:has-text('film.srt')")
    tab.reload()
    tab.wait_for_selector(".file:has-text('film.srt')")
    tab.click("#start")
    tab.wait_for_selector(DONE)
    with tab.expect_download() as found:
        tab.click("#download a")
    assert "00:00:01,000 --> 00:00:02,000" in Path(found.value.path()).read_text()
    tab.click("#remove")
    tab.wait_for_selector("#text textarea")
    with tab.expect_file_chooser() as chooser:
        tab.click("#open")
    (tmp_path / "empty.txt").write_text(" ")
    chooser.value.set_files(tmp_path / "empty.txt")
    tab.wait_for_selector("text=empty.txt has no text")
