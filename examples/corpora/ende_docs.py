"""English-German documents from three public repositories: chat, film dialogue, talks, news and debates.

    python examples/corpora/ende_docs.py data                       # fetches 18 files from GitHub, 10 MB
    python examples/corpora/ende_docs.py data --sources FOLDER      # reads them from FOLDER/msctd_ende and so on

It writes `ende_docs` (train, validation, test) and `ende_dialogue`, the validation documents in two halves, and
compares their checksums with those of the corpus that the studies used. The texts keep the licences of their sources:
MSCTD (Liang et al. 2022) and the data of Maruf et al. (2019) are in MIT repositories, BConTrasT (Farajian et al. 2020)
is CC BY-SA 4.0; talks, news and subtitles have terms of their own.
"""

import argparse
import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.request import urlretrieve

from hf_docmt.data.readers import iterate_documents
from hf_docmt.files import DataError, write_lines

REPOSITORIES = {  # folder -> repository, commit and folder of the files there
    "msctd_ende": "XL2248/MSCTD/a2e9dff86ca63b2c07100ff4ae626817040cde6a/MSCTD_data/ende",
    "bcontrast": "Unbabel/BConTrasT/ad3edf20a97654a8105a22da585c5426c9fbe646",
    "maruf2019": "sameenmaruf/selective-attn/1cb44c5ddd2cdf4f32ea74768a3389b52fc4db27/data",
}
TALKS = [("IWSLT2017", "dev"), ("NC-2016", "dev"), ("Europarl7", "dev")]
PARTS = {
    "train": [("msctd_ende", "train"), ("bcontrast", "train"), *(("maruf2019", *talks) for talks in TALKS)],
    "validation": [("msctd_ende", "dev"), ("bcontrast", "dev")],
    "test": [("maruf2019", "IWSLT2017", "test"), ("maruf2019", "NC-2016", "test")],
}
CHECKSUMS = {  # SHA-256
    "ende_docs/train.jsonl": "fa975c2ee8d5f5f4decd2b21d90f48f2c439e455deddb26532edf508403e019e",
    "ende_docs/validation.jsonl": "ba044e03dc9c8afa1cd38f1db50f3bb244643fa104783f05bd0ddaae8caf233b",
    "ende_docs/test.jsonl": "82abb2446078978751edcd547aa66ad3df0f9d8502570936aef77c9f432f3a4d",
    "ende_dialogue/validation.jsonl": "707af91910cd8ea45b76f3d81072a8df668bc0ab2f43fac69188749cf0c0e135",
    "ende_dialogue/test.jsonl": "1d98ea7de76033fa759c8805573fb6a3813830bd001f73502f6581cfe148998c",
}
Locate = Callable[[str, str], Path]  # the local file of a folder and a name in it


def documents(locate: Locate, folder: str, *part: str) -> Iterator[dict]:
    """Rows of one part of a source; every run of white space becomes one blank."""
    *corpus, split = part
    if folder == "msctd_ende":
        names = {"source": f"english_{split}.txt", "target": f"german_{split}.txt", "index": f"image_index_{split}.txt"}
        kind, prefix, digits = "dialogue", f"msctd-{split}", 4
    elif folder == "bcontrast":
        names, kind, prefix, digits = {"path": f"{split}.json"}, "chat", f"bcontrast-{split}", 0
    else:
        sides = {"source": "en", "target": "de"}
        names = {side: f"{corpus[0]}/concatenated_en2de_{split}_{lang}.txt" for side, lang in sides.items()}
        kind, prefix, digits = "dtag", f"maruf2019-{corpus[0].lower()}-{split}", 3
    files = {argument: locate(folder, name) for argument, name in names.items()}
    for number, row in enumerate(iterate_documents(kind, source_lang="en", target_lang="de", **files)):
        sides = ([" ".join(pair[lang].split()) for pair in row["translation"]] for lang in ("en", "de"))
        name = f"{prefix}-{number:0{digits}}" if digits else f"{prefix}-{row['doc_id']}"
        yield {"id": name, "source_lang": "en", "target_lang": "de"} | dict(zip(("source", "target"), sides))


def build(output: Path, locate: Locate) -> dict[str, bool]:
    """Write the files; whether each is that of the studies."""
    made = {}
    for part, sources in PARTS.items():
        read = [list(documents(locate, *source)) for source in sources]
        made[f"ende_docs/{part}.jsonl"] = [row for rows in read for row in rows]
        if part == "validation":  # every other document of each source
            for first, half in enumerate(("validation", "test")):
                made[f"ende_dialogue/{half}.jsonl"] = [row for rows in read for row in rows[first::2]]
    same = {}
    for name, rows in made.items():
        (output / name).parent.mkdir(parents=True, exist_ok=True)
        write_lines((json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in rows), output / name)
        same[name] = hashlib.sha256((output / name).read_bytes()).hexdigest() == CHECKSUMS[name]
        print(f"{name}: {len(rows):,} documents, {'as in' if same[name] else 'NOT as in'} the studies")
    return same


def fetched(cache: Path) -> Locate:
    """Files of the repositories, each fetched once."""

    def locate(folder: str, name: str) -> Path:
        path = cache / folder / name
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            url = f"https://raw.githubusercontent.com/{REPOSITORIES[folder]}/{name}"
            try:
                urlretrieve(url, path.with_suffix(".part"))
            except OSError as error:
                raise DataError(f"{url}: {error}; download the repository and pass --sources") from None
            path.with_suffix(".part").rename(path)
        return path

    return locate


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path, help="folder for ende_docs/ and ende_dialogue/")
    parser.add_argument("--sources", type=Path, help=f"folder with {', '.join(REPOSITORIES)}; default: from GitHub")
    options = parser.parse_args()
    sources = options.sources
    locate = (lambda folder, name: sources / folder / name) if sources else fetched(options.output / "sources")
    try:
        same = build(options.output, locate)
    except DataError as error:
        raise SystemExit(f"{parser.prog}: {error}") from None
    if not all(same.values()):
        raise SystemExit(
            f"{parser.prog}: a source differs from the files that the studies used; get the commits in REPOSITORIES"
        )


if __name__ == "__main__":
    main()
