"""Contrastive suites of the built-in discourse corpus, in the JSON formats of ContraPro and Voita et al. (2019).

ContraPro: Müller et al. (2018), "A Large-Scale Test Set for the Evaluation of Context-Aware Pronoun Translation".
Voita: "When a Good Translation is Wrong in Context", four sentences joined by ` _eos `, the last one current.

Items come in groups that share the current sentence and its candidates and differ in earlier sentences only, each
candidate being the right one once: without context exactly CHANCE of a group can be got right. `group` is the name of
an item's group, which significance tests draw as one. `true_ind` changes from item to item. A distance is that of the
nearest clue:

- pronoun: the sentence that names the antecedent, 0 to 4 back. Every sentence between it and the pronoun names a noun
  of another class: of the two other genders up to distance 3, and one noun of each gender at distance 4, where a model
  with three sentences of context would otherwise see which gender is missing.
- deixis: 1 to 3; the first of the four sentences is always the greeting (the clue of the source side, 3 back), at
  distances 1 and 2 the nearest clue is a German sentence with du or Sie.
- register: 1 to one less than the longest document's sentences; the greeting is the only clue on either side, as no
  sentence between it and the current one addresses anybody.
- cataphora: -1, the antecedent is named first in the sentence after the pronoun.
- lex_cohesion: 1 to 3, the one earlier use of the term, in the German sentence. ellipsis: 1.
"""

import random
from collections.abc import Callable
from functools import partial

from hf_docmt.data.synthetic.document_plan import draw_document
from hf_docmt.data.synthetic.scene import Scene
from hf_docmt.data.synthetic.suite_items import contrapro_item, pronoun_item, voita_item
from hf_docmt.data.synthetic.word_forms import GENDERS, LEXICON, PRONOUNS, REGISTERS

PRONOUN_DISTANCES = (0, 1, 2, 3, 4)
VOITA_DISTANCES = (1, 2, 3)
ELLIPSIS_CANDIDATES = 4


def make_suites(
    seed: int = 0, items_per_cell: int = 30, longest: int = 10, cataphora: bool = False
) -> dict[str, list[dict]]:
    """Suites by name (pronoun, register, deixis, lex_cohesion, ellipsis) and the `documents` that the first two are in.

    A cell is one distance with one answer (er/sie/es, du/Sie, first/second rendering, first to fourth verb). `longest`
    is the number of sentences of the longest document, with which the register suite ends. With `cataphora` there is a
    suite of that name, its items in the documents, too.
    """
    if not isinstance(items_per_cell, int) or items_per_cell < 0:
        raise ValueError(f"items_per_cell: got {items_per_cell!r}, expected an integer of 0 or more")
    names = ("pronoun", "register", "documents", "deixis", "lex_cohesion", "ellipsis")
    suites: dict[str, list[dict]] = {name: [] for name in (*names, *["cataphora"] * cataphora)}

    def add_in_document(name: str, cell: str, answer: str, scene: Scene, item_of: Callable[[str, Scene], dict]) -> None:
        doc_id = f"{name}-{cell}-{answer}"
        suites["documents"].append(scene.row(doc_id))
        suites[name].append(item_of(doc_id, scene) | {"group": f"{name}-{cell}"})

    for number in range(items_per_cell):
        for distance in PRONOUN_DISTANCES:
            for gender in GENDERS:
                scene = _pronoun_scene(cell_rng(seed, "pronoun", distance, number), distance, gender)
                add_in_document("pronoun", f"{distance}-{number + 1}", PRONOUNS[gender], scene, pronoun_item)
        for gender in GENDERS if cataphora else ():
            scene = _cataphora_scene(cell_rng(seed, "cataphora", 1, number), gender)
            last_but_one = partial(pronoun_item, index=len(scene.sentences) - 2)
            add_in_document("cataphora", f"{number + 1}", PRONOUNS[gender], scene, last_but_one)
        for distance in range(1, longest):
            of_distance = partial(contrapro_item, pronoun="you", distance=distance, kind="register")
            for register in REGISTERS:
                scene = _register_scene(cell_rng(seed, "register", distance, number), distance, register)
                add_in_document("register", f"{distance}-{number + 1}", register, scene, of_distance)
        for distance in VOITA_DISTANCES:
            for answer in (0, 1):
                group = f"{distance}-{number + 1}"
                scene = _deixis_scene(cell_rng(seed, "deixis", distance, number), distance, REGISTERS[answer])
                suites["deixis"].append(voita_item(scene) | {"group": f"deixis-{group}"})
                scene = _term_scene(cell_rng(seed, "lex_cohesion", distance, number), distance, answer)
                suites["lex_cohesion"].append(voita_item(scene) | {"group": f"lex_cohesion-{group}"})
        for answer in range(ELLIPSIS_CANDIDATES):
            item = voita_item(_ellipsis_scene(cell_rng(seed, "ellipsis", 1, number), answer))
            suites["ellipsis"].append(item | {"group": f"ellipsis-{number + 1}"})
    return suites


