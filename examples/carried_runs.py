"""Opaque runs in the files of a folder, before and after translation: lost, doubled, moved to another segment.

    python examples/carried_runs.py runs/real/en-pt FOLDER --runs 5000

Each file is translated, written and read again by its format. Counted are the texts of `opaque_runs` and of the
format's own tags (code, placeholders) in each segment; problems are printed with their place. Of bilingual files,
whose source does not change, the problems that the command finds are the check.
"""

import argparse
import random
import tempfile
from collections import Counter
from pathlib import Path

import hf_docmt
from hf_docmt.files import DataError
from hf_docmt.formats import document_formats
from hf_docmt.formats.document_file import DocumentFile
from hf_docmt.formats.document_format import FormatOptions, Tag
from hf_docmt.modeling.opaque_runs import COMMON, matches


def runs_of(document: DocumentFile) -> list[Counter[str]]:
    """The opaque runs of each segment."""
    counted = []
    for segment in document.segments:
        pieces = segment.pieces if segment else []
        tags = Counter(piece.text for piece in pieces if isinstance(piece, Tag) and piece.text.strip())
        plain = "\n".join(piece for piece in pieces if isinstance(piece, str))
        patterns = [pattern for pattern in (COMMON, document.format.placeholders) if pattern]
        counted.append(tags + Counter(plain[start:end] for start, end in matches(plain, patterns)))
    return counted


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--runs", type=int, default=5000, help="stop after this number of runs")
    parser.add_argument("--files", type=int, default=1000, help="stop after this number of files")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    system = hf_docmt.load_system(options.model)
    formats = {ending: kind for kind in document_formats().values() for ending in kind.endings}
    files = sorted(path for path in options.folder.rglob("*") if path.suffix.lower() in formats and path.is_file())
    random.Random(options.seed).shuffle(files)
    total: Counter[str] = Counter()
    for path in files[: options.files]:
        if total["runs"] >= options.runs:
            break
        format = formats[path.suffix.lower()]
        with tempfile.TemporaryDirectory() as folder:
            written = Path(folder, path.name)
            try:
                result = hf_docmt.translate_file(system, path, written, format=format.name)
            except DataError as error:
                total["refused"] += 1
                print(f"{path}: {error}")
                continue
            before, after = (
                runs_of(DocumentFile.read(each, each.name, format(), FormatOptions(source_lang="en")))
                for each in (path, written)
            )
        total += Counter(files=1, segments=len(before), runs=sum(map(Counter.total, before)))
        total["problems"] += len(result.problems)
        for problem in result.problems:
            print(f"{path}: {problem}")
        if len(before) != len(after):
            total["other segments"] += 1
            print(f"{path}: {len(before)} segments before, {len(after)} after")
            continue
        for number, (old, new) in enumerate(zip(before, after)):
            total["lost"] += (old - new).total()
            total["added"] += (new - old).total()
            if old != new:
                print(f"{path}, segment {number + 1}: lost {dict(old - new)}, added {dict(new - old)}")
    print(dict(total))


if __name__ == "__main__":
    main()
