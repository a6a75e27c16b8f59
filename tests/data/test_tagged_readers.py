"""Sets of documents in tags: newstest in SGML, WMT in XML, IWSLT in XML and as train.tags."""

import json
from pathlib import Path

import pytest
from support.reader_checks import fails, ids, pairs, read

from hf_docmt.data.documents import sentences
from hf_docmt.evaluation.translation_scores import evaluate_files
from hf_docmt.files import DataError

SRC = Path(__file__).with_name("newstest2018-src.sgm").read_text("utf-8")


REF = Path(__file__).with_name("newstest2018-ref.sgm").read_text("utf-8")


SGM_EN_DE = [
    [('R&D at AT&T < 3 "%" a < b', "F&E „x“ &unknown ?a=1&copy=2"), ("Two  blanks.", "Zwei."), ("", "Neu.")],
    [("Three lines of it", "Drei")],
]


@pytest.fixture
def newstest(write):
    return {"source": write("newstest-src.en.sgm", SRC), "target": write("newstest-ref.de.sgm", REF)}


def test_sgm_matches_documents_and_sentences_by_id(newstest):
    for format in ("sgm", "auto"):
        documents = read(format, **newstest)
        assert pairs(documents) == SGM_EN_DE and ids(documents) == ["abc.1", "bbc.2"]
    alone = read("auto", target_lang=None, source=newstest["source"])
    assert [sentences(row, "en") for row in alone] == [[en for en, _ in document] for document in SGM_EN_DE]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('<seg id="3"></seg>\n', "", ["ref.de.sgm, line 9", "'abc.1'", "seg '3'", "src.en.sgm, line 2", "same segs"]),
        ('id="3"></seg>', 'id="4"></seg>', ["src.en.sgm, line 8", "seg '4'", "ref.de.sgm, line 6"]),
        ('docid="bbc.2"', 'docid="bbc.3"', ["src.en.sgm, line 11", "'bbc.3'", "is not in", "ref.de.sgm"]),
        ('docid="bbc.2"', 'docid="abc.1"', ["line 11", "'abc.1' was there before", "line 2", "its own file"]),
        ('docid="bbc.2" ', "", ["line 11", "document id is missing"]),
        ('<seg id="2">', '<seg id="1">', ["line 5", "seg '1' was there before, in line 4"]),
        ('<seg id="2">', "<seg>", ["line 5", "seg id is missing"]),
        ("a < b</seg>", "a <b</seg>\n", ["line 4", "in <seg> of line 4", "&lt;"]),
        ("a < b</seg>", "a < b", ["line 5", "<seg> in <seg> of line 4"]),
        ('<seg id="2">', '<sge id="2">', ["line 5", "text outside <seg>: 'Two  blanks.'"]),
        ('<seg id="2">Two  blanks. </seg>', "</seg>", ["line 5", "</seg> where <doc> of line 2 is open"]),
        ("</doc>\n", "", ["line 10", "<doc> before </doc> of line 2"]),
        ("</doc>", "</doc></doc>", ["line 10", "</doc> where <srcset> of line 1 is open"]),
        ("</doc>\n", '</doc>\n<seg id="1">x</seg>\n', ["line 11", "<seg> outside <doc>"]),
        (SRC, '<srcset setid="x">\n</srcset>\n', ["src.en.sgm", "no <doc>"]),
        (SRC, '<srcset>\n<doc docid="a">\n<p></p>\n</doc></srcset>', ["line 2", "'a'"]),
    ],
)
def test_sgm_bad_input(newstest, old, new, words):
    assert SRC.count(old) == 1
    newstest["source"].write_text(SRC.replace(old, new), encoding="utf-8")
    fails(*words, **newstest)


def test_sgm_that_is_cut(newstest):
    """Wherever the file ends, an error says so; nothing is lost in silence."""
    for end in range(1, len(SRC.rstrip())):
        newstest["source"].write_text(SRC[:end], encoding="utf-8")
        fails("src.en.sgm, line", format="sgm", target_lang=None, source=newstest["source"])
    newstest["source"].write_bytes(SRC.encode().replace(b"blanks", b"bl\xe4nks"))
    fails("src.en.sgm, line 5", "not UTF-8", "0xe4", **newstest)


