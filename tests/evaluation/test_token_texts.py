"""Tokens and the text they stand for."""

import math

from support.systems import (
    pieces,
)

from hf_docmt.evaluation.systems.model_system import piece_spans, piece_texts, word_spans


def test_pieces(tokenizer):
    sentence = "Der schläft, der Hund!"
    ids = pieces(tokenizer, sentence)
    texts = piece_texts(tokenizer, ids)
    assert len(texts) == len(ids) and "".join(texts).replace("\ufffd", "") == sentence
    spans = piece_spans(tokenizer, sentence, is_target=False)
    assert len(spans) == len(ids) and spans[-1][1] == len(sentence)
    assert all(sentence[start:end].strip() for start, end in spans)
    assert word_spans("l'ami -- là!") == [(0, 1), (1, 2), (2, 5), (6, 8), (9, 11), (11, 12)]
    assert math.isclose(len(word_spans("")), 0)
