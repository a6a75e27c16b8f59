"""One document per row: JSON lines, Parquet, and data sets of the `datasets` library."""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from hf_docmt.data.documents import make_row
from hf_docmt.data.language_codes import other_spellings
from hf_docmt.data.readers.reader import Evidence, Reader, Sample, numbered_id
from hf_docmt.data.readers.running_text import TEXT_LINES, html_column, sentence_splitter, sides_of, split_lines
from hf_docmt.files import STDIN, DataError, check_file, check_hub_name, file_stem, location_of, parse_json, read_lines
from hf_docmt.messages import first_line
from hf_docmt.modeling.text_splitting import check_unicode

SIDES = ("source", "target")
IDS = ("doc_id", "id")
KEYS = (*IDS, "translation", *SIDES, "source_lang", "target_lang")
LANGUAGE = re.compile(r"source|target|[a-zA-Z]{2,3}([-_]\w+)*")  # a key of `translation`
DOCHPLT_KEYS = ("src_doc_id", "tgt_doc_id", "lang_pair", "src_doc", "tgt_doc", "alignment")


class RowReader:
    """Converts the rows of a file into rows of the document contract.

    A row has `translation` (a list of `{language: sentence}`), or `source` and `target` (lists of sentences;
    `source_lang` and `target_lang` say which side is which, without them `source` is in the first requested language),
    or the columns of DocHPLT (O'Brien et al. 2025), or `text`: running text to translate, split into sentences;
    `text_lines` then has their number on each line; or the text of each language by its code (see `language_texts`).
    Sentences may also come with their own `text_lines`, with the same sum. Other keys are kept as columns, those of
    sentences too (`sentence_fields`). A requested language may be spelled differently in the row: `en` is read as
    `eng_Latn` or `en_XX`.
    """

    def __init__(self, languages: list[str]):
        self.languages = languages
        self._split: Callable[[str], Iterable[str]] | None = None

    def contract_row(self, location: str, row: dict, number_id: str) -> dict:
        """The row; its document id is `doc_id` or `id`, or `number_id` where it has neither key."""
        made = self._of_layout(location, row, number_id)
        check_text_lines(location, made)
        return made

    def _of_layout(self, location: str, row: dict, number_id: str) -> dict:
        id_key = next((key for key in IDS if key in row), None)
        doc_id = number_id if id_key is None else row[id_key]
        sides = ("source", "target")[: len(self.languages)]  # a target not asked for stays a column
        read = {id_key, *(["translation"] if "translation" in row else [*sides, *(f"{side}_lang" for side in sides)])}
        columns = {key: value for key, value in row.items() if key not in read}
        if row.get(TEXT_LINES) is None:
            columns.pop(TEXT_LINES, None)
        if "translation" in row:
            pairs = self._renamed(row["translation"])
            return {"doc_id": doc_id, "translation": pairs, **sentence_fields(pairs), **columns}
        if "source" in row:
            return self._two_lists(location, row, doc_id, columns)
        if "src_doc" in row and "tgt_doc" in row:
            return dochplt_row(location, row, self.languages)
        if "text" in row:
            return self._running_text(location, row["text"], doc_id, columns)
        if texts := language_texts(row, self.languages):
            return _text_pair_row(location, row, doc_id, texts, self.languages)
        raise DataError(
            f"{location}: got {sorted(row)}, expected 'translation', 'source', 'text', or texts of "
            f"{' and '.join(self.languages)} by these codes; add one of them"
        )

    def _renamed(self, pairs: Any) -> Any:
        """Sentence pairs with the languages that were asked for in the spelling in which they were asked for."""
        if not isinstance(pairs, list) or not pairs or not all(isinstance(pair, dict) for pair in pairs):
            return pairs  # which is refused elsewhere
        names = other_spellings(pairs[0], self.languages)
        return [{names.get(key, key): text for key, text in pair.items()} for pair in pairs] if names else pairs

    def _two_lists(self, location: str, row: dict, doc_id: Any, columns: dict) -> dict:
        named = _side_languages(row, self.languages)
        sides = {lang: _side(location, row, name) for name, lang in named.items() if name in row}
        for lang in self.languages:
            if lang not in sides:
                raise DataError(
                    f"{location}: document {doc_id!r} has no sentences in {lang!r}, it has {sorted(sides)}; correct "
                    "the language, or omit the target language to read the source side only"
                )
        source, target = [sides[lang] for lang in self.languages] + [None] * (2 - len(self.languages))
        return make_row(location, doc_id, source, target, self.languages, **columns)

    def _running_text(self, location: str, text: object, doc_id: Any, columns: dict) -> dict:
        if len(self.languages) == 2:
            raise DataError(f"{location}: document {doc_id!r} has 'text', which has no target side; omit its language")
        if not isinstance(text, str):
            raise DataError(f"{location}: 'text' must be a string, got {type(text).__name__}")
        check_unicode(text, f"{location}: document {doc_id!r}", DataError)
        self._split = self._split or sentence_splitter(self.languages[0])
        sentences, lines = split_lines(text, self._split)
        columns = {key: value for key, value in columns.items() if key not in ("text", TEXT_LINES)}
        for name, value in columns.items():  # which are written with the translation
            written = json.dumps(value, ensure_ascii=False, default=str)
            check_unicode(written, f"{location}: document {doc_id!r}, {name!r}", DataError)
        columns |= {TEXT_LINES: lines} | html_column(text)
        return make_row(location, doc_id, sentences, None, self.languages, **columns)


