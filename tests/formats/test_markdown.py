"""Markdown: what of it is translated, that all else stays, and that text is read as text."""

import re
from pathlib import Path
from random import Random

import pytest
from support.markup_checks import check_identity, check_shuffled, check_swapped, parsed, translated, upper

from hf_docmt.files import DataError
from hf_docmt.formats.document_file import DocumentFile, FormatOptions
from hf_docmt.formats.document_format import Tag
from hf_docmt.formats.markdown import MarkdownFormat, MdxFormat

PAGE = Path(__file__).with_name("page.md").read_text("utf-8")


def texts(text):
    return [segment.text for segment in parsed(MarkdownFormat, text.encode())[1]]


def written(text, *new):
    """The text with these texts in place of each piece of text of its first segment."""
    values = iter(new)
    changed = translated(
        MarkdownFormat, text.encode(), lambda pieces: [next(values, "") if isinstance(p, str) else p for p in pieces]
    )
    return changed.decode()


def test_what_is_translated():
    assert texts(PAGE) == [
        "The old door",
        "We met Jasmine\nat the Ramada. She had $a_b$ & moreIt was late, so snake_case and ref and short http://x.y/z.",
        "To the keys",
        "Quoted text\nhere and  end",
        "The red key",
        "Its title",
        "Name",
        "a | b",
        "Phil",
        "x bold",
        "One task",
        "Two\nthree",
        "Setext here",
        "A footnote text",
        "Word",
        " Text in HTML",
        "Logo here",
    ]


def test_tags():
    segments = parsed(MarkdownFormat, PAGE.encode())[1]
    assert segments[1].location == "line 6" and segments[2].location == "line 6, title"
    assert [piece for piece in segments[1].pieces if isinstance(piece, Tag)] == [
        Tag("open", "**"),
        Tag("close", "**"),
        Tag("alone", "`Ramada`", "Ramada"),
        Tag("open", "["),
        Tag("close", "](x.html )"),  # the title is a segment of its own
        Tag("alone", "$a_b$", "$a_b$"),
        Tag("alone", "\\\n", breaks=True),
        Tag("alone", "<kbd>late</kbd>", "late"),
        Tag("open", "<b>"),
        Tag("close", "</b>"),
        Tag("alone", "[^1]"),
        Tag("open", "["),
        Tag("close", "][r]"),
        Tag("open", "["),
        Tag("close", "][short]"),  # the label, since the text is another one when it is translated
        Tag("alone", "<http://x.y/z>", "http://x.y/z"),
    ]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_round_trips(end):
    data = PAGE.replace("\n", end).encode()
    assert check_identity(MarkdownFormat, data) == check_identity(MarkdownFormat, b"\xef\xbb\xbf" + data) == 27
    check_swapped(MarkdownFormat, data, exact=False)  # &amp; is written &, [short] as [sHORT][short]
    plain = PAGE.replace("&amp;", "&").replace("[short] ", "").replace("\n", end).encode()
    check_swapped(MarkdownFormat, plain)


