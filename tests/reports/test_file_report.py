"""The report on a translated file: marks, what to review, hostile text, accessibility."""

import re

import pytest

from hf_docmt.reports.file_report import file_report, uncertain_sentences

HOSTILE = "<script>alert(1)</script> \x1b[31m {{ 7 * 7 }}"
ROW = {
    "doc_id": "a.docx#notes",
    "source": ["One.", HOSTILE, "Three.", "Four.", "Five."],
    "translation": ["Um.", HOSTILE, "", "Quatro.", "Cinco."],
    "repairs": [{"sentence": 0, "kind": "length", "detail": "now"}, {"sentence": 1, "kind": "x", "detail": HOSTILE}],
    "notes": [{"sentence": 4, "kind": "memory", "detail": ""}, {"sentence": 4, "kind": "carried", "detail": "a.py"}],
    "word_fits": {"0": [[0, 0, 1.0]], "1": []},
    "alone": ["Um.", HOSTILE, "", "Quatro.", "Cinquo."],
    "score": [-0.1, -0.1, None, -2.0, -0.1],
}
FAILED = {"doc_id": "a.docx", "source": ["No."], "translation": [""], "repairs": [], "error": "no memory"}
PAGE = file_report("a<b.docx", [ROW, FAILED], ("en", "pt"), ["the markup differs"])


def test_marks_and_links():
    """Sentences to review are linked with their marks; what was kept or carried is only marked."""
    assert re.findall(r'<li><a href="#(.*?)"><bdi>notes (.*?)</bdi></a>: (.*?)</li>', PAGE) == [
        ("s1", "sentence 1", "cut off"),
        ("s2", "sentence 2", "x, tags placed by position"),
        ("s3", "sentence 3", "empty"),
        ("s4", "sentence 4", "uncertain"),
    ]
    assert re.findall(r"<li>([^<]*)</li>", PAGE) == ["the markup differs", "a.docx was not translated: no memory"]
    assert re.findall(r'id="(.*?)"', PAGE) == [f"s{number}" for number in range(1, 7)]
    assert '"mark">carried: <bdi>a.py</bdi>' in PAGE and "<th>from memory</th><td>1</td>" in PAGE
    assert PAGE.count("changed by context: <bdi>alone it reads Cinquo.</bdi>") == 1
    assert "<script" not in PAGE and "a&lt;b" in PAGE and PAGE.count("\\u001b[31m {{ 7 * 7 }}") == 3
    assert uncertain_sentences([], []) == uncertain_sentences([None, -1.0, -2.0], ["a", "b", ""]) == []
    lengths, scores = [40] * 8 + [400, 10], [-0.5] * 8 + [-0.9, -0.7]  # a long sentence has the lowest score
    assert uncertain_sentences(scores, ["x" * length for length in lengths]) == [9]


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_accessibility_of_the_page(browser, scheme):
    axe = pytest.importorskip("axe_core_python.sync_playwright").Axe()
    tab = browser.new_page(color_scheme=scheme)
    tab.set_content(PAGE)
    assert [(one["id"], one["nodes"][0]["html"]) for one in axe.run(tab)["violations"]] == []
    tab.close()
