"""Contrastive suites of the built-in discourse corpus, in the JSON formats of ContraPro and Voita et al. (2019).

ContraPro: Müller et al. (2018), "A Large-Scale Test Set for the Evaluation of Context-Aware Pronoun Translation".
Voita: "When a Good Translation is Wrong in Context", four sentences joined by ` _eos `, the last one current.

Items come in groups that share the current sentence and its candidates and differ in other sentences only, each
candidate being the right one equally often: without context exactly CHANCE of a group can be got right. `group` is the
name of an item's group, which significance tests draw as one. `true_ind` changes from item to item. A distance is that
of the nearest clue:

- pronoun: the sentence that names the antecedent, 0 to 4 back. Every sentence between it and the pronoun names a noun
  of another class: of the two other genders up to distance 3, and one noun of each gender at distance 4, where a model
  with three sentences of context would otherwise see which gender is missing.
- deixis: 1 to 3; the first of the four sentences is always the greeting (the clue of the source side, 3 back), at
  distances 1 and 2 the nearest clue is a German sentence with du or Sie.
- register: 1 to one less than the longest document's sentences; the greeting is the only clue on either side, as no
  sentence between it and the current one addresses anybody.
- cataphora: -1, the antecedent is named first in the sentence after the pronoun.
- lex_cohesion: 1 to 3, the one earlier use of the term, in the German sentence. ellipsis: 1.

With `far` > 0 distances are those of `DISTANCES` that are not beyond `far`, and `far` itself; every item but those of
deixis and ellipsis is in a document of its own in ContraPro's format, between sentences of all kinds with nouns of
other classes, its distance a label, too, so that reports tell all distances apart. All other sentences but the one with
the clue are the same in a group. cataphora has negative distances. lex_cohesion: the English side is the same for both.
competing_antecedents (1/3; 1/2 for a model that finds the two nouns of the class, and not whose they are): one sentence
names two nouns with their owners, the current one names an owner. Groups have six items; in three the owners have
changed places and all else is the same. `items_per_cell` is even for whole groups.
"""

import random
import re
from collections.abc import Callable, Sequence
from functools import partial

from hf_docmt.data.synthetic.document_plan import DISTANCES, draw_document, extend
from hf_docmt.data.synthetic.scene import GENDERS, LEXICON, PRONOUNS, REGISTERS, FarScene, Noun, Scene

CHANCE = {"pronoun": 1 / 3, "deixis": 1 / 2, "lex_cohesion": 1 / 2, "ellipsis": 1 / 4}
FAR_CHANCE = CHANCE | {"cataphora": 1 / 3, "competing_antecedents": 1 / 3, "register": 1 / 2}
PRONOUN_DISTANCES = (0, 1, 2, 3, 4)
VOITA_DISTANCES = (1, 2, 3)
ELLIPSIS_CANDIDATES = 4
ONE_DISTANCE = ("cataphora", "ellipsis")
KINDS = {"register": ("you", "register"), "lex_cohesion": (None, "lexical cohesion")}  # pronoun, what is wrong
_GENDER_NAMES = {"m": "Masc", "f": "Fem", "n": "Neut"}
_LEAD, _TRAIL = 3, 2  # with far clues most sentences between greeting and item, and after it
Cell = tuple[str, int, Sequence, Callable]  # suite, distance, answers, scene and index of the item in it


def make_suites(
    seed: int = 0, items_per_cell: int = 30, longest: int = 10, cataphora: bool = False, far: int = 0
) -> dict[str, list[dict]]:
    """Suites by name and the `documents` of those in ContraPro's format: by default pronoun and register.

    A cell is one distance with one answer (er/sie/es, du/Sie, first/second rendering, first to fourth verb). `longest`
    is the number of sentences of the longest document, with which the register suite ends. With `cataphora` there is a
    suite of that name, its items in the documents, too. With `far` > 0 the suites of `FAR_CHANCE`, see above.
    """
    if not isinstance(items_per_cell, int) or items_per_cell < 0:
        raise ValueError(f"items_per_cell: got {items_per_cell!r}, expected an integer of 0 or more")
    names = (
        FAR_CHANCE if far else ("pronoun", "register", "deixis", "lex_cohesion", "ellipsis", *["cataphora"] * cataphora)
    )
    suites: dict[str, list[dict]] = {name: [] for name in (*names, "documents")}
    for number in range(items_per_cell):
        cells = _far_cells(longest, far, number) if far else _near_cells(longest, cataphora)
        for name, distance, answers, scene_of in cells:
            for answer in answers:
                pair = number // 2 if name == "competing_antecedents" else number  # two numbers are one group
                is_far = far and name not in ("deixis", "ellipsis")
                # equal for all items of a group: their scenes make the same draws
                rng = random.Random(f"{seed}/suite/{'far-' * is_far}{name}/{distance}/{pair}")
                scene, index = scene_of(rng, distance, answer)
                is_numbered = is_far or name not in ONE_DISTANCE
                group = "-".join(map(str, [name, *[distance] * is_numbered, pair + 1]))
                if name in ("deixis", "ellipsis") or name == "lex_cohesion" and not far:
                    item = voita_item(scene)
                else:
                    own = f"{name}-{distance}-{number + 1}-{len(suites[name]) + 1}" if far else group
                    doc_id = f"{own}-{scene.sentences[index].answer}"
                    suites["documents"].append(scene.row(doc_id))
                    item = document_item(name, doc_id, scene, index)
                labels = {"labels": {"exact_distance": item["ante distance"]}} if is_far else {}
                suites[name].append(item | {"group": group} | labels)
    return suites


