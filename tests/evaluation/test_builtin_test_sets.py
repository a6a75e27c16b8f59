"""Test sets of sacrebleu, from a folder that is filled beforehand, against its command; what happens offline."""

import json
import os
import subprocess
import sys

import pytest
import sacrebleu
from support.reader_checks import jsonl

from hf_docmt.evaluation.references import builtin_references
from hf_docmt.evaluation.translation_scores import evaluate_files
from hf_docmt.files import DataError

XML_DOC = """<doc id="{id}" origlang="{origlang}" domain="{domain}">
<src lang="en"><p>{src}</p></src>
<ref lang="de" translator="refA"><p>{a}</p></ref>
<ref lang="de" translator="refB"><p>{b}</p></ref>
<hyp lang="de" system="Small"><p>{b}</p></hyp>
</doc>
"""
SGM_DOC = '<doc docid="{id}" genre="news" origlang="{origlang}">\n<p>\n{segs}\n</p>\n</doc>\n'
DOCUMENTS = [  # id, origlang, domain, sources, two references
    ("news.1", "en", "news", ["The dog sleeps.", "It dreams."], ["Der Hund schläft.", "Er träumt."], ["Hund.", "Er."]),
    ("talk.2", "de", "speech", ["Now we are done here."], ["Nun sind wir hier fertig."], ["Jetzt sind wir fertig."]),
    ("news.3", "en", "news", ["A cat sat on the mat."], ["Eine Katze saß da."], ["Eine Katze saß auf der Matte."]),
]  # fmt: skip
OURS = ["Der Hund schläft .", "Sie träumt.", "Nun sind wir fertig.", "Eine Katze saß auf Matten."]


