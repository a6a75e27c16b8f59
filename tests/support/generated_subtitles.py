"""Subtitles (ASS) with overrides and drawings in all the places in which people put them, from a seed."""

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