@pytest.mark.parametrize(
    ("text", "new", "result"),
    [
        ("One", ["*a* and 2 * 3"], r"\*a\* and 2 * 3"),
        ("One", ["snake_case _x_ and a__b"], r"snake_case \_x\_ and a__b"),
        ("One", ["# x"], r"\# x"),
        ("One", ["12. x"], r"12\. x"),
        ("One", ["- x"], r"\- x"),
        ("> One", ["+ x"], r"> \+ x"),
        ("One", ["::: x"], r"\::: x"),
        ("One", ["/// x"], r"\/// x"),
        ("One", [": x"], r"\: x"),
        ("# One", ["C #"], r"# C \#"),
        ("One", [r"a\b \* `c`"], r"a\b \\\* \`c\`"),
        ("One", ["<b> &lt; a < b & c"], r"\<b> \&lt; a < b & c"),
        ("One\n\n[x]: y", ["[x] and [y](z)"], "\\[x\\] and \\[y\\](z)\n\n[x]: y"),
        ("One [1]", ["see [1]"], "see [1]"),
        ("|One|\n|-|", ["a | b"], "|a \\| b|\n|-|"),
        ("|1|\n|-|\n|\\|One|", ["x"], "|1|\n|-|\n|x|"),  # the backslash is the bar's
        ("|1|\n|-|\n|[\\|One](a)|", ["| x"], "|1|\n|-|\n|[\\| x](a)|"),
        ("One|1\n-|-|", ["- x"], "\\- x|1\n-|-|"),  # a row without a bar is a line of its own
        ("|1|\n|-|\nOne|", ["12. x"], "|1|\n|-|\n12\\. x|"),
        ("|1|\n|-|\nOne|", ["| x"], "|1|\n|-|\n\\\\| x|"),
        ("|1|\n|-|\nOne <!-- c --> a|", ["", "x"], "|1|\n|-|\nx<!-- c -->|"),
        ("a **One** b", ["x", " y", "z"], "x **y**z"),  # white space goes out of emphasis
        ("a **One** b", ["x", "„y“", "z"], "x<strong>„y“</strong>z"),  # emphasis that CommonMark would not read
        ("*One* and `x`", ["y", " "], "*y* `x`"),
        ("$a_1$ One", ["x"], "$a_1$ x"),  # beside a letter it would be no formula
        (":tada: One", ["x"], ":tada: x"),
        ("One{a}``b`c``, {d} `e`", ["„", "“ {d}"], r"„{a}``b`c``“ \{d}`e`"),
        ('[One](a "T")', ["x", 'say "y"'], r'[x](a "say \"y\"")'),
        ("[One][] b", ["x", " y"], "[x][One] y"),  # to what another file defines
        ("One[^1] b", ["x", "(y)"], "x[^1] (y)"),  # or it were a link
        ("One<!-- c --> b", ["", " y z"], "y z<!-- c -->"),  # at the start of a line it would be a block
        ("One<!-- c --> *b* d", ["", "", "y", " z"], "*y* z<!-- c -->"),
    ],
)
def test_text_is_read_as_text(text, new, result):
    assert written(text, *new) == result
    again = [piece for segment in parsed(MarkdownFormat, result.encode())[1] for piece in segment.pieces]
    assert re.sub(r"\s", "", "".join(p for p in again if isinstance(p, str))) == re.sub(r"\s", "", "".join(new))


def test_bar_in_a_title_in_a_cell():
    """A bar ends a cell, wherever it stands."""
    data = b'|[One](a "Its title")|\n|-|\n'
    new = translated(MarkdownFormat, data, lambda pieces: ["a | b"] if pieces == ["Its title"] else None)
    assert new == b'|[One](a "a \\| b")|\n|-|\n'
    assert texts(new.decode()) == ["One", "a | b"]


def test_a_role_goes_with_its_code():
    (segment,) = parsed(MarkdownFormat, b"One {doc}`a b` c")[1]
    assert segment.pieces == ["One ", Tag("alone", "{doc}`a b`", "a b"), " c"]


def test_emphasis_as_html_is_reported():
    reader, segments = parsed(MarkdownFormat, b"a **One** b\n\nc *d*")
    first, second = (list(segment.pieces) for segment in segments)
    assert reader.write([["x", first[1], "\u201ey\u201c", first[3], "z"], ["e ", *second[1:]]]).endswith(b"\n\ne *d*")
    assert reader.remarks == {("paragraph", "with emphasis as HTML"): 1}


def test_emphasis_without_text_at_the_start_of_a_line_is_not_a_fence():
    reader, (segment,) = parsed(MarkdownFormat, b"~~One~~ two")
    opened, _, closed, _ = segment.pieces
    assert reader.write([[opened, closed, opened, closed, "x"]]) == b"<del></del><del></del>x"
    assert reader.write([["x", opened, closed]]) == b"x<del></del>"


def test_a_comment_behind_a_blank_begins_no_block():
    reader, (segment,) = parsed(MarkdownFormat, b"One <!-- c --> *two*")
    comment, opened, closed = (piece for piece in segment.pieces if isinstance(piece, Tag))
    for blanks in ([" ", comment], [comment, " "]):
        assert reader.write([[*blanks, opened, "zwei", closed, " eins"]]) == b"*zwei* eins<!-- c -->"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("- a\n\n  > b\n  > c", ["a", "b\nc"]),
        ("> | a | b |\n> |---|---|\n> | | c |", ["a", "b", "c"]),
        ("1. | a |\n   |---|\n   | b |", ["a", "b"]),
        ("* a | b\n--- | ---\nc | d", ["* a", "b", "c", "d"]),  # no item: a row with no bar before it
        ("> 1. - | a | b |\n>      |---|---|\n>      c | > d", ["a", "b", "c", "> d"]),
        ("<b>a *b</b> c*", ["a b c"]),
        ('<b translate="no">a *b*</b> <i class="x notranslate">c</i>', []),
        ("<div>\n\nOne *two*\n\n</div>", ["One two"]),
        ("![a][x] ![x]\n\n[x]: y", ["a"]),  # the text of the other one is the name of what it refers to
        ("{{ a }} b {#c}\n\n12 :smile: `d`", ["{{ a }} b "]),
        ("$5 or $6 for US$", ["$5 or $6 for US$"]),
        ("<!-- a -->\n\n***\n", []),
        ("+++\na = 1\n+++\nb", ["b"]),
        ("---\n\na\n\n---", ["a"]),
        ("\tcode\n\na\tb", ["a\tb"]),
        ("", []),
    ],
)
def test_blocks(text, expected):
    assert texts(text) == expected
    check_identity(MarkdownFormat, text.encode())


