"""Pages of a folder, each a document, by a real model in Python; `make real` fetches and converts the model first.

python examples/real_model.py runs/real/en-pt examples/pages runs/real/pages
"""

import sys
from pathlib import Path

import hf_docmt


def main(model: str, pages: str, output: str) -> None:
    system = hf_docmt.load_system(model)
    Path(output).mkdir(parents=True, exist_ok=True)
    for page in sorted(Path(pages).glob("*.md")):
        translated = Path(output, page.name)
        hf_docmt.translate_file(system, page, translated)
        print(translated.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main(*sys.argv[1:])
