"""The benchmark of translating documents: the same translations with drafts and without."""

import pytest
from support.tiny_models import EOS, build

from hf_docmt.bench.document_translation import DocumentTranslation
from hf_docmt.bench.models import load_documents
from hf_docmt.data.documents import sentences
from hf_docmt.data.tokenizers import train_tokenizer


def test_documents_with_drafts_and_without(tmp_path):
    rows = load_documents(3, "en", "de")
    tokenizer = train_tokenizer([text for row in rows for lang in ("en", "de") for text in sentences(row, lang)])
    model = build(vocab_size=len(tokenizer), past_context=2)
    model.final_logits_bias[0, EOS] += 2
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    found = DocumentTranslation(model=str(tmp_path), number=2, repeats=1).run().to_json()
    assert [row["case"].split(",")[0] for row in found["rows"]] == [
        "sliding",
        "sliding : sentence",
        "sequential : sentence",
    ]
    drafts = found["rows"][0]
    assert drafts["equal"] == 1 and 0 < drafts["accepted"] <= 1 and found["checks"][1]["ok"]
    assert found["rows"][2]["accepted"] == 0 and all(row["ratio"] > 0 for row in found["rows"])


def test_numbers_that_are_refused():
    with pytest.raises(ValueError, match="number: expected a whole number of at least 1, got 0"):
        DocumentTranslation(number=0)
