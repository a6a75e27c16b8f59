"""The language of a text, by py3langid."""

import re
from functools import cache

from py3langid.langid import MODEL_FILE, LanguageIdentifier

MOST_CHARACTERS = 10_000  # that are looked at
TAG = re.compile(r"<[^<>]*>")


@cache
def _identifier() -> LanguageIdentifier:
    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


def ranked_languages(text: str) -> list[tuple[str, float]]:
    """Codes of two letters with their probabilities, the best first; tags are not looked at."""
    return _identifier().rank(TAG.sub(" ", text[:MOST_CHARACTERS]))


def answer(code: str, probability: float) -> dict[str, str | float]:
    """A language as LibreTranslate tells it."""
    return {"confidence": round(100 * probability, 1), "language": code}
