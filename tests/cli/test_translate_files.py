"""`docmt translate` of documents with markup: files, folders, jobs that go on, what is refused and looked at."""

import json

import pytest
from support.markup_checks import parsed, tags

import hf_docmt
from hf_docmt.files import DataError
from hf_docmt.formats import document_file, document_reader
from hf_docmt.formats.document_file import DocumentFile, FormatOptions
from hf_docmt.formats.document_reader import DocumentReader
from hf_docmt.formats.html import HtmlFormat
from hf_docmt.formats.json_strings import JsonStringsFormat
from hf_docmt.formats.yaml_strings import YamlStringsFormat
from hf_docmt.journal import Journal
from hf_docmt.systems import DocMTSystem
from hf_docmt.translation import document_output

PAGE = '<html lang="en"><p>The <b>lamp</b> is old. It is {new}.</p><pre>The lamp</pre><h2>A key</h2></html>\n'


class Killed(BaseException):
    """What nothing catches."""


@pytest.fixture
def page(tmp_path):
    path = tmp_path / "page.html"
    path.write_bytes(PAGE.encode())
    return path


def test_a_file(run, model, page, tmp_path):
    output, report = tmp_path / "page.de.html", tmp_path / "report.html"
    code, out, err = run("translate", model, page, "-o", output, "--keep", r"\{\w+\}", "--report", report)
    assert (code, out) == (0, ""), err
    assert "2 segments, 3 tags kept" in err and "1 document, 3 sentences" in err
    text = output.read_text()
    assert text.startswith('<html lang="de"><p>') and "<pre>The lamp</pre><h2>" in text and text.count("{new}") == 1
    assert [sum(tags(segment.pieces).values()) for segment in parsed(HtmlFormat, text.encode())[1]] == [2, 0]
    assert not list(tmp_path.glob("*.journal*"))
    shown = report.read_text()
    assert shown.count("<article") == 3 and "carried: <bdi>{new}</bdi>" in shown and 'lang="de"' in shown
    assert "A key" not in text  # translated, if not well


def test_sentences_that_context_changed(run, model, page, tmp_path, monkeypatch):
    """The report has the translations without context that differ; none with strategy `sentence`."""
    original = DocMTSystem.without_context

    def changed(system):
        if (alone := original(system)) is not None:
            assert alone.decoding["strategy"] == "sentence"
            alone.translate_carried = lambda documents, given: (([["Alone."] * len(each) for each in documents],), [])
        return alone

    monkeypatch.setattr(DocMTSystem, "without_context", changed)
    report = tmp_path / "report.html"
    for strategy, count in {"sliding": 3, "sentence": 0}.items():
        run("translate", model, page, "-o", tmp_path / f"{strategy}.html", "--strategy", strategy, "--report", report)
        assert report.read_text().count("alone it reads Alone.") == count


def test_a_glossary(run, model, page, tmp_path):
    """Its terms are in the output; one that has no room is reported with its place. It is part of the job."""
    terms, output = tmp_path / "terms.csv", tmp_path / "page.de.html"
    terms.write_text("source,target\nlamp,Lampe\nkey,Schlüsselanhängerschlüsselanhänger\n")
    code, _, err = run("translate", model, page, "-o", output, "--glossary", terms)
    assert code == 0 and "Lampe" in output.read_text(), err
    assert "sentence 3: 'key' at characters 3-5: expected 'Schlüsselanhänger" in err and "repairs: " in err
    assert "1 term" in err.splitlines()[-1]
    terms.write_text("lamp\n")
    code, _, err = run("translate", model, page, "-o", output, "--glossary", terms)
    assert code == 1 and "terms.csv, line 1: 'lamp', expected a source term" in err


@pytest.mark.parametrize(
    ("name", "content", "options"),
    [("a.po", 'msgid "lamp"\nmsgstr "Lampe"\n', []), ("a.md", "```\nlamp()\n```\n", [])],
)
def test_a_file_with_nothing_to_translate(run, model, tmp_path, name, content, options):
    """It is written as it was, and that is no error: a catalog may be complete."""
    (tmp_path / name).write_text(content)
    code, _, err = run("translate", model, tmp_path / name, "-o", tmp_path / f"out.{name}", *options)
    assert code == 0 and "0 segments, nothing to translate" in err
    assert (tmp_path / f"out.{name}").read_text() == content


