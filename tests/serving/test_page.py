"""The page of the server in a browser: a text, a language that is not the model's, a file."""

import pytest

FRENCH = "Où est la gare la plus proche, s'il vous plaît ?"


@pytest.fixture
def tab(browser, client):
    context = browser.new_context(viewport={"width": 375, "height": 812}, accept_downloads=True)
    context.set_default_timeout(30_000)
    tab, faults = context.new_page(), []
    tab.on("pageerror", lambda error: faults.append(str(error)))
    tab.goto(client.url)
    tab.wait_for_function("document.querySelector('[name=target]').options.length")
    yield tab
    assert not faults and tab.evaluate("document.documentElement.scrollWidth") <= 375
    context.close()


def test_page(tab, system):
    options = "[...document.querySelectorAll('option')].map(option => [option.text, option.value, option.selected])"
    assert tab.evaluate(options) == [
        ["English", "en", True],
        ["Detect language", "auto", False],
        ["German", "de", True],
    ]
    tab.fill("#q", "w7 w8\nw9 <x>")
    tab.click("text=Translate text")
    tab.wait_for_selector("text=Done.")
    lines = tab.input_value("#translation").split("\n")
    assert lines[0] == system.translate([["w7 w8"]])[0][0] and lines[1].count("<x>") == 1
    tab.select_option("[name=source]", "auto")
    tab.fill("#q", FRENCH)
    tab.click("text=Translate text")
    tab.wait_for_selector("text=the text is in fr, which is not supported; expected one of en")
    assert tab.input_value("#translation") == ""
    tab.select_option("[name=source]", "en")
    tab.set_input_files("[name=file]", {"name": "a.md", "mimeType": "text/plain", "buffer": b"# w7\n"})
    tab.click("text=Translate file")
    tab.wait_for_selector("[role=status] a")
    with tab.expect_download() as download:
        tab.click("[role=status] a")
    assert download.value.suggested_filename == "a_de.md"
    axe = pytest.importorskip("axe_core_python.sync_playwright").Axe()
    assert axe.run(tab)["violations"] == []