CONTAINERS = Path(__file__).with_name("containers.md").read_text("utf-8")


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_containers_stay_around_their_texts(end):
    found = ["Of Pandoc\nand VitePress.", "A title", "Of Docusaurus.", "Before a block", "A title", "Of PyMdown."]
    found += ["A title", "An admonition,", "an item", "another", "Within it.", "Quoted.", "Details.", "A tab"]
    found += ["In a tab.", "!!! Attention, text.", "!!! Attention\nText."]
    assert texts(CONTAINERS) == found
    data = CONTAINERS.replace("\n", end).encode()
    check_identity(MarkdownFormat, data)
    check_swapped(MarkdownFormat, data)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("!!! note", ["!!! note"]),  # no body
        ("!!! note\n\nText", ["!!! note", "Text"]),
        ('=== "Tab"\n  text', ['=== "Tab"\ntext']),
        ("A\n===", ["A"]),
        ("::: {.a #b}\nText\n:::::", ["Text"]),
        ("::: Words, : and more", []),
        ("::: tip Some words\nText\n:::", ["Some words", "Text"]),
        ("::: tip 3 words\nText\n:::", ["3 words", "Text"]),
        (":::message alert\nText\n:::", ["Text"]),  # an argument
        ("/// html | div.my-class\nText\n///", ["Text"]),
        ("text\n///comment here", ["text\n///comment here"]),
        ('::: tip\n<img src="a.png" alt="A">\n:::\nText', ["A", "Text"]),  # a container ends what it is around
        ("::: tip\n<br>\nText\n:::\nMore", ["\nText", "More"]),
        ("<pre>\n:::\nText\n</pre>", []),
        ("> :::note[Some `words`]\n> Text\n> :::", ["Text"]),
        (":::: Words ::::", []),
        ('!!! info inline end "Some words"\n    Text', ["Some words", "Text"]),
        ('??? info "Some *words*"\n    Text', ["Text"]),
        (":: a\n// b", [":: a\n// b"]),
        ("- ::: x\n  Text\n  :::", ["Text"]),
        ("!!! note\n    Text\n\n\n\n", ["Text"]),
        ("[x]: y\n::: z\n[a]: b", []),
        ("```{note}\n:class: words\n:name: more\nText\n\n- *An* item\n```\nEnd", ["Text", "An item", "End"]),  # MyST
        (
            "````{admonition} Some words\nText\n```{tip}\nMore\n```\n```\ncode\n```\n````",
            ["Some words", "Text", "More"],
        ),
        ("- One\n  ```{warning}\n  Text\n  ```\n- Two", ["One", "Text", "Two"]),
        ("Text\n```{note}\n```\nEnd", ["Text", "End"]),
        ("```{code-block} python\nwords\n```\n```{note}\nno end", []),
        ("    ```{note}\n    words\n    ```", []),
    ],
)
def test_containers(text, expected):
    assert texts(text) == expected
    check_identity(MarkdownFormat, text.encode())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import A from 'a b';\nimport {\n  B,\n} from \"b\";\n\nText", ["Text"]),  # MDX
        ("export const A = () => (\n  <b>words</b>\n);\n\nText", ["Text"]),
        ("import of goods\n\nexport default values", ["import of goods"]),
        ("Text\nimport 'a'", ["Text\nimport 'a'"]),
        ("Text\n{/* some\n\nwords */}\nMore", ["Text", "More"]),
        ("{/* some */} words", ["words"]),  # text behind it
        ("{/* words\n\nText", ["{/* words", "Text"]),  # no end
        ("Text\n{% highlight ruby %}\nputs a\n\nb\n{% endhighlight %}\nMore", ["Text", "More"]),  # Liquid
        ("- Text\n  {% comment %}words{% endcomment %}", ["Text"]),
        ("{% raw %}\nWords\n{% endraw %}\nMore", ["Words", "More"]),
        ("{% raw %}words{% endcomment %}", ["{% raw %}words{% endcomment %}"]),
        ("\\begin{align*}\na &= b\n\nc\n\\end{align*}\n\nText", ["Text"]),  # TeX
        ("> \\begin{a}\n> b\n> \\end{a}\n\nText", ["Text"]),
        ("    {/* a */}\n\n{ b", ["{ b"]),
        ("- <div>Text</div>\n- [ ] <p>More\n  words</p>", ["Text", "More\nwords"]),
        ("> <div>Text</div>", []),  # marks begin its lines
        ("".join("  " * depth + "- a\n" for depth in range(12)), ["a"] * 12),
    ],
)
def test_code_without_a_fence_and_blocks_in_lists(text, expected):
    assert [one.strip() for one in texts(text)] == expected
    check_identity(MarkdownFormat, text.encode())


