"""Terms of a glossary: a sentence without one is translated again with a beginning that ends in the term."""

from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

import regex

from hf_docmt.data.glossary import Glossary, Span, Term, TermMatch, folded
from hf_docmt.data.tokenizers import tokenize_sentences
from hf_docmt.data.word_fits import words_of
from hf_docmt.modeling.text_splitting import Sentence, known_target
from hf_docmt.systems.items import SuiteItem

BEGINNINGS = 4  # that are tried for a term
ROUNDS = 3  # terms of a sentence that are brought in
NEAR = 2  # words before and after the place of a term where it may begin
WORDS = 12  # most probable tokens that may precede a term, such as articles
SHORT = 5  # letters of these
WORD = regex.compile(r"(?<=^|\s)(?=\S)|(?<=\p{Han}|\p{Hiragana}|\p{Katakana}|\p{Thai})(?=\w)")  # where one begins
FINAL = regex.compile(r"\W*$")  # punctuation after the last word


class Place(NamedTuple):
    """A sentence of a document."""

    document: int
    sentence: int


class TermSearch:
    """Brings the terms of a glossary into translations by a system that does forced decoding.

    A missing term is put after beginnings of the translation: near the word that it replaces by the model's alignment,
    also after another short word (an article), or before every word where the alignment is unknown. The `BEGINNINGS` in
    which it is most probable are translated to the end, so that its last word can get an ending. The translation with
    most terms is taken, of several the one without the replaced word, then the most probable.
    """

    def __init__(self, glossary: Glossary, system):
        self.glossary, self.system = glossary, system

    def corrected(self, documents: Sequence[Sequence[str]], results: tuple, **options) -> tuple:
        """Results of `translate_once` (lines, repairs, maybe candidates) with terms; missing ones are reported.

        `options` are those of `translate_once`.
        """
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
                    wanted[place] = missing[step % len(missing)]
            open_places = list(wanted)
            if not wanted:
                break
            old = {
                place: self._replaced(documents[place[0]][place[1]], lines[place[0]][place[1]], wanted[place])
                for place in wanted
            }
            tried = self._translated(documents, lines, self._beginnings(documents, lines, wanted, old), options)
            for (number, sentence), best in self._best(documents, lines, terms, old, tried).items():
                lines[number][sentence], own, *candidates = best
                repairs[number] = [each for each in repairs[number] if each["sentence"] != sentence] + own
                for part, texts in zip(rest, candidates):
                    part[number][sentence] = texts
        for (number, sentence), found in terms.items():
            for match in self._missing(found, lines[number][sentence]):
                repairs[number].append({"sentence": sentence, "kind": "term", "detail": detail(match)})
        return lines, [sorted(own, key=itemgetter("sentence")) for own in repairs], *rest

    def _missing(self, matches: Sequence[TermMatch], line: str) -> list[TermMatch]:
        """The terms that a translation lacks, or has in a forbidden form."""
        glossary = self.glossary
        return [m for m in matches if not glossary.is_met(m.term, line) or glossary.forbidden_in(m.term, line)]

    def _beginnings(
        self, documents, lines, wanted: dict[Place, TermMatch], old: dict[Place, list[Span]]
    ) -> dict[Place, list[str]]:
        """For each sentence the texts, up to the term, in which the term is most probable."""
        texts = {}
        for place, match in wanted.items():
            if match.term.targets:
                number, sentence = place
                texts[place] = self._candidates(documents[number], lines[number], sentence, match.term, old[place])
        both = {place: [text for pair in own for text in pair] for place, own in texts.items()}
        chosen = {}
        for place, rows in self._scores(documents, lines, both).items():
            tokens = len(tokenize_sentences([wanted[place].term.targets[0]], self.system.tokenizer, is_target=True)[0])
            sums = [sum(row[:-1]) for row in rows]
            gains = {pair[1]: (sums[2 * n + 1] - sums[2 * n]) / tokens for n, pair in enumerate(texts[place])}
            chosen[place] = sorted(gains, key=gains.__getitem__, reverse=True)[:BEGINNINGS]
        return chosen

    def _candidates(self, source, lines, sentence: int, term: Term, old: list[Span]) -> list[tuple[str, str]]:
        """Beginnings without and with a term: near the word that stands for it, also after another word before it."""
        line = lines[sentence]
        starts, pairs = word_starts(line), beginnings(line, term)
        if not old or old[0].start not in starts:
            return pairs
        index = starts.index(old[0].start)
        pairs = pairs[max(0, index - NEAR) : index + NEAR + 1]
        if index:
            before = line[: starts[index - 1]]
            for word in self._next_words(source, lines, sentence, before):
                pairs.append((line[: starts[index]], f"{before}{word} {term.targets[0]}"))
        return pairs

    def _replaced(self, source: str, line: str, match: TermMatch) -> list[Span]:
        """The words that stand for a term in a translation without it, by the model's alignment."""
        sources, targets = words_of(source), words_of(line)
        own = {n for n, (start, end) in enumerate(sources) if start < match.span.stop and end > match.span.start}
        found = {row for row, column, fit in self.system.word_fits(source, line) or () if column in own and fit >= 0.5}
        return [Span(*targets[row]) for row in sorted(found) if line[targets[row][0]].isalpha()]

    def _next_words(self, source, lines, sentence: int, before: str) -> list[str]:
        """The short words that are most probable after a beginning of a translation, of one token each."""
        if self.system.carries_state:
            return []
        texts = self.system.next_texts(self._items(source, lines, sentence, [before]), WORDS)[0][0]
        return [word for word in map(str.strip, texts) if word.isalpha() and len(word) <= SHORT]

    def _scores(self, documents, lines, texts: dict[Place, list[str]]) -> dict[Place, list[list[float]]]:
        """Log-probabilities of the tokens of texts as translations of sentences, end token last."""
        items = [
            item
            for (number, sentence), own in texts.items()
            for item in self._items(documents[number], lines[number], sentence, own)
        ]
        return dict(zip(texts, self.system.token_log_probabilities(items))) if items else {}

    def _items(self, source, lines, sentence: int, texts: Sequence[str]) -> list[SuiteItem]:
        first = max(0, sentence - self.system.past_context)
        sources, context = source[first : sentence + 1], lines[first:sentence]
        return [SuiteItem("", tuple(sources), tuple(context), tuple(texts), 0, "", None, index=sentence)]

    def _translated(self, documents, lines, starts: dict[Place, list[str]], options: dict) -> dict[Place, list[tuple]]:
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
        for (number, own), translated, repairs, *rest in zip(copies, *self.system.translate_once(again, **options)):
            for n in own:
                repaired = [each for each in repairs if each["sentence"] == n]
                found.setdefault(Place(number, n), []).append((translated[n], repaired, *(part[n] for part in rest)))
        return found

    def _best(self, documents, lines, terms, old: dict[Place, list[Span]], tried: dict[Place, list[tuple]]) -> dict:
        """The best attempt for each sentence, if it has more terms.

        That is the one with the fewest missing terms, as often as in the source, without the words that they replace;
        of these the most probable one.
        """
        ranked: dict[Place, list[tuple]] = {}
        for place, options in tried.items():
            matches, own = terms[place], lines[place.document][place.sentence]
            before, replaced = len(self._missing(matches, own)), {folded(own[slice(*span)]) for span in old[place]}
            ranks = [
                (
                    len(self._missing(matches, line)),
                    self._surplus(matches, line),
                    bool(replaced) and replaced <= {folded(line[slice(*span)]) for span in words_of(line)},
                )
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

    def _surplus(self, matches: Sequence[TermMatch], line: str) -> int:
        """By how many occurrences, as words of their own, terms differ from those in the source."""
        wanted = Counter(match.term for match in matches if match.term.targets)
        spans = self.glossary.target.spans
        return sum(abs(sum(len(spans(text, line)) for text in term.targets) - count) for term, count in wanted.items())


def detail(match: TermMatch) -> str:
    """The missing term, for a repair."""
    term, span = match
    wanted = " or ".join(map(repr, term.targets)) or f"other than {' and '.join(map(repr, term.forbidden))}"
    return f"{term.source!r} at characters {span.start + 1}-{span.stop}: expected {wanted}"


def word_starts(line: str) -> list[int]:
    """Where the words of a text start, and the end of the last one."""
    end = FINAL.search(line).start()
    return [*(match.start() for match in WORD.finditer(line[:end])), end] if end else []


def beginnings(line: str, term: Term) -> list[tuple[str, str]]:
    """The beginnings of a translation that end before a word, or after the last one, without and with a term."""
    target, starts = term.targets[0], word_starts(line)
    pairs = [(line[:start], line[:start] + target) for start in starts[1:-1]]
    pairs += [(line[: starts[-1]], f"{line[: starts[-1]]} {target}")] if starts else []
    return [("", target[0].upper() + target[1:]), *pairs]