def test_by_name_and_first_bytes(run, model, page, tmp_path):
    other, output = page.rename(tmp_path / "page"), tmp_path / "out.html"
    assert run("translate", model, other, "-o", output)[0] == 0 and "<pre>The lamp</pre>" in output.read_text()
    other.write_text("<p>One</p>")  # nothing tells the format
    assert run("translate", model, other, "-o", output, "--format", "html")[0] == 0
    assert output.read_text().startswith("<p>") and output.read_text().endswith("</p>")


def test_a_folder(run, model, page, tmp_path):
    folder = tmp_path / "site"
    (folder / "sub").mkdir(parents=True)
    page.rename(folder / "sub" / "a.html")
    (folder / "b.HTM").write_text("<p>One</p>")
    (folder / "c.png").write_bytes(b"\x89")
    (folder / ".hidden").write_bytes(b"")
    code, _, err = run("translate", model, folder, "-o", tmp_path / "out")
    assert code == 0 and "3 segments" in err and "2 documents, 4 sentences" in err, err
    assert f"{folder}: skipped 1 file of other formats: c.png\n" in err
    written = {
        path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*") if path.is_file()
    }
    assert written == {"sub/a.html", "b.HTM", ".docmt/de/sub/a.html", ".docmt/de/b.HTM"}
    code, _, err = run("translate", model, folder, "-o", folder / "out")
    assert code == 1 and "is inside the input folder" in err
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "a").touch()
    assert "not an empty folder" in run("translate", model, folder, "-o", tmp_path / "other")[2]


def test_a_folder_is_translated_again(run, model, page, tmp_path):
    """What did not change is as the person left it: whole files byte for byte, in changed ones their segments."""
    folder, output = tmp_path / "site", tmp_path / "out"
    folder.mkdir()
    for name in ("a.html", "b.html"):
        (folder / name).write_text(PAGE)
    command = ("translate", model, folder, "-o", output)
    assert run(*command)[0] == 0
    same, changed = "<pre>my code</pre>", (output / "b.html").read_text().replace("<h2>", "<h2>Ihr ")
    (output / "a.html").write_text(same)
    (output / "b.html").write_text(changed)
    (output / "c.png").write_bytes(b"\x89")
    (folder / "b.html").write_text(PAGE.replace("</html>", "<p>Its key</p></html>"))
    (folder / "d.html").write_text("<p>A key</p>")
    code, _, err = run(*command)
    assert code == 0 and f"{output}: what did not change keeps its translation" in err and "4 kept as" in err, err
    kept, _, end = (output / "b.html").read_text().rpartition("<p>")
    assert (output / "a.html").read_text() == same and (output / "c.png").read_bytes() == b"\x89"
    assert (output / "b.html").read_text().removesuffix(f"<p>{end}") == changed.removesuffix(
        "</html>\n"
    ) and "key" not in end
    assert (output / ".docmt" / "de" / "b.html").read_bytes() == (folder / "b.html").read_bytes()
    assert "5 kept as" not in err and "6 kept as" in run(*command)[2]  # of a translation of its own


def test_an_update_killed_in_its_last_steps(run, model, page, tmp_path, monkeypatch):
    """Sources are written after all translations, so that no old translation is taken for one of a new source."""
    folder, output, move = tmp_path / "site", tmp_path / "out", document_output.move_durably
    folder.mkdir()
    page.rename(folder / "a.html")
    assert run("translate", model, folder, "-o", output)[0] == 0
    (folder / "a.html").write_text("<p>One key</p>")

    def killed(temporary, path):
        move(temporary, path) if ".docmt" not in path.parts else (_ for _ in ()).throw(OSError("killed"))

    monkeypatch.setattr(document_output, "move_durably", killed)
    assert run("translate", model, folder, "-o", output)[0] == 1
    assert "h2" not in (output / "a.html").read_text() and "h2" in (output / ".docmt" / "de" / "a.html").read_text()
    monkeypatch.setattr(document_output, "move_durably", move)
    code, _, err = run("translate", model, folder, "-o", output, "--resume")
    assert code == 1 and "delete" in err
    (tmp_path / "out.journal").unlink()
    assert run("translate", model, folder, "-o", output, "--previous", output / ".docmt" / "de", output)[0] == 0
    assert (output / ".docmt" / "de" / "a.html").read_text() == "<p>One key</p>"


