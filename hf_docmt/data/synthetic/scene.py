"""One document of the built-in discourse corpus in the making, sentence by sentence.

A sentence whose German depends on an earlier one keeps all its `options`, a German sentence for each possible answer,
so that documents and contrastive items come from the same rules. Nouns are things or animals of six classes, with
equally many nouns of each gender in every class. The predicate of *it* fits one class only, and no class has a second
noun within `SAME_CLASS_GAP` sentences, so the antecedent is always clear.

Templates of the lexicon are (English, German) clauses with fields. German fields are named by their masculine form:
{der_noun}, {den_noun}, {dem_noun}, {ein_noun}, {einen_noun} are article and noun, {er} and {ihn} the pronouns.
"""

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from importlib.resources import files

LEXICON = json.loads(files("hf_docmt.data.synthetic").joinpath("lexicon.json").read_text(encoding="utf-8"))
GENDERS = ("m", "f", "n")
CLASSES = tuple(LEXICON["nouns"])
PRONOUNS = {"m": "er", "f": "sie", "n": "es"}
REGISTERS = ("du", "Sie")

_ARTICLES = {
    "der": {"m": "der", "f": "die", "n": "das"},
    "den": {"m": "den", "f": "die", "n": "das"},
    "dem": {"m": "dem", "f": "der", "n": "dem"},
    "ein": {"m": "ein", "f": "eine", "n": "ein"},
    "einen": {"m": "einen", "f": "eine", "n": "ein"},
}
_OBJECT_PRONOUNS = {"m": "ihn", "f": "sie", "n": "es"}
SAME_CLASS_GAP = 6
OWNED_CLASSES = (1, 2)  # minimum and maximum in a document


@dataclass(frozen=True)
class Noun:
    """A noun of the lexicon; `kind` is its class, or "term" for a person with two German names."""

    en: str
    de: str
    gender: str
    kind: str


@dataclass(frozen=True)
class Sentence:
    """A sentence pair. `options` maps every answer to its German sentence where context decides; `answer` is right.

    `distance` counts sentences back to the nearest clue (0: in this sentence; -1: in the next one; None: it has no
    clue, or needs none); `noun` is the antecedent of *it*.
    """

    phenomenon: str
    en: str
    de: str
    options: dict[str, str] = field(default_factory=dict)
    answer: str | None = None
    distance: int | None = None
    noun: Noun | None = None

    @property
    def label(self) -> str:
        return self.phenomenon if self.distance is None else f"{self.phenomenon}-{abs(self.distance)}"


