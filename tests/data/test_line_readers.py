"""Formats of lines: tsv, News Commentary, OpenSubtitles, pairs of files, dialogues, plain and running text."""

import gzip
import sys

import pytest
from support.reader_checks import TWO, fails, ids, pairs, read

from hf_docmt.data.documents import sentences
from hf_docmt.data.readers import get_reader
from hf_docmt.data.readers.lines import is_wrapped, join_blocks, share_of_several, split_blocks
from hf_docmt.messages import install_command


@pytest.mark.parametrize("header", ["", "doc_id\tsource\ttarget\n", "id\tsource\ttarget\n"])
def test_tsv(write, header):
    lines = "".join(f"d{n}\t{s}\t{t}\n" for n, document in enumerate(TWO) for s, t in document)
    path = write("a.tsv", header + lines)
    documents = read("tsv", path=path)
    assert pairs(documents) == TWO and documents["doc_id"][:] == ["d0", "d1"]
    assert sentences(read("tsv", target_lang=None, path=path)[0], "en") == ["One.", "", "Two. "]


def test_tsv_columns_by_name_and_source_only(write):
    path = write("a.tsv", 'target\tn\tsource\tdoc_id\nEins "x\t1\tOne\td\n')
    assert pairs(read("tsv", path=path)) == [[("One", 'Eins "x')]]
    assert sentences(read("tsv", target_lang=None, path=write("b.tsv", "d\tOne\nd\t\n"))[0], "en") == ["One", ""]


def test_tsv_columns(write):
    fails("a.tsv, line 2", "2 columns, expected 3", path=write("a.tsv", "d\t1\t1\nd\t2\n"))
    fails("a.tsv, line 1", "4 columns, expected 3", path=write("a.tsv", "d\t1\t1\t1\n"))
    fails("a.tsv, line 1", "2 columns, expected 3", path=write("a.tsv", "d\t1\n"))


COMMENTARY = "Titel\tTitle\nEins & „zwei“.\tOne & “two”.\n\tNo German.\n\t\nZwei \t Two\n\n\nDrei.\tThree.\n\n"


COMMENTARY_EN_DE = [
    [("Title", "Titel"), ("One & “two”.", "Eins & „zwei“."), ("No German.", "")],
    [(" Two", "Zwei ")],
    [("Three.", "Drei.")],
]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_commentary(write, end):
    content = gzip.compress(COMMENTARY.replace("\n", end).encode())
    path = write("news-commentary-v14.de-en.tsv.gz", content)
    documents = read("commentary", path=path)
    assert pairs(documents) == COMMENTARY_EN_DE
    assert ids(documents) == [f"news-commentary-v14-{number:05d}" for number in (1, 2, 3)]
    assert pairs(read("auto", "de", "en", path=path), "de", "en") == [
        [(de, en) for en, de in document] for document in COMMENTARY_EN_DE
    ]
    assert [sentences(row, "en") for row in read("auto", target_lang=None, path=path)] == [
        [en for en, _ in document] for document in COMMENTARY_EN_DE
    ]
    assert pairs(read("auto", "eng_Latn", "deu_Latn", path=path), "eng_Latn", "deu_Latn") == COMMENTARY_EN_DE


def test_commentary_without_languages_in_the_name(write):
    path = write("pairs.tsv", "One.\tEins.\n\nTwo.\tZwei.")
    assert pairs(read("commentary", path=path)) == [[("One.", "Eins.")], [("Two.", "Zwei.")]]
    assert pairs(read("auto", path=write("a.de-en.tsv", "d\tOne.\tEins.\n"))) == [[("One.", "Eins.")]]


def test_commentary_bad_input(write):
    path = write("a.de-en.tsv", "Eins.\tOne.\n\nZwei.\tTwo.\tx\n")
    fails("a.de-en.tsv, line 3", "3 columns, expected 2", path=path)
    fails("a.tsv, line 2", "1 columns, expected 2", format="commentary", path=write("a.tsv", "1\t1\nEins.\n"))
    fails("'de' and 'en'", "not 'fr'", "correct the language", path=path, target_lang="fr")
    fails("b.tsv", "blank lines only", format="commentary", path=write("b.tsv", "\n\t\n"))
    fails("u.tsv, line 2", "not UTF-8", "0xfc", format="commentary", path=write("u.tsv", b"1\t1\nf\xfcr\t1\n"))


IDS = """de/1957/23590/6925144.xml.gz	en/1957/23590/3520211.xml.gz	1	1
de/1957/23590/6925144.xml.gz	en/1957/23590/3520211.xml.gz	2	2 3
de/1957/23590/6925144.xml.gz	en/1957/23590/4001.xml.gz	1	1
de/2001/1/2.xml.gz	en/2001/1/3.xml.gz	1	1
"""


