"""Files of terms: tables (TSV, CSV, UTX), termbases (TBX) and lists in Markdown.

TBX: https://www.tbxinfo.net (ISO 30042), UTX: https://aamt.info/english/utx/
"""

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from hf_docmt.data.language_codes import primary_language
from hf_docmt.data.readers.memories import LANG, elements, local_name
from hf_docmt.files import DataError, check_file, display_path, location_of, read_lines

FORBIDDEN = "NOT "  # before a translation that is not allowed, in Markdown and tables
STATUSES = ("termStatus", "administrativeStatus")  # of TBX: elements, or types of termNote
NOT_ALLOWED = re.compile(r"notRecommended|obsolete|deprecated|superseded|forbidden|rejected", re.IGNORECASE)
ARTICLES = re.compile(r"(?:der|die|das|el|los|las?|les?|l['’]|o|os|as?|il|lo|gli|i|het|de) ?(?<=[ '’])", re.IGNORECASE)
ENGLISH = re.compile(r"(the|to|an?) ", re.IGNORECASE)  # before terms of lists: it is not part of them
REMARK = re.compile(r"\s*\([^()]*\)\s*$")
ITEM = re.compile(r"\s*[*+-] (.+?): (.+)")
UTX_LANGUAGES = re.compile(r"#UTX[^;]*;\s*([\w-]+)/([\w-]+)")


class Entry(NamedTuple):
    """A term and a translation of it, which may be a forbidden one."""

    source: str
    target: str
    is_forbidden: bool = False


def read_entries(path: str | Path, source_lang: str | None, target_lang: str | None) -> list[Entry]:
    """The entries of a file, by its ending; any other ending is a table with tabs.

    DataError: no entry, a line that is not an entry, a termbase without the languages.
    """
    check_file(path)
    ending = Path(path).suffix.lower()
    if ending in (".tbx", ".xml"):
        entries = list(_of_termbase(path, source_lang, target_lang))
    elif ending == ".md":
        entries = list(_of_list(path))
    else:
        entries = list(_of_table(list(read_lines(path)), path, ending, source_lang, target_lang))
    if not entries:
        raise DataError(f"{display_path(path)}: no term with a translation; it needs at least one")
    return entries


def entries_of_text(text: str, source_lang: str | None, target_lang: str | None) -> list[Entry]:
    """The entries of a text, a line each: `source = target`, or with a tab. DataError: a line that is not an entry."""
    return list(_of_table(list(enumerate(text.splitlines(), 1)), "glossary", "", source_lang, target_lang))


def _of_table(
    lines: Sequence[tuple[int, str]], path: str | Path, ending: str, source_lang: str | None, target_lang: str | None
) -> Iterator[Entry]:
    """Rows of a term and its translation; a header names the columns; UTX may have the languages in reverse order."""
    delimiter, columns, is_first = "\t", (0, 1), True
    if lines and (ending == ".csv" or not ending and "\t" not in lines[0][1]):
        delimiter = max(",;\t|", key=lines[0][1].count) if ending else "="
    if ending == ".utx" and lines and (match := UTX_LANGUAGES.match(lines[0][1])):
        columns = _utx_columns(path, match.groups(), source_lang, target_lang)
    for number, line in lines:
        if not line.strip() or line.startswith("#") and ending == ".utx":
            continue
        cells = [cell.strip() for cell in _cells(line, delimiter)]
        named = _header(cells, source_lang, target_lang) if is_first and ending != ".utx" else None
        is_first = False
        if named:
            columns = named
            continue
        if len(cells) <= max(columns) or not cells[columns[0]]:
            raise DataError(
                f"{location_of(path, number)}: {line!r}, expected a source term and its translation with "
                f"{'a tab' if delimiter == chr(9) else repr(delimiter)} between them"
            )
        if target := cells[columns[1]]:
            yield with_status(cells[columns[0]], target)


def _cells(line: str, delimiter: str) -> list[str]:
    return line.split("\t") if delimiter == "\t" else next(csv.reader([line], delimiter=delimiter), [])


def _header(cells: list[str], source_lang: str | None, target_lang: str | None) -> tuple[int, int] | None:
    """The columns of source and target, if the cells name them, by `source` and `target` or by language codes."""
    names = [cell.lower() for cell in cells]
    codes = [primary_language(cell) for cell in cells]
    for source, target, own in (
        ("source", "target", names),
        ("src", "tgt", names),
        (primary_language(source_lang), primary_language(target_lang), codes),
    ):
        if source != target and source in own and target in own:
            return own.index(source), own.index(target)
    return None


def _utx_columns(path: str | Path, languages: Iterable[str], *asked: str | None) -> tuple[int, int]:
    found, wanted = ([primary_language(code) for code in codes] for codes in (languages, asked))
    if found == wanted[::-1]:
        return 1, 0
    if all(wanted) and found != wanted:
        raise DataError(f"{display_path(path)}: languages {' and '.join(found)}, expected {' and '.join(wanted)}")
    return 0, 1


def with_status(source: str, target: str) -> Entry:
    """A term with its translation, which is forbidden after `NOT `."""
    is_forbidden = target.startswith(FORBIDDEN)
    return Entry(source, target.removeprefix(FORBIDDEN).strip() if is_forbidden else target, is_forbidden)


def _of_list(path: str | Path) -> Iterator[Entry]:
    """Items `* the term: die Benennung`, without articles, `to` and remarks in brackets at the end."""
    for _, line in read_lines(path):
        if match := ITEM.fullmatch(line.strip()):
            source, target = (REMARK.sub("", side).strip() for side in match.groups())
            entry = with_status(source, target)
            if article := ENGLISH.match(entry.source):
                bare = ARTICLES.sub("", entry.target, count=1) if article[1].lower() == "the" else entry.target
                entry = entry._replace(source=entry.source[article.end() :], target=bare)
            yield entry


def _of_termbase(path: str | Path, source_lang: str | None, target_lang: str | None) -> Iterator[Entry]:
    """All terms of a concept in the one language with all in the other; those not recommended are forbidden."""
    if not source_lang or not target_lang:
        raise DataError(f"{display_path(path)}: a termbase has several languages; name those of the translation")
    wanted = [primary_language(code) for code in (source_lang, target_lang)]
    found: set[str] = set()
    for concept in elements(path, ("conceptEntry", "termEntry")):
        terms: dict[str, list[tuple[str, bool]]] = {}
        for section in concept:
            if local_name(section) in ("langSec", "langSet"):
                code = section.get(LANG) or section.get("lang") or ""
                found.add(code)
                terms.setdefault(primary_language(code), []).extend(_terms(section))
        for source, _ in terms.get(wanted[0], ()):
            yield from (Entry(source, target, is_bad) for target, is_bad in terms.get(wanted[1], ()))
    codes = set(map(primary_language, found))
    if missing := [lang for lang in wanted if lang not in codes]:
        raise DataError(f"{display_path(path)}: no terms in {' and '.join(missing)}, but in {', '.join(sorted(found))}")


def _terms(section) -> Iterator[tuple[str, bool]]:
    """The terms of a language section, and whether each is marked as not to be used."""
    for group in section.iter():
        texts = [each for each in group if local_name(each) == "term"]
        for element in texts:
            statuses = [
                each.text or "" for each in group.iter() if local_name(each) in STATUSES or each.get("type") in STATUSES
            ]
            if text := " ".join("".join(element.itertext()).split()):
                yield text, any(map(NOT_ALLOWED.search, statuses))
