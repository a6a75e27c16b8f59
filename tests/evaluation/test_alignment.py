"""Free text against reference sentences: merged, split, dropped and added sentences, rates, nothing lost."""

import json
import random
import re
import unicodedata
from importlib.metadata import PackageNotFoundError

import pytest
import sacrebleu
from support.corpus_scores import corpus_results
from support.errors import refused

from hf_docmt.evaluation import alignment
from hf_docmt.evaluation.alignment import align_documents, cut
from hf_docmt.evaluation.metrics import TranslatedDocuments
from hf_docmt.messages import install_command

REFERENCE = [
    "Der Hund schläft.",
    "Er träumt von seinem großen Knochen.",
    "Die Katze sitzt auf der Matte.",
    "„Sie ist müde“, sagte Anna.",
]
MERGED = "Der Hund schläft und er träumt von seinem großen Knochen."
ADDED = "Draußen regnet es heute stark, und ein Wind weht."


@pytest.fixture(autouse=True)
def needs_mweralign(request):
    if request.function is not test_missing_package:
        pytest.importorskip("mweralign")


def rates(found, references, **labels):
    """The results of the three rates."""
    documents = TranslatedDocuments(found.documents, references, alignment=found.signature, **labels)
    return [metric.score(documents)[0] for metric in found.rates]


def aligned(*lines, **options):
    return align_documents([" ".join(lines)], [REFERENCE], **options)


@pytest.mark.parametrize(
    ("lines", "expected", "under", "over", "empty"),
    [
        (REFERENCE, REFERENCE, 0, (0, 20), 0),
        (
            [MERGED, *REFERENCE[2:]],
            ["Der Hund schläft und", "er träumt von seinem großen Knochen.", *REFERENCE[2:]],
            0,
            (0, 21),
            0,
        ),
        (
            [REFERENCE[0], "Er träumt.", "Von seinem großen Knochen.", *REFERENCE[2:]],
            [REFERENCE[0], "Er träumt. Von seinem großen Knochen.", *REFERENCE[2:]],
            0,
            (0, 20),
            0,
        ),
        ([*REFERENCE[:2], REFERENCE[3]], [*REFERENCE[:2], "", REFERENCE[3]], 1, (0, 14), 1),
        ([REFERENCE[0], ADDED, *REFERENCE[1:]], [f"{REFERENCE[0]} {ADDED}", *REFERENCE[1:]], 0, (9, 29), 0),
        (["DER HUND  SCHLÄFT.", *REFERENCE[1:]], ["DER HUND SCHLÄFT.", *REFERENCE[1:]], 0, (0, 20), 0),
        (["Der Hund"], ["Der Hund", "", "", ""], 3, (0, 2), 3),
        ([""], ["", "", "", ""], 4, (0, 0), 4),
    ],
    ids=["same", "merged", "split", "dropped", "added", "case", "broken off", "nothing"],
)
def test_constructed(lines, expected, under, over, empty):
    found = aligned(*lines)
    assert found.documents == (tuple(expected),)
    assert (found.under, found.over, found.empty) == (((under, 4),), (over,), empty)
    assert found.inserted[0][0] == (1 if ADDED in lines else 0)


def test_inserted_sentences():
    """Beside a long sentence, too, where words beyond do not count; of two halves of a sentence none is inserted."""
    long = "Der alte Hund des Nachbarn schläft seit gestern Abend hinter dem Haus, weil es regnet."
    halves = "Der alte Hund des Nachbarn schläft seit gestern Abend. Er liegt hinter dem Haus, weil es regnet."
    added = f"{long} Das Brot war teuer."
    for text, counts in ((added, (1, 2)), (halves, (0, 2)), (f"{long} Ja.", (0, 2)), (long, (0, 1))):
        found = align_documents([text], [[long]])
        assert found.inserted == (counts,) and found.over[0][0] == 0, text
    *_, result = rates(align_documents([added], [[long]]), [[long]])
    assert (result.metric, result.value, result.n) == ("inserted sentences", 50, 2)
    chinese = align_documents(["我喜欢猫。今天下雨了。"], [["我喜欢猫。"]], target_lang="zh")
    assert chinese.inserted == ((1, 2),)


