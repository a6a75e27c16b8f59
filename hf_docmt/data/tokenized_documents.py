"""Documents in the cache of `datasets`, and their tokens: read and tokenized once, mapped from files."""

import atexit
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from pathlib import Path
from threading import Thread, active_count

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import tokenizers
import transformers
from datasets import Dataset, Features, List, Translation, Value
from datasets.exceptions import DatasetGenerationError
from transformers import PreTrainedTokenizerBase

from hf_docmt.data.documents import CHECKED, ROWS_PER_TABLE, check_documents, checked_languages
from hf_docmt.data.readers import iterate_documents
from hf_docmt.data.readers.reader import NO_FILES, plugin_files
from hf_docmt.data.tokenizers import tokenize_sentences
from hf_docmt.files import STDIN
from hf_docmt.journal import files_digest, text_digest, value_digest
from hf_docmt.messages import __version__
from hf_docmt.modeling.text_splitting import has_text

LAYOUT = 2  # version of the files in the cache; after a change they are written again
SENTENCES_PER_CALL = 1000  # of a tokenizer
DOCUMENTS_PER_PROCESS = 10_000  # at least: a process takes a second to begin
BLOCK = 2**18  # tokens of which a digest is taken at a time
SAMPLE_SEED = 0
TOKENS = Features({"doc_id": Value("string")} | dict.fromkeys(("source", "target"), List(List(Value("int32")))))


def cached_documents(
    cache: str | Path,
    format: str = "auto",
    *,
    source_lang: str,
    target_lang: str,
    **files: str | Path | Sequence[str | Path] | None,
) -> Dataset:
    """Read documents as `iterate_documents` does, once for every state of the files, and of files of plugins.

    Files count as unchanged if path, size and times of change are the same (of content and of status, as the file
    system has them); so does a folder's list of files. Input without them (standard input, a name that is not a path)
    is read at every start. DataError as `read_documents`.
    """
    paths, languages = {k: v for k, v in files.items() if v is not None}, checked_languages(source_lang, target_lang)
    status = input_status(paths)
    key = {"layout": LAYOUT, "version": __version__, "plugins": files_digest(plugin_files())}
    key |= {"format": format, "languages": languages, "files": status}
    if status is None:
        cache = tempfile.mkdtemp(dir=cache)
        atexit.register(shutil.rmtree, cache, ignore_errors=True)

    def rows() -> Iterator[dict]:
        for row in iterate_documents(format, source_lang=source_lang, target_lang=target_lang, **paths):
            yield {"doc_id": row["doc_id"], "translation": row["translation"]}

    features = Features({"doc_id": Value("string"), "translation": List(Translation(languages))})
    try:
        fingerprint = value_digest(key)[:32]
        documents = Dataset.from_generator(rows, features=features, cache_dir=str(cache), fingerprint=fingerprint)
    except DatasetGenerationError as error:
        raise error.__cause__ or error from None
    documents.info.description = CHECKED
    return documents


def input_status(files: dict[str, str | Path | Sequence[str | Path]]) -> list | None:
    """Facts that change with the files; None if there are no such facts."""
    status: list = []
    for name, value in sorted(files.items()):
        for path in [value] if isinstance(value, str | Path) else value:
            if str(path) == STDIN:
                return None
            path = Path(path)
            some = [] if name in NO_FILES else sorted(path.rglob("*")) if path.is_dir() else [path]
            facts = [(str(file.resolve()), file.stat()) for file in some if file.is_file()]
            status.append([name, str(path), [[p, s.st_size, s.st_mtime_ns, s.st_ctime_ns] for p, s in facts]])
    return status if any(files for *_, files in status) else None


def sample_texts(documents: Dataset, pairs: int) -> Iterator[str]:
    """Sentences of all languages of this number of pairs, drawn from the whole corpus in order; all if it has fewer.

    Each document gives first its source sentences, then its target sentences.
    """
    languages = check_documents(documents)
    translation = documents.data.column("translation")
    count = pc.sum(pc.list_value_length(translation)).as_py()
    drawn = np.ones(count, dtype=bool)
    if pairs < count:
        random = np.random.default_rng(SAMPLE_SEED)
        drawn[random.choice(count, count - pairs, replace=False, shuffle=False)] = False
    number = 0
    for document in translation:
        kept = drawn[number : number + len(document)]
        number += len(document)
        chosen = document.as_py() if kept.all() else [document[int(i)].as_py() for i in np.flatnonzero(kept)]
        for lang in languages:
            yield from (pair[lang] for pair in chosen)


class TokenizedSentences:
    """The token ids of many sentences, stored in files: sentence i is `ids[starts[i]:starts[i + 1]]`."""

    def __init__(self, column: pa.ChunkedArray):
        sentences = [document.flatten() for document in column.chunks]
        lengths = [np.zeros(1, np.int64), *(chunk.value_lengths().to_numpy() for chunk in sentences)]
        self.starts = np.cumsum(np.concatenate(lengths), dtype=np.int64)
        self.ids = pa.chunked_array([chunk.flatten() for chunk in sentences], pa.int32())

    def lists(self, start: int, stop: int) -> list[list[int]]:
        """Token ids of the sentences start to stop - 1."""
        borders = self.starts[start : stop + 1].tolist()
        ids = self.ids[borders[0] : borders[-1]].to_numpy().tolist()
        return [ids[first - borders[0] : end - borders[0]] for first, end in zip(borders, borders[1:])]