SITES = [  # what extensions and sites write, of which "one" and "two" are translated
    "## one { #a .b }\n\n![one](a.png){ width=3 }",
    "one\n{: .note .wide }\ntwo",
    '[one](m){:target="_blank"} two [*one*]{.caps} [`x`]{ #x }',
    "[one][r]{ .b } two\n\n[r]: javascript:a",
    ":   <!-- a --> <!-- b -->\n    one <!-- c -->",  # comments at the start and end of a block
    "<!-- a --> one *two*\n\none\n<!-- c --> two",
    "> [!note] one\n> two\n\n> [!tip]-\n> one",  # Obsidian
    "one [[Old lamps|two *one*]], [[Old#New]].\n\n[[two]](b)",
    "![[a b.png|100]] one ![[c]]",
    "|[[a\\|one]]|\n|-|\n|[[c]]|",
    "one %%ask%% two ^a-1\n\n%%\nAsk\n\nthem\n%%\n- one ^a",
    "==one *two*== 1 == 2 ^^one^^ ^[two] ++ctrl+c++",
    "{++one++} {--two--} {>>no<<} one",
    '{{< tabs >}}\n{{< tab "A" >}}{{% b %}}\none\n{{< /tab >}}',  # Hugo, Jekyll, MkDocs, VitePress
    '{{< figure\n  src="a"\n\n  b="c"\n>}}\none {{< x\ny >}}',
    '<div class="a" markdown>\none [*two*][a.B] one\n</div>',
    "{{< code-x go >}}\na b\n\nc\n{{< / code-x >}}\none",
    '[one]({{< ref "a b" >}}) [two]({% link c.md %}#d)',
    'one\n{% if a %}\ntwo\n[TOC]\n--8<-- "a"\n<<< @/b',
    "*[HTML]: one *two*\n*[A b]: one",  # lines with a text of their own, and tables that stay
    "| one,\n| two\n\n> | one",
    "+--+--+\n| a | b |\n+==+==+\n\nOld   New\n----  ---\na     b\n\none",
    '<Tabs a={[{b: "c"}]}\n  d="e">\none <B.c d={() => <e/>}>two</B.c>\n</Tabs>',  # JSX
]
MDX = [
    "# one {a.b} {/* c */}\n\n{a.map((b) => {\n\nc })}",
    '<Tabs>\n    <Tab label="one">\n        one <>*two*</>\n    </Tab>\n\n    - one\n</Tabs>',
    "import A from 'a';\n\none {a}<B {...c} /> < two",
]


@pytest.mark.parametrize(
    "format, text", [(MarkdownFormat, text) for text in SITES] + [(MdxFormat, text) for text in MDX]
)
def test_marks_of_sites_stay(format, text):
    new = translated(format, text.encode(), upper)
    assert new.decode() == re.sub(r"\b(one|two)\b", lambda match: match[0].upper(), text)
    check_identity(format, text.replace("\n", "\r\n").encode())
    check_swapped(format, text.encode())


def test_tables_that_stay_are_counted():
    reader, _ = parsed(MarkdownFormat, b"+--+\n|a |\n+--+\n\na  b\n-- --\n")
    assert reader.remarks == {("Pandoc table", "left alone"): 2}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[^1]: A,\n    B\n\n        code()\n\n    C\n\n    - D\n\nE\n\n    code()", ["A,\nB", "C", "D", "E"]),
        ("Term\n: A\n: B,\n  C\n\n      D\n\n        code()", ["Term", "A", "B,\nC", "D"]),
        ("- [^1]: A\n\n      B\n\n> Term\n> :   C\n>\n>     D", ["A", "B", "Term", "C", "D"]),
        ("[^1]: A\n\nB\n\n    code()", ["A", "B"]),
        ("10:30\n:smile: a\n:b c", ["10:30\n:smile: a\n:b c"]),
    ],
)
def test_footnotes_and_definitions_go_on(text, expected):
    assert texts(text) == expected
    check_identity(MarkdownFormat, text.encode())


