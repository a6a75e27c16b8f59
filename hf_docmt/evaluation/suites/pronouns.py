"""Which pronoun a right and a wrong translation differ in."""

import difflib
import re
from collections.abc import Collection, Sequence

from hf_docmt.files import DataError


def pronoun_of(right: str, wrong: Sequence[str], pronouns: Collection[str], place: str) -> str:
    """The pronoun of the right translation that is another one in the wrong translations.

    Words are compared without case, parted by all that is no letter or digit (`qu'elles`, `a-t-il`). Several pronouns
    that are replaced are joined by `+`. DataError where there is none.
    """
    found = dict.fromkeys(word for text in wrong for word in _replaced(right, text) if word in pronouns)
    if not found:
        raise DataError(
            f"{place}: {right!r} and {wrong[0]!r} do not differ in {', '.join(pronouns)}; expected the right "
            "translation, then the wrong ones, so lines are lost, or it is another kind of suite"
        )
    return "+".join(found)


def _replaced(right: str, wrong: str) -> list[str]:
    """Words of `right` that `wrong` has not in their place."""
    words, others = (re.findall(r"\w+", text.casefold()) for text in (right, wrong))
    matcher = difflib.SequenceMatcher(None, words, others, autojunk=False)
    return [word for tag, start, end, *_ in matcher.get_opcodes() if tag != "equal" for word in words[start:end]]