class TokenizedDocuments:
    """Documents as token ids, without special tokens, from a data set with the columns of `TOKENS`.

    `document_starts` (documents + 1,) int64 in sentences of the corpus; `sides` are the `TokenizedSentences` of source
    and target.
    """

    def __init__(self, dataset: Dataset):
        self.dataset = dataset
        source, target = (dataset.data.column(name) for name in ("source", "target"))
        lengths = pc.list_value_length(source).to_numpy()
        self.document_starts = np.cumsum(np.concatenate([np.zeros(1, np.int64), lengths]), dtype=np.int64)
        self.sides = (TokenizedSentences(source), TokenizedSentences(target))

    def __len__(self) -> int:
        return len(self.document_starts) - 1

    def __reduce__(self):
        return TokenizedDocuments, (self.dataset,)

    def doc_id(self, document: int) -> str:
        return self.dataset.data.column("doc_id")[document].as_py()

    @cached_property
    def digest(self) -> str:
        """Digest of tokens and borders; not of document ids."""
        arrays = [self.document_starts, *(array for side in self.sides for array in (side.ids, side.starts))]
        return text_digest(" ".join(map(array_digest, arrays)))


def tokenized_documents(
    documents: Dataset,
    tokenizer: PreTrainedTokenizerBase,
    languages: tuple[str, str],
    drop_blank: bool = False,
    num_proc: int | None = 1,
) -> TokenizedDocuments:
    """The documents tokenized (see `tokenize_table`): those in a cache once, by `num_proc` processes (None: all cores).

    Those in memory have their tokens in memory.
    """
    versions = [LAYOUT, tokenizers.__version__, transformers.__version__]
    key = [documents._fingerprint, languages, drop_blank, tokenizer_digest(tokenizer), *versions]
    most = len(documents) // DOCUMENTS_PER_PROCESS if documents.cache_files else 1
    processes = min(num_proc or available_cores(), most)
    tokens = documents.with_format("arrow").map(
        partial(_tokenize_part, os.getpid(), tokenizer=tokenizer, languages=languages, drop_blank=drop_blank),
        batched=True,
        batch_size=ROWS_PER_TABLE,
        remove_columns=documents.column_names,
        features=TOKENS,
        num_proc=processes if processes > 1 else None,
        new_fingerprint=value_digest(key)[:32],
        desc="tokenizing",
    )
    return TokenizedDocuments(tokens)


def available_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def tokenizer_digest(tokenizer: PreTrainedTokenizerBase) -> str:
    """Digest of what the tokenizer saves: equal tokenizers give equal tokens."""
    with tempfile.TemporaryDirectory() as folder:
        tokenizer.save_pretrained(folder)
        return files_digest(sorted(Path(folder).iterdir()))


def _tokenize_part(main_process: int, table: pa.Table, **settings) -> pa.Table:
    """`tokenize_table`, here or in a process that ends with the main one, since it would wait for the next part."""

    def watch() -> None:
        while os.getppid() == main_process:
            time.sleep(1)
        os._exit(1)

    if os.getpid() != main_process and active_count() == 1:
        Thread(target=watch, daemon=True).start()
    return tokenize_table(table, **settings)


def tokenize_table(
    table: pa.Table, tokenizer: PreTrainedTokenizerBase, languages: tuple[str, str], drop_blank: bool = False
) -> pa.Table:
    """The documents of a table with columns `doc_id` and `translation`, every sentence tokenized once.

    Text that looks like a special token is read as plain text. `drop_blank` drops pairs with a blank source, and
    documents that are empty then.
    """
    translation, ids = table.column("translation").combine_chunks(), table.column("doc_id").combine_chunks()
    counts = translation.value_lengths().to_numpy().astype(np.int64)
    texts = {lang: translation.flatten().field(lang) for lang in languages}
    if drop_blank:
        kept = np.array([has_text(text) for text in texts[languages[0]].to_pylist()])
        texts = {lang: column.filter(pa.array(kept)) for lang, column in texts.items()}
        counts = np.add.reduceat(kept, np.cumsum(counts) - counts, dtype=np.int64)
        ids, counts = ids.filter(pa.array(counts > 0)), counts[counts > 0]
    borders = pa.array(np.cumsum([0, *counts]), pa.int32())
    sides = [
        pa.ListArray.from_arrays(borders, _tokenized(texts[lang], tokenizer, is_target=number == 1))
        for number, lang in enumerate(languages)
    ]
    return pa.table([ids, *sides], schema=TOKENS.arrow_schema)


def _tokenized(texts: pa.Array, tokenizer: PreTrainedTokenizerBase, *, is_target: bool) -> pa.ListArray:
    lists = [pa.array([], pa.list_(pa.int32()))]
    for start in range(0, len(texts), SENTENCES_PER_CALL):
        some = texts.slice(start, SENTENCES_PER_CALL).to_pylist()
        lists.append(pa.array(tokenize_sentences(some, tokenizer, is_target=is_target), pa.list_(pa.int32())))
    return pa.concat_arrays(lists)


def array_digest(array: np.ndarray | pa.ChunkedArray) -> str:
    """Digest of type, number and values of a one-dimensional array, of which a part at a time is read."""
    digest = hashlib.sha256(f"{np.asarray(array[:0]).dtype.str} {len(array)} ".encode())
    for start in range(0, len(array), BLOCK):
        digest.update(np.ascontiguousarray(array[start : start + BLOCK]).data)
    return digest.hexdigest()