class Scene:
    """A growing document: methods append a sentence, and what they draw does not depend on the answers asked for.

    `register` ("du" or "Sie") and `rendering` (0 or 1: which German word the term gets) are drawn where not given, so
    that two scenes with equally seeded `rng` differ in that answer only.
    """

    def __init__(self, rng: random.Random, register: str | None = None, rendering: int | None = None):
        self.rng = rng
        drawn = rng.choice(REGISTERS), rng.randrange(2)
        self.register = register or drawn[0]
        self.rendering = drawn[1] if rendering is None else rendering
        self.term = rng.choice(LEXICON["terms"])
        self.sentences: list[Sentence] = []
        self.mentions: dict[str, tuple[int, Noun]] = {}  # class -> sentence index and noun of its last mention
        self.open: set[str] = set()  # classes whose last noun no *it* has taken up yet
        self.clues: dict[str, int] = {}  # "register" or a term -> sentence index of the nearest clue
        self.verb: list[str] | None = None  # of the last action, as its ellipsis needs it
        self.actors: dict[str, str] = {}
        self.unused: dict[int, list] = {}  # what this document has not used yet of every list of templates

    def row(self, doc_id: str) -> dict:
        """The document in the document contract, with the label of every sentence as column `phenomena`."""
        return {
            "doc_id": doc_id,
            "translation": [{"en": s.en, "de": s.de} for s in self.sentences],
            "phenomena": [s.label for s in self.sentences],
        }

    def greet(self, noun: Noun) -> None:
        """The opening: a greeting that fixes the register on both sides, and a mention of `noun`."""
        greeting = self._draw(LEXICON["greetings"])
        addressees = LEXICON["addressees"]
        addressee = addressees[self.register][self.rng.randrange(len(addressees["du"]))]
        clause = self._named("mentions", noun=noun)
        self._nearest_clue("register")
        self._append("greeting", *(g.format(addressee=a, clause=c) for g, a, c in zip(greeting, addressee, clause)))

    def mention(self, noun: Noun | None = None) -> None:
        """A sentence that names a noun, drawn from the free classes where it is not given."""
        self._append("mention", *self._named("mentions", noun=noun or self.draw_noun()))

    def pair(self, noun: Noun | None = None, other: Noun | None = None) -> None:
        """A sentence that names two nouns of different classes."""
        noun = noun or self.draw_noun()
        other = other or self.draw_noun(without=noun.kind)
        self._append("mention", *self._named("pairs", noun=noun, other=other))

    def pronoun(self, noun: Noun, only_subject: bool = False) -> None:
        """A sentence with *it* for `noun`, which an earlier sentence named as the last one of its class."""
        en, options = self._said_of(noun, self._names(), only_subject)
        distance = len(self.sentences) - self.mentions[noun.kind][0]
        self.open.discard(noun.kind)
        self._append("pronoun", en, options, PRONOUNS[noun.gender], distance, noun)

    def pronoun_within(self, nouns: list[Noun], meant: Noun, only_subject: bool = False) -> None:
        """A sentence that names one or two `nouns` in this order and goes on with *it* for the one that is `meant`."""
        names = self._names()
        template = self._draw(LEXICON["mentions" if len(nouns) == 1 else "pairs"])
        named = fill(template, **noun_fields(**dict(zip(("noun", "other"), nouns))), name=names["friend"])
        en, options = self._said_of(meant, names, only_subject)
        self._mention(*nouns)
        self.open.discard(meant.kind)
        options = {pronoun: f"{named[1]} und {de}" for pronoun, de in options.items()}
        self._append("pronoun", f"{named[0]} and {en}", options, PRONOUNS[meant.gender], 0, meant)

    def cataphora(self, noun: Noun, only_subject: bool = False, ahead: int = 1) -> None:
        """A sentence with *it* for `noun`, of a free class, which the caller names `ahead` sentences later."""
        en, options = self._said_of(noun, self._names(), only_subject)
        self._append("cataphora", en, options, PRONOUNS[noun.gender], -ahead, noun)

    def address(self, noun: Noun | None = None) -> None:
        """A sentence to the person greeted, about `noun` where given; its English says nothing about the register."""
        template = self._draw(LEXICON["addresses_with_noun" if noun else "addresses"])
        fields = {}
        if noun:
            fields = noun_fields(noun=noun)
            self._mention(noun)
        options = {register: template[register].format(**fields) for register in REGISTERS}
        distance = self._nearest_clue("register")
        self._append("deixis", template["en"].format(**fields), options, self.register, distance)

    def name_term(self, twice: bool = False) -> None:
        """A sentence with the document's term, or two clauses with it (distance 0). Only the first use is free."""
        templates = LEXICON["term_sentences"]
        if twice:
            drawn = self.rng.sample([template for template in templates if not template[0].endswith("?")], 2)
        else:
            drawn = [self._draw(templates)]
        names, options = self._names(), {}
        for word in self.term["de"]:
            fields = noun_fields(noun=Noun(self.term["en"], word, self.term["gender"], "term"))
            en, de = zip(*(fill(template, **fields, **names) for template in drawn))
            options[word] = " und ".join(de)
        distance = self._nearest_clue(self.term["en"])
        answer = self.term["de"][self.rendering]
        self._append("lex_cohesion", " and ".join(en), options, answer, 0 if twice else distance)

    def act(self, verb: list[str] | None = None) -> None:
        """A sentence in which somebody does something; an ellipsis may follow."""
        drawn = self._draw(LEXICON["verbs"])
        self.verb, self.actors = verb or drawn, self._names()
        self._append("action", *fill(self._draw(LEXICON["actions"]), **verb_fields(self.verb), **self.actors))

    def ellipsis(self, verbs: list[list[str]] | None = None) -> None:
        """A sentence with the verb of the action before it, kept with the options `verbs` (default: the right one)."""
        template, options = self._draw(LEXICON["ellipses"]), {}
        name = self.rng.choice([name for name in LEXICON["names"] if name not in self.actors.values()])
        for verb in verbs or [self.verb]:
            en, options[verb[2]] = fill(template, **verb_fields(verb), name=name)
        self._append("ellipsis", en, options, self.verb[2], 1)

    def add(self, kind: str, more: bool) -> None:
        """A sentence of a kind that needs none before it (an ellipsis: after its action), with a noun `more` or not."""
        match kind:
            case "pronoun_within":
                noun = self.draw_noun()
                nouns = [noun, self.draw_noun(without=noun.kind)] if more else [noun]
                self.pronoun_within(nouns, self.rng.choice(nouns))
            case "mention":
                self.pair() if more else self.mention()
            case "address":
                self.address(self.draw_noun() if more else None)
            case "action":
                self.act()
            case "ellipsis":
                self.act()
                self.ellipsis()

    def free_classes(self) -> list[str]:
        """Classes that may have a new noun: none of theirs within the last SAME_CLASS_GAP sentences."""
        now = len(self.sentences)
        return [c for c in CLASSES if c not in self.mentions or now - self.mentions[c][0] > SAME_CLASS_GAP]

    def draw_noun(self, gender: str | None = None, without: str | None = None) -> Noun:
        """A noun of a free class other than `without`, of a gender that is drawn where it is not given."""
        kind = self.rng.choice([c for c in self.free_classes() if c != without])
        drawn = self.rng.choice(GENDERS)
        gender = gender or drawn
        return Noun(*self.rng.choice(LEXICON["nouns"][kind][gender]), gender, kind)

    def antecedents(self) -> list[tuple[int, Noun]]:
        """(distance, noun) of every noun that *it* in the next sentence could take up."""
        now = len(self.sentences)
        mentions = [self.mentions[kind] for kind in CLASSES if kind in self.open]
        return [(now - index, noun) for index, noun in mentions if now - index <= SAME_CLASS_GAP]

    def _draw(self, templates: list) -> list | dict:
        """A template of the list, none again before all of them were used, and never one twice running."""
        unused = self.unused.setdefault(id(templates), list(templates))
        drawn = unused.pop(self.rng.randrange(len(unused)))
        if not unused:
            unused.extend(t for t in templates if t is not drawn)
        return drawn

    def _names(self) -> dict[str, str]:
        return dict(zip(("name", "friend"), self.rng.sample(LEXICON["names"], 2)))

    def _named(self, templates: str, **nouns: Noun) -> tuple[str, str]:
        """A clause of the lexicon that names nouns."""
        clause = fill(self._draw(LEXICON[templates]), **noun_fields(**nouns), **self._names())
        self._mention(*nouns.values())
        return clause

    def _mention(self, *nouns: Noun) -> None:
        for noun in nouns:
            self.mentions[noun.kind] = len(self.sentences), noun
            self.open.add(noun.kind)

    def _nearest_clue(self, kind: str) -> int | None:
        """Distance from the next sentence, which has a clue of this kind, too, to the nearest one before it."""
        index, now = self.clues.get(kind), len(self.sentences)
        self.clues[kind] = now
        return None if index is None else now - index

    def _said_of(self, noun: Noun, names: dict[str, str], only_subject: bool) -> tuple[str, dict[str, str]]:
        """A clause about *it* that fits the class of `noun`: English, and German by pronoun."""
        clauses = LEXICON["pronouns"][noun.kind]
        clause = self.rng.choice(clauses["subject"] + ([] if only_subject else clauses["object"]))
        return self._by_pronoun(clause, names)

    @staticmethod
    def _by_pronoun(clause: list[str], names: dict[str, str]) -> tuple[str, dict[str, str]]:
        """English, and German by pronoun, of a clause about *it*."""
        options = {}
        for gender in GENDERS:
            en, options[PRONOUNS[gender]] = fill(clause, **names, er=PRONOUNS[gender], ihn=_OBJECT_PRONOUNS[gender])
        return en, options

    def _append(self, phenomenon, en, de, answer=None, distance=None, noun=None) -> None:
        """`de` is the German clause, or those of all answers."""
        options = {key: as_sentence(text) for key, text in de.items()} if isinstance(de, dict) else {}
        german = options[answer] if options else as_sentence(de)
        self.sentences.append(Sentence(phenomenon, as_sentence(en), german, options, answer, distance, noun))


