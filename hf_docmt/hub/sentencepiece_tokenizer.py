"""Vocabularies over SentencePiece models, one or two, as the tokenizer that transformers has for Marian."""

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path

from transformers import MarianTokenizer


def sentencepiece_tokenizer(
    vocabularies: Sequence[dict[str, int]],
    models: Sequence[str | Path],
    special: dict[str, str],
    languages: tuple[str | None, str | None],
) -> MarianTokenizer:
    """The tokenizer with the ids of `vocabularies`, source first, that cuts texts by `models`, source first."""
    separate = vocabularies[0] != vocabularies[-1]
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / name for name in ("vocab.json", "target_vocab.json")]
        for file, vocabulary in zip(files, (vocabularies[0], vocabularies[-1])):
            file.write_text(json.dumps(vocabulary), encoding="utf-8")
        return MarianTokenizer(
            source_spm=str(models[0]),
            target_spm=str(models[-1]),
            vocab=str(files[0]),
            target_vocab_file=str(files[1]) if separate else None,
            separate_vocabs=separate,
            source_lang=languages[0],
            target_lang=languages[1],
            split_special_tokens=False,
            clean_up_tokenization_spaces=False,
            model_max_length=int(1e9),
            **special,
        )
