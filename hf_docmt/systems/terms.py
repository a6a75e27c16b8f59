"""Terms of a glossary: a sentence without one is translated again with a beginning that ends in the term."""

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

import regex

from hf_docmt.data.glossary import Glossary, Term, TermMatch
from hf_docmt.data.tokenizers import tokenize_sentences
from hf_docmt.modeling.text_splitting import Sentence, known_target
from hf_docmt.systems.items import SuiteItem

BEGINNINGS = 4  # that are tried for a term
ROUNDS = 3  # terms of a sentence that are brought in
WORD = regex.compile(r"(?<=^|\s)(?=\S)|(?<=\p{Han}|\p{Hiragana}|\p{Katakana}|\p{Thai})(?=\w)")  # where one begins
FINAL = regex.compile(r"\W*$")  # punctuation after the last word


class Place(NamedTuple):
    """A sentence of a document."""

    document: int
    sentence: int


class TermSearch:
    """Brings the terms of a glossary into translations by a system that does forced decoding.

    For each missing term the beginnings of the translation that end before a word are continued by the term; of these
    the `BEGINNINGS` in which the term is most probable are translated to the end, so that its last word can be
    inflected. The most probable translation with the most terms is taken.
    """

    def __init__(self, glossary: Glossary, system):
        self.glossary, self.system = glossary, system

    def corrected(self, documents: Sequence[Sequence[str]], results: tuple) -> tuple:
        """Results of `translate_once` (lines, repairs, maybe candidates) with terms; missing ones are reported."""
        lines, repairs, *rest = (list(map(list, part)) for part in results)
        terms = {
            Place(number, place): found
            for number, document in enumerate(documents)
            for place, text in enumerate(document)
            if known_target(text) is None and (found := self.glossary.in_source(text))
        }
        open_places = list(terms)
        for step in range(ROUNDS):
            wanted = {}
            for place in open_places:
                missing = self._missing(terms[place], lines[place.document][place.sentence])
                if missing:
                    wanted[place] = missing[step % len(missing)].term
            open_places = list(wanted)
            if not wanted:
                break
            tried = self._translated(documents, lines, self._beginnings(documents, lines, wanted))
            for (number, sentence), best in self._best(documents, lines, terms, tried).items():
                lines[number][sentence], own, *candidates = best
                repairs[number] = [each for each in repairs[number] if each["sentence"] != sentence] + own
                for part, texts in zip(rest, candidates):
                    part[number][sentence] = texts
        for (number, sentence), found in terms.items():
            for match in self._missing(found, lines[number][sentence]):
                repairs[number].append({"sentence": sentence, "kind": "term", "detail": self._detail(match, documents)})
        return lines, [sorted(own, key=itemgetter("sentence")) for own in repairs], *rest

    def _missing(self, matches: Sequence[TermMatch], line: str) -> list[TermMatch]:
        """The terms that a translation lacks, or has in a forbidden form."""
        glossary = self.glossary
        return [m for m in matches if not glossary.is_met(m.term, line) or glossary.forbidden_in(m.term, line)]

    def _beginnings(self, documents, lines, wanted: dict[Place, Term]) -> dict[Place, list[str]]:
        """For each sentence the texts, up to the term, in which the term is most probable."""
        texts = {
            place: beginnings(lines[place.document][place.sentence], term)
            for place, term in wanted.items()
            if term.targets
        }
        scores = self._scores(documents, lines, {place: [text for _, text in own] for place, own in texts.items()})
        chosen = {}
        for place, own in texts.items():
            before = tokenize_sentences([text for text, _ in own], self.system.tokenizer, is_target=True)
            means = [
                sum(row[len(ids) : -1]) / max(1, len(row) - 1 - len(ids)) for row, ids in zip(scores[place], before)
            ]
            order = sorted(range(len(own)), key=lambda n: -means[n])
            chosen[place] = [own[n][1] for n in order[:BEGINNINGS]]
        return chosen

    def _scores(self, documents, lines, texts: dict[Place, list[str]]) -> dict[Place, list[list[float]]]:
        """Log-probabilities of the tokens of texts as translations of sentences, end token last."""
        past = self.system.past_context
        items = []
        for (number, sentence), own in texts.items():
            first = max(0, sentence - past)
            source, context = documents[number][first : sentence + 1], lines[number][first:sentence]
            items.append(SuiteItem("", tuple(source), tuple(context), tuple(own), 0, "", None, index=sentence))
        return dict(zip(texts, self.system.token_log_probabilities(items))) if items else {}

    def _translated(self, documents, lines, starts: dict[Place, list[str]]) -> dict[Place, list[tuple]]:
        """Each sentence translated from each of its beginnings, with known translations of its context."""
        reach = self.system.past_context if self.system.decoding["strategy"] == "sliding" else 0
        copies: list[tuple[int, dict[int, str]]] = []  # a document, and the sentences of it to translate
        for number, places in groupby(starts, key=itemgetter(0)):
            own: list[dict[int, str]] = []
            for place in places:
                for text in starts[place]:
                    free = (each for each in own if max(each) < place.sentence - reach)
                    copy = next(free, None)
                    if copy is None:
                        own.append(copy := {})
                    copy[place.sentence] = text
            copies += [(number, each) for each in own]
        again = [
            [
                Sentence(text, context=getattr(text, "context", ()), beginning=own[n])
                if n in own
                else Sentence(text, lines[number][n])
                for n, text in enumerate(documents[number])
            ]
            for number, own in copies
        ]
        found: dict[Place, list[tuple]] = {}
        for (number, own), translated, repairs, *rest in zip(copies, *self.system.translate_once(again)):
            for n in own:
                repaired = [each for each in repairs if each["sentence"] == n]
                found.setdefault(Place(number, n), []).append((translated[n], repaired, *(part[n] for part in rest)))
        return found

    def _best(self, documents, lines, terms: dict[Place, list[TermMatch]], tried: dict[Place, list[tuple]]) -> dict:
        """Of what was tried for each sentence, if it has more terms: fewest missing, words of their own, probable."""
        ranked: dict[Place, list[tuple]] = {}
        for place, options in tried.items():
            matches = terms[place]
            before = len(self._missing(matches, lines[place.document][place.sentence]))
            ranks = [
                (len(self._missing(matches, line)), sum(not self._is_word(match.term, line) for match in matches))
                for line, *_ in options
            ]
            if min(ranks)[0] < before:
                ranked[place] = [option for option, rank in zip(options, ranks) if rank == min(ranks)]
        texts = {place: [line for line, *_ in options] for place, options in ranked.items()}
        best = {}
        for place, rows in self._scores(documents, lines, texts).items():
            means = [sum(row) / len(row) for row in rows]
            best[place] = ranked[place][means.index(max(means))]
        return best

    def _is_word(self, term: Term, line: str) -> bool:
        return any(self.glossary.target.spans(target, line) for target in term.targets)

    def _detail(self, match: TermMatch, documents) -> str:
        term, span = match
        wanted = " or ".join(map(repr, term.targets)) or f"other than {' and '.join(map(repr, term.forbidden))}"
        return f"{term.source!r} at characters {span.start + 1}-{span.stop}: expected {wanted}"


def beginnings(line: str, term: Term) -> list[tuple[str, str]]:
    """The beginnings of a translation that end before a word, or after the last one, without and with a term."""
    target, end = term.targets[0], FINAL.search(line).start()
    starts = [match.start() for match in WORD.finditer(line[:end])]
    pairs = [(line[:start], line[:start] + target) for start in starts if start]
    pairs += [(line[:end], f"{line[:end]} {target}")] if end else []
    return [("", target[0].upper() + target[1:]), *pairs]
