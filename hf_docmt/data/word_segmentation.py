"""Word segmentation: blanks between the words of Chinese, for systems that were trained on such text."""

import logging
import re
from collections.abc import Callable, Iterable

from hf_docmt.messages import install_command

MARKUP = re.compile(r"(</?[A-Za-z][\w:.-]*(?:\s[^<>]*)?/?>|<[?!][^<>]*>|&#?\w+;)")  # tags and entities


def segment_line(line: str, segmenter: Callable[[str], Iterable[str]]) -> str:
    """The line with one blank between its words, which `segmenter` finds; tags and entities stay whole.

    So it works for plain text, `train.tags`, XML and SGML alike. Blanks that were there separate words, too.
    """
    words = []
    for index, part in enumerate(MARKUP.split(line)):  # markup at odd indices
        words += [part] if index % 2 else segmenter(part)
    return " ".join(word for word in words if word.strip())


def chinese_segmenter() -> Callable[[str], Iterable[str]]:
    """A function from Chinese text to its words: jieba's, with its model of unknown words. ValueError without jieba."""
    try:
        import jieba
    except ImportError as error:
        raise ValueError(f"the segmentation of Chinese needs jieba: {install_command('chinese')}") from error
    jieba.setLogLevel(logging.WARNING)
    return jieba.cut
