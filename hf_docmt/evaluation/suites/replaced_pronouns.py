"""Which pronoun a right and a wrong translation differ in."""

import difflib
import re
from collections.abc import Collection, Sequence

from hf_docmt.files import DataError


def replaced_pronouns(right: str, wrong: Sequence[str], pronouns: Collection[str], where: str) -> str:
    """The pronouns of the right translation that are others in the wrong translations, usually one.

    Words are runs of letters and digits, compared without case (`qu'elles`, `a-t-il`). Several pronouns are joined by
    `+`. DataError, beginning with `where`, if there is none.
    """
    found = dict.fromkeys(word for text in wrong for word in _replaced(right, text) if word in pronouns)
    if not found:
        raise DataError(
            f"{where}: {right!r} and {wrong[0]!r} do not differ in {', '.join(pronouns)}; expected the right "
            "translation, then the wrong ones, so lines are lost, or it is another kind of suite"
        )
    return "+".join(found)


def _replaced(right: str, wrong: str) -> list[str]:
    """Words of `right` that `wrong` lacks at the aligned position."""
    words, others = (re.findall(r"\w+", text.casefold()) for text in (right, wrong))
    matcher = difflib.SequenceMatcher(None, words, others, autojunk=False)
    return [word for tag, start, end, *_ in matcher.get_opcodes() if tag != "equal" for word in words[start:end]]
