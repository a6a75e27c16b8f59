"""References in several files, columns and translators; translations as lines, JSON lines and systems of an XML set."""

import pytest
from sacrebleu.metrics import BLEU, CHRF
from support.errors import refused
from support.reader_checks import jsonl

from hf_docmt.data.readers import read_documents
from hf_docmt.evaluation.comparison import side_by_side
from hf_docmt.evaluation.references import References, read_references
from hf_docmt.evaluation.translation_files import holds_translations, read_translations
from hf_docmt.evaluation.translation_scores import evaluate, evaluate_files, evaluate_systems
from hf_docmt.files import DataError

LANGUAGES = {"source_lang": "en", "target_lang": "de"}
ROWS = [
    {"doc_id": 7, "translation": [{"en": "One.", "de": "Eins."}, {"en": "Two.", "de": "Zwei."}]},
    {"doc_id": 8, "translation": [{"en": "It is three.", "de": "Es sind drei."}]},
]
OURS = ["Eins.", "Zwo.", "Es sind drei."]
XML = """<dataset id="set">
{documents}</dataset>
"""
DOC = """<doc id="{id}" origlang="en" domain="news">
<src lang="en"><p>{src}</p></src>
<ref lang="de" translator="A"><p>{a}</p></ref>
<ref lang="de" translator="C"><p>{c}</p></ref>
<hyp lang="de" system="Online-A"><p>{online}</p></hyp>
<hyp lang="de" system="Small"><p>{a}</p></hyp>
</doc>
"""


class CountedIds(list):
    read = 0

    def __iter__(self):
        self.read += 1
        return super().__iter__()


def test_time_grows_with_the_number_of_documents():
    """The ids of the reference are gone through a fixed number of times, however many translations there are."""
    ids = CountedIds(f"d{number}" for number in range(50))
    references = References(path="r.jsonl", dataset="r", ids=ids, sides=[[["a"]] * 50], sources=[["a"]] * 50)
    rows = {doc_id: {"doc_id": doc_id} for doc_id in reversed(list(ids))}
    ids.read = 0
    assert [row["doc_id"] for row in references.in_order(rows, "t")] == list(ids) and ids.read < 6


def segs(*sentences):
    return "".join(f'<seg id="{number}">{text}</seg>' for number, text in enumerate(sentences, 1))


@pytest.fixture
def reference(write):
    return write("reference.jsonl", jsonl(ROWS))


@pytest.fixture
def xml(write):
    one = {"src": ("One.", "Two."), "a": ("Eins.", "Zwei."), "c": ("Ein.", "Zwo."), "online": ("Eins.", "Zwo.")}
    two = {"src": ["Three."], "a": ["Drei."], "c": ["Drei Stück."], "online": ["Drei Stück."]}
    documents = ({key: segs(*side) for key, side in sides.items()} for sides in (one, two))
    texts = [DOC.format(id=name, **document) for name, document in zip("xy", documents)]
    return write("set.xml", XML.format(documents="".join(texts)))


def values(report):
    return {result.metric: result.value for result in report.results}


def test_plain_lines_against_documents(reference, write):
    """Lines in the order of the sentences are the documents of the reference, with its sources."""
    lines = write("out.txt", "\n".join(OURS) + "\n")
    rows = [{"doc_id": 7, "translation": OURS[:2]}, {"doc_id": "8", "translation": OURS[2:]}]
    from_rows = evaluate_files(write("out.jsonl", jsonl(reversed(rows))), reference, **LANGUAGES)
    from_lines = evaluate_files(lines, reference, **LANGUAGES)
    assert from_lines.results == from_rows.results and from_lines.results[1].n == 2
    documents = read_documents(path=reference, **LANGUAGES)
    assert values(evaluate(rows, documents)) == values(from_lines)
    assert from_lines.results[0].details["statistics"]["ids"] == ["7", "8"]


@pytest.mark.parametrize("count", [2, 4])
def test_another_number_of_lines(reference, write, count):
    lines = write("out.txt", "x\n" * count)
    with pytest.raises(DataError, match=f"out.txt has {count} lines, .*reference.jsonl 3 sentences in 2 documents"):
        evaluate_files(lines, reference, **LANGUAGES)


