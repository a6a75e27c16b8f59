"""Documents in a cache: the examples, batches and fingerprints of documents in memory; read and tokenized once."""

import io
import os
import pickle
import sys
from types import SimpleNamespace

import pytest

from hf_docmt.data import tokenized_documents
from hf_docmt.data.documents import write_documents
from hf_docmt.data.examples import ContextExamples, Examples
from hf_docmt.data.readers import read_documents, reader, readers
from hf_docmt.data.registration import load_plugins
from hf_docmt.data.samplers import TokenBudgetBatchSampler
from hf_docmt.data.synthetic.corpus import make_corpus
from hf_docmt.data.tokenized_documents import cached_documents, input_status, sample_texts
from hf_docmt.data.tokenizers import train_tokenizer
from hf_docmt.files import DataError

LANGUAGES = {"source_lang": "en", "target_lang": "de"}
KINDS = {
    "sentence": (Examples, {"view": "sentence"}),
    "window": (Examples, {"past_context": 2, "future_context": 1, "use_bod": True}),
    "source": (Examples, {"past_context": 3, "context_sides": "source"}),
    "chunk": (Examples, {"view": "chunk", "max_target_tokens": 40}),
    "context": (ContextExamples, {"past_context": 2, "context_sides": "both"}),
}


SHOUT = """
from hf_docmt.data.documents import make_row
from hf_docmt.data.readers import Reader
from hf_docmt.files import location_of, read_lines


class ShoutReader(Reader):
    name = "shout"

    def read(self, languages, path):
        for number, line in read_lines(path):
            yield location_of(path, number), make_row(path, f"d{number}", [line], [SIDE], languages)
"""


def rows_of(seed=1, blank=True):
    rows = make_corpus(seed=seed, train=30, validation=0, test=0, sentences=(1, 9))["train"]
    if blank:  # and a document of blank sentences alone
        rows[3]["translation"][0]["en"] = " \u3000"
        rows.insert(7, {"doc_id": "blank", "translation": [{"en": "", "de": "Nichts."}]})
    return rows


@pytest.fixture
def file(tmp_path, monkeypatch):
    """A corpus in a file, of which three documents are tokenized at a time."""
    monkeypatch.setattr(tokenized_documents, "ROWS_PER_TABLE", 3)
    monkeypatch.setattr(tokenized_documents, "DOCUMENTS_PER_PROCESS", 3)
    write_documents(rows_of(), tmp_path / "train.jsonl")
    return tmp_path / "train.jsonl"


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer(
        (text for row in rows_of(blank=False) for pair in row["translation"] for text in pair.values()), vocab_size=400
    )


def stored(file):
    return cached_documents(file.parent / "cache", path=str(file), **LANGUAGES)


def in_memory(file):
    return read_documents(path=str(file), **LANGUAGES)


@pytest.mark.parametrize("kind", KINDS)
def test_examples_are_those_in_memory(file, tokenizer, kind):
    make, options = KINDS[kind]
    cached, other = (make(rows, tokenizer, **LANGUAGES, **options) for rows in (stored(file), in_memory(file)))
    assert list(cached) == list(other) and len(cached) == len(other)
    assert (cached.side_lengths == other.side_lengths).all() and cached.fingerprint == other.fingerprint
    assert cached.document.tolist() == other.document.tolist()
    assert cached.mean_source_length == other.mean_source_length and cached.mean_length_ratio == other.mean_length_ratio
    batches = [list(TokenBudgetBatchSampler(examples.side_lengths, 300, seed=2)) for examples in (cached, other)]
    assert batches[0] == batches[1] and len(batches[0]) > 3


def test_blank_sentences_are_dropped_for_separate_context(file, tokenizer):
    rows = [
        {**row, "translation": [pair for pair in row["translation"] if pair["en"].strip()]}
        for row in rows_of()
        if row["doc_id"] != "blank"
    ]
    write_documents(rows, file.with_name("kept.jsonl"))
    options = LANGUAGES | KINDS["context"][1]
    expected = list(ContextExamples(in_memory(file.with_name("kept.jsonl")), tokenizer, **options))
    assert list(ContextExamples(in_memory(file), tokenizer, **options)) == expected
    assert list(ContextExamples(stored(file), tokenizer, **options)) == expected
    assert len(Examples(stored(file), tokenizer, **LANGUAGES)) == len(expected) + 2