@pytest.mark.parametrize(
    ("name", "content", "options", "problem"),
    [
        ("new.html", "<p>Mine</p>", (), "new.html exists, and its source is unknown; move it, or choose another"),
        (".docmt/pt/new.html", "", (), "out is in 'pt', got 'de'; choose another folder"),
        (".docmt/de/new.html", "", ("--bilingual",), "is not an empty folder"),
        ("app.po", 'msgid "a"', (), "is not an empty folder"),
    ],
)
def test_a_folder_that_is_not_translated_again(run, model, page, tmp_path, name, content, options, problem):
    folder, output = tmp_path / "site", tmp_path / "out"
    folder.mkdir()
    page.rename(folder / "new.html")
    for file, text in ((name, content), *([(".docmt/de/old.html", "")] if name == "new.html" else [])):
        (output / file).parent.mkdir(parents=True, exist_ok=True)
        (output / file).write_text(text)
    code, _, err = run("translate", model, folder, "-o", output, *options)
    assert code == 1 and problem in err and (output / name).read_text() == content


def test_a_folder_of_text(run, model, tmp_path):
    """A line is a segment; one that is wrapped goes on in the next."""
    (tmp_path / "in").mkdir()
    lines = b"  The lamp is old.\r\n\r\n* * *\r\nIt is new."
    (tmp_path / "in" / "a.txt").write_bytes(lines)
    wrapped = "The lamp is old. It is new. The lamp is old, and it is\nnew. The lamp is old.\n"
    (tmp_path / "in" / "b.txt").write_text(wrapped)
    code, _, err = run("translate", model, tmp_path / "in", "-o", tmp_path / "out")
    assert code == 0 and "3 segments" in err and "2 documents, 6 sentences" in err, err
    written = (tmp_path / "out" / "a.txt").read_bytes()
    assert written.startswith(b"  ") and b"\r\n\r\n* * *\r\n" in written and b"lamp" not in written
    assert (tmp_path / "out" / "b.txt").read_text().count("\n") == 1
    (tmp_path / "none").mkdir()
    assert "has one of the extensions" in run("translate", model, tmp_path / "none", "-o", "x")[2]


def test_a_job_goes_on(run, model, page, tmp_path, monkeypatch):
    """After an error while the file is put together, what was translated is kept, and the file is the same."""
    output, whole = tmp_path / "out.html", tmp_path / "whole.html"
    assert run("translate", model, page, "-o", whole)[0] == 0
    with monkeypatch.context() as patch:
        patch.setattr(HtmlFormat, "write", lambda *_: (_ for _ in ()).throw(ValueError("broken")))
        code, _, err = run("translate", model, page, "-o", output)
    assert code == 1 and "broken" in err and "--resume" in err and not output.exists()
    _, group = Journal(tmp_path / "out.html.journal").rows()
    row = json.loads(group["text"])
    assert row["doc_id"] == "page.html" and len(row["source"]) == 3 and list(row["word_fits"]) == ["0", "1"]
    assert run("translate", model, page, "-o", output, "--resume")[0] == 0
    assert output.read_bytes() == whole.read_bytes() and not list(tmp_path.glob("*.journal*"))


def test_written_files_are_checked(run, model, page, tmp_path, monkeypatch):
    monkeypatch.setattr(HtmlFormat, "write", lambda self, _: PAGE.replace("<b>", "").replace("</b>", "").encode())
    code, _, err = run("translate", model, page, "-o", tmp_path / "out.html")
    assert code == 1 and "page.html, line 1: the markup differs from the original; check it" in err
    monkeypatch.setattr(HtmlFormat, "write", lambda self, _: PAGE.replace("<h2>", "<pre>").encode())
    code, _, err = run("translate", model, page, "-o", tmp_path / "out.html")
    assert code == 1 and "2 segments were written, and 1 are read in the new file; compare the two files" in err


@pytest.mark.parametrize("is_folder", [False, True])
def test_a_job_killed_in_its_last_steps(run, model, page, tmp_path, monkeypatch, is_folder):
    """Once the file is in its place, the next run translates nothing, and tells the problems again."""
    source, output = page, tmp_path / "out.html"
    if is_folder:
        source, output = page.parent, tmp_path.parent / f"{tmp_path.name}-out"
    monkeypatch.setattr(HtmlFormat, "write", lambda self, _: PAGE.replace("<b>", "").replace("</b>", "").encode())
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(Journal, "delete", lambda _: (_ for _ in ()).throw(Killed))
        run("translate", model, source, "-o", output)
    assert output.exists()
    written = output / page.name if is_folder else output
    content = written.read_bytes()
    if is_folder:
        written.write_bytes(content[:-1])
        code, _, err = run("translate", model, source, "-o", output, "--resume")
        assert code == 1 and "a folder with other files is there; move it" in err
        written.write_bytes(content)
    code, _, err = run("translate", model, source, "-o", output, "--resume")
    assert code == 1 and err.count("the markup differs from the original; check it") == 1 and "2 segments" in err, err
    assert written.read_bytes() == content and not list(output.parent.glob("*.journal*"))