def test_sets_are_scored_by_document_id(newstest, write):
    """The reference side alone is given; its documents stand in another order."""
    rows = [("abc.1", ["Zwei.", "F&E „x“ &unknown ?a=1&copy=2", "Neu."]), ("bbc.2", ["Drei"])]
    text = "".join(json.dumps({"doc_id": name, "translation": translation}) + "\n" for name, translation in rows)
    report = evaluate_files(write("out.jsonl", text), newstest["target"], "sgm", target_lang="de")
    assert next(result.value for result in report.results if result.metric == "s-BLEU") == pytest.approx(100)
    lost = write("less.jsonl", text.splitlines()[0])
    with pytest.raises(DataError, match="not translated: bbc.2"):
        evaluate_files(lost, newstest["target"], "sgm", target_lang="de")


WMT = Path(__file__).with_name("newstest2021.en-de.xml").read_text("utf-8")


def test_languages_spelled_otherwise_in_xml(write):
    path, codes = write("newstest2021.en-de.xml", WMT), ("eng_Latn", "de_DE")
    spelled_otherwise = pairs(read("wmt", *codes, path=path, translator="A"), *codes)
    assert spelled_otherwise == pairs(read("wmt", path=path, translator="A"))


def test_wmt(write):
    path = write("newstest2021.en-de.xml", WMT)
    for format in ("wmt", "auto"):
        documents = read(format, path=path, translator="A")
        assert ids(documents) == ["guardian.1", "bbc.2"]
        assert pairs(documents) == [[("Q&A <here>", "F&A"), ("Two.", "Zwei A."), ("", "Neu A.")], [("Three.", "Drei.")]]
    assert sentences(read("auto", target_lang=None, path=path)[0], "en") == ["Q&A <here>", "Two.", ""]
    path = write("one.xml", WMT.replace('translator="C"', 'translator="C" style="x"').replace('"A"', '"C"', 1))
    fails("one.xml, line 4", "2 <ref> in 'de'", "translators 'C', 'C', requested was 'C'", path=path, translator="C")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("", "", ["line 4", "'guardian.1'", "2 <ref> in 'de'", "'A', 'C'", "choose one", "translator="]),
        ('translator="C"', 'translator="A"', ["line 4", "2 <ref>", "'A', 'A'", "requested was 'A'"]),
        ('<ref lang="de" translator="A"><p>', '<ref lang="fr"><p>', ["line 28", "'bbc.2'", "no <ref> in 'de'", "'fr'"]),
        ('<seg id="3">Neu A.</seg>', "", ["line 11", "seg '3'", "without it from", "line 14"]),
        ('<seg id="3"/>', "", ["line 18", "seg '3'", "line 5"]),
        ("Zwei A.", "Zwei & A.", ["line 17, column", "broken XML", "not well-formed"]),
        ("</ref>\n    <ref", "<ref", ["line 20", "<ref> before </ref> of line 14"]),
        ("</p>\n    </src>", "</p></src>\n    lost", ["line 13", "text outside <seg>: 'lost'"]),
        ('id="bbc.2"', 'id="guardian.1"', ["line 29", "'guardian.1' was used before", "line 5"]),
        ('<doc id="bbc.2"', "<doc", ["line 28", "document id is missing"]),
        ("<src lang=\"en\"><p>", "<p>", ["line 29, column", "broken XML"]),
        ('<seg id="3"/>', "</p></src><seg id=\"9\"/><src lang=\"en\"><p>", ["line 4", "<seg> outside <src> and <ref>"]),
    ],
)  # fmt: skip
def test_wmt_bad_input(write, old, new, words):
    path = write("set.xml", WMT.replace(old, new, 1))
    fails(*words, path=path, translator="A" if old else None)