def test_references_of_several_kinds(reference, write):
    """A file of lines, a file of documents in another order and a column give the same second reference."""
    two = [["Ein.", "Zwo."], ["Drei."]]
    lines = write("out.txt", "\n".join(OURS) + "\n")
    text = write("two.txt", "Ein.\nZwo.\nDrei.\n")
    pairs = [[{"en": "x", "de": sentence} for sentence in side] for side in two]
    rows = [{"doc_id": doc_id, "translation": side} for doc_id, side in zip((7, 8), pairs)]
    documents = write("two.jsonl", jsonl(reversed(rows)))
    columns = write("columns.jsonl", jsonl([row | {"two": side} for row, side in zip(ROWS, two)]))
    reports = [
        evaluate_files(lines, [reference, text], **LANGUAGES),
        evaluate_files(lines, [reference, documents], **LANGUAGES),
        evaluate_files(lines, columns, **LANGUAGES, reference_columns=["two"]),
    ]
    assert values(reports[0]) == values(reports[1]) == values(reports[2])
    assert all("nrefs:2" in str(result.signature) for report in reports for result in report.results)
    rows = [{"doc_id": "7", "translation": OURS[:2]}, {"doc_id": "8", "translation": OURS[2:]}]
    known = read_documents(path=columns, **LANGUAGES)
    assert values(evaluate(rows, known, reference_columns=["two"])) == values(reports[0])
    assert values(reports[0])["TER"] < values(evaluate_files(lines, reference, **LANGUAGES))["TER"]


def test_references_that_do_not_fit(reference, write):
    lines = write("out.txt", "\n".join(OURS) + "\n")
    short = write("short.jsonl", jsonl([ROWS[0] | {"translation": ROWS[0]["translation"][:1]}, ROWS[1]]))
    texts = write("texts.jsonl", jsonl([row | {"ref": "x"} for row in ROWS]))
    fewer = write("fewer.jsonl", jsonl([row | {"ref": ["x"]} for row in ROWS]))
    one, again = write("one.jsonl", jsonl(ROWS[1:])), write("again.jsonl", jsonl(ROWS))
    two = write("two.txt", "a\nb\n")
    for references, options, message in (
        ([reference, short], {}, "document '7' has 1 sentence in .*short.jsonl, 2 in .*reference.jsonl"),
        ([reference, one], {}, "one.jsonl has 1 document, .* 2; not translated: 7"),
        ([reference, two], {}, "two.txt has 2 lines, .* 3 sentences"),
        (texts, {"reference_columns": ["two"]}, "no column 'two' of references; the documents have ref"),
        (texts, {"reference_columns": ["ref"]}, "document '7': 'ref' must be a list of sentences, got 'x'"),
        (fewer, {"reference_columns": ["ref"]}, "document '7' has 2 sentences, 1 in 'ref'"),
        (lines, {"translators": ["A"]}, "out.txt has plain lines; translators and columns are for documents"),
        (reference, {"translators": ["A"]}, "reference.jsonl has the format jsonl; only sets of WMT have translators"),
        ([reference, reference], {}, "the reference .*reference.jsonl is given twice, and counts once"),
        (reference, {"translators": ["A", "A"]}, "the translator A is given twice"),
    ):
        refused(message, evaluate_files, lines, references, error=DataError, **LANGUAGES, **options)
    with pytest.raises(ValueError, match="2 references, but terms, alignment use one only"):
        evaluate_files(lines, [reference, again], **LANGUAGES, discourse=["terms"], align=True)
    refused(r"give either files of references or a test set of sacrebleu \(-t\)", evaluate_files, lines)


def test_hypotheses_as_wmt_collects_them(write):
    """Lines are sentences, other languages are left out, the sources are the reference's."""
    pair, refs = {"src_lang": "en", "tgt_lang": "de_DE"}, {"refA": "Eins.\n\nZwei.", "refB": {"ref": "Ein.\n\nZwo."}}
    rows = [{"doc_id": "a", **pair, "src_text": "One.\n\nTwo.", "refs": refs}]
    rows.append({"doc_id": "b", **pair, "src_text": "Three.", "refs": {"refA": "Drei.", "refB": "Drei Stück."}})
    known = write("set.jsonl", jsonl(rows))
    outputs = [
        {"doc_id": "b", **pair, "hypothesis": "Drei Stück."},
        {"doc_id": "a", **pair, "hypothesis": "Ein.\n\nZwo.\n"},
    ]
    outputs.append({"doc_id": "a", "src_lang": "en", "tgt_lang": "cs_CZ", "hypothesis": "Jedna."})
    path = write("system.jsonl", jsonl(outputs))
    found = {name: values(evaluate_files(path, known, **LANGUAGES, translators=[name])) for name in ("refA", "refB")}
    assert found["refB"]["chrF"] == 100 > found["refA"]["chrF"]
    both = evaluate_files(path, known, **LANGUAGES, translators=["refA", "refB"])
    assert values(both)["chrF"] == 100 and "nrefs:2" in str(both.results[0].signature)
    rows = read_translations(path, read_references([known], **LANGUAGES, translators=["refA"]), **LANGUAGES)
    assert [row["source"] for row in rows] == [["One.", "", "Two."], ["Three."]]
    french = outputs[0] | {"src_lang": "fr"}
    for lines, message in (
        (outputs[2:], "system.jsonl has 0 documents, .* 2; not translated: a, b"),
        ([french, outputs[1]], "system.jsonl has 1 document, .* 2; not translated: b"),
        ([french | {"tgt_lang": 3}], "line 1: `src_lang` and `tgt_lang` must be codes of languages, got .'fr', 3"),
        ([french | {"hypothesis": 3}], "line 1: expected a document .* or a text `hypothesis`"),
    ):
        with pytest.raises(DataError, match=message):
            evaluate_files(write("system.jsonl", jsonl(lines)), known, **LANGUAGES, translators=["refA"])


