"""OpenSubtitles with document ids."""

import pytest
from support.reader_checks import fails, ids, pairs, read

from hf_docmt.data.documents import sentences

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
