"""Tokenized documents: flat arrays of token ids and of borders, in memory or in files."""

import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from transformers import PreTrainedTokenizerBase

from hf_docmt.modeling.document_state import has_text
from hf_docmt.store import text_digest

SENTENCES_PER_CALL = 1000
BLOCK = 2**22  # values of an array that are read at a time
ARRAYS = {  # name: type of its values
    "document_starts": np.int64,
    "doc_id_bytes": np.uint8,
    "doc_id_starts": np.int64,
    "source_ids": np.int32,
    "source_starts": np.int64,
    "target_ids": np.int32,
    "target_starts": np.int64,
}


class FileArray:
    """A one-dimensional array in a file, of which slices are read: none of it stays in the memory of the process.

    A mapped file would count as resident memory page by page as it is touched. Pickled it is the name of the file.
    """

    def __init__(self, path: str | Path, dtype):
        self.path, self.dtype = Path(path), np.dtype(dtype)
        self._file = open(self.path, "rb", buffering=0)  # noqa: SIM115  # as long as the array lives
        self._length = os.fstat(self._file.fileno()).st_size // self.dtype.itemsize

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, where: slice) -> np.ndarray:
        start, stop, _ = where.indices(self._length)
        size = max(0, stop - start) * self.dtype.itemsize
        data = os.pread(self._file.fileno(), size, start * self.dtype.itemsize)
        if len(data) < size:
            raise OSError(f"{self.path} has become shorter while it was read; delete its folder, it is made again")
        return np.frombuffer(data, dtype=self.dtype)

    def __reduce__(self):
        return FileArray, (self.path, self.dtype)


class TokenizedSentences:
    """The token ids of many sentences in one array: sentence i is `ids[starts[i]:starts[i + 1]]`."""

    def __init__(self, ids: np.ndarray | FileArray, starts: np.ndarray):
        self.ids, self.starts = ids, starts

    def lists(self, start: int, stop: int) -> list[list[int]]:
        """Token ids of the sentences start to stop - 1."""
        borders = self.starts[start : stop + 1].tolist()
        ids = self.ids[borders[0] : borders[-1]].tolist()
        return [ids[first - borders[0] : end - borders[0]] for first, end in zip(borders, borders[1:])]


class TokenizedDocuments:
    """Documents as token ids, without special tokens.

    `document_starts` (documents + 1,) int64 in sentences of the corpus; `sides` are the `TokenizedSentences` of source
    and target. `arrays` are those of `ARRAYS`.
    """

    def __init__(self, arrays: dict[str, np.ndarray | FileArray], folder: Path | None = None):
        self.arrays, self.folder = arrays, folder
        self.document_starts = arrays["document_starts"]
        source, target = (
            TokenizedSentences(arrays[f"{side}_ids"], arrays[f"{side}_starts"]) for side in ("source", "target")
        )
        self.sides = (source, target)

    @classmethod
    def open(cls, folder: Path) -> "TokenizedDocuments":
        """Those written by `write_tokenized`: ids are read when they are asked for, borders are mapped."""
        return cls({name: _open_array(folder / name, dtype) for name, dtype in ARRAYS.items()}, folder)

    def __len__(self) -> int:
        return len(self.document_starts) - 1

    def __reduce__(self):
        return (
            (TokenizedDocuments, (self.arrays,)) if self.folder is None else (TokenizedDocuments.open, (self.folder,))
        )

    def doc_id(self, document: int) -> str:
        start, stop = self.arrays["doc_id_starts"][document : document + 2].tolist()
        return self.arrays["doc_id_bytes"][start:stop].tobytes().decode()

    @cached_property
    def digest(self) -> str:
        """Digest of tokens and borders; not of document ids."""
        file = self.folder and self.folder / "digest"
        if file and file.is_file():
            return file.read_text()
        return text_digest(" ".join(array_digest(self.arrays[name]) for name in ARRAYS if "doc_id" not in name))


