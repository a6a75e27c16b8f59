"""Free text cut into the sentences of the reference, and its rates of omitted and added text."""

from __future__ import annotations

import json
import subprocess
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from itertools import accumulate

import regex

from hf_docmt.data.language_codes import UNSPACED, primary_language
from hf_docmt.evaluation.metrics.metric import Measurement, Metric, TranslatedDocuments
from hf_docmt.messages import __version__, install_command
from hf_docmt.modeling.text_splitting import split_text
from hf_docmt.reports.signature import Signature

PIECES = {
    "words": regex.compile(r"(?s)[^\p{P}\p{S}](?:.*[^\p{P}\p{S}])?|."),  # a word, each mark and symbol at its edges
    "characters": regex.compile(r"(?sV1)[[\p{L}\p{N}]&&[\0-\u024f]]+|."),  # letters and digits of Latin script together
}
INSERTED = 0.25  # share of its words that an added sentence has in common with the reference sentence, at most

_PROGRAM = """
import json, sys
from mweralign import align_texts
for line in sys.stdin:
    sentences = align_texts(*json.loads(line), is_tokenized=True, forbid_midword_boundary=True)
    print(json.dumps(sentences), flush=True)
"""


@dataclass(frozen=True)
class Alignment:
    """Hypotheses with the sentences of the references, how that was done, and counts for each document.

    `under`: [sentences too short, reference sentences]; `over`: [words beyond, hypothesis words]; `inserted`:
    [sentences that were added, hypothesis sentences]; `empty`: reference sentences that got no word at all. Sentences
    count if they have a word; punctuation is not a word.
    """

    documents: tuple[tuple[str, ...], ...]
    signature: Signature
    under: tuple[tuple[int, int], ...]
    over: tuple[tuple[int, int], ...]
    inserted: tuple[tuple[int, int], ...]
    empty: int

    @property
    def rates(self) -> list[AlignmentRate]:
        """Three measures: rates of omitted and added text.

        under-translation: reference sentences whose part of the translation has less than half their number of words,
        in percent of the reference sentences. over-translation: words beyond those of the reference sentence, where a
        part has more than twice their number, in percent of the words of the translation. Parts that are paraphrased,
        and so somewhat shorter or longer, count for neither; text added to a long sentence may not count there.
        inserted sentences: in a part of several sentences those of three words or more, less than a quarter of them in
        the reference sentence, in percent of the sentences of the translation.
        """
        inserted = f"beside-others-below-{INSERTED}-of-words-in-reference"
        return [
            AlignmentRate("under-translation", self.under, "sentences-below-half", {"empty": self.empty}),
            AlignmentRate("over-translation", self.over, "words-beyond-where-above-twice", {}),
            AlignmentRate("inserted sentences", self.inserted, inserted, {}),
        ]


class AlignmentRate(Metric):
    """A rate of an alignment in percent, from [part, whole] of each document; `counted` says what, in the signature."""

    segment = "document"

    def __init__(self, name: str, rows: Sequence[tuple[int, int]], counted: str, details: dict[str, int]):
        self.name, self.rows, self.counted, self.details = name, rows, counted, details  # type: ignore[misc]

    def measure(self, documents: TranslatedDocuments) -> Measurement:
        signature = Signature.of({"counted": self.counted, "version": __version__})
        whole = sum(whole for _, whole in self.rows)
        return Measurement([[row] for row in self.rows], signature, n=whole, details=self.details)


