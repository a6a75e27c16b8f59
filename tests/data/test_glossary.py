"""Files of terms in five formats, and terms in text by base forms."""

import pytest

from hf_docmt.data.glossary import BaseForms, Glossary, Term
from hf_docmt.data.glossary_files import read_entries
from hf_docmt.files import DataError

MIN = '<TBX dialect="TBX-Min"><header/><body>{}</body></TBX>'
SET = '<langSet xml:lang="{}">{}</langSet>'
CORE = (
    '<tbx xmlns="urn:iso:std:iso:30042:ed-2" xmlns:min="http://www.tbxinfo.net/ns/min"><text><body><conceptEntry>'
    '<langSec xml:lang="en-GB"><termSec><term>lamp </term></termSec></langSec><langSec xml:lang="de">'
    "<termSec><term>Leuchte</term></termSec><termSec><term>Funzel</term>"
    "<min:administrativeStatus>deprecatedTerm-admn-sts</min:administrativeStatus></termSec></langSec>"
    '<langSec xml:lang="fr"><termSec><term>lampe</term></termSec></langSec></conceptEntry></body></text></tbx>'
)
LAMP = [("lamp", "Leuchte", False), ("lamp", "Funzel", True)]
FILES = [
    ("terms.tsv", "lamp\tLeuchte\nlamp\tNOT Funzel\n", LAMP),
    ("terms.tsv", "\ufeffkey\tSource\tTarget\n1\tlamp\tLeuchte\n2\tmoon\t\n", LAMP[:1]),
    ("terms.csv", 'de;note;en\n"Leuchte";"a; b";lamp\nNOT Funzel;;lamp\n', LAMP),
    ("terms.csv", '"lamp, small",Leuchte\n', [("lamp, small", "Leuchte", False)]),
    ("terms.utx", "#UTX-S 1.01; de-DE/en-US; 2020\n#src\ttgt\tsrc:pos\nLeuchte\tlamp \tnoun\n", LAMP[:1]),
    ("terms.md", "Text: no term.\n\n* the lamp (a light): die Leuchte (singular)\n* the lamp: NOT Funzel\n", LAMP),
    ("terms.md", "- to shine: leuchten\n- `x`: y: z\n", [("shine", "leuchten", False), ("`x`", "y: z", False)]),
    ("terms.tbx", CORE, LAMP),
    (
        "terms.tbx",
        MIN.format(
            "<termEntry>"
            + SET.format("en", "<tig><term>lamp</term></tig>")
            + SET.format("de", "<ntig><termGrp><term>Leuchte</term></termGrp></ntig>")
            + SET.format("de", '<tig><term>Funzel</term><termNote type="termStatus">superseded</termNote></tig>')
            + "</termEntry>"
        ),
        LAMP,
    ),
]  # fmt: skip
BAD = [
    ("terms.tsv", "lamp Leuchte\n", "line 1: 'lamp Leuchte', expected a source term and its translation with a tab"),
    ("terms.tsv", "lamp\tLeuchte\n\tMond\n", "line 2"),
    ("terms.csv", "lamp\n", "line 1: 'lamp', expected a source term and its translation with ','"),
    ("terms.tsv", "source\ttarget\n", "no term with a translation"),
    ("terms.md", "only text\n", "no term with a translation"),
    ("terms.utx", "#UTX 1.11; fr/es\nlampe\tlampara\n", "languages fr and es, expected en and de"),
    ("terms.tbx", CORE.replace("de", "da"), "no terms in de, but in da, en-GB, fr"),
    ("terms.tbx", CORE.replace('"de"', '"da"').replace("fr", "da"), "no terms in de, but in da, en-GB$"),
    ("terms.tbx", "<tbx>", "broken XML"),
]


@pytest.mark.parametrize(("name", "text", "expected"), FILES)
def test_files(tmp_path, name, text, expected):
    (tmp_path / name).write_text(text)
    assert read_entries(tmp_path / name, "en", "de") == expected


@pytest.mark.parametrize(("name", "text", "words"), BAD)
def test_bad_files(tmp_path, name, text, words):
    (tmp_path / name).write_text(text)
    with pytest.raises(DataError, match=words):
        read_entries(tmp_path / name, "en", "de")


@pytest.mark.parametrize(
    ("lang", "phrase", "text", "found"),
    [
        ("de", "rotes Haus", "Zwei ROTE  Häuser.", ["ROTE  Häuser"]),
        ("de", "Ventil", "Der Ventilsitz, das Ventil-Teil", ["Ventil"]),
        ("en", "disc", "Discs and discos", ["Discs"]),
        ("pt", "arquivo", "os arquivos", ["arquivos"]),
        ("ja", "心電図", "この心電図は", ["心電図"]),
        ("xx", "foo bar", "a Foo bar, foobar", ["Foo bar"]),
    ],
)
def test_spans(lang, phrase, text, found):
    assert [text[slice(*span)] for span in BaseForms(lang).spans(phrase, text)] == found


def test_terms_of_a_sentence():
    """The longest of overlapping terms, the one that is spelled so first; several entries are one term."""
    entries = [("header", "Kopf"), ("header", "Header"), ("headers", "Köpfe"), ("form header", "Formularkopf")]
    glossary = Glossary([*entries, ("wrap", "hüllen", True), ("valve", "Ventil")], "en", "de")
    text = "Form headers wrap the headers."
    matches = glossary.in_source(text)
    assert [(match.term.source, text[slice(*match.span)]) for match in matches] == [
        ("form header", "Form headers"),
        ("wrap", "wrap"),
        ("headers", "headers"),
    ]
    assert not Glossary([("meeting", "Sitzung")], "en", "de").in_source("We met.")  # which has the base form `meet`
    header, _, _, wrap, valve = glossary.terms
    assert header == Term("header", ("Kopf", "Header"))
    assert glossary.is_met(header, "im Kopfe") and not glossary.is_met(header, "die Überschrift")
    assert glossary.is_met(wrap, "") and glossary.forbidden_in(wrap, "Er hüllt es ein.") == ["hüllen"]
    assert glossary.is_met(valve, "der Ventilsitz") and not glossary.is_met(valve, "Konventilat")


@pytest.mark.parametrize("entries", [[], [("", "x")], [("x", "\u00ad")]])
def test_bad_entries(entries):
    with pytest.raises(ValueError, match="glossary"):
        Glossary(entries, "en", "de")
