"""A document whose clues may be far away: every class of nouns has one noun, or two that belong to different people.

So the class tells which noun *it* is wherever that noun stands, before or after the pronoun; where there are two, the
owner tells: "Anna has a hat and Tom has a jacket. (...) Anna wears it often." People use what is their own.
"""

import random
from collections.abc import Callable
from functools import partial

from hf_docmt.data.synthetic.scene import Scene
from hf_docmt.data.synthetic.word_forms import CLASSES, GENDERS, LEXICON, PRONOUNS, Noun, fill, noun_fields

OWNED_CLASSES = (1, 2)  # fewest and most in a document


class FarScene(Scene):
    """A growing document. Every noun is taken up once at most after it was named, so its clue is the last mention.

    `held_back` are classes and terms (by their English word) that only the caller uses.
    """

    def __init__(self, rng: random.Random, register: str | None = None):
        super().__init__(rng, register=register)
        kinds = rng.sample(CLASSES, len(CLASSES))
        owned = rng.randint(*OWNED_CLASSES)
        self.owners = {kind: self._owners(kind) for kind in kinds[:owned]}
        self.nouns = {kind: self.noun_of(kind, rng.choice(GENDERS)) for kind in kinds[owned:]}
        self.expected = list(self.nouns)[rng.randint(1, len(self.nouns) - 1) :]  # classes named only after a pronoun
        self.renderings = {term["en"]: rng.randrange(2) for term in LEXICON["terms"]}
        self.held_back: set[str] = set()
        self.seldom_addresses = False  # whether an address is said because of the one before only

    def free_classes(self) -> list[str]:
        """Classes with one noun that no *it* waits for, before or after it."""
        taken = self.open | self.held_back | set(self.expected)
        return [kind for kind in self.nouns if kind not in taken]

    def draw_noun(self, gender: str | None = None, without: str | None = None) -> Noun:
        """The noun of a free class other than `without`; its gender cannot be chosen."""
        return self.nouns[self.rng.choice([kind for kind in self.free_classes() if kind != without])]

    def dependents(self) -> list[tuple[str, int, Callable[[], None]]]:
        """What may be said because of an earlier sentence: class, term or "register", that sentence's index, a call."""
        calls = [(kind, partial(self.pronoun, noun)) for kind, noun in self.nouns.items()]
        calls += [(kind, partial(self.competing_antecedents, kind)) for kind in self.owners]
        ready = [(kind, self.mentions[kind][0], call) for kind, call in calls if kind in self.open - self.held_back]
        ready += [("register", self.clues["register"], self.address)] * self.seldom_addresses
        terms = [term for term in LEXICON["terms"] if term["en"] in self.clues and term["en"] not in self.held_back]
        return ready + [(term["en"], self.clues[term["en"]], partial(self.use_term, term)) for term in terms]

    def name_expected(self, noun: Noun) -> None:
        """A sentence that names a noun after its pronoun."""
        self.expected.remove(noun.kind)
        self.mention(noun)

    def name_owned(self, kind: str, shuffled: bool = True) -> None:
        """A sentence that says whose the two nouns of this class are, in any order or in that of `owners`."""
        owners = list(self.owners[kind].items())
        (owner, noun), (other_owner, other) = self.rng.sample(owners, 2) if shuffled else owners
        fields = noun_fields(noun=noun, other=other)
        clause = fill(self._draw(LEXICON["owners"]), **fields, name=owner, friend=other_owner)
        self._mention(noun, other)
        self._append("mention", *clause)

    def competing_antecedents(self, kind: str, owner: str | None = None) -> None:
        """A sentence in which an owner, drawn where not given, uses *it*, one of the two nouns of this class."""
        owner = owner or self.rng.choice(list(self.owners[kind]))
        noun = self.owners[kind][owner]
        en, options = self._by_pronoun(self.rng.choice(LEXICON["pronouns"][kind]["object"]), {"name": owner})
        distance = len(self.sentences) - self.mentions[kind][0]
        self.open.discard(kind)
        self._append("competing_antecedents", en, options, PRONOUNS[noun.gender], distance, noun)

    def noun_of(self, kind: str, gender: str) -> Noun:
        """A noun of a class and gender; which one does not depend on the gender."""
        return Noun(*self.rng.choice(LEXICON["nouns"][kind][gender]), gender, kind)

    def use_term(self, term: dict) -> None:
        """A sentence with one of the document's terms, which keeps its German name."""
        self.term, self.rendering = term, self.renderings[term["en"]]
        self.name_term()

    def _owners(self, kind: str) -> dict[str, Noun]:
        """Two people, and their nouns of different genders."""
        people, genders = self.rng.sample(LEXICON["names"], 2), self.rng.sample(GENDERS, 2)
        return {name: self.noun_of(kind, gender) for name, gender in zip(people, genders)}
