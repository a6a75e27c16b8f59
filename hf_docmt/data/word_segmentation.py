"""Chinese with blanks between its words, for systems whose training data was segmented before the tokenizer."""

import logging
import re
from collections.abc import Callable, Iterable

MARKUP = re.compile(r"(</?[A-Za-z][\w:.-]*(?:\s[^<>]*)?/?>|<[?!][^<>]*>|&#?\w+;)")  # tags and entities


def spaced(line: str, cut: Callable[[str], Iterable[str]]) -> str:
    """The line with one blank between its words, which `cut` finds; tags and entities stay whole.

    So it does for plain text, `train.tags`, XML and SGML alike. Blanks that were there part words, too.
    """
    words = []
    for place, part in enumerate(MARKUP.split(line)):
        words += [part] if place % 2 else cut(part)
    return " ".join(word for word in words if word.strip())


def chinese_words() -> Callable[[str], Iterable[str]]:
    """What cuts Chinese into words: jieba, by its dictionary and its model of unknown words. ValueError without it."""
    try:
        import jieba
    except ImportError as error:
        raise ValueError("words of Chinese are found by jieba: pip install 'hf-docmt[chinese]'") from error
    jieba.setLogLevel(logging.WARNING)
    return jieba.cut
