"""Repairs of a sentence in words: name, meaning, and what this page can do about it."""

from collections.abc import Iterable

REPAIRS = {  # kind of repair -> name, what it means, what to do on this page; of `separators` by strategy
    "length": (
        "cut off",
        "The translation was stopped before its end.",
        "Make the sentence shorter, or choose another strategy.",
    ),
    "split": (
        "in parts",
        "The sentence is over the length limit, so it was translated in parts.",
        "Break it into shorter sentences.",
    ),
    "positions": (
        "fewer sentences read",
        "The context was shortened to fit the model's maximum length.",
        "Break the sentences around it into shorter ones.",
    ),
    "sliding": (
        "translated alone",
        "The translation of its window had the wrong number of sentences, so it was translated again without context.",
        "Choose the strategy “One by one”, which writes no windows.",
    ),
    "full": (
        "one by one",
        "The translation of this part had the wrong number of sentences, so the part was translated again, "
        "one sentence after the other, with its context.",
        "There is nothing to do; the strategy “One by one in parts” does so from the start.",
    ),
    "separators": (
        "joined",
        "The translation came out as several sentences, which were joined.",
        "If words are missing, choose another strategy.",
    ),
}


def repairs_of(repairs: Iterable[dict], sentence: int, strategy: str) -> list[dict]:
    """Names, meanings and remedies of what was repaired in a sentence (index from 0), each once."""
    kinds = dict.fromkeys(one["kind"] for one in repairs if one["sentence"] == sentence)
    names = [strategy if kind == "separators" and strategy in REPAIRS else kind for kind in kinds]
    known = [REPAIRS[name] for name in names if name in REPAIRS]
    return [dict(zip(("name", "meaning", "remedy"), one)) for one in known]
