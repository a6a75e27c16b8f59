"""Word's markup of text that is written from right to left (ECMA-376 part 1, 17.3.1.6, 17.3.2.30, 17.4.1, 17.6.1)."""

import re

# what stands behind a property in the order of the schema
BEHIND_BIDI = re.compile(
    r"<w:(adjustRightInd|snapToGrid|spacing|ind|contextualSpacing|mirrorIndents|suppressOverlap|jc|textDirection"
    r"|textAlignment|textboxTightWrap|outlineLvl|divId|cnfStyle|rPr|sectPr|pPrChange)\b|</w:pPr>"
)
BEHIND_RTL = re.compile(r"<w:(cs|em|lang|eastAsianLayout|specVanish|oMath|rPrChange)\b|</w:rPr>")
COMPLEX = re.compile(r"<w:(b|i|sz)(\s[^>]*)?/>(?!<w:\1Cs\b)")  # whose twins are for scripts from right to left
TABLE = re.compile(
    r"(<w:tblPr>(?:\s*<w:tblStyle\b[^>]*/>)?(?:\s*<w:tblpPr\b[^>]*/>)?(?:\s*<w:tblOverlap\b[^>]*/>)?)"
    r"(?!\s*<w:bidiVisual\b)"
)
SECTION = re.compile(
    r"(<w:sectPr\b[^>]*(?<!/)>(?:(?!<w:bidi\b|</w:sectPr>).)*?)(?=<w:(rtlGutter|docGrid|printerSettings)\b|</w:sectPr>)",
    re.S,
)


def bidi_paragraph(properties: str) -> str:
    """The properties of a paragraph, if it has any, with its direction, and what stands behind them."""
    head, end, rest = properties.partition("</w:pPr>") if "</w:pPr>" in properties else ("", "", properties)
    if not end:
        return "<w:pPr><w:bidi/></w:pPr>" + re.sub(r"^\s*<w:pPr\s*/>", "", rest)
    head = re.sub(r"<w:bidi\b[^>]*/>", "", head) + end
    return BEHIND_BIDI.sub(lambda match: "<w:bidi/>" + match[0], head, count=1) + rest


def rtl_run(looks: str) -> str:
    """The looks of a run with its direction, and for its script what they have for others."""
    if not looks:
        return "<w:rPr><w:rtl/></w:rPr>"
    looks = COMPLEX.sub(lambda match: f"{match[0]}<w:{match[1]}Cs{match[2] or ''}/>", looks)
    return BEHIND_RTL.sub(lambda match: "<w:rtl/>" + match[0], re.sub(r"<w:rtl\b[^>]*/>", "", looks), count=1)


def bidi_layout(text: str) -> str:
    """The text of a member with tables and sections from right to left."""
    return SECTION.sub(r"\1<w:bidi/>", TABLE.sub(r"\1<w:bidiVisual/>", text))