def test_hypotheses_of_all_pairs_without_languages(write, caplog):
    """As WMT25 has them, with the pair in the id; a blank line parts paragraphs, which intervals can be drawn by."""
    refs = {"refA": {"ref": "Eins.\nUnd.\n\nZwei."}}
    row = {
        "doc_id": "en-de_DE_#_a",
        "src_lang": "en",
        "tgt_lang": "de_DE",
        "src_text": "One.\nAnd.\n\nTwo.",
        "refs": refs,
    }
    known = write("set.jsonl", jsonl([row]))
    outputs = [
        {"doc_id": "en-cs_CZ_#_a", "hypothesis": "Jedna.", "paragraphs_match": True},
        {"doc_id": "en-de_DE_#_a", "hypothesis": "Eins.\nUnd.\n\nDrei.", "paragraphs_match": True},
    ]
    path = write("system.jsonl", jsonl(outputs))
    report = evaluate_files(path, known, **LANGUAGES, unit="paragraph")
    assert "system.jsonl: 1 document without reference skipped, by their ids" in caplog.text
    statistics = {result.metric: result.details["statistics"] for result in report.results}
    assert statistics["TER"] == {
        "unit": "paragraph",
        "ids": ["en-de_DE_#_a:1", "en-de_DE_#_a:2"],
        "rows": [[0, 2], [1, 1]],
    }
    assert statistics["d-BLEU"]["unit"] == "document"
    with pytest.raises(DataError, match="system.jsonl: no document has a reference, by the ids of its 1"):
        evaluate_files(write("system.jsonl", jsonl(outputs[:1])), known, **LANGUAGES)


def test_documents_of_other_lines_are_one_segment(write, caplog):
    """As WMT26's organisers score them: of the reference and of all systems; a system of other pairs is skipped."""
    pair = {"src_lang": "en", "tgt_lang": "de_DE", "src_text": "One.\nTwo."}
    rows = [
        {"doc_id": name, **pair, "refs": {"a": text}} for name, text in zip("xyz", ("Eins. Zwei.", "Eins.\nZwei.") * 2)
    ]
    known = write("set.jsonl", jsonl([*rows[:2], rows[2] | {"refs": {}}]))
    texts = {"one": ("Eins.\nZwo.", "Eins.\nZwo.", "No"), "two": ("Eins. Drei.", "Eins. Drei.", "No")}
    systems = [
        write(f"{name}.jsonl", jsonl([{"doc_id": doc_id, "hypothesis": text} for doc_id, text in zip("xyz", own)]))
        for name, own in texts.items()
    ]
    systems.append(write("cs.jsonl", jsonl([{"doc_id": "other", "hypothesis": "Jedna."}])))
    reports = evaluate_systems(systems, known, **LANGUAGES, metrics=["bleu", "d-chrf"], joiner="newline")
    sides = [["Eins. Zwei.", "Eins.\nZwei."]]
    for report, name in zip(reports, texts, strict=True):
        (bleu, chrf), lines = report.results, list(texts[name][:2])
        assert bleu.value == pytest.approx(BLEU().corpus_score(lines, sides).score) and bleu.n == chrf.n == 2
        assert chrf.value == pytest.approx(CHRF().corpus_score(lines, sides).score)
    assert "set.jsonl: 2 documents as one segment each, because line counts differ, the first is 'x'" in caplog.text
    assert "cs.jsonl: no document has a reference, by the ids of its 1; skipped" in caplog.text
    refused("cs.jsonl: no document has a reference", evaluate_files, systems[2], known, **LANGUAGES)
    shown = side_by_side(systems[:2], known, **LANGUAGES)
    assert [sentence.translations["one"] for sentence in shown.sentences] == list(texts["one"][:2])