def test_punctuation_stays_with_its_word():
    """A quotation mark opens the sentence that it belongs to, the mark after a word closes its own."""
    assert [(token.key, token.begins, token.is_word) for token in cut("„Sie ist’s“, X!", "words")] == [
        ("„", True, False),
        ("sie", False, True),
        ("ist’s", True, True),
        ("“", False, False),
        (",", False, False),
        ("x", True, True),
        ("!", False, False),
    ]
    found = aligned("Der Hund schläft!", "Träumt er?", "„Sie ist müde“, sagte sie.")
    assert "".join(found.documents[0]).count("„Sie") == 1 and all(
        part[:1] not in set("“,.!?") for part in found.documents[0]
    )


def test_no_cut_before_closing_punctuation():
    """Not even where fewer edits would be needed."""
    assert align_documents(["a??? b"], [["a", "? ? ? b"]]).documents == (("a???", "b"),)
    assert align_documents(["a ??? b"], [["a", "? ? ? b"]]).documents == (("a", "??? b"),)


def test_characters():
    """Languages without blanks are cut between characters, never before closing punctuation."""
    reference = ["我喜欢猫。", "他不喜欢AI。", "今天下雨了。"]
    found = align_documents(["我喜欢猫。他很不喜欢AI。今天下雨。"], [reference], target_lang="zh")
    assert found.documents == (("我喜欢猫。", "他很不喜欢AI。", "今天下雨。"),)
    assert found.signature["tokens"] == "characters"
    assert [token.key for token in cut("他AI2は。", "characters")] == ["他", "ai2", "は", "。"]
    for lang, tokens in (("zh_CN", "characters"), ("ja", "characters"), ("de", "words"), (None, "words")):
        assert align_documents(["a"], [["a"]], target_lang=lang).signature["tokens"] == tokens


@pytest.mark.parametrize("lang", ["de", "zh"])
def test_nothing_is_lost(lang):
    """As many sentences as the reference has, and all the text in its order, whatever stands in it."""
    strange = "a|b.|###|#|▁x|á|।|(c|„Hi|\u200b|\x00|\u2028|😀|no-go|...|i̇".split("|")
    rng = random.Random(0)
    texts = [" ".join(rng.choices(strange, k=rng.randrange(12))) for _ in range(300)]
    references = [
        [" ".join(rng.choices(strange, k=rng.randrange(4))) for _ in range(rng.randrange(1, 6))] for _ in texts
    ]
    found = align_documents(texts, references, target_lang=lang)
    assert [len(document) for document in found.documents] == [len(document) for document in references]
    for text, document in zip(texts, found.documents):
        assert "".join(" ".join(document).split()) == "".join(text.split())
        assert all(unicodedata.category(part[0])[0] != "Z" for part in document if part)


def test_empty_references_get_no_words():
    assert align_documents(["a b c"], [["a b", "", "c"]]).documents == (("a b", "", "c"),)
    assert align_documents(["a b", "", ""], [["", ""], ["a"], []]).documents == (("a b", ""), ("",), ())
    found = align_documents(["a b"], [["", "..."]])
    assert found.documents == (("", "a b"),) and found.under == ((0, 0),) and found.over == ((2, 2),)


def test_lines_are_one_text():
    assert align_documents([REFERENCE[:3] + [REFERENCE[3]]], [REFERENCE]) == aligned(*REFERENCE)
    assert align_documents(["a\n\nb \t c"], [["a", "b c"]]).documents == (("a", "b c"),)


