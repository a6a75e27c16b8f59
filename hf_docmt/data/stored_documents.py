"""Documents of a training run in a cache: in Arrow files, and tokenized; read in parts, never all at once."""

import json
import os
import tempfile
import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from functools import cached_property
from itertools import islice
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import tokenizers
import transformers
from tqdm.auto import tqdm
from transformers import PreTrainedTokenizerBase

from hf_docmt import __version__
from hf_docmt.data.documents import ROWS_PER_TABLE, checked_languages
from hf_docmt.data.readers import iterate_documents
from hf_docmt.data.readers.reader import NO_FILES, plugin_files
from hf_docmt.data.tokenized_documents import TokenizedDocuments, tokenize_table, write_tokenized
from hf_docmt.files import STDIN
from hf_docmt.store import Cache, files_digest

if TYPE_CHECKING:  # takes longer to import than one sentence to translate
    from datasets import Dataset

LAYOUT = 1  # of the files of an entry; another one makes them anew
SENTENCES_PER_SHARD = 100_000
FACTS = "facts.json"
SAMPLE_SEED = 0


class StoredDocuments:
    """Documents in a cache, as Arrow files of about 100,000 sentences.

    `languages` are those of the documents, `sentences` their number (of pairs), `digest` tells their content. Reading
    or tokenizing them takes the memory of one file a process.
    """

    def __init__(self, cache: Cache, folder: Path, num_proc: int | None = None):
        self.cache, self.folder, self.num_proc = cache, folder, num_proc
        facts = json.loads((folder / FACTS).read_text(encoding="utf-8"))
        self.languages: list[str] = facts["languages"]
        self.documents, self.sentences, self.digest = facts["documents"], facts["sentences"], facts["digest"]

    def __len__(self) -> int:
        return self.documents

    @cached_property
    def files(self) -> list[Path]:
        return sorted(self.folder.glob("*.arrow"))

    def tables(self) -> Iterator[pa.Table]:
        """Columns `doc_id` and `translation` of some documents at a time, in order; a file is closed after its turn."""
        return map(_read_table, self.files)

    def dataset(self) -> "Dataset":
        """All documents as a memory-mapped `datasets.Dataset`."""
        from datasets import Dataset, concatenate_datasets

        return concatenate_datasets([Dataset.from_file(str(file)) for file in self.files])

    def sample_texts(self, pairs: int) -> Iterator[str]:
        """Sentences of all languages of so many pairs, drawn over the whole corpus, in its order; all if it has fewer.

        Of each document first the source sentences, then the target sentences.
        """
        drawn = np.ones(self.sentences, dtype=bool)
        if pairs < self.sentences:
            random = np.random.default_rng(SAMPLE_SEED)
            drawn[random.choice(self.sentences, self.sentences - pairs, replace=False, shuffle=False)] = False
        number = 0
        for table in self.tables():
            for document in table.column("translation"):
                kept = drawn[number : number + len(document)]
                number += len(document)
                chosen = document.as_py() if kept.all() else [document[int(i)].as_py() for i in np.flatnonzero(kept)]
                for lang in self.languages:
                    yield from (pair[lang] for pair in chosen)

    def tokenized(
        self, tokenizer: PreTrainedTokenizerBase, languages: tuple[str, str], drop_blank: bool = False
    ) -> TokenizedDocuments:
        """The documents tokenized (see `tokenize_table`), by `num_proc` processes, once: then they are in the cache."""
        key = {
            "layout": LAYOUT,
            "documents": self.digest,
            "languages": languages,
            "drop_blank": drop_blank,
            "tokenizer": tokenizer_digest(tokenizer),
            "versions": [tokenizers.__version__, transformers.__version__],
        }

        def write(folder: Path) -> None:
            work = _tokenized_files(self.files, self.num_proc, (tokenizer, languages, drop_blank))
            write_tokenized(tqdm(work, "tokenizing", len(self.files), disable=None), folder)

        return TokenizedDocuments.open(self.cache.entry("tokens", key, write))


