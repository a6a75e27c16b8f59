"""Contrastive suites with clues up to many sentences away, in the JSON formats of ContraPro and Voita et al. (2019).

Items come in groups that share the current sentence, its candidates and all other sentences but the one with the clue,
each candidate being right equally often: without that sentence a model gets exactly `FAR_CHANCE` of them. Every item is
in a document of its own, between sentences of all kinds with nouns of other classes; cells are those `DISTANCES` that
are not beyond `far`, and `far` itself.

- pronoun (1/3): the one sentence that names the antecedent, so many sentences back.
- cataphora (1/3): the same after the pronoun, at negative distances.
- competing_antecedents (1/3; 1/2 for a model that finds the two nouns of the class, and not whose they are): one
  sentence names two nouns with their owners, the current one names an owner. Groups have six items; in three the owners
  have changed places and all else is the same. `items_per_cell` is even for whole groups.
- lex_cohesion (1/2): the one earlier use of the term, in German; the English side is the same for both.
- register (1/2): the greeting, up to one sentence less than the longest document's; nobody else is addressed.
- deixis and ellipsis as in `make_suites`.
"""

import random

from hf_docmt.data.synthetic.far_plan import DISTANCES, extend
from hf_docmt.data.synthetic.far_scene import FarScene
from hf_docmt.data.synthetic.suites import cell_rng, document_item, make_suites
from hf_docmt.data.synthetic.word_forms import GENDERS, LEXICON, REGISTERS, Noun

FAR_CHANCE = {"pronoun": 1 / 3, "cataphora": 1 / 3, "competing_antecedents": 1 / 3, "lex_cohesion": 1 / 2}
FAR_CHANCE |= {"register": 1 / 2, "deixis": 1 / 2, "ellipsis": 1 / 4}
_LEAD, _TRAIL = 3, 2  # most sentences between greeting and item, and after it


def make_far_suites(seed: int, items_per_cell: int, longest: int, far: int) -> dict[str, list[dict]]:
    """Suites by name (see above) and the `documents` of those that are in ContraPro's format.

    Their items have the distance as a label, too, so that reports tell all distances apart.
    """
    near = make_suites(seed, items_per_cell)
    suites: dict[str, list[dict]] = {name: [] for name in (*FAR_CHANCE, "documents")}
    suites |= {name: near[name] for name in ("deixis", "ellipsis")}

    def add(name: str, distance: int, number: int, scene: FarScene, index: int) -> None:
        answer = scene.sentences[index].answer
        doc_id = f"{name}-{distance}-{number + 1}-{len(suites[name]) + 1}-{answer}"
        group = f"{name}-{distance}-{(number // 2 if name in _PAIRED else number) + 1}"
        item = document_item(name, doc_id, scene, distance, index)
        suites["documents"].append(scene.row(doc_id))
        suites[name].append(item | {"group": group, "labels": {"exact_distance": item["ante distance"]}})

    for number in range(items_per_cell):
        for distance in cells(far):
            for answer in range(len(GENDERS)):
                for name, scene_of in _PRONOUN_SCENES.items():
                    rng = cell_rng(seed, f"far-{name}", distance, number // 2 if name in _PAIRED else number)
                    add(name, distance, number, *scene_of(rng, distance, far, answer, number % 2))
            for rendering in (0, 1):
                rng = cell_rng(seed, "far-lex_cohesion", distance, number)
                add("lex_cohesion", distance, number, *_term_scene(rng, distance, far, rendering))
        for distance in cells(longest - 1):
            for register in REGISTERS:
                rng = cell_rng(seed, "far-register", distance, number)
                add("register", distance, number, *_register_scene(rng, distance, far, register))
    return suites


def cells(far: int) -> list[int]:
    """The distances of a suite."""
    return [distance for distance in DISTANCES if distance < far] + [far]


def _start(scene: FarScene, held_back: str, far: int) -> None:
    """Greeting and up to `_LEAD` sentences without what is held back for the item."""
    scene.held_back.add(held_back)
    scene.greet(scene.draw_noun())
    extend(scene, 1 + scene.rng.randint(0, _LEAD), far)


def _between(scene: FarScene, distance: int, far: int) -> None:
    """The sentences between two that are `distance` apart, after the first of them."""
    extend(scene, len(scene.sentences) + distance - 1, far)


def _end(scene: FarScene, far: int) -> tuple[FarScene, int]:
    """Up to `_TRAIL` further sentences; returns the index of the one before them, too."""
    index = len(scene.sentences) - 1
    extend(scene, len(scene.sentences) + scene.rng.randint(0, _TRAIL), far)
    return scene, index


def _start_with_noun(rng: random.Random, far: int, answer: int) -> tuple[FarScene, Noun]:
    """A document before its item, and the noun of the gender `answer` that is held back for it."""
    scene = FarScene(rng)
    kind = scene.expected.pop()
    scene.nouns[kind] = scene.noun_of(kind, GENDERS[answer])
    _start(scene, kind, far)
    return scene, scene.nouns[kind]


def _pronoun_scene(rng: random.Random, distance: int, far: int, answer: int, _: int) -> tuple[FarScene, int]:
    scene, noun = _start_with_noun(rng, far, answer)
    scene.mention(noun)
    _between(scene, distance, far)
    scene.pronoun(noun, only_subject=True)
    return _end(scene, far)


def _cataphora_scene(rng: random.Random, distance: int, far: int, answer: int, _: int) -> tuple[FarScene, int]:
    scene, noun = _start_with_noun(rng, far, answer)
    index = len(scene.sentences)
    scene.cataphora(noun, only_subject=True, ahead=distance)
    _between(scene, distance, far)
    scene.mention(noun)
    _end(scene, far)
    return scene, index


def _competing_scene(rng: random.Random, distance: int, far: int, answer: int, second: int) -> tuple[FarScene, int]:
    """`answer` is the gender of the noun that is named first; the owner who is meant has the first or the `second`."""
    scene = FarScene(rng)
    kind, (meant, other) = rng.choice(list(scene.owners.items()))
    genders = GENDERS[answer], GENDERS[(answer + rng.choice((1, 2))) % len(GENDERS)]
    people = (other, meant) if second else (meant, other)
    scene.owners[kind] = {name: scene.noun_of(kind, gender) for name, gender in zip(people, genders)}
    _start(scene, kind, far)
    scene.name_owned(kind, shuffled=False)
    _between(scene, distance, far)
    scene.competing_antecedents(kind, meant)
    return _end(scene, far)


def _term_scene(rng: random.Random, distance: int, far: int, rendering: int) -> tuple[FarScene, int]:
    scene = FarScene(rng)
    term = rng.choice(LEXICON["terms"])
    scene.renderings[term["en"]] = rendering
    _start(scene, term["en"], far)
    scene.use_term(term)
    _between(scene, distance, far)
    scene.use_term(term)
    return _end(scene, far)


def _register_scene(rng: random.Random, distance: int, far: int, register: str) -> tuple[FarScene, int]:
    scene = FarScene(rng, register=register)
    scene.greet(scene.draw_noun())
    extend(scene, distance, far, address=0)
    scene.address()
    return scene, distance


_PRONOUN_SCENES = {
    "pronoun": _pronoun_scene,
    "cataphora": _cataphora_scene,
    "competing_antecedents": _competing_scene,
}
_PAIRED = {"competing_antecedents"}  # two numbers are one group
