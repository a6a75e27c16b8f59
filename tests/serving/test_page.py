"""The page in headless Chromium on a desk, a tablet and a phone: layout, keys, files, review, reloads, tabs."""

from pathlib import Path

import pytest
from support.http_server import running
from support.tiny_models import build, random_text, word_tokenizer

from hf_docmt.systems import DocMTSystem

WIDTHS = {"desk": (1440, 900), "tablet": (820, 1180), "phone": (390, 844)}
DONE = "#message:has-text('translated')"


def tiny_system(strategy=None, **fields):
    model = build("concat", seed=7, **fields)
    model.generation_config.max_new_tokens = 8
    return DocMTSystem(model, word_tokenizer(), strategy=strategy, num_beams=1)


@pytest.fixture(scope="module")
def server():
    with running(tiny_system("sequential", past_context=1)) as client:
        yield client


@pytest.fixture(params=[pytest.param(name, marks=[pytest.mark.slow] * (name != "phone")) for name in WIDTHS])
def tab(request, browser, server):
    """An open page; nothing is asked for elsewhere, no script fails, nothing sticks out."""
    yield from open_tab(browser, server, *WIDTHS[request.param])


def open_tab(browser, server, width, height):
    context = browser.new_context(viewport={"width": width, "height": height}, accept_downloads=True)
    context.grant_permissions(["clipboard-read", "clipboard-write"], origin=server.url)
    context.set_default_timeout(90_000)
    tab, faults = context.new_page(), []
    tab.on("pageerror", lambda error: faults.append(str(error)))
    tab.on("console", lambda message: faults.append(message.text) if "Content Security" in message.text else None)
    tab.on("request", lambda made: None if made.url.startswith((server.url, "data:")) else faults.append(made.url))
    tab.goto(server.url)
    tab.wait_for_selector("#target option", state="attached")
    yield tab
    assert not faults
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    context.close()


def translate(tab, text):
    tab.fill("#text", text)
    tab.click("#start")
    tab.wait_for_selector(DONE)


def choose_file(tab, path):
    with tab.expect_file_chooser() as chooser:
        tab.click("#open")
    chooser.value.set_files(path)


def download(tab, button="#download"):
    """Name and text of what is downloaded."""
    with tab.expect_download() as found:
        tab.click(button)
    return found.value.suggested_filename, Path(found.value.path()).read_text()


def test_long_document(tab):
    """Panel, sentence and download are in view for the first row and far down; a reload shows the same."""
    text = "\n".join(random_text([3] * 60, seed=1))
    assert not tab.is_visible("#progress") and not tab.is_visible("#take")
    tab.fill("#text", text)
    tab.click("#start")
    tab.wait_for_selector("#progress")
    tab.wait_for_selector("#sentence-17 .waiting")
    tab.wait_for_selector(DONE)
    assert tab.locator(".pair").count() == 60 and not tab.locator(".waiting").count() and not tab.is_visible("#stop")
    width, height = tab.viewport_size["width"], tab.viewport_size["height"]
    for sentence in (1, 31, 55):
        tab.click(f"#sentence-{sentence} button")
        tab.wait_for_selector(f"#side h2:has-text('Sentence {sentence}')")
        side, row, state = (tab.locator(name).bounding_box() for name in ("#side", f"#sentence-{sentence}", "#state"))
        for box in (side, row):
            assert box["x"] >= -1 and box["x"] + box["width"] <= width + 1 and box["y"] + box["height"] <= height + 1
        assert row["y"] >= state["y"] + state["height"] - 1, "nothing sticks over the sentence"
        assert side["x"] >= row["x"] + row["width"] or side["y"] >= row["y"] + row["height"], "nor does the panel"
    name, written = download(tab)
    assert name == "text_de.txt" and written.count("\n") == 59
    tab.click("#copy")
    tab.wait_for_selector("#live:has-text('Copied')", state="attached")
    assert tab.evaluate("navigator.clipboard.readText()") == written
    tab.reload()
    tab.wait_for_selector(DONE)
    assert tab.input_value("#text") == text and tab.locator(".pair").count() == 60


