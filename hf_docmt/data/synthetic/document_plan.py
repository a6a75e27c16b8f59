"""Documents of the built-in discourse corpus: which kinds of sentences follow each other, and how often."""

import random

from hf_docmt.data.synthetic.scene import Scene

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


def draw_document(
    rng: random.Random, length: int, register: str | None = None, without: str | None = None, cataphora: float = 0.0
) -> Scene:
    """A greeting and the other sentences; `register` is drawn where not given, and a kind can be left out (`without`).

    `cataphora` is the share of pronouns that stand before their antecedent, against those of all other kinds together.
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
