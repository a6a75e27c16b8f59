"""Consistent names: other translations of a recurring name are replaced by the one that the document mostly has."""

from collections import Counter, defaultdict
from collections.abc import Sequence

from hf_docmt.data.glossary import BaseForms, Glossary
from hf_docmt.data.language_codes import primary_language
from hf_docmt.data.word_fits import words_of
from hf_docmt.modeling.text_splitting import Sentence, known_target
from hf_docmt.systems.terms import TermSearch

LEAST = 3  # sentences that have a name
MAJORITY = 0.6  # of these that have the same one
FIT = 0.5  # from which on two words are translations of each other
SHORTEST = 3  # letters of a name
LANGUAGES = frozenset("ca da de en es fr gl it nb nl nn no pt sv".split())  # that do not inflect names by case


class ConsistentNames:
    """Finds the translations of the names of each document, and searches for the most frequent one where it is missing.

    A name is a word that the source never has in small letters. Its translation is the capitalised word that the model
    aligns with it. Only sentences with another such word are translated again, see `TermSearch`; sentences with a known
    translation count, and stay. ValueError: a target language outside `LANGUAGES`.
    """

    def __init__(self, system):
        source_lang, target_lang = system.document_languages
        if primary_language(target_lang) not in LANGUAGES:
            known = ", ".join(sorted(LANGUAGES))
            raise ValueError(f"consistent is for the target languages {known}, got {target_lang!r}; omit it")
        self.system, self.source, self.target = system, BaseForms(source_lang), BaseForms(target_lang)

    def corrected(self, documents: Sequence[Sequence[str]], results: tuple, **options) -> tuple:
        """Results of `translate_once` with consistent names; `options` are its options."""
        made = []
        for document, *own in zip(documents, *results):
            entries, others = self.entries(document, own[0])
            single = tuple([part] for part in own)
            if others:
                pairs = enumerate(zip(document, own[0]))
                some = [text if n in others else Sentence(text, line) for n, (text, line) in pairs]
                glossary = Glossary(entries, *self.system.document_languages)
                single = TermSearch(glossary, self.system).corrected([some], single, **options)
            made.append([part[0] for part in single])
        return tuple(map(list, zip(*made))) if made else results

    def entries(self, document: Sequence[str], lines: Sequence[str]) -> tuple[list[tuple[str, str]], set[int]]:
        """Names with several translations and the most frequent one, and the sentences to search that have another."""
        entries, others = [], set()
        for name, own in self._translations(document, lines).items():
            forms = {n: min(self.target.forms(word), key=len) for n, word in own.items()}
            form, count = Counter(forms.values()).most_common(1)[0]
            if len(own) > count >= MAJORITY * len(own):  # so three or more
                entries.append((name, Counter(own[n] for n in own if forms[n] == form).most_common(1)[0][0]))
                others |= {n for n in own if forms[n] != form and known_target(document[n]) is None}
        given = self.system.glossary  # whose terms another search might lose
        return entries, {n for n in others if not (given and given.in_source(document[n]))}

    def _translations(self, document: Sequence[str], lines: Sequence[str]) -> dict[str, dict[int, str]]:
        """The translation of each recurring name by sentence."""
        sides = [[[text[slice(*span)] for span in words_of(text)] for text in side] for side in (document, lines)]
        sources = sides[0]
        small = {form for words in sources for word in words if word.islower() for form in self.source.forms(word)}
        count = Counter(word for words in sources for word in set(words))
        inner = {word for words in sources for before, word in zip(words, words[1:]) if before.isalnum()}
        often = {word for word in inner if count[word] >= LEAST and len(word) >= SHORTEST and _is_capital(word)}
        names = {word for word in often if not self.source.forms(word) & small}
        found: dict[str, dict[int, str]] = defaultdict(dict)
        for n, (words, translated) in enumerate(zip(*sides)):
            fits = self.system.word_fits(document[n], lines[n]) if names & set(words) else None
            for row, column, fit in sorted(fits or (), key=lambda each: each[2]):
                if fit >= FIT and words[column] in names and _is_capital(translated[row]):
                    found[words[column]][n] = translated[row]
        return found


def _is_capital(word: str) -> bool:
    return word.isalpha() and word[0].isupper()
