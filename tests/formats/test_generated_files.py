"""Generated files: the same bytes by the identity, and the same outline, as other programs read it, by any other.

In bilingual files the identity writes translations, too.
"""

import os
import shutil
from random import Random

import pytest
from support.generated_strings import csv_file, json_file, po_file, yaml_file
from support.generated_subtitles import ass_file
from support.generated_xml import odt_file, xliff_file
from support.outlines import marked, outline

from hf_docmt.formats import document_formats
from hf_docmt.formats.document_file import DocumentFile, FormatOptions, WrittenFile, given_runs
from hf_docmt.formats.file_translation import marked_results
from hf_docmt.modeling.opaque_runs import Finder, carry

SEEDS = int(os.environ.get("DOCMT_GENERATED_FILES", "20"))  # of each format
FILES = {
    "ass": ass_file,
    "csv": csv_file,
    "json": json_file,
    "odt": odt_file,
    "po": po_file,
    "xliff": xliff_file,
    "yaml": yaml_file,
}
HOSTILE = 'it\'s "X": & < y #1 - *b* a_b_c [d] \\N | `f`, ; \\ 50% ü '


def document(name: str, seed: int) -> tuple[bytes, DocumentFile]:
    data = FILES[name](Random(seed))
    columns = None
    if isinstance(data, tuple):
        data, columns = data
    return data, DocumentFile(data, "f", document_formats()[name](), FormatOptions(all=True, columns=columns))


def translated(file: DocumentFile, translate) -> tuple[bytes, WrittenFile]:
    rows = [row for _, row in file.rows(["source"])]
    documents = [[pair["source"] for pair in row["translation"]] for row in rows]
    every = lambda texts: [[text and translate(text) for text in document] for document in texts]  # noqa: E731
    lines, carried = carry(every, documents, Finder(), list(map(given_runs, rows)))
    return file.translated(marked_results(rows, zip(lines, carried), None))


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("name", FILES)
def test_generated_files(name, seed):
    data, file = document(name, seed)
    for change in (reversed_words, lambda sentence: HOSTILE + sentence):
        assert translated(file, change)[1].problems == []
    asked: list[str] = []
    same, (new, written) = translated(file, str)[0], translated(file, lambda text: asked.append(text) or marked(text))
    stands_beside = file.format.is_bilingual and bool(file.segments)
    assert (same != data) == stands_beside and written.problems == []
    assert (new != data) == (bool(asked) or stands_beside)
    if name != "po" or shutil.which("msgfmt"):
        assert outline(name, new) == outline(name, data)


def reversed_words(sentence: str) -> str:
    return " ".join(reversed(sentence.split()))
