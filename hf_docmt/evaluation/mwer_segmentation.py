"""Where the sentences of a reference end in running text, by least word error rate: tokens, and mweralign on them."""

import json
import subprocess
import sys
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from itertools import accumulate

from hf_docmt.messages import install_command

TOKENS = ("words", "characters")

_PROGRAM = """
import json, sys
from mweralign import align_texts
for line in sys.stdin:
    found = align_texts(*json.loads(line), is_tokenized=True, forbid_midword_boundary=True)
    print(json.dumps(found), flush=True)
"""


@dataclass(frozen=True)
class Token:
    """The form that is compared, its characters in the text, and whether a sentence may begin with it; is it a word?"""

    key: str
    start: int
    end: int
    begins: bool
    is_word: bool


def mweralign_version() -> str:
    """ValueError: it is not installed."""
    try:
        return version("mweralign")
    except PackageNotFoundError as error:
        raise ValueError(
            "cutting free text into the sentences of a reference needs mweralign, which is not installed: "
            f"{install_command('align')}, or give one translation for every sentence"
        ) from error


def cut(text: str, tokens: str) -> list[Token]:
    """`words`, with separate punctuation at their edges, or `characters`, with words in Latin script as a whole.

    Everything between blanks is in one token. A sentence may begin with a word or with punctuation before it, or with
    any character but closing punctuation and combining marks.
    """
    found, start = [], 0
    for word in text.split(" "):
        for number, piece in enumerate(_edges(word) if tokens == "words" else _characters(word)):
            closing = unicodedata.category(piece[0]) in ("Po", "Pe", "Pf", "Mn", "Mc")
            begins = number == 0 or (tokens == "characters" and not closing)
            is_word = any(character.isalnum() for character in piece)
            found.append(Token(piece.casefold(), start, start + len(piece), begins, is_word))
            start += len(piece)
        start += 1
    return found


def segment_ends(
    hypotheses: Sequence[Sequence[Token]], references: Sequence[Sequence[Sequence[Token]]], ids: Sequence[str]
) -> list[list[int]]:
    """For each document, how many hypothesis tokens stand before the end of each reference sentence.

    Empty reference sentences get no token, unless all of the document are empty: then the first gets all. RuntimeError
    names the document where mweralign failed.
    """
    filled = [[sentence for sentence in document if sentence] for document in references]
    asked = [number for number, tokens in enumerate(hypotheses) if tokens and len(filled[number]) > 1]
    lines = [_encoded(hypotheses[number], filled[number]) for number in asked]
    sizes = dict(zip(asked, _aligned(lines, [ids[number] for number in asked])))
    ends = []
    for number, document in enumerate(references):
        counts = iter(sizes.get(number, [len(hypotheses[number])]))  # a sentence alone takes all
        taken = [next(counts, 0) if sentence else 0 for sentence in document]
        if taken and not filled[number]:
            taken[0] = next(counts)
        ends.append(list(accumulate(taken)))
    return ends


def _encoded(hypothesis: Sequence[Token], sentences: Sequence[Sequence[Token]]) -> str:
    """Reference and hypothesis with numbers for tokens; U+2581 before those with which a sentence may begin."""
    numbers: dict[str, int] = {}

    def line(tokens: Sequence[Token]) -> str:
        return " ".join(
            f"{chr(0x2581) if token.begins else ''}t{numbers.setdefault(token.key, len(numbers))}" for token in tokens
        )

    return json.dumps(["\n".join(map(line, sentences)), line(hypothesis)])


def _aligned(lines: Sequence[str], ids: Sequence[str]) -> Iterator[list[int]]:
    """How many tokens each sentence of each document gets. mweralign prints and may crash: it runs by itself."""
    if not lines:
        return
    done = subprocess.run([sys.executable, "-c", _PROGRAM], input="\n".join(lines), capture_output=True, text=True)
    answers = done.stdout.splitlines()
    if len(answers) < len(lines):
        error = (done.stderr.strip().splitlines() or [""])[-1]
        raise RuntimeError(f"document {ids[len(answers)]!r}: mweralign failed, status {done.returncode}: {error}")
    for doc_id, asked, answer in zip(ids, lines, answers):
        reference, hypothesis = json.loads(asked)
        counts = [len(part.split()) for part in json.loads(answer).split("\n")]
        if len(counts) != reference.count("\n") + 1 or sum(counts) != len(hypothesis.split()):
            raise RuntimeError(
                f"document {doc_id!r}: mweralign gave {sum(counts)} words in {len(counts)} sentences for "
                f"{len(hypothesis.split())} words and {reference.count(chr(10)) + 1} sentences"
            )
        yield counts


def _edges(word: str) -> list[str]:
    """A word, and each mark of punctuation and each symbol before and after it."""
    inner = [position for position, character in enumerate(word) if unicodedata.category(character)[0] not in "PS"]
    if not inner:
        return list(word)
    return [*word[: inner[0]], word[inner[0] : inner[-1] + 1], *word[inner[-1] + 1 :]]


def _characters(word: str) -> list[str]:
    """Single characters, but letters and digits of Latin script together."""
    pieces: list[str] = []
    for character in word:
        if pieces and _is_latin(character) and _is_latin(pieces[-1][-1]):
            pieces[-1] += character
        else:
            pieces.append(character)
    return pieces


def _is_latin(character: str) -> bool:
    return character.isalnum() and ord(character) < 0x250
