"""Connectives of several systems side by side: the table by hand, the reports, the command, bad input."""

import json

import pytest
from support.errors import refused
from support.reader_checks import jsonl

from hf_docmt.analysis.translation_files import by_name, connective_files, count_rows
from hf_docmt.reports.comparison import compare_reports

REFERENCE = {"a": ["And so, and so on.", "He came, but late."], "b": ["Yet she sang, because he did."]}
OURS = {"b": ["But she sang, because he did."], "a": ["And on; rock-and-roll.", "He came, but late, so what?"]}
OTHERS = {"a": ["Sandy.", ""], "b": ["She sang."]}
LANGUAGES = {"source_lang": "zh", "target_lang": "en"}
COUNTS = {  # connective: reference, ours, others
    "and": (2, 1, 0),
    "but": (1, 2, 0),
    "or": (0, 0, 0),
    "because": (1, 1, 0),
    "so": (2, 1, 0),
    "yet": (1, 0, 0),
    "then": (0, 0, 0),
}


@pytest.fixture
def files(write):
    """Reference and two systems, the documents of one in another order."""
    rows = [{"doc_id": i, "translation": [{"zh": "x", "en": text} for text in doc]} for i, doc in REFERENCE.items()]
    paths = [write("talks.jsonl", jsonl(rows))]
    for name, side in (("ours", OURS), ("others", OTHERS)):
        lines = [json.dumps({"doc_id": doc_id, "translation": document}) for doc_id, document in side.items()]
        paths.append(write(f"{name}.jsonl", "\n".join(lines) + "\n"))
    return paths


def test_counts_by_hand(files):
    counts, reports = connective_files(files[0], files[1:], **LANGUAGES)
    assert {word: tuple(row) for word, *row in counts.itertuples()} == COUNTS
    assert count_rows(counts)[-1] == ["(differences)", "-", "4", "7"] and list(reports) == ["ours", "others"]
    (result,) = reports["ours"].results
    assert result.value == pytest.approx(100 * 5 / 7) and result.details["difference"] == 4
    assert result.details["table"]["yet"] == {"reference": 1, "hypothesis": 0}
    assert result.details["statistics"]["ids"] == ["a", "b"]
    assert reports["others"].data == {"reference": "talks.jsonl", "documents": 2}


def test_words_of_another_language(files):
    counts, _ = connective_files(files[0], files[1:2], source_lang="en", target_lang="zh", words=["X"])
    assert counts.to_dict() == {"reference": {"x": 3}, "ours": {"x": 0}}


def test_reports_are_compared(files):
    _, reports = connective_files(files[0], files[1:], **LANGUAGES)
    (row,) = [row for row in compare_reports(list(reports.values())).rows if row.metric == "connectives"]
    assert {name: figure.value for name, figure in row.figures.items()} == {"ours": pytest.approx(500 / 7), "others": 0}


def test_command(run, files, tmp_path):
    command = ("analyze", "connectives", *files, "--source-lang", "zh", "--target-lang", "en")
    code, out, err = run(*command, "-o", tmp_path / "reports")
    assert (code, err) == (0, "")
    header, _, *rows = [line.split() for line in out.splitlines()]
    assert header == ["connective", "reference", "ours", "others"]
    assert rows == [
        *([word, *map(str, numbers)] for word, numbers in COUNTS.items()),
        ["(total)", "7", "5", "0"],
        ["(differences)", "-", "4", "7"],
    ]
    assert sorted(path.name for path in (tmp_path / "reports").iterdir()) == ["others.json", "ours.json"]
    code, out, _ = run(*command, "--words", "so, and so on", "--json")
    tables = [report["results"][0]["details"]["table"] for report in json.loads(out)]
    assert tables[0] == {"so": {"reference": 1, "hypothesis": 1}, "and so on": {"reference": 1, "hypothesis": 0}}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"--target-lang": "de"}, "without a list of words connectives are counted in English, got 'de'; give those"),
        ({"--target-lang": "de", "--words": "und"}, "'de'"),
        ({"--words": ""}, "connectives: got '', expected a word or phrase"),
        ({"--words": "and,,so"}, "connectives: got '', expected a word or phrase"),
        ({"--words": "so,So"}, "are the same but for case; keep one"),
        ({"--words": "however"}, "the references have none of the connectives however"),
    ],
)
def test_bad_options(run, files, changes, message):
    options = {"--source-lang": "zh", "--target-lang": "en"} | changes
    code, out, err = run("analyze", "connectives", *files, *(part for option in options.items() for part in option))
    assert (code, out) == (1, "") and err.startswith("docmt: ") and message in err


def test_other_documents(files, write):
    reference, ours, _ = files
    lost = write("lost.jsonl", json.dumps({"doc_id": "a", "translation": OURS["a"]}))
    with pytest.raises(ValueError, match=r"lost\.jsonl has 1 document, .*talks\.jsonl 2; not translated: b"):
        connective_files(reference, [ours, lost], **LANGUAGES)
    short = write("short.jsonl", ours.read_text().replace('"He came, but late, so what?"', '"", ""'))
    with pytest.raises(ValueError, match=r"short\.jsonl: document 'a': 3 translated sentences for 2"):
        connective_files(reference, [ours, short], **LANGUAGES)
    refused("the languages of the reference are needed", connective_files, reference, [ours])


def test_systems_without_names(files):
    refused("a system is called 'reference', as is its reference", by_name, ["ours.jsonl", "other/reference.jsonl"])
    with pytest.raises(ValueError, match="two systems are called 'ours'; give their files different names"):
        connective_files(files[0], [files[1], files[1]], **LANGUAGES)
    refused("no systems; give files", connective_files, files[0], [], **LANGUAGES)


def test_untranslated_documents_are_named(files, caplog):
    rows = [json.loads(line) for line in files[2].read_text().splitlines()]
    rows[0] |= {"error": "too long", "translation": [""] * len(rows[0]["translation"])}
    files[2].write_text(jsonl(rows))
    connective_files(files[0], files[1:], **LANGUAGES)
    assert "others.jsonl: 1 of 2 documents could not be translated" in caplog.text


def test_reports_that_would_replace_an_input_are_refused(run, files):
    renamed = files[1].rename(files[1].with_suffix(".json"))
    before = renamed.read_text()
    command = ("analyze", "connectives", files[0], renamed, "--source-lang", "zh", "--target-lang", "en")
    code, _, err = run(*command, "-o", renamed.parent)
    assert code == 1 and f"the output {renamed} is the input {renamed}" in err and renamed.read_text() == before