def test_xml_that_is_cut_or_dangerous(write):
    for end in range(WMT.index("<collection"), len(WMT.rstrip()), 7):
        fails("cut.xml, line", "broken XML", "cut", path=write("cut.xml", WMT[:end]), translator="A")
    fails("u.xml, line 8", "not UTF-8", path=write("u.xml", WMT.encode().replace(b"Two", b"T\xffo")), translator="A")
    kind = '<!DOCTYPE dataset [\n<!ENTITY a "x">\n<!ENTITY b "&a;&a;">\n]>\n<dataset'
    fails("b.xml, line 3", "defines the entity 'a'", path=write("b.xml", WMT.replace("<dataset", kind)), format="wmt")
    outside = write("c.xml", WMT.replace("<dataset", '<!DOCTYPE dataset SYSTEM "file:///dev/null/no.dtd">\n<dataset'))
    assert len(read("auto", path=outside, translator="A")) == 2, "a document type is named and never fetched"
    secret = write("secret.txt", "secret")
    steal = f'<!DOCTYPE dataset [<!ENTITY s SYSTEM "file://{secret}">]>\n<dataset'
    path = write("d.xml", WMT.replace("<dataset", steal, 1).replace("Two.", "&s;"))
    fails("d.xml, line 2", "entity 's'", format="wmt", target_lang=None, path=path)


XML = """<?xml version="1.0" encoding="UTF-8"?>
<mteval>
<{0}set setid="iwslt2017-tst2010" srclang="english"{1}>
<doc docid="1" genre="lectures">
<url>http://www.ted.com/talks/a?x=1&amp;y=2</url>
<keywords>talks, art</keywords>
<speaker>A. B</speaker>
<talkid>{talk}</talkid>
<title>Not a sentence</title>
<description>Neither is this.</description>
<seg id="1"> {2} &amp; more </seg>
<seg id="2"> {3} </seg>
</doc>
</{0}set>
</mteval>
"""


TAGS = """<doc docid="{talk}" genre="lectures">
<url>http://www.ted.com/talks/c</url>
<keywords>talks</keywords>
<speaker>C. D</speaker>
<talkid>{talk}</talkid>
<title>Not a sentence</title>
<description>Neither is this.</description>
<reviewer></reviewer>
<translator href="http://www.ted.com/profiles/1">E. F</translator>
 {0} &amp; <more>
{1}

</doc>
"""


def iwslt(write):
    files = {}
    for side, lang, kind, *texts in (("source", "en", "src", "One", "Two"), ("target", "it", "ref", "Uno", "Due")):
        more = ' trglang="italian"' if kind == "ref" else ""
        files[side] = [
            write(
                f"IWSLT17.TED.{part}.en-it.{lang}.xml",
                XML.format(kind, more, f"{texts[0]} {part}.", f"{texts[1]}.", talk=talk),
            )
            for part, talk in (("dev2010", 69), ("tst2010", 767))
        ]
    return files


def train_tags(write, **replaced):
    texts = {}
    for side, lang, first, second in (("source", "en", "One", "Two"), ("target", "it", "Uno", "Due")):
        text = TAGS.format(first, second, talk=535) + TAGS.format(first, second, talk=7).replace("\n\n", "\n")
        for old, new in replaced.get(side, ()):
            assert old in text
            text = text.replace(old, new, 1)
        texts[side] = write(f"train.tags.en-it.{lang}", text)
    return texts


def test_iwslt_xml(write):
    files = iwslt(write)
    for format in ("iwslt", "auto"):
        documents = read(format, target_lang="it", **files)
        assert ids(documents) == ["69", "767"], "the talk's id, as docid is 1 in both"
        assert pairs(documents, target="it") == [
            [(f"One {part}. & more", f"Uno {part}. & more"), ("Two.", "Due.")] for part in ("dev2010", "tst2010")
        ]
    last = read("auto", target_lang="it", source=files["source"][1], target=files["target"][1])
    assert pairs(last, target="it") == pairs(documents, target="it")[1:]
    alone = read("iwslt", target_lang=None, source=files["source"])
    assert [sentences(row, "en")[1] for row in alone] == ["Two.", "Two."]
    without = write("w.xml", files["source"][0].read_text().replace("<talkid>69</talkid>", ""))
    assert ids(read("auto", target_lang=None, source=without)) == ["1"]