def test_nothing_but_blank_sentences(file, tokenizer):
    write_documents([{"doc_id": "a", "translation": [{"en": " ", "de": "x"}]}], file)
    for documents in (stored(file), in_memory(file)):
        with pytest.raises(DataError, match="all source sentences are blank"):
            ContextExamples(documents, tokenizer, **LANGUAGES, context_sides="source")


def test_number_of_processes_changes_nothing(file, tokenizer):
    first = Examples(stored(file), tokenizer, **LANGUAGES)
    (file.parent / "two").mkdir()
    write_documents(rows_of(), file.parent / "two" / "train.jsonl")
    other = Examples(stored(file.parent / "two" / "train.jsonl"), tokenizer, **LANGUAGES, num_proc=2)
    files = [len(examples.corpus.dataset.cache_files) for examples in (first, other)]
    assert files == [1, 2] and first.fingerprint == other.fingerprint and list(first) == list(other)


# What is made again, and what is not


@pytest.fixture
def calls(monkeypatch, tokenizer):
    """How often documents were read and sentences tokenized."""
    counted = SimpleNamespace(read=0, tokenized=0)
    read, tokenize = tokenized_documents.iterate_documents, tokenized_documents.tokenize_sentences

    def reading(*args, **kwargs):
        counted.read += 1
        return read(*args, **kwargs)

    def tokenizing(*args, **kwargs):
        counted.tokenized += 1
        return tokenize(*args, **kwargs)

    monkeypatch.setattr(tokenized_documents, "iterate_documents", reading)
    monkeypatch.setattr(tokenized_documents, "tokenize_sentences", tokenizing)
    return counted


def start(file, tokenizer):
    return Examples(stored(file), tokenizer, **LANGUAGES, past_context=1).fingerprint


def test_second_start_reads_and_tokenizes_nothing(file, tokenizer, calls):
    first = start(file, tokenizer)
    assert calls.read == 1 and calls.tokenized > 3
    calls.tokenized = 0
    assert start(file, tokenizer) == first and (calls.read, calls.tokenized) == (1, 0)


def test_a_changed_file_is_noticed(file, tokenizer, calls):
    first, status = start(file, tokenizer), file.stat()
    file.touch()
    assert start(file, tokenizer) == first and calls.read == 2  # the content is the same
    calls.tokenized = 0
    text = file.read_text(encoding="utf-8")
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    file.write_text(text.replace("ship", "shop"), encoding="utf-8")
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert file.stat().st_size == status.st_size and file.stat().st_mtime_ns == status.st_mtime_ns
    assert start(file, tokenizer) != first and calls.read == 3 and calls.tokenized > 3


def test_another_tokenizer_language_layout_or_version(file, tokenizer, calls, monkeypatch):
    start(file, tokenizer)
    smaller = train_tokenizer(["Here is a ship.", "Da ist ein Schiff."], vocab_size=300)
    calls.tokenized = 0
    start(file, smaller)
    assert calls.tokenized > 3 and calls.read == 1
    Examples(stored(file), tokenizer, source_lang="de", target_lang="en")
    assert calls.read == 1 and calls.tokenized > 8
    for name, value in (("LAYOUT", 99), ("__version__", "0.0")):
        read, calls.tokenized = calls.read, 0
        with monkeypatch.context() as patch:
            patch.setattr(tokenized_documents, name, value)
            start(file, tokenizer)
        assert calls.read == read + 1 and calls.tokenized > 3


