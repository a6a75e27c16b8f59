"""Tab-separated files: tsv, and News Commentary."""

import gzip

import pytest
from support.reader_checks import TWO, fails, ids, pairs, read

from hf_docmt.data.documents import sentences


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
    fails("'de' and 'en'", "'fr' is not there", "correct the language", path=path, target_lang="fr")
    fails("b.tsv", "blank lines only", format="commentary", path=write("b.tsv", "\n\t\n"))
    fails("u.tsv, line 2", "not UTF-8", "0xfc", format="commentary", path=write("u.tsv", b"1\t1\nf\xfcr\t1\n"))
