"""Forms of address: what came out in the other register is translated again after pairs in the wanted one."""

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from hf_docmt.data.language_codes import primary_language
from hf_docmt.modeling.text_splitting import Sentence, known_target

FORMALITIES = ("formal", "informal")


class Register(NamedTuple):
    """A language: translations of `SENTENCES` in both registers, and what only sentences in one of them have.

    `first` are formal forms, too, where the translation of a sentence that addresses somebody begins with them. `words`
    are the pronouns that a model without context may not write in the other register.
    """

    sentences: dict[str, tuple[str, str]]
    forms: dict[str, re.Pattern]
    first: re.Pattern
    words: dict[str, tuple[str, ...]]


FORMAL = ("Sie", "Ihnen", *(f"Ihr{ending}" for ending in ("", "e", "em", "en", "er", "es")))
INFORMAL = ("du", "dich", "dir", *(f"dein{ending}" for ending in ("", "e", "em", "en", "er", "es", "s")))
ADDRESS = re.compile(r"\b(?:you|yours?)\b", re.IGNORECASE)
OTHERS = re.compile(r"\b(?:they|them|their|she|her)\b", re.IGNORECASE)
SENTENCES = ("Do you have time?", "You are right.")
REGISTERS = {
    "de": Register(
        {"formal": ("Haben Sie Zeit?", "Sie haben recht."), "informal": ("Hast du Zeit?", "Du hast recht.")},
        {
            "formal": re.compile(rf"(?<=[\w,;:–-] )(?:{'|'.join(FORMAL)})\b"),
            "informal": re.compile(rf"\b(?:{'|'.join((*INFORMAL, *map(str.title, INFORMAL)))})\b"),
        },
        re.compile(rf"(?:{'|'.join(FORMAL)})\b"),
        {"formal": FORMAL, "informal": (*INFORMAL, *map(str.title, INFORMAL))},
    ),
}


class Formality:
    """The register required of translations. ValueError: languages with unknown forms of address."""

    def __init__(self, name: str, source_lang: str | None, target_lang: str | None):
        source, target = (primary_language(code or "") for code in (source_lang, target_lang))
        if name not in FORMALITIES:
            raise ValueError(f"formality must be formal or informal, got {name!r}")
        if target not in REGISTERS or source != "en":
            raise ValueError(
                f"formality is for translations from en into {', '.join(REGISTERS)}, got {source_lang!r} to "
                f"{target_lang!r}: omit it"
            )
        self.name, (other,) = name, [each for each in FORMALITIES if each != name]
        self.opposite, self.register = other, REGISTERS[target]
        self.pairs = list(zip(SENTENCES, self.register.sentences[name]))

    def forms(self, source: str, translation: str) -> set[str]:
        """The registers of which a sentence has forms."""
        found = {name for name, pattern in self.register.forms.items() if pattern.search(translation)}
        if ADDRESS.search(source) and not OTHERS.search(source) and self.register.first.match(translation):
            found.add("formal")
        return found

    def banned(self, tokenizer) -> list[list[int]]:
        """The tokens of pronouns in the other register (`bad_words_ids` of transformers)."""
        words = self.register.words[self.opposite]
        return [tokenizer(text_target=word, add_special_tokens=False)["input_ids"] for word in words]

    def corrected(
        self,
        documents: Sequence[Sequence[str]],
        results: tuple,
        translate: Callable[..., tuple],
        banned: list[list[int]] | None = None,
    ) -> tuple:
        """Results of `translate` (translations, repairs, candidates if any) in which the register is the wanted one.

        A sentence in the other one is translated again after one pair, then two, all others known; without its
        pronouns if tokens are `banned`. What is still wrong is a repair of kind `register`.
        """
        lines, repairs, *rest = (list(part) for part in results)
        for count in (1, 2) if banned is None else (0,):
            wrong = self._wrong(documents, lines)
            if not wrong:
                break
            pairs, numbers = self.pairs[:count], sorted({number for number, _ in wrong})
            options = {} if banned is None else {"bad_words_ids": banned}
            again = [
                [
                    Sentence(text, context=[*getattr(text, "context", ()), *pairs])
                    if (number, place) in wrong
                    else Sentence(text, lines[number][place])
                    for place, text in enumerate(documents[number])
                ]
                for number in numbers
            ]
            for number, new, repaired, *found in zip(numbers, *translate(again, **options)):
                lines[number] = new
                kept = [repair for repair in repairs[number] if (number, repair["sentence"]) not in wrong]
                repairs[number] = sorted([*kept, *repaired], key=lambda repair: repair["sentence"])
                for candidates, texts in zip(rest, found):
                    places = [place for other, place in wrong if other == number]
                    candidates[number] = [texts[n] if n in places else own for n, own in enumerate(candidates[number])]
        for number, place in sorted(self._wrong(documents, lines)):
            detail = f"not {self.name}: the model keeps the other form of address"
            repairs[number] = [*repairs[number], {"sentence": place, "kind": "register", "detail": detail}]
        return lines, repairs, *rest

    def _wrong(self, documents: Sequence[Sequence[str]], lines: Sequence[Sequence[str]]) -> set[tuple[int, int]]:
        return {
            (number, place)
            for number, (document, own) in enumerate(zip(documents, lines))
            for place, (text, line) in enumerate(zip(document, own, strict=True))
            if known_target(text) is None and self.forms(text, line) == {self.opposite}
        }
