"""Words and phrases that make our prose hard to read, and how many are left: `python tests/support/prose.py [-v]`."""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

# hits that are left: these numbers only fall
MOST = {"documents": 2, "strings": 4, "docstrings": 1, "comments": 0}
ROOT = Path(__file__).resolve().parent.parent.parent
SOURCES = ("hf_docmt", "modeling", "hub_cards", "examples")
DOCUMENTS = ("*.md", "examples/**/*.md", "modeling/*.md", "hf_docmt/**/*.md", "hub_cards/**/*.j2")
PHRASES = {  # regular expression -> what to write
    r"(?:is|are|was|were|be) told\b": "is reported; knows",
    r"(?:leave|leaves|leaving|left)\b[^.;:,()]{0,30}? out\b": "remove; skip; omit",
    r"(?:so|that|as) (?:many|much)\b(?!(?: \w+){0,4} as\b)": "a number; this number",
    r"\d for \d": "a vs. b",
    r"(?:is|are|was|were) (?-i:none)\b|(?-i:none) (?:is|are)\b": "not a; does not have one",
    r"(?<!there[^a-z])(?:is|are|was|were) no (?!longer|more|less|fewer|other)\w": "is not a",
    r"beside\b": "next to; in addition to; vs.",
    r"in place of\b": "instead of",
    r"(?:anew|afresh|thereby|hence|likewise|thus|besides)\b": "again; so; also",
    r"for want of|and the like\b|at hand\b|as one likes": "without; such as; available",
    r"(?:stands?|stood)\b(?!-| for)": "is; appears",
    r"(?:lies?|lay)\b": "is",
    r"(?:go|goes|going|went) by\b": "uses; is chosen by",
    r"nothing of\b|nobody\b": "no part of; no user",
    r"(?-i:Most) (?=[a-z]+ (?:of|that|in|a)\b)": "maximum number of",
    r"(?:is|are) to (?:be|have)\b": "should; must",
    r"(?:give|gives|gave|given|giving) back\b": "return",
    r"(?:bring|brings|brought|come|comes) along\b": "contain; include",
    r"by (?:itself|themselves)\b": "alone; separately",
    r"(?:asked for is|is asked for|is meant|are meant)\b": "requested; means",
    r"(?:for ever|unasked|unsaid|wherein|whereof|as it were)\b": "always; without asking",
    r"(?:is|are) due\b": "is expected",
    r"as (?:they are|it is|they were|it was|it stands)\b": "unchanged",
    r"save for\b": "except",
    r"(?:can|could|may|might) not be had|(?:is|are) not to be\b|(?:is|are) not there\b": "is missing; cannot be",
    r"(?-i:\A(?:What|Of|That of|Those of|Its|They|Those|The same)) ": "name it",
    r"(?-i:(?<=[.;:])\s+(?:Of|That of|Those of)) (?!course|\d)": "for; in, at the end",
    r"(?:what|that|which|those) (?:(?:is|are|was|were) )?there\b(?! (?:is|are|was|were|can|may))": "existing",
    r"behind (?:an?|it|each|every|one|others?|bare|which)\b(?! proxy)": "after",
    r"(?-i:\A(?:Longest|Largest)) (?=[a-z])": "maximum; peak",
    r"(?<=[,;])\s+else\b|but (?:for|with|where)\b": "otherwise; except",
    r"(?:the|an) own\b": "its own; the same",
    r"(?:every|a|the) rooms?\b(?! (?:for|in|left))": "subpackage",
    r"what [^.;:]{0,30} makes of\b": "returns",
}
ANY = "|".join(f"({one})" for one in PHRASES).replace(" ", r"\s+")
PATTERN = re.compile(rf"(?<![\w-])(?:{ANY})", re.IGNORECASE)


def docstring_nodes(tree: ast.AST) -> set[int]:
    """The ids of the nodes that are docstrings."""
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    bodies = (node.body for node in ast.walk(tree) if isinstance(node, kinds))
    return {id(body[0].value) for body in bodies if body and isinstance(body[0], ast.Expr)}


def is_prose(value: object) -> bool:
    """Whether a value is a sentence or a phrase, and not a name or a list of words."""
    return isinstance(value, str) and value.count(" ") > 1 and "|" not in value


def texts(path: Path) -> Iterator[tuple[str, int, str]]:
    """The kind, line and text of everything in a file that people read."""
    text = path.read_text("utf-8")
    if path.suffix != ".py":
        yield "documents", 1, re.sub(r"(?ms)^```.*?^```$", lambda code: "\n" * code[0].count("\n"), text)
        return
    tree = ast.parse(text)
    docstrings = docstring_nodes(tree)
    parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            pieces = (part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
            yield "strings", node.lineno, "".join(pieces)
        elif isinstance(node, ast.Constant) and id(node) not in parts and is_prose(node.value):
            yield "docstrings" if id(node) in docstrings else "strings", node.lineno, node.value
    for number, line in enumerate(text.splitlines(), start=1):
        if comment := re.search(r"(?:^|\s)# (.+)$", line):
            yield "comments", number, comment[1]


def hits() -> Iterator[tuple[str, str, str, str]]:
    """The kind, place, text and remedy of each phrase."""
    paths = [path for folder in SOURCES for path in sorted((ROOT / folder).rglob("*.py"))]
    paths += sorted({path for pattern in DOCUMENTS for path in ROOT.glob(pattern)})
    for path in paths:
        for kind, line, text in texts(path):
            for hit in PATTERN.finditer(text):
                place = f"{path.relative_to(ROOT)}:{line + text.count(chr(10), 0, hit.start())}"
                yield kind, place, " ".join(hit[0].split()), list(PHRASES.values())[hit.lastindex - 1]


if __name__ == "__main__":
    found = list(hits())
    if "-v" in sys.argv:
        print(*("\t".join(hit) for hit in found), sep="\n")
    counts = {kind: sum(hit[0] == kind for hit in found) for kind in MOST}
    print("hard words:", *(f"{kind} {count} (at most {MOST[kind]})" for kind, count in counts.items()), sep="\n  ")
    sys.exit(any(count > MOST[kind] for kind, count in counts.items()))