def align_documents(
    texts: Sequence[str | Sequence[str]],
    references: Sequence[Sequence[str]],
    *,
    doc_ids: Sequence[str] | None = None,
    target_lang: str | None = None,
) -> Alignment:
    """Cut the translation of each document, one text or any number of lines, where the reference sentences end.

    The cuts give the least word error rate over the document (AS-WER, Matusov et al. 2005; mweralign, Post and Hoang
    2025). Compared are, ignoring case, `words` with separate punctuation at their edges, or `characters` with words in
    Latin script as a whole, by the language. No cut is within a word or before the punctuation at its end, no
    text is lost, and runs of white space become one blank. mweralign is run as a program of its own, with opaque
    numbers for tokens, so no text has a special meaning to it. ValueError: mweralign is not installed, a
    translation of a document without sentences; RuntimeError: mweralign failed.
    """
    tokens = "characters" if primary_language(target_lang) in UNSPACED else "words"
    try:
        release = version("mweralign")
    except PackageNotFoundError as error:
        raise ValueError(
            "cutting free text into the sentences of a reference needs mweralign (GPL-3), which is not installed: "
            f"{install_command('align')}, or give one translation for every sentence"
        ) from error
    ids = [str(number) for number in range(1, len(texts) + 1)] if doc_ids is None else list(doc_ids)
    texts = [" ".join((text if isinstance(text, str) else " ".join(text)).split()) for text in texts]
    if not any(len(reference) for reference in references):
        raise ValueError("nothing to align: the references have no sentence")
    for doc_id, text, reference in zip(ids, texts, references, strict=True):
        if text and not reference:
            raise ValueError(f"document {doc_id!r}: a translation, {text[:40]!r}, for a reference without sentences")
    hypotheses = [cut(text, tokens) for text in texts]
    sentences = [[cut(" ".join(sentence.split()), tokens) for sentence in document] for document in references]
    documents, under, over, inserted, empty = [], [], [], [], 0
    all_ends = segment_ends(hypotheses, sentences, ids)
    for text, hypothesis, reference, ends in zip(texts, hypotheses, sentences, all_ends):
        parts = [hypothesis[first:end] for first, end in zip([0, *ends], ends)]
        documents.append(tuple(text[part[0].start : part[-1].end] if part else "" for part in parts))
        inserted.append(_inserted(documents[-1], reference, tokens))
        counts = [(_words(part), _words(sentence)) for part, sentence in zip(parts, reference)]
        under.append((sum(2 * got < words for got, words in counts), sum(words > 0 for _, words in counts)))
        over.append((sum(got - words for got, words in counts if got > 2 * words), sum(got for got, _ in counts)))
        empty += sum(words > 0 and not got for got, words in counts)
    signature = Signature.of({"aligned": f"mweralign-{release}", "tokens": tokens, "case": "ignored"})
    return Alignment(tuple(documents), signature, tuple(under), tuple(over), tuple(inserted), empty)


@dataclass(frozen=True)
class Token:
    """The form that is compared, its characters in the text, and whether a sentence may begin with it; is it a word?"""

    key: str
    start: int
    end: int
    begins: bool
    is_word: bool


def cut(text: str, tokens: str) -> list[Token]:
    """`words`, with separate punctuation at their edges, or `characters`, with words in Latin script as a whole.

    Everything between blanks is in one token. A sentence may begin with a word or with punctuation before it, or with
    any character but closing punctuation and combining marks.
    """
    pieces, start = [], 0
    for word in text.split(" "):
        for number, piece in enumerate(PIECES[tokens].findall(word)):
            closing = unicodedata.category(piece[0]) in ("Po", "Pe", "Pf", "Mn", "Mc")
            begins = number == 0 or (tokens == "characters" and not closing)
            is_word = any(character.isalnum() for character in piece)
            pieces.append(Token(piece.casefold(), start, start + len(piece), begins, is_word))
            start += len(piece)
        start += 1
    return pieces


def segment_ends(
    hypotheses: Sequence[Sequence[Token]], references: Sequence[Sequence[Sequence[Token]]], ids: Sequence[str]
) -> list[list[int]]:
    """For each document, the number of hypothesis tokens before the end of each reference sentence.

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
    """The number of tokens for each sentence of each document. mweralign prints and may crash: it runs apart."""
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


def _inserted(parts: Sequence[str], references: Sequence[Sequence[Token]], tokens: str) -> tuple[int, int]:
    """How many sentences of the parts were added to what the references say, and how many there are."""
    inserted = number = 0
    for part, reference in zip(parts, references):
        expected = Counter(token.key for token in reference if token.is_word)
        cuts = (cut(sentence, tokens) for sentence in split_text(part)[0])
        sentences = [Counter(token.key for token in sentence if token.is_word) for sentence in cuts]
        sentences = [words for words in sentences if words]
        number += len(sentences)
        if len(sentences) > 1:
            inserted += sum(
                words.total() > 2 and (words & expected).total() < INSERTED * words.total() for words in sentences
            )
    return inserted, number


def _words(tokens: Sequence[Token]) -> int:
    return sum(token.is_word for token in tokens)