def segs(sentences):
    return "\n".join(f'<seg id="{number}">{text}</seg>' for number, text in enumerate(sentences, 1))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder of sacrebleu with wmt24 and wmt19, as if they had been downloaded, and multi30k/2016."""
    folder = tmp_path / "sacrebleu"
    pages = ["", "", ""]
    for doc_id, origlang, domain, source, first, second in DOCUMENTS:
        sides = {"src": segs(source), "a": segs(first), "b": segs(second)}
        pages[0] += XML_DOC.format(id=doc_id, origlang=origlang, domain=domain, **sides)
        for number, side in enumerate((source, first), 1):
            pages[number] += SGM_DOC.format(id=doc_id, origlang=origlang, segs=segs(side))
    written = {
        "wmt24/raw/wmt24.data_onlyxml.tar.gz": "here",
        "wmt24/raw/xml/wmttest2024.en-de.all.xml": f'<dataset id="x">\n{pages[0]}</dataset>\n',
        "wmt19/raw/wmt19.test.tgz": "here",
        "wmt19/raw/sgm/newstest2019-ende-src.en.sgm": f'<srcset setid="x" srclang="any">\n{pages[1]}</srcset>\n',
        "wmt19/raw/sgm/newstest2019-ende-ref.de.sgm": f'<refset setid="x" srclang="any">\n{pages[2]}</refset>\n',
        "multi30k/2016/raw/multi30k_2016.multi30k_test_sets_d3ec2a38.tar.gz": "here",
        "multi30k/2016/raw/test_2016_flickr.en": "A dog.\nA cat.\n",
        "multi30k/2016/raw/test_2016_flickr.de": "Ein Hund.\nEine Katze.\n",
    }
    for name, text in written.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    for name in ("wmt24", "wmt23", "wmt19", "multi30k/2016"):
        monkeypatch.setattr(sacrebleu.DATASETS[name], "_outdir", str(folder / name))
        monkeypatch.setattr(sacrebleu.DATASETS[name], "_rawdir", str(folder / name / "raw"))
    return folder


def printed(folder, outputs, *arguments):
    """[(score, signature)] of the command `sacrebleu`, at more digits than a float has."""
    command = [sys.executable, "-m", "sacrebleu", "-i", str(outputs), *arguments, "-w", "20"]
    environment = os.environ | {"SACREBLEU": str(folder)}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return [(one["score"], one["signature"]) for one in json.loads(done.stdout)]


def ours(report):
    return [(result.value, str(result.signature.without("segments", "data"))) for result in report.results]


@pytest.mark.parametrize("name", ["wmt24", "wmt19"])
@pytest.mark.parametrize("origlang", [None, "en", "non-en"])
def test_scores_are_those_of_the_command(folder, write, name, origlang):
    outputs = write("out.txt", "\n".join(OURS) + "\n")
    options = {"source_lang": "en", "target_lang": "de", "test_set": name, "metrics": ["bleu", "chrf", "ter"]}
    report = evaluate_files(outputs, **options, origlang=origlang)
    filtered = ("-ol", origlang) if origlang else ()
    assert ours(report) == printed(folder, outputs, "-t", name, "-l", "en-de", "-m", "bleu", "chrf", "ter", *filtered)
    split = "en-de" if origlang is None else f"en-de, origlang {origlang}"
    assert {(result.dataset, result.split) for result in report.results} == {(name, split)}
    expected = {None: ["news.1", "talk.2", "news.3"], "en": ["news.1", "news.3"], "non-en": ["talk.2"]}[origlang]
    assert report.results[0].details["statistics"]["ids"] == expected


def test_documents_of_a_set(folder, write):
    """Documents are those of the set: d-BLEU, rows by their ids, domains, sources, other translators."""
    known = builtin_references("wmt24", "en", "de")
    assert known.ids == ["news.1", "talk.2", "news.3"] and known.sources == [document[3] for document in DOCUMENTS]
    assert known.sides == [[document[4] for document in DOCUMENTS]]
    rows = [{"doc_id": one[0], "translation": one[5], "source": one[3]} for one in reversed(DOCUMENTS)]
    options = {"source_lang": "en", "target_lang": "de", "test_set": "wmt24"}
    report = evaluate_files(write("out.jsonl", jsonl(rows)), **options, translators=["refB"], by=["domain"])
    assert [result.value for result in report.results] == pytest.approx([100, 100, 100, 0])
    assert report.results[1].n == 3 and report.results[0].split == "en-de, references refB"
    assert list(report.results[2].breakdown) == ["domain=news", "domain=speech"]
    both = evaluate_files(write("out.jsonl", jsonl(rows)), **options, translators=["refA", "refB"])
    assert "nrefs:2" in str(both.results[0].signature) and both.results[3].value == 0
    xml = folder / "wmt24/raw/xml/wmttest2024.en-de.all.xml"
    assert evaluate_files(xml, **options, system="Small", translators=["refB"]).results[3].value == 0
    plain = builtin_references("multi30k/2016", "en", "de")
    assert plain.ids == ["multi30k/2016"] and plain.sides == [[["Ein Hund.", "Eine Katze."]]]
    with pytest.raises(DataError, match="multi30k/2016 does not say of every document which language it was"):
        plain.written_in("en")


def test_sentences_of_a_set_without_documents(folder, write):
    """One document gives no interval; with `unit=None` its sentences are drawn."""
    options = {"source_lang": "en", "target_lang": "de", "test_set": "multi30k/2016"}
    for unit, units in ((None, "sentence"), ("document", "document")):
        report = evaluate_files(write("out.txt", "Ein Hund.\nDie Katze.\n"), **options, unit=unit)
        assert report.results[0].details["statistics"]["unit"] == units


def test_a_repeated_document_id(folder):
    path = folder / "wmt19/raw/sgm"
    for side in path.iterdir():
        side.write_text(side.read_text(encoding="utf-8").replace("news.3", "news.1"), encoding="utf-8")
    assert builtin_references("wmt19", "en", "de").ids == ["news.1", "talk.2", "news.1-2"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"test_set": "wmt42"}, "^unknown test set 'wmt42'; did you mean wmt24 or wmt23 or wmt22. sacrebleu --list"),
        ({"target_lang": "xx"}, "the test set wmt24 has no pair en-xx; -l is one of cs-uk, en-cs"),
        ({"source_lang": None}, "the test set wmt24 needs both languages; give them, such as -l en-de"),
        ({"translators": ["C"]}, "the test set wmt24 has no translator 'C', it has refA, refB"),
        ({"origlang": "fr"}, "no document of the test set wmt24 with origlang 'fr'; there are de, en"),
        ({"reference": "ref.txt"}, "give either files of references or a test set of sacrebleu"),
        ({"reference_columns": ["a"]}, "format and reference columns are for files of references"),
        ({"test_set": "wmt23"}, "the test set wmt23 cannot be downloaded .*sacrebleu --download wmt23 -l en-de where"),
    ],
)
def test_bad_input(folder, write, monkeypatch, options, message):
    def offline(*arguments, **options):
        raise OSError("Network is unreachable")

    monkeypatch.setattr("urllib.request.urlopen", offline)
    known = {"source_lang": "en", "target_lang": "de", "test_set": "wmt24"}
    with pytest.raises(ValueError, match=message):
        evaluate_files(write("out.txt", "\n".join(OURS) + "\n"), **known | options)


def test_a_damaged_download(folder, write, monkeypatch):
    """sacrebleu leaves the process where a checksum is wrong; here that is an error like others."""
    dataset = sacrebleu.DATASETS["wmt23"]
    monkeypatch.setattr(dataset, "data", [write("v.0.1.tar.gz", "broken").as_uri()])
    with pytest.raises(DataError, match=r"the test set wmt23 cannot be downloaded \(sacrebleu says why\)"):
        builtin_references("wmt23", "en", "de")
