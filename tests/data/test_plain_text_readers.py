"""Plain lines and running text."""

import sys

import pytest
from support.reader_checks import fails, read

from hf_docmt.data.documents import sentences
from hf_docmt.messages import install_command


def test_lines_stay_line_for_line(write):
    path = write("story.txt", "One.\n\n  Two \u2028 \x0b \x85 still two.\r\n\n")
    documents = read("lines", target_lang=None, path=path)
    assert documents["doc_id"][:] == ["story"]
    assert sentences(documents[0], "en") == ["One.", "", "  Two \u2028 \x0b \x85 still two.", ""]
    both = read("lines", target_lang=None, path=[path, write("b.txt", "Three")])
    assert [len(row["translation"]) for row in both] == [4, 1]


@pytest.mark.parametrize("format", ["lines", "text"])
def test_ids_of_several_files_differ(tmp_path, format):
    """They are names without endings, with all but the last where two are the same, or that with the folder."""
    pytest.importorskip("sentencex")

    def ids(*names):
        for name in names:
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text("One.\n", encoding="utf-8")
        return read(format, target_lang=None, path=[tmp_path / name for name in names])["doc_id"][:]

    assert ids("a.en.txt", "b.txt") == ["a", "b"]
    assert ids("news.2019.txt", "news.2020.txt") == ["news.2019", "news.2020"]
    assert ids("2019/talk.txt", "2020/talk.txt") == [str(tmp_path / year / "talk") for year in ("2019", "2020")]
    with pytest.raises(ValueError, match="document id .* was used before"):
        ids("b.txt", "b.en")  # sides of one document, or texts of another


def test_text_is_split_into_sentences(write):
    pytest.importorskip("sentencex")
    text = 'Dr. Smith came on\nJan. 5. He said:  "Hello!" Then\the left.\n\nA title\n\nLast one.\n'
    documents = read("text", target_lang=None, path=write("a.txt", text))
    assert sentences(documents[0], "en") == [
        "Dr. Smith came on Jan. 5.",
        'He said: "Hello!"',
        "Then he left.",
        "A title",
        "Last one.",
    ]
    chinese = read("text", "zh", None, path=write("b.txt", "你好。我很好！"))
    assert sentences(chinese[0], "zh") == ["你好。", "我很好！"]


def test_text_without_the_splitter_says_how_to_install_it(write, monkeypatch):
    monkeypatch.setitem(sys.modules, "sentencex", None)
    fails(install_command("text"), "'lines'", format="text", target_lang=None, path=write("a.txt", "One. Two."))