def store_documents(
    cache: Cache,
    format: str = "auto",
    *,
    source_lang: str,
    target_lang: str,
    num_proc: int | None = None,
    **files: str | Path | Sequence[str | Path] | None,
) -> StoredDocuments:
    """Read documents as `iterate_documents` does, once for every content of the files, and of files of plugins.

    That files are the same is told by path, size and the times of change (of content and of status, as the file system
    has them), and so is a folder's list of files. Input without them (standard input, a name that is no path)
    is read at every start. DataError as `read_documents`.
    """
    paths = {name: value for name, value in files.items() if value is not None}

    def write(folder: Path) -> str:
        rows = iterate_documents(format, source_lang=source_lang, target_lang=target_lang, **paths)
        return _write_rows(rows, checked_languages(source_lang, target_lang), folder)

    status = input_status(paths)
    if status is None:
        return StoredDocuments(cache, cache.entry_by_content("documents", write), num_proc)
    key = {"layout": LAYOUT, "version": __version__, "plugins": files_digest(plugin_files())}
    key |= {"format": format, "languages": [source_lang, target_lang], "files": status}
    return StoredDocuments(cache, cache.entry("documents", key, write), num_proc)


def input_status(files: dict[str, str | Path | Sequence[str | Path]]) -> list | None:
    """What tells that files are unchanged; None where nothing does."""
    status: list = []
    for name, value in sorted(files.items()):
        for path in [value] if isinstance(value, str | Path) else value:
            if str(path) == STDIN:
                return None
            path = Path(path)
            some = [] if name in NO_FILES else sorted(path.rglob("*")) if path.is_dir() else [path]
            status.append([name, str(path), [_file_status(file) for file in some if file.is_file()]])
    return status if any(files for *_, files in status) else None


def _file_status(file: Path) -> list:
    status = file.stat()
    return [str(file.resolve()), status.st_size, status.st_mtime_ns, status.st_ctime_ns]


def tokenizer_digest(tokenizer: PreTrainedTokenizerBase) -> str:
    """Digest of what the tokenizer saves: equal tokenizers give equal tokens."""
    with tempfile.TemporaryDirectory() as folder:
        tokenizer.save_pretrained(folder)
        return files_digest(sorted(Path(folder).iterdir()))


def _write_rows(rows: Iterator[dict], languages: list[str], folder: Path) -> str:
    """Write Arrow files and facts; returns the digest of the content."""
    from datasets import Features, List, Translation, Value
    from datasets.arrow_writer import ArrowWriter

    features = Features({"doc_id": Value("string"), "translation": List(Translation(languages))})
    documents = sentences = in_shard = 0
    writer = None
    with tqdm(desc="reading", unit=" sentences", unit_scale=True, disable=None) as progress:
        while some := list(islice(rows, ROWS_PER_TABLE)):
            if writer is None:
                name = f"{len(list(folder.iterdir())):05d}.arrow"
                writer, in_shard = ArrowWriter(features=features, path=str(folder / name)), 0
            writer.write_table(pa.Table.from_pylist(some, schema=features.arrow_schema))
            count = sum(len(row["translation"]) for row in some)
            documents, sentences, in_shard = documents + len(some), sentences + count, in_shard + count
            progress.update(count)
            if in_shard >= SENTENCES_PER_SHARD:
                writer.finalize()
                writer = None
    if writer is not None:
        writer.finalize()
    digest = files_digest(sorted(folder.iterdir()))
    facts = {"languages": languages, "documents": documents, "sentences": sentences, "digest": digest}
    (folder / FACTS).write_text(json.dumps(facts), encoding="utf-8")
    return digest


def _tokenized_files(files: list[Path], num_proc: int | None, settings: tuple) -> Iterator[TokenizedDocuments]:
    """The tokenized documents of every Arrow file, in order; at most two files a process are on the way."""
    processes = min(num_proc or available_cores(), len(files))
    if processes == 1:
        yield from (_tokenize_file(file, settings) for file in files)
        return
    waiting, pending = iter(files), deque[Future]()
    with ProcessPoolExecutor(processes, initializer=_begin_process) as pool:
        pending.extend(pool.submit(_tokenize_file, file, settings) for file in islice(waiting, 2 * processes))
        while pending:
            yield pending.popleft().result()
            pending.extend(pool.submit(_tokenize_file, file, settings) for file in islice(waiting, 1))


def available_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _begin_process() -> None:
    """A process is one core's, and ends with the one that started it: it would wait, and hold the lock, for ever."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    Thread(target=watch, daemon=True).start()


def _tokenize_file(file: Path, settings: tuple) -> TokenizedDocuments:
    return tokenize_table(_read_table(file), *settings)


def _read_table(file: Path) -> pa.Table:
    from datasets import Dataset

    return Dataset.from_file(str(file)).data.table  # memory-mapped as long as it is in use
