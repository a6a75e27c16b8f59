"""The page in headless Chromium, as wide as a desk and a phone: 200 sentences, keys, files, reloads, stopping."""

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from support.tiny_models import build, random_text, word_tokenizer

pytestmark = pytest.mark.slow
WIDTHS = {"desk": (1280, 900), "phone": (390, 844)}
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync"]
DONE = ".status:has-text('Choose a sentence')"


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
        for _ in range(120):
            try:
                urllib.request.urlopen(url, timeout=5).close()
                break
            except OSError:
                assert server.poll() is None, "the page did not start"
                time.sleep(1)
        yield url
    finally:
        server.terminate()
        server.wait(30)


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None:
        pytest.skip("no chromium here")
    api = pytest.importorskip("playwright.sync_api")
    with api.sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, headless=True, args=ARGUMENTS)
        yield found
        found.close()


@pytest.fixture(params=WIDTHS)
def tab(request, browser, address):
    """An open page; nothing is asked for elsewhere, and no script fails."""
    width, height = WIDTHS[request.param]
    context = browser.new_context(viewport={"width": width, "height": height}, accept_downloads=True)
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


def test_two_hundred_sentences(tab):
    text = "\n".join(random_text([3] * 200, seed=1))
    tab.fill("#text textarea", text)
    tab.click("#start")
    tab.wait_for_selector(".status progress")
    tab.wait_for_selector("#stop")
    tab.wait_for_selector(DONE, timeout=120_000)
    assert tab.locator(".pair").count() == 200 and not tab.locator(".waiting").count()
    assert not tab.is_visible("#stop")
    tab.locator(".pair").nth(150).click()
    tab.wait_for_selector(".explanation:has-text('Sentence 151')")
    assert tab.locator(".explanation .bar").count() > 2
    tab.locator(".explanation summary").last.click()  # the whole panel can be scrolled to
    with tab.expect_download() as found:
        tab.click("#download")
    assert found.value.suggested_filename == "text.de.txt"
    assert len(Path(found.value.path()).read_text().split("\n")) == 200

    tab.reload()
    tab.wait_for_selector(DONE)
    assert tab.input_value("#text textarea") == text and tab.locator(".pair").count() == 200
    tab.locator(".pair").nth(2).click()
    tab.wait_for_selector(".explanation:has-text('Sentence 3')")


def test_keys(tab):
    tab.focus("#text textarea")
    tab.keyboard.type("w6 w7")
    tab.keyboard.press("Enter")
    tab.keyboard.type("w8 w9")
    tab.keyboard.press("Shift+Enter")
    tab.wait_for_selector(DONE)
    tab.focus(".pair[tabindex='0']")
    tab.keyboard.press("ArrowDown")
    assert tab.evaluate("document.activeElement.dataset.sentence") == "2"
    tab.keyboard.press("Enter")
    tab.wait_for_selector(".explanation:has-text('Sentence 2')")
    tab.keyboard.press("Escape")
    tab.wait_for_selector(".explanation", state="detached")
    assert tab.evaluate("document.activeElement.dataset.sentence") == "2"
    tab.keyboard.press("Home")
    tab.keyboard.press("Space")
    tab.wait_for_selector(".explanation:has-text('Sentence 1')")
    tab.click(".explanation .close")
    tab.wait_for_selector(".explanation", state="detached")


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
    tab.wait_for_selector(".target:not(:has(.waiting))")
    tab.reload()
    tab.wait_for_selector(".pair")
    assert tab.input_value("#text textarea") == text
    assert 0 < tab.locator(".target:not(:has(.waiting))").count() < 600
    tab.click("#start")
    tab.wait_for_selector("#stop")
    tab.click("#stop")
    tab.wait_for_selector("#stop", state="hidden")
    translate(tab, "w6 w7")
    assert tab.locator(".pair").count() == 1, "nobody waits for what was stopped"


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
        tab.click("#download")
    assert "00:00:01,000 --> 00:00:02,000" in Path(found.value.path()).read_text()
    tab.click("#remove")
    tab.wait_for_selector("#text textarea")
    with tab.expect_file_chooser() as chooser:
        tab.click("#open")
    (tmp_path / "empty.txt").write_text(" ")
    chooser.value.set_files(tmp_path / "empty.txt")
    tab.wait_for_selector("text=empty.txt has no text")
