"""Formats of one file a side without ids: dtag, blank, voita, and dialogue with its index."""

import pytest
from support.reader_checks import TWO, fails, pairs, read

from hf_docmt.data.documents import sentences


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
    fails("i, line 2", "number 2 where 1 is due", index=write("i", "[0]\n[2]\n"), **files)
    fails("i, line 1", "number 1 where 0 is due", index=write("i", "[1, 2, 3]\n"), **files)
    fails("i, line 1", "goes to line number 3", "3 lines", index=write("i", "[0, 1, 2, 3]\n"), **files)
    fails("i takes 2 lines", "x.en has 3", index=write("i", "[0, 1]\n"), **files)