def cell_rng(seed: int, *cell: object) -> random.Random:
    """Equal for all items of a group: their scenes make the same draws."""
    return random.Random("/".join(map(str, (seed, "suite", *cell))))


def _pronoun_scene(rng: random.Random, distance: int, gender: str) -> Scene:
    """Greeting, up to two sentences without nouns, antecedent, nouns of other classes, pronoun."""
    scene = Scene(rng)
    antecedent = scene.draw_noun(gender)
    genders = list(GENDERS) if distance > 3 else [g for g in GENDERS if g != gender]
    rng.shuffle(genders)
    scene.greet(scene.draw_noun(genders[-1], without=antecedent.kind))
    for _ in range(rng.randint(max(0, 2 - distance), 2) if distance else 2):
        rng.choice((scene.address, scene.name_term, scene.act))()
    if distance == 0:
        other = scene.draw_noun(genders[0], without=antecedent.kind)
        scene.pronoun_within([antecedent, other], antecedent, only_subject=True)
        return scene
    if distance == 1:
        scene.pair(antecedent, scene.draw_noun(genders[0], without=antecedent.kind))
    else:
        scene.mention(antecedent)
    for other in genders[: distance - 1]:
        rng.choice((scene.mention, scene.address))(scene.draw_noun(other))
    scene.pronoun(antecedent, only_subject=True)
    return scene


def _cataphora_scene(rng: random.Random, gender: str) -> Scene:
    """Greeting, one or two sentences without nouns, pronoun, and the sentence that names the antecedent."""
    scene = Scene(rng)
    antecedent = scene.draw_noun(gender)
    scene.greet(scene.draw_noun(without=antecedent.kind))
    for _ in range(rng.randint(1, 2)):
        rng.choice((scene.address, scene.name_term, scene.act))()
    scene.cataphora(antecedent, only_subject=True)
    scene.mention(antecedent)
    return scene


def _register_scene(rng: random.Random, distance: int, register: str) -> Scene:
    scene = draw_document(rng, distance, register, without="address")
    scene.address()
    return scene


def _deixis_scene(rng: random.Random, distance: int, register: str) -> Scene:
    scene = Scene(rng, register=register)
    scene.greet(scene.draw_noun())
    for back in (2, 1):  # sentences back from the current one
        neutral = back < distance or rng.random() < 0.5
        if neutral and back != distance:
            rng.choice((scene.mention, scene.name_term, scene.act))()
        else:
            scene.address()
    scene.address()
    return scene


def _term_scene(rng: random.Random, distance: int, rendering: int) -> Scene:
    scene = Scene(rng, rendering=rendering)
    for back in (3, 2, 1):
        scene.name_term() if back == distance else rng.choice((scene.mention, scene.address, scene.act))()
    scene.name_term()
    return scene


def _ellipsis_scene(rng: random.Random, answer: int) -> Scene:
    verbs = rng.sample(LEXICON["verbs"], ELLIPSIS_CANDIDATES)
    scene = Scene(rng)
    for _ in range(2):
        rng.choice((scene.mention, scene.address, scene.act))()
    scene.act(verbs[answer])
    scene.ellipsis(verbs)
    return scene
