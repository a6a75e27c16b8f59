"""ParaDocs: documents of consecutive sentence pairs, from the released files and from the authors' script."""

import gzip

import pytest
from support.reader_checks import fails, ids, pairs, read

from hf_docmt.data.readers.tsv import PARADOCS


def line(number, start, documents=("s1", "t1"), doc_id=None, **changes):
    """A pair at this character of both documents; its sentences are 10 characters long."""
    cells = dict.fromkeys(PARADOCS, "1") | {"src": f"S{number}.", "tgt": f"T{number}.", "collection": "x"}
    cells |= {"similarity_one": "0.9", "similarity_two": "0.8", "src_language_id": "0.99", "tgt_language_id": "0.98"}
    cells |= {f"{side}_{end}_index": str(start + 10 * (end == "end")) for side in ("src", "tgt") for end in ENDS}
    cells |= dict(zip(("src_docid", "tgt_docid"), documents)) | changes
    return "\t".join([doc_id] * (doc_id is not None) + list(cells.values())) + "\n"


ENDS = ("start", "end")
RELEASED = [
    line(1, 0),
    line(2, 11),
    line(3, 60),  # too far away
    line(4, 71),
    line(5, 82, frequency="101"),
    line(6, 93),  # alone
    line(7, 0, ("s2", "t2")),
    line(8, 11, ("s2", "t2"), src_start_index="None"),
    line(9, 0, ("s3", "t3")),
    line(10, 12, ("s3", "t3")),
]


def expected(*numbers):
    return [(f"S{number}.", f"T{number}.") for number in numbers]


@pytest.mark.parametrize("name", ["en-de-strict.gz", "a.tsv"])
def test_released_file(tmp_path, name):
    path, text = tmp_path / name, "".join(RELEASED).encode()
    path.write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    documents = read("auto", path=path)
    assert pairs(documents) == [expected(1, 2), expected(3, 4), expected(9, 10)]
    assert ids(documents) == ["000001+000", "000001+001", "000003+000"]
    assert documents["tgt_docid"][:] == ["t1", "t1", "t3"]


@pytest.mark.parametrize(
    "change",
    [{"src_language_id": "0.4"}, {"tgt_language_id": "0.4"}, {"src": " "}, {"tgt": ""}, {"tgt_end_index": "None"}],
)
def test_ends_of_documents(write, change):
    path = write("a.tsv", line(1, 0) + line(2, 11) + line(3, 22, **change) + line(4, 33))
    assert pairs(read("paradocs", path=path)) == [expected(1, 2)]


def test_gap_of_the_target(write):
    path = write("a.tsv", line(1, 0) + line(2, 11) + line(3, 22, tgt_start_index="90") + line(4, 33))
    assert pairs(read("paradocs", path=path)) == [expected(1, 2), expected(3, 4)]


def test_output_of_the_script(write):
    """Documents are the lines of one id; what the script kept is kept."""
    rows = [line(1, 0, doc_id="000000+000"), line(2, 500, doc_id="000000+000"), line(3, 0, doc_id="000000+001")]
    documents = read("auto", path=write("a.tsv", "".join(rows)))
    assert pairs(documents) == [expected(1, 2), expected(3)] and ids(documents) == ["000000+000", "000000+001"]
    fails("line 4", "'000000+000' was used before", path=write("b.tsv", "".join([*rows, rows[0]])))


@pytest.mark.parametrize(
    "text, words",
    [
        (line(1, 0) + "a\tb\n", ["line 2", "2 columns, expected 18"]),
        (line(1, 0, frequency="many"), ["line 1", "'many'"]),
        (line(1, 0, src_end_index="1.5"), ["line 1", "'1.5'"]),
        (line(1, 0, src_language_id="x"), ["line 1", "'x'"]),
        (line(1, 0) + line(2, 11, doc_id="a"), ["line 2", "with and without document ids"]),
        (line(1, 0), ["no two sentence pairs follow each other"]),
    ],
)
def test_bad_files(write, text, words):
    fails("a.tsv", *words, format="paradocs", path=write("a.tsv", text))