def sentence_fields(pairs: Any) -> dict[str, list]:
    """Fields of sentences whose names are not language codes, such as `speaker`: columns with a value per sentence."""
    if not isinstance(pairs, list) or not all(isinstance(pair, dict) for pair in pairs):
        return {}
    names = dict.fromkeys(name for pair in pairs for name in pair if not LANGUAGE.fullmatch(name))
    return {name: [pair.get(name) for pair in pairs] for name in names}


def language_texts(row: dict, languages: list[str]) -> dict[str, str]:
    """The texts of a row by its keys, languages as in WMT25's terminology task (`{"en": ..., "de": ...}`); {}: none."""
    named = {lang: key for key, lang in other_spellings(row, languages).items()}
    texts = {key: row.get(key) for key in (named.get(lang, lang) for lang in languages)}
    return texts if all(isinstance(text, str) for text in texts.values()) else {}


def _text_pair_row(location: str, row: dict, doc_id: Any, texts: dict[str, str], languages: list[str]) -> dict:
    """A row with a text of each language; a dictionary of terms is a column of `{"source", "targets"}`."""
    columns = {key: value for key, value in row.items() if key not in (*IDS, *texts)}
    for name, terms in columns.items():
        if isinstance(terms, dict):
            pairs = [(source, [own] if isinstance(own, str) else own) for source, own in terms.items()]
            if not all(_is_list_of_texts(targets) for _, targets in pairs):
                raise DataError(f"{location}: {name!r} must have a text or a list of texts for each term")
            columns[name] = [{"source": source, "targets": targets} for source, targets in pairs]
    sides = sides_of(texts.values())
    return make_row(location, doc_id, sides[0], sides[1] if sides[1:] else None, languages, **columns)


def check_text_lines(location: str, row: dict) -> None:
    """DataError where `text_lines` of a row are not the numbers of its sentences on each line."""
    lines, pairs = row.get(TEXT_LINES), row["translation"]
    if lines is None or not isinstance(pairs, list):  # which is refused elsewhere
        return
    are_counts = isinstance(lines, list) and all(type(count) is int and count >= 0 for count in lines)
    if not are_counts or sum(lines) != len(pairs):
        raise DataError(
            f"{location}: document {row['doc_id']!r} has {TEXT_LINES!r} {lines!r:.60}, expected the numbers of "
            f"sentences on each line of its text, {len(pairs)} in all; correct them, or give the column another name"
        )


def dochplt_row(location: str, row: dict, languages: list[str]) -> dict:
    """A row of DocHPLT: two documents, `src_doc` and `tgt_doc`, and which of their sentences belong together.

    With a target language the pairs are those of `alignment`, in its order, several sentences of one pair joined by a
    blank; sentences without a counterpart are dropped. Without one, all sentences of the document are read. The column
    `scores` has those of the aligner, bicleaner and bifixer.
    """
    pair = row.get("lang_pair")
    codes = pair.split("-") if isinstance(pair, str) else []
    others = other_spellings(codes, languages)
    codes = [others.get(code, code) for code in codes]
    if len(codes) != 2 or any(lang not in codes for lang in languages):
        raise DataError(f"{location}: 'lang_pair' is {pair!r}, expected the languages {languages}, such as 'en-fi'")
    names = {code: side for code, side in zip(codes, ("src", "tgt"))}
    ids = [row.get(key) for key in ("src_doc_id", "tgt_doc_id")]  # one document may be in several pairs
    if not all(isinstance(key, str) and key for key in ids):
        raise DataError(f"{location}: 'src_doc_id' or 'tgt_doc_id' is missing or no string, got {ids}")
    doc_id = " ".join(ids)
    columns = {key: value for key, value in row.items() if key not in (*DOCHPLT_KEYS, "doc_id", "translation")}
    sides = [_numbered_sentences(location, row, names[lang]) for lang in languages]
    if len(languages) == 1:
        return make_row(location, doc_id, list(sides[0].values()), None, languages, **columns)
    links = row.get("alignment")
    if not isinstance(links, list) or not links or not all(isinstance(link, dict) for link in links):
        raise DataError(f"{location}: document {doc_id!r} needs 'alignment', a list of pairs with 'src' and 'tgt'")
    source, target = [
        [_linked(location, link, names[lang], side) for link in links] for lang, side in zip(languages, sides)
    ]
    scores = [{key: value for key, value in link.items() if key not in ("src", "tgt")} for link in links]
    return make_row(location, doc_id, source, target, languages, scores=scores, **columns)


