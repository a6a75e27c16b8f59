"""Free text cut into the sentences of the reference, and the rates of what it leaves out and adds."""

from collections.abc import Sequence
from dataclasses import dataclass

from hf_docmt import __version__
from hf_docmt.data.language_codes import UNSPACED, primary_language
from hf_docmt.evaluation.mwer_segmentation import TOKENS, Token, cut, mweralign_version, segment_ends
from hf_docmt.reports.resampling import document_details
from hf_docmt.reports.result import Result
from hf_docmt.reports.signature import Signature


@dataclass(frozen=True)
class Alignment:
    """Hypotheses with the sentences of the references, how that was done, and counts for each document.

    `under`: [sentences too short, reference sentences]; `over`: [words beyond, hypothesis words]; `empty`: reference
    sentences that got no word at all. Sentences count if they have a word, punctuation is no word.
    """

    documents: tuple[tuple[str, ...], ...]
    ids: tuple[str, ...]
    signature: Signature
    under: tuple[tuple[int, int], ...]
    over: tuple[tuple[int, int], ...]
    empty: int


def align_documents(
    texts: Sequence[str | Sequence[str]],
    references: Sequence[Sequence[str]],
    *,
    doc_ids: Sequence[str] | None = None,
    target_lang: str | None = None,
    tokens: str | None = None,
) -> Alignment:
    """Cut the translation of each document, one text or any number of lines, where the reference sentences end.

    The cuts give the least word error rate over the document (AS-WER, Matusov et al. 2005; mweralign, Post and Hoang
    2025). Compared are, ignoring case, `words` with separate punctuation at their edges, or `characters` with words in
    Latin script as a whole (None: by the language). No cut is within a word or before the punctuation at its end, no
    text is lost, and runs of white space become one blank. mweralign is run as a program of its own, with opaque
    numbers for tokens, so no text has a special meaning to it. ValueError: mweralign is not installed, other documents
    on the two sides, a translation of a document without sentences; RuntimeError: mweralign failed.
    """
    tokens = tokens or ("characters" if primary_language(target_lang) in UNSPACED else "words")
    if tokens not in TOKENS:
        raise ValueError(f"unknown tokens {tokens!r}: expected {' or '.join(TOKENS)}")
    if len(texts) != len(references):
        raise ValueError(f"{len(texts)} translated texts for {len(references)} references; align the same documents")
    release = mweralign_version()
    ids = [str(number) for number in range(1, len(texts) + 1)] if doc_ids is None else list(doc_ids)
    texts = [" ".join((text if isinstance(text, str) else " ".join(text)).split()) for text in texts]
    _check_references(texts, references, ids)
    hypotheses = [cut(text, tokens) for text in texts]
    sentences = [[cut(" ".join(sentence.split()), tokens) for sentence in document] for document in references]
    documents, under, over, empty = [], [], [], 0
    for text, hypothesis, reference, ends in zip(
        texts, hypotheses, sentences, segment_ends(hypotheses, sentences, ids)
    ):
        parts = [hypothesis[first:end] for first, end in zip([0, *ends], ends)]
        documents.append(tuple(text[part[0].start : part[-1].end] if part else "" for part in parts))
        counts = [(_words(part), _words(sentence)) for part, sentence in zip(parts, reference)]
        under.append((sum(2 * got < words for got, words in counts), sum(words > 0 for _, words in counts)))
        over.append((sum(got - words for got, words in counts if got > 2 * words), sum(got for got, _ in counts)))
        empty += sum(words > 0 and not got for got, words in counts)
    signature = Signature.of({"aligned": f"mweralign-{release}", "tokens": tokens, "case": "ignored"})
    return Alignment(tuple(documents), tuple(ids), signature, tuple(under), tuple(over), empty)


def alignment_results(
    alignment: Alignment,
    *,
    dataset: str,
    split: str,
    strategy: str | None = None,
    beams: int | None = None,
    samples: int = 1000,
    seed: int = 1,
) -> list[Result]:
    """Two report results: how much is left out and how much is added, in percent, each with its 95 % interval.

    under-translation: reference sentences whose part of the translation has fewer than half as many words, in percent
    of the reference sentences. over-translation: words beyond those of the reference sentence, where a part has more
    than twice as many, in percent of the words of the translation. Parts that are paraphrased, and so somewhat shorter
    or longer, count for neither; what was added beside a long sentence may not count.
    """
    measures = {
        "under-translation": (alignment.under, "sentences-below-half", {"empty": alignment.empty}),
        "over-translation": (alignment.over, "words-beyond-where-above-twice", {}),
    }
    results = []
    for name, (rows, counted, details) in measures.items():
        part, whole = (sum(column) for column in zip(*rows))
        results.append(
            Result(
                task="translation",
                dataset=dataset,
                split=split,
                metric=name,
                value=100 * part / whole if whole else 0.0,
                signature=alignment.signature + Signature.of({"counted": counted, "version": __version__}),
                n=whole,
                strategy=strategy,
                beams=beams,
                details={**details, **document_details(name, alignment.ids, rows, samples, seed)},
            )
        )
    return results


def _check_references(texts: Sequence[str], references: Sequence[Sequence[str]], ids: Sequence[str]) -> None:
    if not any(len(reference) for reference in references):
        raise ValueError("nothing to align: the references have no sentence")
    for doc_id, text, reference in zip(ids, texts, references):
        if isinstance(reference, str):
            raise ValueError(f"document {doc_id!r}: the reference is a string, expected a list of sentences")
        if text and not reference:
            raise ValueError(f"document {doc_id!r}: a translation, {text[:40]!r}, for a reference without sentences")


def _words(tokens: Sequence[Token]) -> int:
    return sum(token.is_word for token in tokens)