def subtitles(write, en="One.\nTwo. \n\nFour.\n", de="Eins.\nZwei.\nDrei.\nVier.\n", ids=IDS):
    return {
        "source": write("OpenSubtitles.de-en.en", en),
        "target": write("OpenSubtitles.de-en.de", de),
        "ids": write("OpenSubtitles.de-en.ids", ids),
    }


def test_moses(write):
    files = subtitles(write)
    names = [" ".join(line.split("\t")[:2]) for line in IDS.splitlines()]
    for format in ("moses", "auto"):
        documents = read(format, **files)
        assert ids(documents) == names[1:]
        assert pairs(documents) == [[("One.", "Eins."), ("Two. ", "Zwei.")], [("", "Drei.")], [("Four.", "Vier.")]]
    turned = {"source": files["target"], "target": files["source"], "ids": files["ids"]}
    assert pairs(read("auto", "de", "en", **turned), "de", "en")[2] == [("Vier.", "Four.")]
    del files["target"]
    assert [sentences(row, "en") for row in read("auto", target_lang=None, **files)] == [
        ["One.", "Two. "],
        [""],
        ["Four."],
    ]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"en": "One.\nTwo.\n"}, ["de-en.en ends after line 2, but", "de-en.ids goes on", "parallel"]),
        ({"de": "1\n2\n3\n4\n5\n"}, ["de-en.ids ends after line 4, but", "de-en.de goes on"]),
        ({"ids": IDS[: IDS.rindex("de/")]}, ["de-en.ids ends after line 3, but", "de-en.en goes on"]),
        ({"ids": IDS.replace("\t2\t", "\t")}, ["ids, line 2", "3 columns, expected 4"]),
        ({"ids": IDS.replace("de/2001/1/2.xml.gz", " ")}, ["ids, line 4", "document id is missing"]),
        ({"ids": IDS.replace("de/2001", "fr/2001")}, ["ids, line 4", "unknown document ids 'fr/2001/1/2.xml", "'de'"]),
        ({"ids": IDS.replace("2001/1/2", "1957/23590/6925144").replace("2001/1/3", "1957/23590/3520211")},
         ["ids, line 4", "'de/1957/23590/6925144.xml.gz en/1957/23590/3520211.xml.gz' begins again", "4001"]),
        ({"de": b"Eins.\nZw\xeei\n3\n4\n"}, ["de-en.de, line 2", "not UTF-8", "0xee"]),
    ],
)  # fmt: skip
def test_moses_bad_input(write, changes, words):
    fails(*words, **subtitles(write, **changes))


def test_moses_without_its_files(write):
    files = subtitles(write)
    fails("'moses' needs the file 'ids'", format="moses", source=files["source"], target=files["target"])
    fails("de-en.en", "'de'", "target=", source=files["source"], ids=files["ids"])


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_dtag(write, end):
    sides = ["".join(f"<d>{end}" + "".join(pair[side] + end for pair in doc) for doc in TWO) for side in (0, 1)]
    documents = read("dtag", source=write("talks.en.txt", sides[0]), target=write("talks.de.txt", sides[1]))
    assert pairs(documents) == TWO and documents["doc_id"][:] == ["talks-00001", "talks-00002"]


def test_blank(write):
    source, target = write("a.en", "One.\nTwo. \n\nThree.\n"), write("a.de", "Eins.\r\nZwei.\r\n\r\nDrei.\r\n\r\n")
    assert pairs(read("blank", source=source, target=target)) == [
        [("One.", "Eins."), ("Two. ", "Zwei.")],
        [("Three.", "Drei.")],
    ]


def test_voita(write):
    source = write("a.src", "One . _eos Two . _eos  _eos Four_eos .\nFive _eos Six _eos _eos\n")
    target = write("a.dst", "1 _eos 2 _eos _eos 4\n5 _eos 6 _eos  _eos \n")
    assert pairs(read("voita", source=source, target=target)) == [
        [("One .", "1"), ("Two .", "2"), ("", ""), ("Four_eos .", "4")],
        [("Five", "5"), ("Six", "6"), ("", ""), ("", "")],
    ]


def test_dialogue(write):
    source, target = write("english_dev.txt", "One.\r\n\r\nTwo.\r\n"), write("german_dev.txt", "Eins.\r\n\r\nZwei.\r\n")
    index = write("index.txt", "[0, 1]\r\n[2]\r\n")
    documents = read("dialogue", source=source, target=target, index=index)
    assert pairs(documents) == [[("One.", "Eins."), ("", "")], [("Two.", "Zwei.")]]
    assert documents["doc_id"][:] == ["english_dev-00001", "english_dev-00002"]
    alone = read("dialogue", target_lang=None, source=source, index=index)
    assert [sentences(row, "en") for row in alone] == [["One.", ""], ["Two."]]


