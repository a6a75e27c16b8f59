"""The built-in discourse corpus: English-German documents that cannot be translated one sentence at a time.

A grammar (`scene.py`) and a lexicon of our own write the documents, deterministic by seed and of any size: about 200
English and 220 German word types, five words per sentence. Four phenomena need context. What a model gets that sees the
current sentence only is known (`CHANCE`), because suite items come in groups with the same current sentence and the
same candidates, each candidate being the right one in one item of the group:

- pronoun (1/3): *it* is er, sie or es by the gender of its antecedent, 0 to 4 or more sentences back, with nouns of
  other classes and genders in between; the predicate of *it* fits one class of nouns. Every class has equally many
  nouns of each gender. At distance 0 the antecedent is in the sentence itself, and no context is needed.
- deixis (1/2): *you* is du or Sie. The greeting in the first sentence fixes it on both sides; afterwards only the
  German sentences that address somebody show it. The register suite asks for it at every distance from the greeting.
- lex_cohesion (1/2): a term with two German names keeps the one that was used first. A fair coin chooses it and the
  English side is the same for both, so the clue is in the target context only: a model with source context stays at
  chance, and the first use in a document cannot be predicted by any model.
- ellipsis (1/4): "So did Anna." takes its German verb from the sentence before.

On request (`cataphora`) some antecedents follow their pronoun: only the next sentence tells what *it* is (1/3).

A different corpus (`far`) has its clues up to this number of sentences away, for comparisons of mechanisms:
antecedents before and after the pronoun with nouns of other classes in between, competing antecedents told apart by
their owner, terms used again much later. `docmt corpus FOLDER --far 30 --longest 40` writes it.
"""

import json
import random
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path

import jinja2

from hf_docmt.data.documents import write_documents
from hf_docmt.data.synthetic.document_plan import draw_document, draw_far_document
from hf_docmt.data.synthetic.suites import CHANCE, FAR_CHANCE, make_suites
from hf_docmt.files import atomic_folder, check_new_folder, write_text

SPLITS = ("train", "validation", "test")

_ATTEMPTS = 100

__all__ = ["CHANCE", "FAR_CHANCE", "SPLITS", "make_corpus", "make_suites", "write_corpus"]


def make_corpus(
    seed: int = 0,
    train: int = 2000,
    validation: int = 200,
    test: int = 200,
    sentences: tuple[int, int] = (6, 10),
    cataphora: float = 0.0,
    far: int = 0,
) -> dict[str, list[dict]]:
    """Rows of the document contract for each split, no document twice; `sentences` is the range of document lengths.

    The n-th document of a split does not depend on their number. Column `phenomena` says for every sentence what it is:
    greeting, mention, action, or a phenomenon with the distance of its nearest clue, such as "pronoun-2" (no distance
    without a clue: the first "lex_cohesion"). `cataphora` is how often an antecedent follows its pronoun, as a share of
    1 for all other kinds of sentences. With `far` > 0 clues are up to this number of sentences away, before and after
    what depends on them. ValueError for sizes below 0, impossible ranges, and documents too short for `far`.
    """
    if not 0 <= cataphora <= 1:
        raise ValueError(f"cataphora: got {cataphora!r}, expected a share from 0 (none) to 1")
    sizes = dict(zip(SPLITS, (train, validation, test)))
    for split, size in sizes.items():
        if not isinstance(size, int) or size < 0:
            raise ValueError(f"{split}: got {size!r} documents, expected an integer of 0 or more")
    shortest, longest = _checked_range(sentences)
    _check_far(far, longest, cataphora)
    seen: set[tuple[str, ...]] = set()
    corpus = {}
    for split in reversed(SPLITS):  # the small parts first, so that they do not change when train grows
        names = (f"{seed}/{split}/{number}" for number in range(1, sizes[split] + 1))
        corpus[split] = [_new_row(name, shortest, longest, seen, cataphora, far) for name in names]
    return {split: corpus[split] for split in SPLITS}


