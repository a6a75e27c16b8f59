"""Plain text in folders. A single file is read as lines or as running text."""

import re

from hf_docmt.data.readers.lines import is_wrapped
from hf_docmt.data.readers.reader import Evidence, Sample
from hf_docmt.formats.document_format import Segment, Tag, has_letters
from hf_docmt.formats.text_positions import Slot, TextFormat

LINE = r"\S[^\r\n]*"


class PlainTextFormat(TextFormat):
    """Each line is a segment; a paragraph where lines are wrapped at a width, which becomes one line."""

    name = "txt"
    line_break = Tag("alone", "\n", breaks=True)
    endings = (".txt",)

    def recognize(self, sample: Sample) -> Evidence:
        return Evidence.NONE

    def find(self, text: str) -> None:
        unit = rf"{LINE}(\r?\n[ \t]*{LINE})*" if is_wrapped(text.splitlines()) else LINE
        for match in re.finditer(unit, text):
            line = match[0].rstrip()
            if has_letters([line]):
                segment = Segment([" ".join(line.split())], f"line {self.page.line(match.start())}")
                self.page.slots.append(Slot(match.start(), match.start() + len(line), segment))