def test_outputs_of_the_terminology_task(write):
    """Rows without ids, in the order of the set; a line end inside a sentence makes no second one."""
    rows = [{"en": "A lamp.", "de": "Eine Lampe.", "proper": {}}, {"en": "A key.", "de": "Ein Schlüssel."}]
    known = write("set.jsonl", jsonl(rows))
    outputs = [{"en": "A lamp.", "terms": {"lamp": "Lampe"}, "de": "Eine\nLampe."}, rows[1]]
    report = evaluate_files(write("system.jsonl", jsonl(outputs)), known, **LANGUAGES, metrics=["chrf"])
    assert report.results[0].value == pytest.approx(100) and report.results[0].n == 2
    assert holds_translations(write("system.jsonl", jsonl(outputs))) and not holds_translations(known)
    unequal = write("unequal.jsonl", jsonl([{"en": "One.\nTwo.", "de": "Eins. Zwei."}]))
    lines = {"doc_id": "unequal-00001", "source": ["One.", "Two."], "translation": ["Eins.", "Zwei."]}
    report = evaluate_files(write("ours.jsonl", jsonl([lines])), unequal, **LANGUAGES, metrics=["chrf"])
    assert report.results[0].value == pytest.approx(100) and report.results[0].n == 1
    for lines, message in (
        (outputs[::-1], "line 1: the source 'A key.' is not the source of document 1 of .*set.jsonl"),
        (outputs * 2, "line 3: the source 'A lamp.' is not the source of document 3"),
        (outputs[:1], "system.jsonl has 1 document, .* 2; not translated: set-00002"),
        ([{"en": "A lamp."}], "line 1: expected a document with `doc_id`"),
    ):
        path = write("system.jsonl", jsonl(lines))
        refused(message, evaluate_files, path, known, error=DataError, **LANGUAGES)


def test_empty_documents_count_as_nothing(xml, write):
    """In references and outputs, in the middle and at the end, whatever the format; as if they were not there."""
    text, hole = xml.read_text(), DOC.format(id="hole", src="", a="", c="", online="")
    middle = text.replace('<doc id="y"', hole + '<doc id="y"').replace(
        "</dataset>", hole.replace("hole", "z") + "</dataset>"
    )
    with_holes = write("holes.xml", middle)
    for options in ({"translators": ["A"], "system": "Online-A"}, {"translators": ["A", "C"], "system": "Small"}):
        expected = evaluate_files(xml, [xml], **LANGUAGES, **options).results
        results = evaluate_files(with_holes, [with_holes], **LANGUAGES, **options).results
        assert [(r.metric, r.value, r.n) for r in results] == [(r.metric, r.value, r.n) for r in expected]
    rows = [*ROWS[:1], {"doc_id": "hole", "translation": []}, *ROWS[1:]]
    reference = write("holes.jsonl", jsonl(rows))
    made = [{"doc_id": row["doc_id"], "translation": [pair["de"] for pair in row["translation"]]} for row in rows]
    report = evaluate_files(write("made.jsonl", jsonl(made)), [reference], **LANGUAGES)
    assert values(report)["s-BLEU"] == pytest.approx(100) and {result.n for result in report.results} == {3, 2}
    documents = read_documents(path=reference, allow_empty=True, **LANGUAGES)
    assert values(evaluate(made, documents)) == values(report)
    made[1]["translation"] = ["Nichts."]
    refused("document 'hole': 1 translated sentence for 0 reference sentences", evaluate, made, documents)


def test_domains_and_languages_of_origin_come_with_the_references(xml, write):
    """Attributes of an XML set, columns of JSON lines and of documents in memory; a pattern goes before them."""
    report = evaluate_files(xml, xml, **LANGUAGES, system="Small", translators=["A"], by=["domain"], origlang="en")
    assert set(report.results[0].breakdown) == {"domain=news"}
    with pytest.raises(DataError, match="no document of .*set.xml with origlang 'non-en'; there are en"):
        evaluate_files(xml, xml, **LANGUAGES, system="Small", translators=["A"], origlang="non-en")
    rows = [row | {"domain": domain} for row, domain in zip(ROWS, ("talk", "chat"))]
    path, lines = write("labelled.jsonl", jsonl(rows)), write("out.txt", "\n".join(OURS) + "\n")
    in_files = evaluate_files(lines, path, **LANGUAGES, by=["domain"])
    assert set(in_files.results[2].breakdown) == {"domain=talk", "domain=chat"}
    documents = read_documents("jsonl", **LANGUAGES, path=path)
    found = [{"doc_id": "7", "translation": OURS[:2]}, {"doc_id": "8", "translation": OURS[2:]}]
    in_memory = evaluate(found, documents, by=["domain"], domains=None)
    assert in_memory.results[2].breakdown == in_files.results[2].breakdown
    by_id = evaluate(found, documents, by=["domain"], domains="[0-9]")
    assert set(by_id.results[2].breakdown) == {"domain=7", "domain=8"}
    with pytest.raises(ValueError, match="needs the domains: a column 'domain' with that of every document"):
        evaluate_files(lines, write("some.jsonl", jsonl([rows[0], ROWS[1]])), **LANGUAGES, by=["domain"])
    with pytest.raises(DataError, match="labelled.jsonl does not say of every document which language it was"):
        evaluate_files(lines, path, **LANGUAGES, origlang="en")