class FarScene(Scene):
    """A growing document whose clues may be far away: a class of nouns has one noun, or two of different people.

    So the class tells which noun *it* is, before or after the pronoun; with two nouns,
    the owner tells: "Anna has a hat and Tom has a jacket. (...) Anna wears it often." People use what is their own.
    Every noun is taken up once at most after it was named, so its clue is the last mention.

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
        """Sentences that may refer to an earlier one: class, term or "register", that sentence's index, a call."""
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


def fill(template: list[str], **fields: str) -> tuple[str, str]:
    """(English, German) clause of a template."""
    return template[0].format(**fields), template[1].format(**fields)


def noun_fields(**nouns: Noun) -> dict[str, str]:
    """Fields of nouns by role, such as noun, a_noun, der_noun, den_noun for the role "noun"."""
    fields = {}
    for role, noun in nouns.items():
        fields[role] = noun.en
        fields[f"a_{role}"] = ("an " if noun.en[0] in "aeiou" else "a ") + noun.en
        fields |= {f"{case}_{role}": f"{forms[noun.gender]} {noun.de}" for case, forms in _ARTICLES.items()}
    return fields


def verb_fields(verb: list[str]) -> dict[str, str]:
    """Fields of a verb: English past, German auxiliary and participle."""
    return dict(zip(("past", "auxiliary", "participle"), verb))


def as_sentence(clause: str) -> str:
    """A clause with a capital first letter, and a full stop where it is not a question."""
    return clause[0].upper() + clause[1:] + ("" if clause.endswith("?") else ".")
