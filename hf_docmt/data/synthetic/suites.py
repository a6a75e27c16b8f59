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
import re

from hf_docmt.data.synthetic.document_plan import draw_document
from hf_docmt.data.synthetic.scene import Scene
from hf_docmt.data.synthetic.word_forms import GENDERS, LEXICON, PRONOUNS, REGISTERS

PRONOUN_DISTANCES = (0, 1, 2, 3, 4)
VOITA_DISTANCES = (1, 2, 3)
ELLIPSIS_CANDIDATES = 4
IN_VOITA_FORMAT = ("deixis", "lex_cohesion", "ellipsis")
ONE_DISTANCE = ("cataphora", "ellipsis")
_GENDER_NAMES = {"m": "Masc", "f": "Fem", "n": "Neut"}


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
    scenes = [  # suite, distances, answers, scene of a distance and an answer
        ("pronoun", PRONOUN_DISTANCES, GENDERS, _pronoun_scene),
        ("cataphora", (1,), GENDERS if cataphora else (), _cataphora_scene),
        ("register", range(1, longest), REGISTERS, _register_scene),
        ("deixis", VOITA_DISTANCES, REGISTERS, _deixis_scene),
        ("lex_cohesion", VOITA_DISTANCES, (0, 1), _term_scene),
        ("ellipsis", (1,), range(ELLIPSIS_CANDIDATES), _ellipsis_scene),
    ]
    cells = [(name, distance, answers, scene_of) for name, ds, answers, scene_of in scenes for distance in ds]
    for number in range(items_per_cell):
        for name, distance, answers, scene_of in cells:
            for answer in answers:
                scene = scene_of(cell_rng(seed, name, distance, number), distance, answer)
                group = "-".join(map(str, [name, *[distance] * (name not in ONE_DISTANCE), number + 1]))
                if name in IN_VOITA_FORMAT:
                    item = voita_item(scene)
                else:
                    doc_id = f"{group}-{PRONOUNS.get(answer, answer)}"
                    suites["documents"].append(scene.row(doc_id))
                    item = document_item(name, doc_id, scene, distance, index=-2 if name == "cataphora" else -1)
                suites[name].append(item | {"group": group})
    return suites


def cell_rng(seed: int, *cell: object) -> random.Random:
    """Equal for all items of a group: their scenes make the same draws."""
    return random.Random("/".join(map(str, (seed, "suite", *cell))))


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


def document_item(name: str, doc_id: str, scene: Scene, distance: int, index: int) -> dict:
    """An item of a suite in ContraPro's format, whose current sentence is `index`."""
    if name == "register":
        return _contrapro_item(doc_id, scene, "you", distance, "register", index)
    if name == "lex_cohesion":
        return _contrapro_item(doc_id, scene, None, distance, "lexical cohesion", index)
    return _pronoun_item(doc_id, scene, index)


def _contrapro_item(doc_id: str, scene: Scene, pronoun: str | None, distance: int, kind: str, index: int) -> dict:
    """What every item has; `kind` is what is wrong in the wrong translations."""
    index %= len(scene.sentences)
    current = scene.sentences[index]
    wrong = {answer: de for answer, de in current.options.items() if answer != current.answer}
    return {
        "document id": doc_id,
        "segment id": index + 1,
        "corpus": "hf-docmt discourse",
        "src segment": current.en,
        "ref segment": current.de,
        "src pronoun": pronoun,
        "ref pronoun": current.answer,
        "ante distance": distance,
        "intrasegmental": distance == 0,
        "errors": [{"contrastive": de, "replacement": answer, "type": kind} for answer, de in wrong.items()],
    }


def _pronoun_item(doc_id: str, scene: Scene, index: int) -> dict:
    """With the antecedent's fields, too."""
    index %= len(scene.sentences)
    current = scene.sentences[index]
    noun, named = current.noun, scene.sentences[index - current.distance]
    item = _contrapro_item(doc_id, scene, "it", current.distance, "pronominal coreference", index)
    genders = {PRONOUNS[gender]: _GENDER_NAMES[gender] for gender in GENDERS}
    errors = [error | {"replacement gender": genders[error["replacement"]]} for error in item.pop("errors")]
    morpho = f"{_GENDER_NAMES[noun.gender]}|_|Sg"
    return {
        **item,
        **_head("src", named.en, noun.en, None, None),
        **_head("ref", named.de, noun.de, _GENDER_NAMES[noun.gender], morpho),
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


def _cataphora_scene(rng: random.Random, _: int, gender: str) -> Scene:
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


def _ellipsis_scene(rng: random.Random, _: int, answer: int) -> Scene:
    verbs = rng.sample(LEXICON["verbs"], ELLIPSIS_CANDIDATES)
    scene = Scene(rng)
    for _ in range(2):
        rng.choice((scene.mention, scene.address, scene.act))()
    scene.act(verbs[answer])
    scene.ellipsis(verbs)
    return scene