def test_a_title_of_a_container_stays_one():
    reader, (title, text) = parsed(MarkdownFormat, b'!!! note "A title"\n    Text')
    new = reader.write([['One "x" [y]\n`z` <b> *a* b_c'], text.pieces]).decode()
    assert new == "!!! note \"One 'x' (y) 'z' (b) 'a' b c\"\n    Text"
    assert texts(new) == ["One 'x' (y) 'z' (b) 'a' b c", "Text"]


def test_containers_within_each_other_have_a_limit():
    page = "".join("\t" * depth + "!!! note\n" for depth in range(500)) + "\t" * 500 + "Text\n"
    assert len(texts(page)) <= 1
    check_identity(MarkdownFormat, page.encode())


def test_bad_input():
    for data, message in ((b"caf\xe9", "utf-8.*save it as UTF-8"), (b"PK\3\4\0", "not text")):
        with pytest.raises(DataError, match=message):
            parsed(MarkdownFormat, data)


def test_deep_quotations():
    assert len(texts("> " * 5000 + "a\n\nb")) < 3


def page(random: Random, depth: int = 2) -> str:
    blocks = []
    for _ in range(random.randint(1, 4)):
        kind = random.choice("pphltqcifdm" if depth else "ph")
        lines = "\n".join(inline(random) for _ in range(random.randint(1, 3)))
        if kind == "h":
            blocks.append("## " + inline(random))
        elif kind == "l":
            mark = random.choice(["- ", "1. ", "* "])
            blocks.append(mark + page(random, depth - 1).replace("\n", "\n" + " " * len(mark)))
        elif kind == "m":
            fence = "`" * (4 + depth)
            blocks.append(f"{fence}{{note}}\n{page(random, depth - 1)}\n{fence}")
        elif kind == "q":
            blocks.append("> " + page(random, depth - 1).replace("\n", "\n> "))
        elif kind == "t":
            blocks.append(f"| {inline(random)} | a\\|b |\n|---|---|\n| {inline(random)} | | ")
        else:
            blocks.append(
                {
                    "c": "```\nx *y*\n```",
                    "i": "<div>One <b>two</b></div>",
                    "f": "[^1]: Note\n\n    More",
                    "d": "A key\n: Its text",
                }.get(kind, lines)
            )
    return "\n\n".join(blocks)


INLINES = ["`x_y`", "<b>so</b>", "[^1]", "<http://a.b>", "&lt;", "$a_1$", "<br>", '![A key](a.png "Its title")', "\\*"]


def inline(random: Random, depth: int = 2) -> str:
    parts = []
    for _ in range(random.randint(1, 4)):
        kind = random.choice("wwwblo") if depth else "w"
        inner = inline(random, depth - 1) if kind in "bl" else ""
        words = ["One", "two words", "a_b", "3 * 4", "C#", "(so)", "E"]
        parts.append(
            {
                "w": random.choice(words),
                "b": f"**{inner}**" if "**" not in inner else f"_{inner}_",
                "l": f'[{inner}](x "My title")' if "[" not in inner else inner,
                "o": random.choice(INLINES),
            }[kind]
        )
    return "Z " + " ".join(parts)


@pytest.mark.parametrize("seed", range(300))
def test_random_pages(seed):
    data = page(Random(seed)).encode()
    check_identity(MarkdownFormat, data)
    check_swapped(MarkdownFormat, data, exact=b"&lt;" not in data and b"\\*" not in data)


@pytest.mark.parametrize("seed", range(100))
def test_random_pages_with_moved_tags(seed):
    """Emphasis may become HTML, so that it is read as such."""
    text = page(Random(seed)).replace("$a_1$", "`$a_1$`")  # that a letter may stand beside it
    check_shuffled(MarkdownFormat, text.encode(), seed)


@pytest.mark.parametrize("address", ["https://en.a.org/M_(x)", "http://a.org/?b=1&c=2", "a_b@c.org", "www.a.org/x*y"])
def test_addresses_have_no_escapes(address):
    document = DocumentFile(f"See {address} for a_ b.\n".encode(), "a", MarkdownFormat(), FormatOptions())
    data, written = document.translated({"a": {"translation": [f"Siehe {address} für c_ d."]}})
    assert data.decode() == f"Siehe {address} für c\\_ d.\n" and written.problems == []


@pytest.mark.parametrize(("mark", "read"), [("  ", 49), ("> ", 100)])
def test_lines_that_are_nested_too_deep_are_counted(mark, read):
    text = "".join(mark * level + ("text\n\n" if mark == "> " else "- text\n") for level in range(120))
    reader = MarkdownFormat()
    assert len(reader.parse(text.encode(), FormatOptions("en"))) == read
    assert reader.remarks == {("deeply nested line", "left alone"): 120 - read}
