"""Translation memories: which sentences keep an earlier translation."""

import json

import pytest
from support.errors import refused
from support.tiny_models import build, word_tokenizer

from hf_docmt.translation.group_translation import GroupTranslator, TranslationSettings
from hf_docmt.translation.job_input import Group
from hf_docmt.translation.memory import Memory

ENTRIES = [
    [("Open", "Öffnen"), ("The door.", "Die Tür."), ("Open", "Offen"), ("Empty", " ")],
    [("The  lamp is old.", "Die Lampe ist alt."), ("Twice", "Zweimal"), ("Twice", "Zweimal")],
    [("<b>Press</b> OK", "<b>OK</b> drücken")],
]


@pytest.mark.parametrize(
    ("document", "targets"),
    [
        (["The lamp is  old.", "Twice"], ["Die Lampe ist alt.", "Zweimal"]),  # wherever there is one translation alone
        (["Open", "The door."], ["Öffnen", "Die Tür."]),  # in the same place
        (["The door.", "Open", "Empty"], ["Die Tür.", "Offen", None]),
        (["Press OK", "<b>Press</b> OK", "Press <b>OK</b>"], ["OK drücken", "<b>OK</b> drücken", "OK drücken"]),  # tags
        (["The lamp", "Open", "The door", ""], [None, None, None, None]),
    ],
)
def test_exact_matches(document, targets):
    assert [each.target for each in Memory(ENTRIES).applied(document)] == targets
    known = Memory(ENTRIES).applied(Memory([[(document[0], "other")]]).applied(document))
    assert known[0].target == "other"


def test_files(tmp_path):
    """TMX with several sentences in a segment, and JSON lines."""
    tmx, rows = tmp_path / "a.tmx", tmp_path / "b.jsonl"
    units = [("One. Two.", "Eins. Zwei."), ("Three. Four.", "Drei")]
    variants = (f'<tu><tuv lang="en"><seg>{s}</seg></tuv><tuv lang="de"><seg>{t}</seg></tuv></tu>' for s, t in units)
    tmx.write_text(f"<tmx><body>{''.join(variants)}</body></tmx>")
    rows.write_text(json.dumps({"doc_id": "a", "translation": [{"en": "Five", "de": "Fünf"}]}))
    memory = Memory.read([tmx, rows], "en", "de")
    assert [each.target for each in memory.applied(["Two.", "Three. Four.", "Five"])] == ["Zwei.", "Drei", "Fünf"]
    refused("name that of the translations", Memory.read, [tmx], "en", None)


def test_in_a_job(tmp_path):
    model = tmp_path / "model"
    build(past_context=1).save_pretrained(model)
    word_tokenizer().save_pretrained(model)
    row = {"doc_id": "a", "translation": [{"en": "w7 w8"}, {"en": "w9"}]}
    (tmp_path / "memory.jsonl").write_text(
        json.dumps({"doc_id": "m", "translation": [{"en": "w7 w8", "de": " Als  Text"}]})
    )
    settings = TranslationSettings(str(model), "en", memory=(str(tmp_path / "memory.jsonl"),))
    (result,) = GroupTranslator(settings)(Group(0, [row]))
    assert result["translation"][0] == " Als  Text" and result["from_memory"] == 1