@pytest.mark.parametrize("is_folder", [False, True])
def test_a_file_is_parsed_twice(run, model, page, tmp_path, monkeypatch, is_folder):
    """Once to be translated, and once when it is looked at."""
    calls, parse = [], HtmlFormat.parse

    def counted(self, data, options):
        calls.append(data)
        return parse(self, data, options)

    monkeypatch.setattr(HtmlFormat, "parse", counted)
    output = tmp_path.parent / f"{tmp_path.name}-out.html"
    assert run("translate", model, page.parent if is_folder else page, "-o", output)[0] == 0
    written = output / page.name if is_folder else output
    assert calls == [PAGE.encode(), written.read_bytes()]
    monkeypatch.setattr(document_reader, "KEPT_BYTES", 0)
    calls.clear()
    reader = DocumentReader(HtmlFormat)
    assert [len(list(reader.read(["en"], page))) for _ in range(2)] == [1, 1] and len(calls) == 2


def test_a_kept_file_that_changed_is_parsed_again(page):
    reader = DocumentReader(HtmlFormat)
    before = [row for _, row in reader.read(["en"], page)]
    page.write_text("<p>Another one</p>")
    assert [row for _, row in reader.read(["en"], page)] != before


def test_unchanged_parts_are_reported():
    strings = '{"a": "The lamp", "b": "{n, plural, one {# lamp} other {# lamps}}", "c": "{n, select, x {y}}"}'
    for data, format in ((strings, JsonStringsFormat()), (strings.replace('"', "'"), YamlStringsFormat())):
        document = DocumentFile(data.encode(), "a", format, FormatOptions())
        _, written = document.translated({"a": {"translation": ["Die Lampe"]}})
        assert written.text() == "1 segment, 0 tags kept, 2 ICU messages left alone"
        written.add(written)
        assert written.remarks == {("ICU message", "left alone"): 4}


def test_cues_that_are_too_fast_are_reported(run, model, tmp_path):
    """Cues of a moment, which a job that goes on tells as well; they are no error."""
    path = tmp_path / "a.srt"
    path.write_text("1\n00:00:01,000 --> 00:00:01,001\nThe lamp is old.\n")
    code, _, err = run("translate", model, path, "-o", tmp_path / "b.srt", "--max-speed", "17")
    assert code == 0 and "a: 1 of 1 cue with more than 17 characters per second; the fastest" in err, err
    assert "a second" not in run("translate", model, path, "-o", tmp_path / "c.srt")[2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "page.html: html is written to a file; add -o FILE"),
        (["-o", "out.docx"], "is written in its own format or as XLIFF, so that the output ends in .html, .htm"),
        (["-o", "out.html", "--report", "out.pdf"], "give another name ending in .html"),
        (["-o", "out.html", "--report", "./out.html"], "--report writes a page next to the output"),
        (["-o", "out.html", "--report", "page.html"], "the output page.html is the input"),
        (["-o", "out.html", "--fuzzy-below", "-0.3"], "fuzzy_below is for po, got html"),
        (["-o", "out.html", "--columns", "2"], "columns is for "),
        (["-o", "out.html", "--all"], "all is for "),
        (["-o", "out.html", "--no-carry"], "--no-carry is for sentences, got html, whose sentences"),
        (["-o", "out.html", "--keep", "("], "keep is '(', which is not a regular expression"),
        (["-o", "out.html", "--keep", "x*"], "keep is 'x*', which also matches empty text"),
        (["-o", "out.html", "--repairs", "none"], "repairs='none' may give more or fewer sentences"),
    ],
)
def test_what_is_refused(run, model, page, arguments, message, monkeypatch):
    monkeypatch.chdir(page.parent)
    code, _, err = run("translate", model, page, *arguments)
    assert code == 1 and message in err
    assert not list(page.parent.glob("out*"))


def test_options_of_documents_are_not_for_others(run, model, documents):
    code, _, err = run("translate", model, documents, "--keep", "x")
    assert code == 1 and "takes no 'keep'" in err
    (documents.parent / "a.html").write_text(PAGE)
    for several, name in ((documents, "jsonl"), (documents.parent, "folder")):
        err = run("translate", model, several, "-o", documents.parent / "out", "--report", "x.html")[2]
        assert f"--report is for one file with markup (Markdown, HTML, ...), got {name}; remove it" in err
    assert "is read from a file" in run("translate", model, "-", "-o", "x.html", "--format", "html", stdin=PAGE)[2]