def test_a_changed_plugin_reads_again(tmp_path, monkeypatch, calls):
    monkeypatch.setattr(reader, "_READERS", readers())
    (tmp_path / "a.shout").write_text("Here .")
    for number, side in enumerate(("line", "line.upper()", "line.upper()")):
        (tmp_path / "shout.py").write_text(SHOUT.replace("SIDE", side))
        for name in [name for name in sys.modules if name.startswith("docmt_plugin_shout")]:
            monkeypatch.delitem(sys.modules, name)
        load_plugins([str(tmp_path / "shout.py")])
        documents = cached_documents(tmp_path / "cache", "shout", path=tmp_path / "a.shout", **LANGUAGES)
        assert documents[0]["translation"] == [{"en": "Here .", "de": ("Here .", "HERE .")[number > 0]}]
    assert calls.read == 2


def test_standard_input_is_read_every_time(file, tokenizer, calls, monkeypatch):
    (file.parent / "cache").mkdir()
    fingerprints = []
    for _ in range(2):
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(file.read_bytes())))
        documents = cached_documents(file.parent / "cache", "jsonl", path="-", **LANGUAGES)
        fingerprints.append(Examples(documents, tokenizer, **LANGUAGES).fingerprint)
    assert fingerprints[0] == fingerprints[1] == Examples(in_memory(file), tokenizer, **LANGUAGES).fingerprint
    assert calls.read == 2


def test_status_of_inputs(tmp_path):
    for name in ("a/x.txt", "a/b/y.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text(name)
    assert input_status({"path": "-"}) is input_status({"path": "no/such/path"}) is None
    folder = input_status({"path": tmp_path / "a"})
    assert [file[0] for file in folder[0][2]] == [str(tmp_path / "a/b/y.txt"), str(tmp_path / "a/x.txt")]
    (tmp_path / "a/b/z.txt").write_text("new")
    assert input_status({"path": tmp_path / "a"}) != folder
    first, other = ({"path": tmp_path / "a/x.txt", "translator": name} for name in "AB")
    assert input_status(first) != input_status(other)
    assert input_status({"path": ["-", tmp_path / "a"]}) is None


def test_a_folder_called_as_a_split_is_not_an_input(tmp_path, monkeypatch):
    """A data set on the Hub is read at every start, whatever lies in the working folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train").mkdir()
    (tmp_path / "train/x").touch()
    assert input_status({"path": "owner/name", "split": "train"}) is None


def test_broken_input_leaves_no_entry(file, tokenizer):
    with file.open("a") as text:
        text.write('{"doc_id": "last", "translation": [{"en": "x"}]}\n')
    for _ in range(2):
        with pytest.raises(DataError, match="train.jsonl, line 32: document 'last', sentence 1 .* no text in 'de'"):
            stored(file)
    assert not list((file.parent / "cache").rglob("*.arrow"))


def test_sample_of_all(file):
    texts = [pair[lang] for row in rows_of() for lang in ("en", "de") for pair in row["translation"]]
    documents = stored(file)
    assert list(sample_texts(documents, len(texts) // 2)) == list(sample_texts(documents, 10**6)) == texts


def test_sample_is_drawn_over_the_whole_corpus(file):
    documents = stored(file)
    pairs = [(pair["en"], pair["de"]) for row in rows_of() for pair in row["translation"]]
    drawn = list(sample_texts(documents, 40))
    assert len(drawn) == 80 and drawn == list(sample_texts(documents, 40))
    sources = {text for text in drawn} & {source for source, _ in pairs}
    places = [number for number, (source, _) in enumerate(pairs) if source in sources]
    assert min(places) < len(pairs) / 4 and max(places) > len(pairs) * 3 / 4
    assert len(list(sample_texts(documents, 1))) == 2


def test_pickled_examples_are_names_of_files(file, tokenizer):
    write_documents(rows_of()[:2], file.with_name("small.jsonl"))
    small = len(pickle.dumps(Examples(stored(file.with_name("small.jsonl")), tokenizer, **LANGUAGES, past_context=1)))
    examples = Examples(stored(file), tokenizer, **LANGUAGES, past_context=1)
    assert examples.side_lengths is examples.side_lengths  # counted once
    assert len(pickle.dumps(examples)) < small + 20
    assert list(pickle.loads(pickle.dumps(examples))) == list(examples)