def test_documents_are_aligned_one_by_one():
    texts = [REFERENCE[0], " ".join(REFERENCE), "", REFERENCE[3]]
    references = [REFERENCE[:2], REFERENCE, REFERENCE[:1], REFERENCE[2:]]
    whole = align_documents(texts, references, doc_ids=list("pqrs"))
    for number, (text, reference) in enumerate(zip(texts, references)):
        alone = align_documents([text], [reference])
        assert whole.documents[number] == alone.documents[0] and whole.under[number] == alone.under[0]


def test_short_and_long_parts():
    """Half as many words and twice as many are not too short or too long."""
    found = align_documents(
        ["a b", "a", "a b c d e f g h", "a b c d e f g h i"], [["a b c d"], ["a b c"]] + [["a b c d"]] * 2
    )
    assert found.under == ((0, 1), (1, 1), (0, 1), (0, 1)) and found.over == ((0, 2), (0, 1), (0, 8), (5, 9))
    assert found.empty == 0


def test_results():
    """Rates by hand, over two documents: one sentence of eight dropped, nine words of 43 added."""
    texts = [" ".join([*REFERENCE[:2], REFERENCE[3]]), " ".join([REFERENCE[0], ADDED, *REFERENCE[1:]])]
    found = align_documents(texts, [REFERENCE] * 2, doc_ids=["p", "q"])
    under, over, _ = rates(found, [REFERENCE] * 2, doc_ids=["p", "q"], strategy="full", beams=5)
    assert (under.metric, under.value, under.n) == ("under-translation", 12.5, 8)
    assert (over.metric, over.value, over.n) == ("over-translation", pytest.approx(900 / 43), 43)
    assert under.details["empty"] == 1 and under.strategy == "full" and under.beams == 5
    assert under.details["statistics"] == {"unit": "document", "ids": ["p", "q"], "rows": [[1, 4], [0, 4]]}
    assert over.details["statistics"]["rows"] == [[0, 14], [9, 29]]
    assert under.details["interval"] == [0, 25]
    for result in (under, over):
        assert str(result.signature).startswith("aligned:mweralign-") and "|version:" in str(result.signature)
    assert str(under.signature) != str(over.signature)
    nothing, *_ = rates(align_documents([""], [["..."]]), [["..."]])
    assert (nothing.value, nothing.n) == (0, 0)


def test_scores_after_alignment_are_as_for_aligned_output():
    found = aligned(MERGED, *REFERENCE[2:])
    (result,) = corpus_results(found.documents, [REFERENCE], ["chrF"], alignment=found.signature)
    assert result.value == sacrebleu.corpus_chrf(list(found.documents[0]), [REFERENCE]).score
    assert str(result.signature).startswith(f"{found.signature}|segments:sentence|")


@pytest.mark.parametrize(
    ("texts", "references", "options", "message"),
    [
        ([], [], {}, "nothing to align: the references have no sentence"),
        (
            ["b", "a"],
            [["b"], []],
            {"doc_ids": ["o", "p"]},
            "document 'p': a translation, 'a', for a reference without sentences",
        ),
    ],
)
def test_bad_input(texts, references, options, message):
    refused(message, align_documents, texts, references, **options)


def test_missing_package(monkeypatch):
    def version(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr("hf_docmt.evaluation.alignment.version", version)
    message = f"mweralign (GPL-3), which is not installed: {install_command('align')}"
    refused(re.escape(message), align_documents, ["a"], [["a"]])


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("import sys; sys.exit('out of memory')", "document 'p': mweralign failed, status 1: out of memory"),
        ("import os; os.abort()", "document 'p': mweralign failed, status -6"),
        (
            f"print({json.dumps(json.dumps('a b'))})",
            "document 'p': mweralign gave 2 words in 1 sentences for 1 words and 2",
        ),
    ],
)
def test_failing_program(program, message, monkeypatch):
    monkeypatch.setattr(alignment, "_PROGRAM", program)
    with pytest.raises(RuntimeError, match=message):
        align_documents(["a"], [["a", "b"]], doc_ids=["p"])