def test_a_page_is_not_a_parallel_document(page):
    file = DocumentFile.read(page, "page.html", HtmlFormat(), FormatOptions())
    with pytest.raises(DataError, match=r"html is read to be translated, got target language 'de'"):
        next(file.rows(["en", "de"]))


def test_documents_that_failed_keep_their_text(page):
    file = DocumentFile.read(page, "page.html", HtmlFormat(), FormatOptions())
    data, written = file.translated({"page.html": {"translation": ["", "", ""], "error": "no memory"}})
    assert data == PAGE.encode() and written.unchanged == 2
    assert document_file.WrittenFile(3, 2, 1, 1, ["a: b"]).text() == (
        "a: b\n3 segments, 1 the same as before, 2 tags kept, 1 with markup placed by position"
    )


def test_in_python(run, model, page, tmp_path):
    """The same file as by the command."""
    assert run("translate", model, page, "-o", tmp_path / "a.html")[0] == 0
    written = hf_docmt.translate_file(hf_docmt.load_system(model), page, tmp_path / "b.html")
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()
    assert (written.segments, written.tags, written.problems) == (2, 3, [])
    system = hf_docmt.load_system(model)
    with pytest.raises(DataError, match=r"no document with markup by its name and first bytes; give format="):
        hf_docmt.translate_file(system, page.rename(tmp_path / "x.txt"), tmp_path / "c.txt", format="lines")
    with pytest.raises(ValueError, match=r"is the input"):
        hf_docmt.translate_file(system, tmp_path / "x.txt", tmp_path / "x.txt")


def test_only_what_changed(run, model, page, tmp_path):
    """Of a file and of a folder; what is the same costs no search."""
    new, human = tmp_path / "new.html", tmp_path / "old.de.html"
    human.write_text(
        PAGE.replace("The <b>lamp</b> is old.", "<b>Lampe</b> &amp; alt!").replace("A key", "Ein Schlüssel")
    )
    new.write_text(PAGE.replace("</html>", "<p>Its key</p></html>"))
    status, _, message = run("translate", model, new, "-o", new, "--previous", page, human)
    assert status == 1 and "is the input" in message
    status, _, message = run("translate", model, new, "-o", tmp_path / "new.de.html", "--previous", page, human)
    assert (status, "2 kept as translated before" in message) == (0, True)
    changed = (tmp_path / "new.de.html").read_text()
    assert "<p><b>Lampe</b> &amp; alt! It is {new}.</p>" in changed and "<h2>Ein Schlüssel</h2><p>" in changed
    for name, path in (("src", new), ("old", page), ("old.de", human)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.html").write_bytes(path.read_bytes())
    folders = [tmp_path / name for name in ("src", "old", "old.de")]
    assert run("translate", model, folders[0], "-o", tmp_path / "de", "--previous", *folders[1:])[0] == 0
    assert (tmp_path / "de" / "a.html").read_text() == changed
    lines = tmp_path / "a.jsonl"
    lines.write_text('{"doc_id": "a", "translation": [{"source": "w7"}]}')
    status, _, message = run("translate", model, lines, "-o", tmp_path / "b", "--previous", page, human)
    assert status == 1 and "previous" in message


@pytest.mark.parametrize(("name", "options"), [("page.html", []), ("page.txt", ["--format", "txt"])])
def test_a_review_in_between(run, model, page, tmp_path, name, options):
    """With an XLIFF file that nobody changed the document is the same as without."""
    xliff, path = tmp_path / "page.xlf", tmp_path / name
    path.write_text(PAGE if name == "page.html" else "The lamp is old. It is new.\n\nA key\n")
    code, _, err = run("translate", model, path, "-o", xliff)
    assert code == 0 and "2 segments" in err and xliff.read_text().count("its:mtConfidence") == 2
    assert run("translate", model, path, "-o", tmp_path / f"direct.{name}", *options)[0] == 0
    code, out, err = run("merge", xliff, path, "-o", tmp_path / f"merged.{name}")
    assert (code, out) == (0, "") and "2 segments" in err
    assert (tmp_path / f"merged.{name}").read_bytes() == (tmp_path / f"direct.{name}").read_bytes()
    code, _, err = run("merge", path, path, "-o", tmp_path / "no.html")
    assert code == 1 and name in err and err.count("\n") == 1


def test_what_is_refused_names_the_file(run, model, tmp_path):
    (tmp_path / "a.html").write_bytes(b'<meta charset="utf-8">\xff')
    code, _, err = run("translate", model, tmp_path / "a.html", "-o", tmp_path / "b.html")
    assert code == 1 and "a.html: it is not utf-8" in err