def tokenize_table(
    table: pa.Table, tokenizer: PreTrainedTokenizerBase, languages: tuple[str, str], drop_blank: bool = False
) -> TokenizedDocuments:
    """The documents of an Arrow table with columns `doc_id` and `translation`, every sentence tokenized once.

    Text that looks like a special token is read as plain text. With `drop_blank`, pairs whose source is blank are left
    out, and documents that then are empty.
    """
    translation, ids = table.column("translation"), table.column("doc_id")
    counts = pc.list_value_length(translation).to_numpy().astype(np.int64)
    texts = {
        lang: pa.chunked_array([chunk.flatten().field(lang) for chunk in translation.chunks]) for lang in languages
    }
    if drop_blank:
        kept = np.array([has_text(text) for some in _lists(texts[languages[0]]) for text in some])
        if not kept.all():
            texts = {lang: column.filter(pa.array(kept)) for lang, column in texts.items()}
            counts = np.add.reduceat(kept, np.cumsum(counts) - counts, dtype=np.int64)
            ids, counts = ids.filter(pa.array(counts > 0)), counts[counts > 0]
    arrays = {"document_starts": _starts(counts)}
    names = [text.encode() for text in ids.to_pylist()]
    arrays["doc_id_bytes"] = np.frombuffer(b"".join(names), dtype=np.uint8)
    arrays["doc_id_starts"] = _starts(np.array([len(name) for name in names], dtype=np.int64))
    for side, lang in zip(("source", "target"), languages):
        tokenized = tokenize_sentences(_lists(texts[lang]), tokenizer, is_target=side == "target")
        arrays |= {f"{side}_ids": tokenized.ids, f"{side}_starts": tokenized.starts}
    return TokenizedDocuments(arrays)


def tokenize_sentences(
    texts: Iterable[list[str]], tokenizer: PreTrainedTokenizerBase, *, is_target: bool
) -> TokenizedSentences:
    """The sentences of some lists, tokenized without special tokens into arrays in memory."""
    ids, lengths = [np.zeros(0, dtype=np.int32)], [np.zeros(0, dtype=np.int64)]
    for batch in texts:
        sides = {"text_target": batch} if is_target else {"text": batch}
        rows = tokenizer(
            **sides,
            add_special_tokens=False,
            split_special_tokens=True,
            return_attention_mask=False,
            return_token_type_ids=False,
            verbose=False,
        )["input_ids"]
        lengths.append(np.array([len(row) for row in rows], dtype=np.int64))
        ids.append(np.array([token for row in rows for token in row], dtype=np.int32))
    tokens = np.concatenate(ids)
    special = [token for token in tokenizer.all_special_ids if token != tokenizer.unk_token_id]
    if tokenizer.unk_token_id is not None:  # a word of the text that the vocabulary only has as a special token
        tokens[np.isin(tokens, special)] = tokenizer.unk_token_id
    return TokenizedSentences(tokens, _starts(np.concatenate(lengths)))


def write_tokenized(parts: Iterable[TokenizedDocuments], folder: Path) -> None:
    """Write the documents of all parts, in order, a file for each array, and their digest."""
    ends = dict.fromkeys((name for name in ARRAYS if name.endswith("starts")), 0)
    with ExitStack() as stack:
        files = {name: stack.enter_context((folder / name).open("wb")) for name in ARRAYS}
        for name in ends:
            files[name].write(np.zeros(1, dtype=np.int64).data)
        for part in parts:
            for name, array in part.arrays.items():
                if name in ends:
                    array = array[1:] + ends[name]
                    ends[name] = int(array[-1]) if len(array) else ends[name]
                files[name].write(np.ascontiguousarray(array).data)
    (folder / "digest").write_text(TokenizedDocuments.open(folder).digest)


def array_digest(array: np.ndarray | FileArray) -> str:
    """Digest of type, number and values of a one-dimensional array; it need not be in memory."""
    digest = hashlib.sha256(f"{np.dtype(array.dtype).str} {len(array)} ".encode())
    for start in range(0, len(array), BLOCK):
        digest.update(np.ascontiguousarray(array[start : start + BLOCK]).data)
    return digest.hexdigest()


def _open_array(path: Path, dtype) -> np.ndarray | FileArray:
    if not path.name.endswith("starts"):
        return FileArray(path, dtype)
    return np.asarray(np.memmap(path, dtype, mode="r")) if path.stat().st_size else np.zeros(0, dtype)


def _starts(lengths: np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def _lists(texts: pa.ChunkedArray) -> Iterator[list[str]]:
    """The texts, some at a time."""
    for chunk in texts.chunks:
        for start in range(0, len(chunk), SENTENCES_PER_CALL):
            yield chunk.slice(start, SENTENCES_PER_CALL).to_pylist()