def _numbered_sentences(location: str, row: dict, name: str) -> dict[str, str]:
    """The sentences of one document by their ids, in its order."""
    document = row[f"{name}_doc"]
    lists = [document.get(key) for key in ("ids", "sentences")] if isinstance(document, dict) else []
    if not lists or not all(_is_list_of_texts(texts) for texts in lists):
        raise DataError(f"{location}: '{name}_doc' must have 'ids' and 'sentences', two lists of strings")
    if len(lists[0]) != len(lists[1]) or len(set(lists[0])) != len(lists[0]):
        raise DataError(
            f"{location}: '{name}_doc' has {len(lists[1])} sentences with {len(set(lists[0]))} ids; each needs its own"
        )
    return dict(zip(*lists))


def _linked(location: str, link: dict, name: str, sentences: dict[str, str]) -> str:
    """The text of one side of a pair."""
    ids = link.get(name)
    if not _is_list_of_texts(ids) or not sentences.keys() >= set(ids):
        raise DataError(f"{location}: 'alignment' has {name!r} {ids!r:.60}, expected ids of '{name}_doc'")
    return " ".join(sentences[key] for key in ids)


def _side_languages(row: dict, languages: list[str]) -> dict[str, str]:
    """The languages of `source` and `target`."""
    if "source_lang" not in row and "target_lang" not in row:
        return dict(zip(SIDES, languages))
    named = {name: row.get(f"{name}_lang") for name in SIDES}
    others = other_spellings((lang for lang in named.values() if isinstance(lang, str)), languages)
    named = {name: others.get(lang, lang) if isinstance(lang, str) else lang for name, lang in named.items()}
    for name, lang in zip(SIDES, languages):
        if not named[name] and lang not in named.values():
            named[name] = lang
    return {name: lang for name, lang in named.items() if lang}


def _side(location: str, row: dict, name: str) -> list[str]:
    if not _is_list_of_texts(row[name]):
        raise DataError(f"{location}: {name!r} must be a list of sentences (strings); an empty sentence is ''")
    return row[name]


def _is_list_of_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


FIRST_KEY = re.compile(rb'\s*\{\s*"(' + "|".join((*KEYS, "text", *DOCHPLT_KEYS)).encode() + rb')"\s*:')
FIRST_BRACE = re.compile(rb'\s*\{\s*("|$)')
PARQUET_ROWS_AT_ONCE = 64
DATASETS_FILES = ("state.json", "dataset_dict.json")


class JsonlReader(Reader):
    """One JSON object a line: `{"doc_id" or "id", "translation": [{"en": ..., "de": ...}, ...]}`.

    Instead of `translation` a row may have the lists `source` and `target`, the columns of DocHPLT, or running `text`
    (see `RowReader`). A document without `doc_id` and `id` is called by the file's name and its line, `corpus-00012`.
    Other keys are kept as columns; sentences are not changed. A blank line is an error, as it may be a lost document.
    """

    name = "jsonl"
    keeps_columns = True

    def recognize(self, sample: Sample) -> Evidence:
        if sample.argument != "path":
            return Evidence.NONE
        if sample.ending in (".jsonl", ".ndjson"):
            return Evidence.NAME
        if sample.ending == ".json":
            return Evidence.NAME_AND_BYTES if FIRST_KEY.match(sample.head) else Evidence.NONE
        return Evidence.GUESS if FIRST_BRACE.match(sample.head) else Evidence.NONE

    def read(self, languages: list[str], path: str | Path) -> Iterator[tuple[str, dict]]:
        rows = RowReader(languages)
        for location, number, row in json_rows(path):
            yield location, rows.contract_row(location, row, numbered_id(path, number))