def test_review_by_keys(tab, server):
    """From the text to an edited sentence and the rest translated again, by keys alone; all of it is told."""
    tab.focus("#text")
    for line in random_text([3] * 4, seed=1):
        tab.keyboard.type(line)
        tab.keyboard.press("Enter")
    tab.keyboard.press("Shift+Enter")
    tab.wait_for_selector("#live:has-text('4 sentences translated')", state="attached")
    tab.focus("#list button[tabindex='0']")
    tab.keyboard.press("ArrowDown")
    here = "document.activeElement.closest('.pair')?.id"
    assert tab.evaluate(here) == "sentence-2"
    before = tab.inner_text("#sentence-3 .text")
    tab.keyboard.press("Enter")
    tab.wait_for_selector("#live:has-text('Sentence 2')", state="attached")
    tab.keyboard.press("Control+A")
    tab.keyboard.type("w30 <b>w31")
    tab.wait_for_selector("#remarks:has-text('Not accepted yet')")
    tab.keyboard.press("Control+Enter")
    tab.wait_for_selector("#side h2:has-text('Sentence 3')")
    assert tab.inner_text("#sentence-2 .text") == "w30 <b>w31" and tab.is_visible(
        "#sentence-2 .mark:has-text('edited')"
    )
    tab.focus("#back")
    tab.keyboard.press("Enter")
    tab.focus("#again")
    tab.keyboard.press("Enter")
    tab.wait_for_selector("#sentence-3.changed")
    assert tab.inner_text("#sentence-3 .text") != before
    assert download(tab)[1].split("\n")[1] == "w30 <b>w31"
    assert "<target" in download(tab, "#xliff")[1] and "<tuv" in download(tab, "#tmx")[1]
    tab.focus("#edit")
    tab.keyboard.press("Escape")
    assert not tab.is_visible("#side") and tab.evaluate(here) == "sentence-2"
    tab.keyboard.press("End")
    assert tab.evaluate(here) == "sentence-4"
    tab.click("#sentence-2 .source")
    tab.click("#undo")
    tab.wait_for_selector("#sentence-2 .mark.good", state="detached")


def test_uncertain_sentences_by_keys(tab):
    """They are marked, and walked through by keys until none is left."""
    translate(tab, "\n".join(random_text([2, 5, 3, 4] * 6, seed=4)))
    count = tab.locator(".pair.unsure").count()
    assert count == tab.locator(".mark:has-text('uncertain')").count() > 1
    tab.focus("#list button[tabindex='0']")
    tab.keyboard.press("u")
    assert tab.evaluate("document.activeElement.closest('.unsure') !== null")
    tab.focus("#unsure")
    tab.keyboard.press("Enter")
    for rest in range(count, 0, -1):
        assert tab.locator(".pair.unsure").count() == rest and tab.locator(".pair.unsure[aria-current]").count() == 1
        tab.keyboard.press("Control+Enter")
        tab.wait_for_function("rest => document.querySelectorAll('.pair.unsure').length < rest", arg=rest)
    assert not tab.is_visible("#unsure")


def test_text_of_rows_can_be_selected(tab):
    translate(tab, "w6 w7\nw8 w9")
    tab.locator("#sentence-2 .source").dblclick(position={"x": 8, "y": 10})
    assert tab.evaluate("getSelection().toString().trim()") in ("w8", "w9")


def test_comparison_and_why(tab):
    """Sentences that differ alone are counted, and shown one after the other; a sentence is explained."""
    tab.check("#compare")
    translate(tab, "\n".join(random_text([3] * 20, seed=3)))
    tab.wait_for_selector("#differing:has-text('of 20 differ')")
    count = int(tab.inner_text("#differing").split()[0])
    assert count == tab.locator(".pair.differs").count() > 1
    tab.click("#only")
    assert tab.locator(".pair:visible").count() == count
    tab.click("#next-differing")
    tab.click("#next-differing")
    reached = tab.locator(".pair.differs").nth(1)
    assert reached.get_attribute("id") == tab.get_attribute(".pair.reached", "id")
    reached.locator("button").click()
    tab.click("#why")
    tab.wait_for_selector(".verdict")
    tab.click("#close")
    tab.click("#previous-differing")
    assert tab.locator(".pair.differs").first.get_attribute("id") == tab.get_attribute(".pair.reached", "id")
    tab.uncheck("#compare")
    assert not tab.is_visible("#comparison") and not tab.locator(".alone:visible").count()


def test_stop_and_continue(tab):
    """What is done stays, after a reload too; the others keep their source in the file; it goes on."""
    text = "\n".join(random_text([3] * 200, seed=2))
    tab.fill("#text", text)
    tab.click("#start")
    tab.wait_for_selector(".pair .text")
    tab.focus("#stop")
    tab.keyboard.press("Enter")
    tab.wait_for_selector("#message:has-text('Stopped at')")
    assert tab.evaluate("document.activeElement.id") == "continue"
    count = tab.locator(".pair .text").count()
    assert 0 < count < 200 and f"Stopped at {count} of 200" in tab.inner_text("#message")
    assert download(tab)[1].split("\n")[count:] == text.split("\n")[count:]
    tab.reload()
    tab.wait_for_selector("#message:has-text('Stopped at')")
    tab.click("#continue")
    tab.wait_for_selector(f"#sentence-{count + 1} .text")
    tab.click("#stop")
    tab.fill("#text", text + "w6")
    tab.wait_for_selector("#stale")
    translate(tab, "w6 w7")
    assert tab.locator(".pair").count() == 1 and not tab.is_visible("#stale")


def test_two_tabs(tab, server):
    """Two tabs have two documents, also after a reload."""
    other = tab.context.new_page()
    other.goto(server.url)
    translate(other, "w8 w9")
    translate(tab, "w6\nw7")
    for each, count in ((other, 1), (tab, 2)):
        each.reload()
        each.wait_for_selector(DONE)
        assert each.locator(".pair").count() == count


