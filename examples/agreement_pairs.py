"""Whether "it" agrees with the noun of the sentence before, in pairs by rule, from English to Portuguese.

python examples/agreement_pairs.py runs/real/en-pt runs/tuned --part test

A model reads "We found the door. It was broken." as a document, and its second sentence alone. Its own translation of
the first says the gender of the noun ("a porta"); the second is right where its last word has it, too ("quebrada").
Nouns of the part "dev" are to choose by, those of "test" to report on.
"""

import argparse
import json
import re
from collections.abc import Sequence

import hf_docmt

NOUNS = (
    "bag ball basket bed bell belt bicycle boat book bottle box bridge camera car carpet chair clock coat computer cup "
    "curtain desk door dress drum engine farm fence flag fork garden gate guitar hammer hat helmet house jacket key "
    "kitchen knife ladder lamp letter machine map mattress mirror motorcycle needle notebook oven painting pan pen "
    "piano picture pillow plate ring road rope school shirt shop shovel skirt sofa spoon suitcase sweater table "
    "tent towel toy train tower truck umbrella vase violin wall wallet watch wheel window"
).split()
FRAMES = ("We found the {}.", "She bought the {}.", "They talked about the {}.", "I like the {}.")
PREDICATES = ("It was broken.", "It is very expensive.", "It was dirty.", "It is new.")
GENDERS = {
    "masculine": r"\b(?:[dn]?o|ao|pelo|[dn]?um|[dn]?esse|[dn]?este)",
    "feminine": r"\b(?:[dn]?a|à|pela|[dn]?uma|[dn]?es[st]a)",
}
PARTS = ("dev", "test")


def pairs(part: str) -> list[list[str]]:
    """Documents of two sentences: every second noun, in every frame with one predicate."""
    nouns = NOUNS[PARTS.index(part) :: 2]
    return [[frame.format(noun), predicate] for noun in nouns for frame, predicate in zip(FRAMES, PREDICATES)]


def gender_of_noun(sentence: str) -> str | None:
    """The gender of the last article and noun of a Portuguese sentence; None without one."""
    found = {gender: list(re.finditer(rf"{word} \w+\W*$", sentence.lower())) for gender, word in GENDERS.items()}
    return next((gender for gender, matches in found.items() if matches), None)


def gender_of_predicate(sentence: str) -> str | None:
    """The gender by the last letter of a Portuguese sentence: -o or -a; None for others, such as "grande"."""
    last = (re.findall(r"\w+", sentence.lower()) or [""])[-1]
    return {"o": "masculine", "a": "feminine"}.get(last[-1:])


def count(documents: Sequence[Sequence[str]], second: Sequence[str]) -> dict[str, list[int]]:
    """Right and all pairs by the gender of the noun; translations of both sentences, and pairs to check."""
    counts = {gender: [0, 0] for gender in GENDERS}
    for (first, _), predicate in zip(documents, second, strict=True):
        gender = gender_of_noun(first)
        if gender is not None:
            counts[gender][0] += gender_of_predicate(predicate) == gender
            counts[gender][1] += 1
    return counts


def agreement(path: str, part: str) -> dict[str, dict[str, list[int]]]:
    """Counts of a model for its second sentences read alone, and after the first."""
    model, tokenizer = hf_docmt.load_model(path)
    documents = pairs(part)
    translated = model.translate_documents(documents, tokenizer, batch_size=16, num_beams=4)
    alone = model.translate_documents(
        [[predicate] for _, predicate in documents], tokenizer, batch_size=16, num_beams=4
    )
    return {
        "alone": count(translated, [sentence for (sentence,) in alone]),
        "behind the first": count(translated, [sentence for _, sentence in translated]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--part", choices=PARTS, default="test")
    arguments = parser.parse_args()
    print(json.dumps({path: agreement(path, arguments.part) for path in arguments.models}, indent=2))


if __name__ == "__main__":
    main()