def test_systems_and_translators_of_an_xml_set(xml, write):
    report = evaluate_files(xml, xml, **LANGUAGES, system="Online-A", translators=["C"])
    assert report.name == "Online-A" and report.results[0].split == "references C"
    lines = write("online.txt", "Eins.\nZwo.\nDrei Stück.\n")
    assert report.results == evaluate_files(lines, xml, **LANGUAGES, translators=["C"]).results
    both = evaluate_files(xml, xml, **LANGUAGES, system="Online-A", translators=["A", "C"])
    assert values(both)["TER"] == 0 < values(report)["TER"] and "nrefs:2" in str(both.results[0].signature)
    assert values(evaluate_files(xml, xml, **LANGUAGES, system="Small", translators=["A"]))["TER"] == 0


def test_unknown_systems_and_translators(xml, write):
    options = LANGUAGES | {"translators": ["A"]}
    with pytest.raises(DataError, match=r"2 <hyp> in 'de', systems 'Online-A', 'Small'; choose .* \(--system\)"):
        evaluate_files(xml, xml, **options)
    with pytest.raises(DataError, match="systems 'Online-A', 'Small', requested was 'Big'"):
        evaluate_files(xml, xml, **options, system="Big")
    with pytest.raises(DataError, match="translators 'A', 'C', requested was 'B'; .*translator="):
        evaluate_files(xml, xml, **LANGUAGES, translators=["B"], system="Small")
    with pytest.raises(DataError, match="translators 'A', 'C'; choose one of them with translator="):
        evaluate_files(xml, xml, **LANGUAGES, system="Small")
    with pytest.raises(DataError, match="out.txt is not an XML set of WMT, and only these have named systems"):
        evaluate_files(write("out.txt", "a\nb\nc\n"), xml, **options, system="Small")
    with pytest.raises(DataError, match="translator 'A' and system 'Small' are two targets; choose one"):
        read_documents(path=xml, **LANGUAGES, translator="A", system="Small")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metrics": ["blue"]}, "unknown metric 'blue': expected some of .*d-bleu.*did you mean 'bleu'"),
        ({"metrics": []}, "no metrics; give some of"),
        ({"metrics": ["chrf"], "tokenize": "char"}, "tokenize is an option of bleu and d-bleu, which is not scored"),
        (
            {"metrics": ["bleu"], "ter_no_punct": True},
            "ter_no_punct is an option of ter and d-ter, which is not scored",
        ),
        ({"metrics": ["d-bleu"], "sentence_scores": "x.jsonl"}, "no metric scores single sentences; add some of bleu"),
        ({"tokenize": "13b"}, "unknown BLEU tokenizer '13b'"),
    ],
)
def test_options_that_do_not_fit(reference, write, options, message):
    refused(message, evaluate_files, write("out.txt", "\n".join(OURS) + "\n"), reference, **LANGUAGES, **options)


def test_metrics_by_choice(reference, write):
    lines = write("out.txt", "\n".join(OURS) + "\n")
    report = evaluate_files(lines, reference, **LANGUAGES, metrics=["chrf++", "ter", "chrf++"])
    assert [result.metric for result in report.results] == ["chrF++", "TER"]
    details = report.results[0].details
    assert len(details["interval"]) == 2 and len(details["statistics"]["rows"][0]) == 3 * (6 + 2)


def test_the_digest_is_of_the_sentences():
    """Not of the order of references and documents, nor of documents without a sentence."""

    def digest(*sides, sources):
        ids = [str(number) for number in range(len(sources))]
        return References(path="r", dataset="r", ids=ids, sides=list(sides), sources=sources).digest

    first, second, sources = [["a"], ["b"]], [["c"], ["d"]], [["x"], ["y"]]
    digests = [digest(first, second, sources=sources), digest(second, first, sources=sources)]
    digests.append(digest(*([*side, []] for side in (first, second)), sources=[*sources, []]))
    assert len(set(digests)) == 1 != len({*digests, digest(first, first, sources=sources)})
