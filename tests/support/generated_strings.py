"""Files of strings (YAML, JSON, CSV, PO) in all the styles in which people and programs write them, from a seed."""

import json
from random import Random

WORDS = "Lamp door old It's so-called e.g. Dr. 3,5 naïve Ωmega no. key C# -x @y (so) 1:2 a\u00a0b "
WORDS += "灯台。 明かり שלום مرحبا 👩‍🚀 😀"
MARKUP = [
    "<b>{}</b>",
    '<a href="x?a=1&amp;b">{}</a>',
    "{} <br/>",
    "<0>{}</0>",
    "{} %s",
    "{} %{{n}}",
    "{{{{n}}}} {}",
    "&nbsp;{}",
]


def words(random: Random, most: int = 6) -> str:
    return " ".join(random.choices(WORDS.split(" "), k=random.randint(1, most)))


def text(random: Random, most: int = 3) -> str:
    """Sentences with markup and placeholders."""
    parts = []
    for _ in range(random.randint(1, most)):
        part = words(random)
        for _ in range(random.choice([0, 0, 1, 2])):
            part = random.choice(MARKUP).format(part)
        parts.append(part + random.choice(["", ".", "?", ":"]))
    return random.choice([" ", " ", "\n", "\n\n"]).join(parts)


def encoded(random: Random, file: str, encoding: str = "utf-8", mark: bool = True) -> bytes:
    """A file with one kind of line ends, perhaps with a byte order mark."""
    file = file.replace("\n", "\r\n") if random.random() < 0.2 else file
    if mark and random.random() < 0.2:
        return random.choice([b"\xef\xbb\xbf" + file.encode(), b"\xff\xfe" + file.encode("utf-16-le")])
    return file.encode(encoding)


def json_file(random: Random) -> bytes:
    def value(depth: int) -> str:
        kind = random.choice("ssssnol" if depth else "ssn")
        if kind == "n":
            return random.choice(["1", "-2.5e3", "true", "null", '""', '"12"', '"a.b.c"', "{}", "[ ]"])
        if kind == "s":
            return string(text(random))
        blank = random.choice(["", " ", "\n  "])
        inner = [value(depth - 1) for _ in range(random.randint(1, 4))]
        if kind == "l":
            return f"[{blank}{f',{blank}'.join(inner)}{blank}]"
        keys = [
            random.choice(['"a"', '"b"', '"d"', '"e"', r'"\u0061b"', '"c d"', f'"k{number}"', '"@@locale"'])
            for number in range(9)
        ]
        return f"{{{blank}" + f",{blank}".join(f"{key}{blank}:{each}" for key, each in zip(keys, inner)) + f"{blank}}}"

    def string(content: str) -> str:
        written = json.dumps(content, ensure_ascii=random.random() < 0.3)
        return written.replace("/", r"\/") if random.random() < 0.3 else written.replace("k", r"\u006B")

    return encoded(random, random.choice(["", "\n", "  "]) + value(4) + random.choice(["", "\n"]))


def csv_file(random: Random) -> tuple[bytes, tuple[str, ...]]:
    """A table, and the columns that are translated."""
    delimiter, end = random.choice(",;\t|"), random.choice(["\n", "\r\n", "\n", "\r"])
    width = random.randint(2, 4)

    def field() -> str:
        content = random.choice(["", "12", text(random), text(random), words(random), f'"{words(random)}"'])
        content = content.replace("\n", end) if random.random() < 0.5 else content
        needs = any(character in content for character in f'"\r\n{delimiter}')
        return '"' + content.replace('"', '""') + '"' if needs or random.random() < 0.3 else content

    head = delimiter.join(f"Name {number}" for number in range(width))
    rows = [delimiter.join(field() for _ in range(width)) for _ in range(random.randint(1, 6))]
    rows.insert(random.randrange(len(rows) + 1), random.choice(rows[:1] + [delimiter * (width - 1)]))
    data = end.join([head, *rows]) + random.choice(["", end])
    columns = random.sample(range(1, width + 1), random.randint(1, width))
    mark = random.choice([b"", b"", b"\xef\xbb\xbf"])
    return mark + data.encode(), tuple(map(str, columns))