def _near_cells(longest: int, cataphora: bool) -> list[Cell]:
    return _in_cells(
        ("pronoun", PRONOUN_DISTANCES, GENDERS, _pronoun_scene),
        ("cataphora", (1,), GENDERS if cataphora else (), _cataphora_scene),
        ("register", range(1, longest), REGISTERS, _register_scene),
        ("deixis", VOITA_DISTANCES, REGISTERS, _deixis_scene),
        ("lex_cohesion", VOITA_DISTANCES, (0, 1), _term_scene),
        ("ellipsis", (1,), range(ELLIPSIS_CANDIDATES), _ellipsis_scene),
    )


def _far_cells(longest: int, far: int, number: int) -> list[Cell]:
    """The owners of competing antecedents have changed places in items of odd `number`."""
    distances = _distances(far)
    return _in_cells(
        ("pronoun", distances, GENDERS, partial(_far_pronoun_scene, far=far)),
        ("cataphora", distances, GENDERS, partial(_far_cataphora_scene, far=far)),
        ("competing_antecedents", distances, GENDERS, partial(_competing_scene, far=far, are_changed=number % 2)),
        ("lex_cohesion", distances, (0, 1), partial(_far_term_scene, far=far)),
        ("register", _distances(longest - 1), REGISTERS, partial(_far_register_scene, far=far)),
        ("deixis", VOITA_DISTANCES, REGISTERS, _deixis_scene),
        ("ellipsis", (1,), range(ELLIPSIS_CANDIDATES), _ellipsis_scene),
    )


def _in_cells(*suites: tuple) -> list[Cell]:
    return [(name, distance, *rest) for name, distances, *rest in suites for distance in distances]


def _distances(far: int) -> list[int]:
    return [distance for distance in DISTANCES if distance < far] + [far]


def voita_item(scene: Scene) -> dict:
    """The last sentence with all its options, after all sentences before it."""
    current = scene.sentences[-1]
    context = [s.de for s in scene.sentences[:-1]]
    return {
        "src": " _eos ".join(s.en for s in scene.sentences),
        "dst": [" _eos ".join([*context, option]) for option in current.options.values()],
        "true_ind": list(current.options).index(current.answer),
        "ctx_dist": current.distance,
    }


def document_item(name: str, doc_id: str, scene: Scene, index: int) -> dict:
    """An item of a suite in ContraPro's format, whose current sentence is `index`; of pronouns with the antecedent."""
    index %= len(scene.sentences)
    current = scene.sentences[index]
    pronoun, kind = KINDS.get(name, ("it", "pronominal coreference"))
    wrong = [(answer, de) for answer, de in current.options.items() if answer != current.answer]
    errors = [{"contrastive": de, "replacement": answer, "type": kind} for answer, de in wrong]
    heads = {}
    if name not in KINDS:
        noun, named = current.noun, scene.sentences[index - current.distance]
        gender, genders = _GENDER_NAMES[noun.gender], {PRONOUNS[gender]: _GENDER_NAMES[gender] for gender in GENDERS}
        heads = _head("src", named.en, noun.en, None, None)
        heads |= _head("ref", named.de, noun.de, gender, f"{gender}|_|Sg")
        errors = [error | {"replacement gender": genders[error["replacement"]]} for error in errors]
    return {
        "document id": doc_id,
        "segment id": index + 1,
        "corpus": "hf-docmt discourse",
        "src segment": current.en,
        "ref segment": current.de,
        "src pronoun": pronoun,
        "ref pronoun": current.answer,
        "ante distance": current.distance,
        "intrasegmental": current.distance == 0,
        **heads,
        "errors": errors,
    }


def _head(side: str, text: str, lemma: str, gender: str | None, morpho: str | None) -> dict:
    """The antecedent's fields; the phrase is article and noun, the id its 1-based word number in its sentence."""
    words = re.findall(r"\w+", text)
    index = words.index(lemma)
    return {
        f"{side} ante phrase": " ".join(words[index - 1 : index + 1]),
        f"{side} ante head": lemma,
        f"{side} ante head gender": gender,
        f"{side} ante head id": index + 1,
        f"{side} ante head lemma": lemma,
        f"{side} ante head morpho": morpho,
        f"{side} ante head pos": "NN",
    }