def write_corpus(
    folder: str | Path,
    *,
    seed: int = 0,
    train: int = 2000,
    validation: int = 200,
    test: int = 200,
    sentences: tuple[int, int] = (6, 10),
    suite_items: int = 30,
    cataphora: float = 0.0,
    far: int = 0,
) -> Path:
    """Write the splits (JSON lines) and the suites into a new folder; returns it.

    Files: train.jsonl, validation.jsonl, test.jsonl; pronoun.json and register.json (ContraPro format) with their
    documents.jsonl; deixis.json, lex_cohesion.json, ellipsis.json (Voita format), `suite_items` items per distance and
    answer; README.md, a data set card. With `cataphora` > 0 (see `make_corpus`) cataphora.json, in ContraPro's format.
    With `far` > 0 the suites of `FAR_CHANCE`, all but deixis and ellipsis in ContraPro's format.
    The folder appears when it is complete. ValueError if it exists and is not empty.

    >>> folder = write_corpus("small", train=4, validation=1, test=1, suite_items=1)
    >>> sorted(file.name for file in folder.glob("*.jsonl"))
    ['documents.jsonl', 'test.jsonl', 'train.jsonl', 'validation.jsonl']
    """
    folder = check_new_folder(folder)
    corpus = make_corpus(seed, train, validation, test, sentences, cataphora, far)
    suites = make_suites(seed, suite_items, longest=max(sentences), cataphora=cataphora > 0, far=far)
    with atomic_folder(folder) as unfinished:
        for name, rows in {**corpus, "documents": suites.pop("documents")}.items():
            write_documents(rows, unfinished / f"{name}.jsonl")
        for name, items in suites.items():
            write_text(json.dumps(items, ensure_ascii=False, indent=1), unfinished / f"{name}.json")
        write_text(_dataset_card(corpus, suites, seed, far), unfinished / "README.md")
    return folder


def _checked_range(sentences: tuple[int, int]) -> tuple[int, int]:
    match sentences:
        case (int(shortest), int(longest)) if 1 <= shortest <= longest:
            return shortest, longest
    raise ValueError(f"sentences: got {sentences!r}, expected (shortest, longest) with 1 <= shortest <= longest")


def _check_far(far: int, longest: int, cataphora: float) -> None:
    if not isinstance(far, int) or far < 0:
        raise ValueError(f"far: got {far!r}, expected a number of sentences, or 0 for a corpus without far clues")
    if far and cataphora:
        raise ValueError(f"cataphora: got {cataphora} with far {far}, whose documents have it; omit cataphora")
    if far and longest < far + 2:
        raise ValueError(f"far: got {far}, but the longest document has {longest} sentences; ask for {far + 2} or more")


def _new_row(name: str, shortest: int, longest: int, seen: set[tuple[str, ...]], cataphora: float, far: int) -> dict:
    for attempt in range(_ATTEMPTS):
        rng = random.Random(f"{name}/{attempt}")
        length = rng.randint(shortest, longest)
        scene = draw_far_document(rng, length, far) if far else draw_document(rng, length, cataphora=cataphora)
        text = tuple(s.en + "\t" + s.de for s in scene.sentences)
        if text not in seen:
            seen.add(text)
            return scene.row("discourse-" + name.replace("/", "-"))
    raise ValueError(f"no new document of {shortest} to {longest} sentences found; ask for fewer or longer documents")


def _dataset_card(corpus: Mapping[str, Sequence[dict]], suites: Iterable[str], seed: int, far: int) -> str:
    """The card of the splits that are not empty; its header tells the library `datasets` which file is which split."""
    text = files("hf_docmt.hub_cards").joinpath("dataset_card.md.j2").read_text("utf-8")
    template = jinja2.Environment(trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True).from_string(text)
    splits = {split: rows for split, rows in corpus.items() if rows}
    return template.render(corpus=splits, suites=sorted(suites), seed=seed, far=far)