def yaml_file(random: Random) -> bytes:
    anchors: list[str] = []

    def plain() -> str:
        return "Key " + words(random).replace("C#", "C").replace("1:2", "x")

    def scalar(indent: str) -> str:
        kind = random.choice("ppmsdDlfna")
        more = indent + "  "
        if kind == "p":
            return plain() + random.choice(["", "  # why", " "])
        if kind == "m":
            return f"\n{more}".join(plain() for _ in range(random.randint(2, 3)))
        if kind == "s":
            lines = [line.replace("'", "''") for line in (text(random, 2) + " x").split("\n")]
            return "'" + f"\n{more}".join(line or "" for line in lines) + "'"
        if kind == "d":
            return json.dumps(text(random), ensure_ascii=random.random() < 0.3)
        if kind == "D":
            return f'"{plain()} \\\n{more}  \\x41\\t{plain()}\\u00e9\n\n{more}{plain()}\\\n{more}."' + random.choice(
                ["", " #c"]
            )
        if kind in "lf":
            return block(more, "|" if kind == "l" else ">")
        if kind == "a" and anchors:
            return f"*{random.choice(anchors)}"
        return random.choice(["12", "true", "~", "", "2001-01-01", ":symbol", "a.b.c", "'no'", "[]", "{ }"])

    def block(more: str, style: str) -> str:
        lines = [line.strip() for line in f"{plain()}\n{text(random)}\nEnd".split("\n")]
        lines = [random.choice(["", "", "", "  "]) + line if line else "" for line in lines]
        lines = [lines[0].strip(), *lines[1:]]
        digit = ""
        if random.random() < 0.2:
            digit, lines[0] = "2", "  " + lines[0]
        head = style + random.choice([digit + random.choice("+-"), digit, random.choice("+-") + digit])
        tail = random.choice(["", "\n", "\n\n", f"\n{more}"])
        return (
            head
            + random.choice(["", "  # why"])
            + "\n"
            + "\n".join(more + line if line else "" for line in lines)
            + tail
        )

    def properties() -> str:
        if random.random() < 0.2:
            anchors.append(f"a{len(anchors)}")
            return f"&{anchors[-1]} "
        return random.choice(["", "", "", "", "!!str ", "!own "])

    def flow(depth: int) -> str:
        items = [
            flow(depth - 1)
            if depth and random.random() < 0.3
            else random.choice([plain().replace(",", ""), "'It''s'", '"Two\\n x"', "1"])
            for _ in range(random.randint(1, 3))
        ]
        gap = random.choice([", ", ",\n                    ", " , "])
        if random.random() < 0.5:
            return "[" + gap.join(items) + random.choice(["]", ", ]"])
        return "{" + gap.join(f"k{number}: {item}" for number, item in enumerate(items)) + "}"

    def node(indent: str, depth: int) -> str:
        lines = []
        is_list = depth < 3 and random.random() < 0.3
        for number in range(random.randint(1, 5)):
            lines += random.choices(["", f"{indent}# a comment: with 'it", None], [1, 1, 6])
            key = (
                "-"
                if is_list
                else random.choice([f"k{number}:", f'"k {number}":', f"? k{number}\n{indent}:", f"{number}:"])
            )
            kind = random.choice("sssfn") if depth else "s"
            value = scalar(indent) if kind == "s" else flow(2) if kind == "f" else ""
            own = "" if value.startswith("*") or kind == "n" else properties()
            inner = "\n" + node(indent + random.choice(["  ", "    "]), depth - 1) if kind == "n" else value
            lines.append(f"{indent}{key} {own}{inner}")
        return "\n".join(line for line in lines if line is not None)

    documents = []
    for _ in range(random.choice([1, 1, 1, 2])):
        anchors.clear()
        root = node("", 3)
        documents.append(
            "en:\n" + "\n".join("  " + line if line else "" for line in root.split("\n"))
            if random.random() < 0.3
            else root
        )
    head = random.choice(["", "---\n", "# file\n", "%YAML 1.1\n---\n"])
    return encoded(random, head + "\n---\n".join(documents) + random.choice(["", "\n", "\n...\n"]))


def po_file(random: Random) -> bytes:
    forms, rule = random.choice(
        [("1", "0"), ("2", "n != 1"), ("2", "(n > 1)"), ("3", "n==1 ? 0 : n%10>=2 && n%10<=4 ? 1 : 2")]
    )
    entries = [
        '# Someone <a@b.c>\nmsgid ""\nmsgstr ""\n"Project-Id-Version: x\\n"\n'
        '"X-Poedit-Language: French\\n"\n"Language: fr\\n"\n'
        '"MIME-Version: 1.0\\n"\n"Content-Type: text/plain; charset=UTF-8\\n"\n"Content-Transfer-Encoding: 8bit\\n"\n'
        f'"Plural-Forms: nplurals={forms}; plural={rule};\\n"\n'
    ]

    def string(keyword: str, content: str, prefix: str = "") -> str:
        lines = [json.dumps(line, ensure_ascii=False) for line in content.splitlines(keepends=True)]
        if random.random() < 0.3 and len(content) > 9:
            lines = [json.dumps(part, ensure_ascii=False) for part in (content[:5], content[5:])]
        if len(lines) != 1 or random.random() < 0.1:
            lines = ['""', *lines]
        return "".join(
            f"{prefix}{keyword if not number else ''}{' ' * (not number)}{line}\n" for number, line in enumerate(lines)
        )

    for number in range(random.randint(1, 6)):
        source = f"Z{number} {text(random)}".replace("%", "per cent ")
        target = random.choice(["", words(random)])
        entry = random.choice(["", "", "#  translator\n#. extracted\n#: a.c:1 b.c:2\n", "#\n"])
        entry += random.choice(["", "", "#, no-c-format\n", "#, fuzzy\n", "#, fuzzy, no-wrap\n", "#, python-format\n"])
        if "fuzzy" in entry and random.random() < 0.5:
            entry += string("msgid", "Old one", "#| ")
        entry += string("msgctxt", f"menu {number}") if random.random() < 0.2 else ""
        source, target = (
            each + "\n" * (source.endswith("\n") and each != "") for each in (source.rstrip("\n"), target)
        )
        entry += string("msgid", source)
        if random.random() < 0.3:
            entry += string("msgid_plural", f"{words(random)} s")
            entry += "".join(string(f"msgstr[{form}]", target) for form in range(int(forms)))
        else:
            entry += string("msgstr", target)
        if number and random.random() < 0.15:
            entry = "".join(f"#~ {line}\n" for line in entry.splitlines() if not line.startswith("#"))
        entries.append(entry)
    return encoded(random, "\n".join(entries), mark=False)