def test_files(tab, tmp_path):
    (tmp_path / "film.srt").write_text("1\n00:00:01,000 --> 00:00:02,000\nw6 w7 w8\n")
    choose_file(tab, tmp_path / "film.srt")
    tab.click("#start")
    tab.wait_for_selector("#opened:has-text('film.srt: 1 sentence')")
    tab.wait_for_selector(DONE)
    name, written = download(tab)
    assert name == "film_de.srt" and "00:00:01,000 --> 00:00:02,000" in written
    tab.reload()
    tab.wait_for_selector("#opened:has-text('film.srt: 1 sentence')")
    tab.click("#start")
    tab.wait_for_selector("#message:has-text('Open film.srt again to translate it anew.')")
    tab.click("#example")
    assert "camera" in tab.input_value("#text")
    choose_file(tab, tmp_path / "film.srt")
    tab.click("#remove")
    tab.wait_for_selector("#text")
    (tmp_path / "empty.txt").write_text(" ")
    choose_file(tab, tmp_path / "empty.txt")
    tab.click("#start")
    tab.wait_for_selector("#message:has-text('Empty.txt has no words to translate.')")


def test_problems_of_a_file(tab, monkeypatch):
    """A file with problems is given, and they are listed."""
    from hf_docmt.serving import document_endpoints

    monkeypatch.setattr(
        document_endpoints, "written_texts", lambda parts, versions: [[(b"w9", ["a.md, line 1: check it"])]]
    )
    translate(tab, "w6")
    assert download(tab)[1] == "w9"
    assert "line 1: check it" in tab.inner_text("#problems")


def test_refusals(tab):
    tab.click("#start")
    tab.wait_for_selector("#message:has-text('There is no text; write or paste one, or open a file.')")
    tab.select_option("#source", "auto")
    tab.fill("#text", "Où est la gare la plus proche, s'il vous plaît ?")
    tab.click("#start")
    tab.wait_for_selector("text=the text is in fr, which is not supported; expected one of en")


def test_model_without_context_and_with_a_key(browser, monkeypatch):
    """Nothing about context is offered; a key is asked for, and kept for the tab."""
    with running(tiny_system(past_context=0)) as client:
        monkeypatch.setenv("HF_DOCMT_API_KEYS", "one")
        for tab in open_tab(browser, client, *WIDTHS["desk"]):
            assert tab.inner_text("#about").endswith("It translates each sentence alone.")
            assert tab.inner_text("#source") == "English\nDetect language"
            tab.fill("#text", "w6 w7")
            tab.click("#start")
            tab.wait_for_selector("#message:has-text('This server needs an API key')")
            tab.fill("#key", "two")
            tab.click("#start")
            tab.wait_for_selector("#message:has-text('Invalid API key')")
            tab.fill("#key", "one")
            translate(tab, "w6 w7")
            tab.click("#sentence-1 button")
            tab.click("#accept")
            tab.wait_for_selector(".mark:has-text('accepted')")
            assert not any(map(tab.is_visible, ("#why", "#again", "#compare-field", "#strategy-field", "#comparison")))
            assert download(tab)[0] == "text_de.txt"
            tab.reload()
            tab.wait_for_selector(DONE)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_accessibility(tab, scheme):
    """No finding of axe-core before, with an error, and with comparison, panel and explanation."""
    axe = pytest.importorskip("axe_core_python.sync_playwright").Axe()
    tab.emulate_media(color_scheme=scheme)

    def findings():
        return [(one["id"], node["html"]) for one in axe.run(tab)["violations"] for node in one["nodes"]]

    assert findings() == []
    tab.click("#start")
    tab.wait_for_selector("#status.error")
    assert findings() == []
    tab.check("#compare")
    translate(tab, "\n".join(random_text([3] * 5, seed=3)))
    tab.wait_for_selector("#differing:has-text('of 5 differ')")
    tab.click("#sentence-4 button")
    tab.click("#why")
    tab.wait_for_selector(".verdict")
    tab.fill("#edit", "w9")
    assert findings() == []
    tab.click("#accept")
    tab.wait_for_selector(".mark.good")
    assert findings() == []


def test_a_glossary(tab):
    """Its terms are in the translation, it stays after a reload, and a line that is none changes nothing shown."""
    tab.click("summary")
    tab.fill("#glossary", "w6 = w20")
    translate(tab, "w6 w7.\nw8.")
    assert "w20" in tab.inner_text(".target .text >> nth=0").split()
    tab.reload()
    tab.wait_for_selector(DONE)
    assert tab.is_visible("#glossary") and tab.input_value("#glossary") == "w6 = w20"
    tab.fill("#glossary", "w6")
    tab.click("#start")
    tab.wait_for_selector("#status.error")
    assert "glossary, line 1: 'w6'" in tab.inner_text("#message") and tab.locator(".pair").count() == 2
