"""IWSLT sets in XML, and train.tags."""

import pytest
from support.reader_checks import fails, ids, pairs, read

from hf_docmt.data.documents import sentences

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
    for side, lang, kind, one, two in (("source", "en", "src", "One", "Two"), ("target", "it", "ref", "Uno", "Due")):
        more = ' trglang="italian"' if kind == "ref" else ""
        files[side] = [
            write(
                f"IWSLT17.TED.{part}.en-it.{lang}.xml", XML.format(kind, more, f"{one} {part}.", f"{two}.", talk=talk)
            )
            for part, talk in (("dev2010", 69), ("tst2010", 767))
        ]
    return files


def train_tags(write, **replaced):
    texts = {}
    for side, lang, one, two in (("source", "en", "One", "Two"), ("target", "it", "Uno", "Due")):
        text = TAGS.format(one, two, talk=535) + TAGS.format(one, two, talk=7).replace("\n\n", "\n")
        for old, new in replaced.get(side, ()):
            assert old in text
            text = text.replace(old, new, 1)
        texts[side] = write(f"train.tags.en-it.{lang}", text)
    return texts


def test_iwslt_xml(write):
    pytest.importorskip("defusedxml")
    files = iwslt(write)
    for format in ("iwslt", "auto"):
        documents = read(format, target_lang="it", **files)
        assert ids(documents) == ["69", "767"], "the talk's id, as docid is 1 in both"
        assert pairs(documents, target="it") == [
            [(f"One {part}. & more", f"Uno {part}. & more"), ("Two.", "Due.")] for part in ("dev2010", "tst2010")
        ]
    one = read("auto", target_lang="it", source=files["source"][1], target=files["target"][1])
    assert pairs(one, target="it") == pairs(documents, target="it")[1:]
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
        ("</doc>", "", ["line 14", "</doc> and <doc> must take turns"]),
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
    pytest.importorskip("defusedxml")
    files = iwslt(write)
    path = files["target"][1]
    path.write_text(path.read_text().replace('<seg id="2"> Due. </seg>\n', ""))
    fails("tst2010.en-it.en.xml, line 12", "'767'", "2 sentences with seg '2'", "1 without it from", "it.xml, line 4",
          target_lang="it", **files
    )  # fmt: skip


def test_one_side_alone_is_no_plain_text(write):
    path = train_tags(write)["source"]
    fails("train.tags.en-it.en", "name the format 'iwslt'", target_lang=None, path=path)
    xml = write("tst.en.xml", XML.format("src", "", "One.", "Two.", talk=1))
    fails("tst.en.xml", "name the format 'iwslt'", target_lang=None, path=xml)
    plain = write("plain.txt", "<url> is a tag, said one.\n")
    assert sentences(read("auto", target_lang=None, path=plain)[0], "en") == ["<url> is a tag, said one."]
