"""Rows of JSON lines, Parquet and `datasets`: the layouts that documents have in them."""

import json
from collections.abc import Callable, Iterable
from typing import Any

from hf_docmt.data.documents import make_row
from hf_docmt.data.language_codes import other_spellings
from hf_docmt.data.readers.running_text import TEXT_LINES, sentence_splitter, split_lines
from hf_docmt.files import DataError
from hf_docmt.modeling.document_state import check_unicode

SIDES = ("source", "target")
IDS = ("doc_id", "id")
KEYS = (*IDS, "translation", *SIDES, "source_lang", "target_lang")
DOCHPLT_KEYS = ("src_doc_id", "tgt_doc_id", "lang_pair", "src_doc", "tgt_doc", "alignment")


class RowReader:
    """Makes rows of the document contract of rows as they stand in a file.

    A row has `translation` (a list of `{language: sentence}`), or `source` and `target` (lists of sentences;
    `source_lang` and `target_lang` say which side is which, without them `source` is in the first language asked for),
    or the columns of DocHPLT (O'Brien et al. 2025), or `text`: running text to be translated, split into sentences;
    `text_lines` then says how many stand on each line of it. Sentences may come with their own `text_lines`, too, as
    many in all. Other keys are kept as columns. A language that is asked for and not there may be spelled otherwise in
    the row: `en` is read as `eng_Latn` or `en_XX`.
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
        doc_id = next((row[key] for key in IDS if key in row), number_id)
        columns = {key: value for key, value in row.items() if key not in KEYS}
        if row.get(TEXT_LINES) is None:
            columns.pop(TEXT_LINES, None)
        if "translation" in row:
            return {"doc_id": doc_id, "translation": self._renamed(row["translation"]), **columns}
        if "source" in row:
            return self._two_lists(location, row, doc_id, columns)
        if "src_doc" in row and "tgt_doc" in row:
            return dochplt_row(location, row, self.languages)
        if "text" in row:
            return self._running_text(location, row["text"], doc_id, columns)
        raise DataError(
            f"{location}: neither 'translation' nor 'source' nor 'text' is there, got {sorted(row)}; add one of them"
        )

    def _renamed(self, pairs: Any) -> Any:
        """Sentence pairs with the languages that were asked for in the spelling in which they were asked for."""
        if not isinstance(pairs, list) or not pairs or not all(isinstance(pair, dict) for pair in pairs):
            return pairs  # which is refused by itself
        names = other_spellings(pairs[0], self.languages)
        return [{names.get(key, key): text for key, text in pair.items()} for pair in pairs] if names else pairs

    def _two_lists(self, location: str, row: dict, doc_id: Any, columns: dict) -> dict:
        named = _side_languages(row, self.languages)
        sides = {lang: _side(location, row, name) for name, lang in named.items() if name in row}
        for lang in self.languages:
            if lang not in sides:
                raise DataError(
                    f"{location}: document {doc_id!r} has no sentences in {lang!r}, it has {sorted(sides)}; correct "
                    "the language, or leave out the target language to read the source side only"
                )
        source, target = [sides[lang] for lang in self.languages] + [None] * (2 - len(self.languages))
        return make_row(location, doc_id, source, target, self.languages, **columns)

    def _running_text(self, location: str, text: object, doc_id: Any, columns: dict) -> dict:
        if len(self.languages) == 2:
            raise DataError(
                f"{location}: document {doc_id!r} has 'text', which has no target side; leave out the target language"
            )
        if not isinstance(text, str):
            raise DataError(f"{location}: 'text' must be a string, got {type(text).__name__}")
        check_unicode(text, f"{location}: document {doc_id!r}", DataError)
        self._split = self._split or sentence_splitter(self.languages[0])
        sentences, lines = split_lines(text, self._split)
        columns = {key: value for key, value in columns.items() if key not in ("text", TEXT_LINES)}
        for name, value in columns.items():  # which are written with the translation
            text = json.dumps(value, ensure_ascii=False, default=str)
            check_unicode(text, f"{location}: document {doc_id!r}, {name!r}", DataError)
        return make_row(location, doc_id, sentences, None, self.languages, **columns, **{TEXT_LINES: lines})


def check_text_lines(location: str, row: dict) -> None:
    """DataError where `text_lines` of a row are not the numbers of its sentences on each line."""
    lines, pairs = row.get(TEXT_LINES), row["translation"]
    if lines is None or not isinstance(pairs, list):  # which is refused by itself
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
    blank; sentences without a counterpart are left out. Without one, all sentences of the document are read. The column
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
    """Which language stands in `source` and which in `target`."""
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