def _pronoun_scene(rng: random.Random, distance: int, gender: str) -> tuple[Scene, int]:
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
        return scene, -1
    if distance == 1:
        scene.pair(antecedent, scene.draw_noun(genders[0], without=antecedent.kind))
    else:
        scene.mention(antecedent)
    for other in genders[: distance - 1]:
        rng.choice((scene.mention, scene.address))(scene.draw_noun(other))
    scene.pronoun(antecedent, only_subject=True)
    return scene, -1


def _cataphora_scene(rng: random.Random, _: int, gender: str) -> tuple[Scene, int]:
    """Greeting, one or two sentences without nouns, pronoun, and the sentence that names the antecedent."""
    scene = Scene(rng)
    antecedent = scene.draw_noun(gender)
    scene.greet(scene.draw_noun(without=antecedent.kind))
    for _ in range(rng.randint(1, 2)):
        rng.choice((scene.address, scene.name_term, scene.act))()
    scene.cataphora(antecedent, only_subject=True)
    scene.mention(antecedent)
    return scene, -2


def _register_scene(rng: random.Random, distance: int, register: str) -> tuple[Scene, int]:
    scene = draw_document(rng, distance, register, without="address")
    scene.address()
    return scene, -1


def _deixis_scene(rng: random.Random, distance: int, register: str) -> tuple[Scene, int]:
    scene = Scene(rng, register=register)
    scene.greet(scene.draw_noun())
    for back in (2, 1):  # sentences back from the current one
        neutral = back < distance or rng.random() < 0.5
        if neutral and back != distance:
            rng.choice((scene.mention, scene.name_term, scene.act))()
        else:
            scene.address()
    scene.address()
    return scene, -1


def _term_scene(rng: random.Random, distance: int, rendering: int) -> tuple[Scene, int]:
    scene = Scene(rng, rendering=rendering)
    for back in (3, 2, 1):
        scene.name_term() if back == distance else rng.choice((scene.mention, scene.address, scene.act))()
    scene.name_term()
    return scene, -1


def _ellipsis_scene(rng: random.Random, _: int, answer: int) -> tuple[Scene, int]:
    verbs = rng.sample(LEXICON["verbs"], ELLIPSIS_CANDIDATES)
    scene = Scene(rng)
    for _ in range(2):
        rng.choice((scene.mention, scene.address, scene.act))()
    scene.act(verbs[answer])
    scene.ellipsis(verbs)
    return scene, -1


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


def _start_with_noun(rng: random.Random, far: int, gender: str) -> tuple[FarScene, Noun]:
    """A document before its item, and the noun of this gender that is held back for it."""
    scene = FarScene(rng)
    kind = scene.expected.pop()
    scene.nouns[kind] = scene.noun_of(kind, gender)
    _start(scene, kind, far)
    return scene, scene.nouns[kind]


def _far_pronoun_scene(rng: random.Random, distance: int, gender: str, far: int) -> tuple[FarScene, int]:
    scene, noun = _start_with_noun(rng, far, gender)
    scene.mention(noun)
    _between(scene, distance, far)
    scene.pronoun(noun, only_subject=True)
    return _end(scene, far)


def _far_cataphora_scene(rng: random.Random, distance: int, gender: str, far: int) -> tuple[FarScene, int]:
    scene, noun = _start_with_noun(rng, far, gender)
    index = len(scene.sentences)
    scene.cataphora(noun, only_subject=True, ahead=distance)
    _between(scene, distance, far)
    scene.mention(noun)
    _end(scene, far)
    return scene, index


def _competing_scene(
    rng: random.Random, distance: int, gender: str, far: int, are_changed: int
) -> tuple[FarScene, int]:
    """`gender` is that of the first noun, which the intended owner has, or with `are_changed` the other one."""
    scene = FarScene(rng)
    kind, (meant, other) = rng.choice(list(scene.owners.items()))
    genders = gender, GENDERS[(GENDERS.index(gender) + rng.choice((1, 2))) % len(GENDERS)]
    people = (other, meant) if are_changed else (meant, other)
    scene.owners[kind] = {name: scene.noun_of(kind, gender) for name, gender in zip(people, genders)}
    _start(scene, kind, far)
    scene.name_owned(kind, shuffled=False)
    _between(scene, distance, far)
    scene.competing_antecedents(kind, meant)
    return _end(scene, far)


def _far_term_scene(rng: random.Random, distance: int, rendering: int, far: int) -> tuple[FarScene, int]:
    scene = FarScene(rng)
    term = rng.choice(LEXICON["terms"])
    scene.renderings[term["en"]] = rendering
    _start(scene, term["en"], far)
    scene.use_term(term)
    _between(scene, distance, far)
    scene.use_term(term)
    return _end(scene, far)


def _far_register_scene(rng: random.Random, distance: int, register: str, far: int) -> tuple[FarScene, int]:
    scene = FarScene(rng, register=register)
    scene.greet(scene.draw_noun())
    extend(scene, distance, far, address=0)
    scene.address()
    return scene, distance
