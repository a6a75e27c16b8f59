"""Documents of the built-in discourse corpus: which sentences follow each other, how often, and at which distance."""

import random
from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import partial

from hf_docmt.data.synthetic.scene import LEXICON, FarScene, Scene

DISTANCES = (1, 2, 3, 5, 8, 12, 16, 20, 25, 30)  # cells of the suites of far clues

Agenda = dict[int, tuple[str, Callable[[], None]]]  # sentence index -> what it is said because of, and the call

# Shares in which kinds of sentences are drawn, and distances of antecedents (far ones are seldom there to draw).
_MIX = {
    "pronoun": 0.38,
    "pronoun_within": 0.09,
    "mention": 0.08,
    "address": 0.14,
    "first_term": 0.07,
    "same_term": 0.25,
    "ellipsis": 0.03,
    "action": 0.01,
}
_DISTANCE_WEIGHTS = {1: 1.0, 2: 2.0, 3: 3.0}  # 0.5 beyond
# shares with far clues; what depends on these sentences is scheduled.
_FAR_MIX = {
    "cataphora": 0.4,
    "pronoun_within": 0.03,
    "mention": 0.18,
    "owned": 0.3,
    "address": 0.24,
    "first_term": 0.1,
    "ellipsis": 0.04,
    "action": 0.01,
}


def draw_document(
    rng: random.Random, length: int, register: str | None = None, without: str | None = None, cataphora: float = 0.0
) -> Scene:
    """A greeting and the other sentences; `register` is drawn where not given, and `without` excludes a kind.

    `cataphora` is the share of pronouns that precede their antecedent, relative to all other kinds together.
    What is drawn does not depend on the register.
    """
    mix = _MIX | ({"cataphora": cataphora} if cataphora else {})
    scene = Scene(rng, register=register)
    scene.greet(scene.draw_noun())
    while len(scene.sentences) < length:
        free = len(scene.free_classes())
        possible = {
            "pronoun": bool(scene.antecedents()),
            "pronoun_within": free > 1,
            "mention": free > 1,
            "first_term": scene.term["en"] not in scene.clues,
            "same_term": scene.term["en"] in scene.clues,
            "ellipsis": length - len(scene.sentences) > 1,
            "cataphora": free > 0 and length - len(scene.sentences) > 1,
        }
        kinds = [kind for kind in mix if possible.get(kind, True) and kind != without]
        _add(scene, rng.choices(kinds, [mix[kind] for kind in kinds])[0], free)
    return scene


def _add(scene: Scene, kind: str, free: int) -> None:
    """A sentence of this kind, half of those that can take one noun more taking it."""
    more = free > 1 and scene.rng.random() < 0.5
    match kind:
        case "pronoun":
            choices = scene.antecedents()
            weights = [_DISTANCE_WEIGHTS.get(distance, 0.5) for distance, _ in choices]
            scene.pronoun(scene.rng.choices(choices, weights)[0][1])
        case "cataphora":
            noun = scene.draw_noun()
            scene.cataphora(noun)
            scene.mention(noun)
        case "first_term" | "same_term":
            scene.name_term(twice=more and kind == "first_term")
        case _:
            scene.add(kind, more)


def draw_far_document(rng: random.Random, length: int, far: int) -> FarScene:
    """A greeting and the other sentences; what a sentence depends on is at most `far` sentences away.

    Forms of address are frequent in one half of the documents (and may be further away), and scheduled in the other.
    """
    scene = FarScene(rng)
    scene.seldom_addresses = rng.random() < 0.5
    scene.greet(scene.draw_noun())
    extend(scene, length, far, address=0 if scene.seldom_addresses else _FAR_MIX["address"])
    return scene


def extend(scene: FarScene, length: int, far: int, address: float = _FAR_MIX["address"]) -> None:
    """Sentences up to a `length` of the document, without what the scene holds back; `address`: share of addresses.

    After each sentence that others can depend on, one of them is scheduled at a distance from it that is drawn.
    """
    mix = _FAR_MIX | {"address": address}
    agenda: Agenda = {}
    while len(scene.sentences) < length:
        _schedule(scene, agenda, length, far)
        if len(scene.sentences) in agenda:
            agenda.pop(len(scene.sentences))[1]()
        else:
            _add_free(scene, agenda, length, far, mix)


def draw_distance(rng: random.Random, distances: Sequence[int]) -> int:
    """One of these. Cells of `DISTANCES` weigh by their number, not by how many distances are in them."""
    return rng.choices(distances, [_weight(distance) for distance in distances])[0]


def _weight(distance: int) -> float:
    """Near ones weigh much, for they are learned first, and far ones, since they are seldom there to draw."""
    upper = min(bisect_left(DISTANCES, distance), len(DISTANCES) - 1)
    return (2 if distance <= 3 else (1 + upper) ** 0.6) / (DISTANCES[upper] - (DISTANCES[upper - 1] if upper else 0))


def _schedule(scene: FarScene, agenda: Agenda, length: int, far: int) -> None:
    """Give what depends on an earlier sentence a sentence of its own, if one is free within reach."""
    scheduled = {key for key, _ in agenda.values()}
    for key, clue, call in scene.dependents():
        if key in scheduled:
            continue
        nearest = len(scene.sentences) - clue
        distances = [d for d in range(nearest, min(far, length - 1 - clue) + 1) if clue + d not in agenda]
        if distances:
            agenda[clue + draw_distance(scene.rng, distances)] = key, call
        else:
            scene.open.discard(key)


def _add_free(scene: FarScene, agenda: Agenda, length: int, far: int, mix: dict[str, float]) -> None:
    """A sentence that depends on none before it, of a kind that is possible."""
    rng, now, free = scene.rng, len(scene.sentences), scene.free_classes()
    ahead = [d for d in range(1, min(far, length - 1 - now) + 1) if now + d not in agenda]
    coming = {key for key, _ in agenda.values()}
    expected = [scene.nouns[kind] for kind in scene.expected if kind not in scene.held_back | coming]
    owned = [kind for kind in scene.owners if kind not in scene.held_back | scene.open]
    terms = [term for term in LEXICON["terms"] if term["en"] not in scene.held_back | scene.clues.keys()]
    possible = {
        "cataphora": ahead and expected,
        "pronoun_within": free,
        "mention": free,
        "owned": owned,
        "first_term": terms,
        "ellipsis": now + 1 < length and now + 1 not in agenda,
    }
    kinds = [kind for kind in mix if possible.get(kind, True)]
    more = len(free) > 1 and rng.random() < 0.5
    match rng.choices(kinds, [mix[kind] for kind in kinds])[0]:
        case "cataphora":
            noun, distance = rng.choice(expected), draw_distance(rng, ahead)
            agenda[now + distance] = noun.kind, partial(scene.name_expected, noun)
            scene.cataphora(noun, ahead=distance)
        case "owned":
            scene.name_owned(rng.choice(owned))
        case "first_term":
            scene.use_term(rng.choice(terms))
        case kind:
            scene.add(kind, more)
