"""The name of the separator in a text: the separator in a plain call of the tokenizer, text to data and strategies."""

import pytest
import torch
from support.language_models import FAMILIES, TEXT, TOKENIZERS
from support.tiny_models import build
from transformers import AutoTokenizer

from hf_docmt.data.tokenized_documents import tokenize_sentences
from hf_docmt.data.tokenizers import adapt_tokenizer, train_tokenizer
from hf_docmt.modeling.document_state import token_ids

FIRST, SECOND = "der hund .", "die katze ."


def make_tokenizer(kind: str, folder):
    if kind in FAMILIES:
        return adapt_tokenizer(TOKENIZERS[kind](folder))[0]
    return train_tokenizer(TEXT * 3, model=kind, vocab_size=290)


@pytest.mark.parametrize("kind", ["bpe", "unigram", *FAMILIES])
def test_separators_in_a_text(kind, tmp_path):
    """Also of a tokenizer that was saved and loaded; blanks around a separator are no text."""
    made = make_tokenizer(kind, tmp_path)
    made.save_pretrained(tmp_path / "saved")
    for tokenizer in (made, AutoTokenizer.from_pretrained(tmp_path / "saved")):
        first, second = (tokenizer(text, add_special_tokens=False)["input_ids"] for text in (FIRST, SECOND))
        whole = [*first, tokenizer.sep_token_id, *second]
        for text in (f"{FIRST}<sep>{SECOND}", f"{FIRST} <sep> {SECOND}"):
            assert tokenizer(text, add_special_tokens=False)["input_ids"] == whole
            inputs = tokenizer(text)
            assert set(inputs) == {"input_ids", "attention_mask"}
            assert str(whole)[1:-1] in str(inputs["input_ids"])
            assert tokenizer.sep_token_id not in token_ids(text, tokenizer)
            read = tokenize_sentences([[text]], tokenizer, is_target=False).ids.tolist()
            assert read == token_ids(text, tokenizer)
            assert tokenizer(text, add_special_tokens=False)["input_ids"] == whole  # as before


def test_generate_reads_segments():
    """Plain `generate` on two sentences gives what the strategy `full` makes of them."""
    tokenizer = train_tokenizer(TEXT * 3, vocab_size=290)
    model = build("concat", vocab_size=len(tokenizer), past_context=1, seed=2)
    ids = model.generate(**tokenizer(f"{FIRST} <sep> {SECOND}", return_tensors="pt"), max_new_tokens=9)
    segment = [*token_ids(FIRST, tokenizer), tokenizer.sep_token_id, *token_ids(SECOND, tokenizer), 3]
    assert torch.equal(ids, model.generate(torch.tensor([segment]), max_new_tokens=9))
    assert not torch.equal(ids, model.generate(**tokenizer(FIRST, return_tensors="pt"), max_new_tokens=9))