def test_iwslt_train_tags(write):
    files = train_tags(write)
    for format in ("iwslt", "auto"):
        documents = read(format, target_lang="it", **files)
        assert ids(documents) == ["535", "7"]
        assert pairs(documents, target="it") == [
            [("One & <more>", "Uno & <more>"), ("Two", "Due"), ("", "")],
            [("One & <more>", "Uno & <more>"), ("Two", "Due")],
        ]


def test_iwslt_train_tags_with_seg_or_without_doc(write):
    text = TAGS.format("One", "Two", talk=9)
    lines = text.replace("\n\n", "\n").replace("\nTwo", '\n<seg id="b"> R&D &amp; two &lt; </seg>').splitlines()
    in_seg = write("train.tags.en-it.en", "\n".join(lines))
    assert sentences(read("iwslt", target_lang=None, source=in_seg)[0], "en") == ["One & <more>", "R&D & two <"]
    talks = "".join(TAGS.format(name, name, talk=name).split("\n", 1)[1].split("\n</doc>")[0] for name in "ab")
    without = write("train.tags.en-it.it", talks)
    documents = read("auto", "it", None, source=without)
    assert ids(documents) == ["a", "b"]
    assert [sentences(row, "it") for row in documents] == [[f"{name} & <more>", name] for name in "ab"]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("Two\n", "", ["train.tags.en-it.it, line 12", "'535'", "3 sentences with seg '3'", "2 without it"]),
        ("<talkid>535", "<talkid>536", ["en-it.en, line 1", "'536'", "is not in", "en-it.it"]),
        ("<talkid>535", "<talkid>7", ["en-it.en, line 14", "'7' was there before"]),
        ("</doc>", "", ["line 14", "<doc> before </doc> of line 1"]),
        ("</doc>", "</doc>\nlost", ["line 14", "text outside a talk"]),
        ("</title>", "", ["line 6", "<title>...</title> is needed"]),
        ("Two", "<seg>Two</seg>", ["line 11", "seg id is missing"]),
        ("Two", '<seg id="1">Two</seg>', ["line 11", "seg '1' was there before, in line 10"]),
    ],
)
def test_iwslt_train_tags_bad_input(write, old, new, words):
    fails(*words, target_lang="it", **train_tags(write, source=[(old, new)]))


def test_iwslt_bad_files(write):
    files = train_tags(write)
    text = files["source"].read_text()
    cut = write("train.tags.en-it.en", text[: text.rindex("</doc>")])
    fails("train.tags.en-it.en, line 14", "<doc> is never closed", target_lang=None, source=cut)
    fails("train.tags.en-it.en, line 10", "not UTF-8", target_lang=None,
          source=write("train.tags.en-it.en", text.encode().replace(b"One", b"\xe8"))
    )  # fmt: skip
    no_tags = write("plain.en", "One.\nTwo.\n")
    fails("plain.en, line 1", "text outside a talk", format="iwslt", target_lang=None, source=no_tags)
    fails("2 source files but 1 target files", target_lang="it", source=[cut, cut], target=[cut])
    fails("'dtag' takes one file as 'source'", format="dtag", target_lang=None, source=[cut, cut])
    fails("'iwslt' takes one file as 'source', got []", target_lang=None, source=[])
    files = iwslt(write)
    path = files["target"][1]
    path.write_text(path.read_text().replace('<seg id="2"> Due. </seg>\n', ""))
    fails("tst2010.en-it.en.xml, line 12", "'767'", "2 sentences with seg '2'", "1 without it from", "it.xml, line 4",
          target_lang="it", **files
    )  # fmt: skip


def test_one_side_alone_is_not_plain_text(newstest, write):
    fails("src.en.sgm", "name the format 'sgm'", target_lang=None, path=newstest["source"])
    path = train_tags(write)["source"]
    fails("train.tags.en-it.en", "name the format 'iwslt'", target_lang=None, path=path)
    xml = write("tst.en.xml", XML.format("src", "", "One.", "Two.", talk=1))
    fails("tst.en.xml", "name the format 'iwslt'", target_lang=None, path=xml)
    plain = write("plain.txt", "<url> is a tag, said one.\n")
    assert sentences(read("auto", target_lang=None, path=plain)[0], "en") == ["<url> is a tag, said one."]
