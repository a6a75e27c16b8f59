"""Items of the contrastive suites as JSON: the formats of ContraPro (Müller et al. 2018) and Voita et al. (2019)."""

import re

from hf_docmt.data.synthetic.scene import Scene
from hf_docmt.data.synthetic.word_forms import GENDERS, PRONOUNS

_GENDER_NAMES = {"m": "Masc", "f": "Fem", "n": "Neut"}


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


def contrapro_item(doc_id: str, scene: Scene, pronoun: str | None, distance: int, kind: str, index: int = -1) -> dict:
    """What every item has; `kind` is what is wrong in the wrong translations, `index` the current sentence."""
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


def pronoun_item(doc_id: str, scene: Scene, index: int = -1) -> dict:
    """With the antecedent's fields, too."""
    index %= len(scene.sentences)
    current = scene.sentences[index]
    noun, named = current.noun, scene.sentences[index - current.distance]
    item = contrapro_item(doc_id, scene, "it", current.distance, "pronominal coreference", index)
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
