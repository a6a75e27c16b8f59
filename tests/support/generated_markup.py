"""Subtitles (ASS) and Markdown with markup in all the places in which people put it, from a seed."""

from random import Random

from support.generated_strings import encoded, words

OVERRIDES = [
    r"{\i1}",
    r"{\i0}",
    r"{\an8\pos(1.5,2)}",
    r"{\k20}",
    r"{\t(0,1,\fscx9)\c&H00FF&}",
    r"{\fnArial Black}",
    "{a note}",
    "{}",
    r"{\r}",
]
DRAWINGS = [r"{\p1}m 0 0 l 1 b{\p0}", r"{\pos(1,1)\p4}m 0 0{\i1\p0}", r"{\p0}"]


def ass_file(random: Random) -> bytes:
    """A script; the order of its sections and fields is not always the same."""

    def dialogue() -> str:
        parts = []
        for _ in range(random.randint(0, 5)):
            parts.append(
                random.choice([words(random), words(random, 2) + ", " + words(random), *OVERRIDES, *DRAWINGS[:2]])
            )
            parts.append(random.choice([" ", "", r"\N", r"\n", r"\h", r"\{x\}", "\\x", "!"]))
        return "".join(parts) + random.choice(["", "", " ", r"{\p1}m 0 0 l 1 1"])

    old = random.random() < 0.2
    fields = [
        "Marked" if old else "Layer",
        "Start",
        "End",
        "Style",
        "Name",
        "MarginL",
        "MarginR",
        "MarginV",
        "Effect",
        "Text",
    ]
    values = [
        "Marked=0" if old else "0",
        "0:00:01.00",
        "0:00:02.50",
        "Default",
        "Ann",
        "0",
        "0",
        "0",
        random.choice(["", "Banner;5"]),
    ]
    lines = [
        f"{random.choice(['Dialogue', 'Dialogue', 'Dialogue', 'Comment'])}: {','.join(values)},{dialogue()}"
        for _ in range(random.randint(1, 6))
    ]
    lines.insert(
        random.randrange(len(lines) + 1),
        random.choice(["", "; a comment, really", "Dialogue: " + ",".join(values) + ","]),
    )
    info = [
        "[Script Info]",
        "; by a program: x",
        "Title: A film",
        f"ScriptType: v4.00{'' if old else '+'}",
        "WrapStyle: 0",
        "",
    ]
    style = [f"[V4{'' if old else '+'} Styles]", "Format: Name, Fontname, Fontsize", "Style: Default,Arial,20", ""]
    fonts = random.choice([[], ["[Fonts]", "fontname: a_0.ttf", "!!!Dialogue: 0", ""]])
    separator = random.choice([", ", ","])
    events = ["[Events]", "Format: " + separator.join(fields), *lines, ""]
    sections = [*info, *random.choice([[*style, *fonts, *events], [*style, *events, *fonts]])]
    return encoded(random, "\n".join(sections))


# Markdown

ATOMS = [
    "`x_y`",
    "``a ` b``",
    "<b>so</b>",
    "[^1]",
    "<http://a.b/c_d>",
    "&lt;",
    "&amp;",
    "$a_1$",
    "<br>",
    "\\*",
    "\\[",
    "<!-- c -->",
]
ATOMS += [
    '![A key](a.png "Its title")',
    "![Key][ref]",
    "![*Old* door](<b c.png>)",
    "[ref]",
    "[ref][]",
    "[two *words*][ref]",
    "https://a.b/c",
]
ATOMS += [
    '<a href="x*y" title="T">link</a>',
    "<kbd>Ctrl</kbd>",
    ":tada:",
    "{{ n }}",
    "{#id .c}",
    "C:\\new",
    "a_b_c",
    "2 * 3",
    "5 < 6 & 7",
    "x\u00a0y",
]
ATOMS += [
    "[![Build *it*](b.svg)](c 'T')",
    "[](empty)",
    "** not",
    "snake_ case_",
    "~~gone~~",
    "***both*** ",
    "**a*b*c**",
    "_x_y_",
    "word`s",
    "| bar",
]


def inline(random: Random, depth: int = 2) -> str:
    parts = []
    for _ in range(random.randint(1, 4)):
        kind = random.choice("wwwblo") if depth else "w"
        inner = inline(random, depth - 1) if kind in "bl" else ""
        mark = random.choice(["**", "*", "__", "_", "~~"])
        emphasis = f"{mark}{inner}{mark}" if mark[0] not in inner else inner
        target = random.choice(["(x)", '(x "My title")', "(<x y> 'It''s')", "(x_y (T))", "[ref]", "(a%20b#c)"])
        link = f"[{inner}]{target}" if "[" not in inner and "]" not in inner else inner
        parts.append({"w": words(random), "b": emphasis, "l": link, "o": random.choice(ATOMS)}[kind])
    return "Z " + " ".join(parts)


def blocks(random: Random, depth: int = 2) -> str:
    made = []
    for _ in range(random.randint(1, 4)):
        kind = random.choice("pppphhltqcidfsDr" if depth else "pph")
        end = random.choice(["\n", "\n", "  \n", "\\\n", "<br>\n"])
        lines = end.join(inline(random) for _ in range(random.randint(1, 3)))
        if kind == "h":
            made.append("#" * random.randint(1, 6) + " " + inline(random) + random.choice(["", " ##", " {#an-id}"]))
        elif kind == "l":
            mark = random.choice(["- ", "1. ", "* ", "+   ", "10) "])
            items = []
            for _ in range(random.randint(1, 3)):
                box = random.choice(["", "", "[ ] ", "[x] "])
                items.append(mark + box + blocks(random, depth - 1).replace("\n", "\n" + " " * len(mark)))
            made.append(random.choice(["\n", "\n\n"]).join(items))
        elif kind == "q":
            kinds = random.choice(["", "", "[!NOTE]\n> "])
            made.append("> " + kinds + blocks(random, depth - 1).replace("\n", random.choice(["\n> ", "\n>"])))
        elif kind == "t":
            bar = random.choice(["| ", ""])
            cells = [inline(random).replace("|", "\\|") for _ in range(4)]
            rows = [
                f"{bar}{cells[0]} | {cells[1]} |",
                random.choice(["|---|:-:|", "| :-- | --: |"]),
                f"{bar}{cells[2]} | {cells[3]}",
                "|  | a\\|b |",
            ]
            made.append("\n".join(rows[: random.randint(3, 4)]))
        elif kind == "s":
            made.append(lines + random.choice(["\n===", "\n---"]))
        elif kind == "D":
            made.append(f"Term\n: {inline(random)}")
        else:
            made.append(
                {
                    "c": random.choice(["```sh\nx *y*\n\nz\n```", "~~~\n# no\n~~~", "    code *here*\n\n    more"]),
                    "i": random.choice(
                        [
                            '<div class="a">One <b>two</b></div>',
                            "<!-- not\n\n this -->",
                            "<details><summary>Sum it</summary>\n\nin *it*\n\n</details>",
                        ]
                    ),
                    "d": random.choice(["[other]: <u v>\n  'A title'", "[^2]: Another *note*\n    goes on", "***"]),
                    "f": f"[^1]: {inline(random)}",
                    "r": f"::: note\n{inline(random)}\n:::",
                }.get(kind, lines)
            )
    return "\n\n".join(made)


def markdown_file(random: Random) -> bytes:
    head = random.choice(["", "", "---\ntitle: X y\n---\n", "+++\na = 1\n+++\n\n", "\n"])
    return encoded(
        random, head + blocks(random) + '\n\n[ref]: http://a.b/c "Title"' + random.choice(["", "\n", "\n\n"])
    )