class ParquetReader(Reader):
    """The columns are the keys of a row of JSON lines (see `jsonl`), such as `doc_id` and `translation`.

    Rows are read a few at a time, and one row group is in memory. Standard input cannot be read, as the file's index
    is at its end. A document without an id is called by the file's name and the number of its row, from 1.
    """

    name = "parquet"
    keeps_columns = True
    endings = (".parquet",)
    first_bytes = re.compile(b"PAR1")

    def read(self, languages: list[str], path: str | Path) -> Iterator[tuple[str, dict]]:
        if str(path) == STDIN:
            raise DataError("Parquet cannot be read from standard input; give the file")
        if check_file(path).stat().st_size == 0:
            raise DataError(f"{path}: the file is empty; it needs at least one row")
        return _contract_rows(path, _parquet_rows(path), languages, file_stem(path), "broken Parquet")


class DatasetsReader(Reader):
    """Rows with the keys of JSON lines (see `jsonl`), from a folder or, read as a stream, from the Hub.

    A folder of several splits needs `split`, and so does a name on the Hub, which may also need `config`, the name of
    one of its configurations. Rows of a folder stay on disk (memory-mapped).
    """

    name = "datasets"
    keeps_columns = True

    def recognize(self, sample: Sample) -> Evidence:
        if sample.argument != "path" or sample.path is None or sample.is_stdin:
            return Evidence.NONE
        is_folder = any((Path(sample.path) / name).is_file() for name in DATASETS_FILES)
        return Evidence.NAME_AND_BYTES if is_folder else Evidence.NONE

    def read(
        self, languages: list[str], path: str | Path, split: str | None = None, config: str | None = None
    ) -> Iterator[tuple[str, dict]]:
        rows = _folder_rows(path, split, config) if Path(path).exists() else _hub_rows(str(path), split, config)
        return _contract_rows(path, rows, languages, Path(path).name, "rows that cannot be read")


def json_rows(path: str | Path) -> Iterator[tuple[str, int, dict]]:
    """Location, line number and object of every line; DataError for blank lines and other values."""
    for number, line in read_lines(path):
        location = location_of(path, number)
        if not line.strip():
            raise DataError(f"{location}: blank line; every line holds one document, remove it")
        row = parse_json(line, path, number)
        if not isinstance(row, dict):
            raise DataError(f"{location}: a JSON object is needed, got {type(row).__name__}; one document per line")
        yield location, number, row


def _contract_rows(
    path: str | Path, rows: Iterable[dict], languages: list[str], name: str, problem: str
) -> Iterator[tuple[str, dict]]:
    """Rows of the contract. `name` begins ids, `problem` errors. Columns without a value are omitted, as in JSON."""
    import pyarrow as pa

    reader, number = RowReader(languages), 0
    try:
        for number, row in enumerate(rows, 1):
            location = f"{path}, row {number}"
            row = {column: value for column, value in row.items() if value is not None}
            yield location, reader.contract_row(location, row, f"{name}-{number:05d}")
    except (pa.ArrowException, OSError, UnicodeDecodeError, OverflowError) as error:
        raise DataError(f"{path}, after row {number}: {problem} ({first_line(error)}); fetch it again") from error


def _parquet_rows(path: str | Path) -> Iterator[dict]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(batch_size=PARQUET_ROWS_AT_ONCE):
            yield from batch.to_pylist()


def _hub_rows(path: str, split: str | None, config: str | None) -> Iterable[dict]:
    check_hub_name(path, "data set")
    if split is None:
        raise DataError(f"{path}: a data set on the Hub needs the name of a split; give split=, such as 'train'")
    from datasets import load_dataset

    try:
        return load_dataset(path, config, split=split, streaming=True)
    except (OSError, ValueError, RuntimeError) as error:  # no network, unknown name, configuration or split
        raise DataError(
            f"{path} is neither a folder here nor a data set of the Hub ({first_line(error)}); check the "
            "name, or load it on a machine with a network and save it with save_to_disk"
        ) from error


def _folder_rows(path: str | Path, split: str | None, config: str | None) -> Iterable[dict]:
    if config is not None:
        raise DataError(f"{path} is a folder, and only data sets on the Hub have a config, got {config!r}; omit it")
    import pyarrow as pa
    from datasets import Dataset, load_from_disk

    try:
        loaded = load_from_disk(str(path))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, pa.ArrowException) as error:
        raise DataError(
            f"{path}: no data set that can be read ({first_line(error)}); give a folder that save_to_disk wrote"
        ) from error
    if isinstance(loaded, Dataset):
        if split is not None:
            raise DataError(f"{path} has no splits, got split {split!r}; omit it")
        return loaded
    if split not in loaded:
        raise DataError(f"{path} has the splits {', '.join(loaded)}, got {split!r}; choose one of them with split=")
    return loaded[split]