def test_dialogue_index(write):
    path = write("x.en", "1\n2\n3\n")
    files = {"format": "dialogue", "source": path, "target": path}
    fails("i, line 2", "number 2, expected 1", index=write("i", "[0]\n[2]\n"), **files)
    fails("i, line 1", "number 1, expected 0", index=write("i", "[1, 2, 3]\n"), **files)
    fails("i, line 1", "goes to line number 3", "3 lines", index=write("i", "[0, 1, 2, 3]\n"), **files)
    fails("i takes 2 lines", "x.en has 3", index=write("i", "[0, 1]\n"), **files)


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
    text = 'Dr. Smith came on\nJan. 5. (No. 2 vs. Ann.) He said:  "Hello!" Then\the left.\n\nA title\n\nLast one.\n'
    documents = read("text", target_lang=None, path=write("a.txt", text))
    assert sentences(documents[0], "en") == [
        "Dr. Smith came on Jan. 5.",
        "(No. 2 vs. Ann.)",
        'He said: "Hello!"',
        "Then he left.",
        "A title",
        "Last one.",
    ]
    chinese = read("text", "zh", None, path=write("b.txt", "你好。我很好！"))
    assert sentences(chinese[0], "zh") == ["你好。", "我很好！"]


TEXT = """Heading

The man is here. He sleeps.
The list:
- bread
- milk
1. First point
2. Second point

\tIt is late.


"""
WRAPPED = """A paragraph that was filled up to a width, so that its lines end
where they do by chance. A sentence may end with its line, as here.
That does not matter, and the 3rd of
May.

  * an item that goes over
    two lines, said Dr.
    Smith.
  * another
"""


@pytest.mark.parametrize("text", [TEXT, WRAPPED])
def test_text_keeps_its_lines(write, text):
    """Paragraphs, line ends and items of lists stand in the translation as in the text, outside sentences."""
    pytest.importorskip("sentencex")
    (document,) = read("text", target_lang=None, path=write("a.txt", text))
    source = sentences(document, "en")
    if text is TEXT:
        assert source[:5] == ["Heading", "The man is here.", "He sleeps.", "The list:", "bread"]
    else:
        assert source[3:] == ["an item that goes over two lines, said Dr. Smith.", "another"]
    result = {"doc_id": "a", "source": source, "translation": [sentence.upper() for sentence in source]}
    written = get_reader("text").render(document, result)
    assert written == text.upper() if text is TEXT else written.splitlines()[4:] == text.upper().splitlines()[4:]
    assert written.split() == text.upper().split() and max(map(len, written.splitlines())) <= 67
    shorter = get_reader("text").render(document, result | {"translation": ["A.", "B."]})  # of repairs="none"
    assert shorter == "A.\nB.\n"


def test_numbers_inside_sentences_begin_no_item(write):
    """A line of ragged text may begin with a date or a letter; behind a colon or a full stop it begins an item."""
    pytest.importorskip("sentencex")
    text = "She came to us on the\n9. November and\na) left on the\n3) day. We have\nthree things:\n1. bread\n2. milk\n"
    (document,) = read("text", target_lang=None, path=write("a.txt", text))
    *running, first, second = sentences(document, "en")
    assert " ".join(running) == "She came to us on the 9. November and a) left on the 3) day. We have three things:"
    assert (first, second) == ("bread", "milk")
    tabbed = split_blocks(
        ["\tA first line that is long enough to be wrapped", "at some width, and goes on"], lambda t: [t]
    )
    assert join_blocks(*tabbed).startswith("\tA first")


def test_blocks_of_longer_translations():
    """What was filled is filled again, at its width; a line that ends on purpose stays one line."""
    blocks = [
        {"prefix": "- ", "indent": "  ", "sentences": 2, "width": 20},
        {"prefix": "", "indent": "", "sentences": 0, "width": 0},
        {"prefix": "", "indent": "", "sentences": 1, "width": 0},
    ]
    text = join_blocks(["eins zwei drei vier.", "Fünf sechs.", "sieben acht neun zehn elf zwölf"], blocks)
    assert text == "- eins zwei drei\n  vier. Fünf sechs.\n\nsieben acht neun zehn elf zwölf\n"


@pytest.mark.parametrize(
    "lines, share",
    [
        (["One. Two."], 1),
        (["One.", "Dr. No came.", "", "3.5 km"], 0),
        (["你好。我很好！", "你好。"], 0.5),
        (["So? Yes", "a"], 0.5),
    ],
)
def test_lines_that_hold_several_sentences(lines, share):
    assert share_of_several(lines) == share


def test_wrapped_lines():
    wrapped = ["He left the house early. It rained and when", "he came back nobody knew him."]
    assert is_wrapped(wrapped)
    assert not is_wrapped(["The way home", "He left the house early. It rained.", "flour", "milk"])
    assert not is_wrapped(["he left the house early and it rained", "and when he came back nobody knew him"])


def test_text_without_the_splitter_says_how_to_install_it(write, monkeypatch):
    monkeypatch.setitem(sys.modules, "sentencex", None)
    fails(install_command("text"), "'lines'", format="text", target_lang=None, path=write("a.txt", "One. Two."))
