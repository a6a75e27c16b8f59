"""XLIFF and OpenDocument with inline elements in all the places in which programs put them, from a seed."""

from random import Random

from support.generated_strings import encoded, text, words
from support.office_files import spaces, zipped


def escaped(random: Random, content: str) -> str:
    content = content.replace("&", "&amp;").replace("<", "&lt;")
    return random.choice(
        [content, content, content.replace("e", "&#101;", 1), f"<![CDATA[{words(random)} & <b>]]>{content}"]
    )


def inline_1(random: Random, depth: int = 2) -> str:
    def piece() -> str:
        number = random.randint(1, 999_999)
        inner = inline_1(random, depth - 1) if depth else escaped(random, words(random))
        return random.choice(
            [
                *[escaped(random, text(random))] * 5,
                f'<g id="{number}" ctype="x-a">{inner}</g>',
                f'<x id="{number}"/>',
                f'<x id="{number}" ctype="lb"/>',
                f'<bx id="{number}"/>{inner}<ex id="{number}"/>',
                f'<bpt id="{number}">&lt;b></bpt>{inner}<ept id="{number}">&lt;/b></ept>',
                f"<ph id='{number}'>{'%s' * (depth == 2)}</ph>",
                f'<ph id="{number}">&lt;img alt="<sub>Text</sub>"/></ph>',
                f'<it id="{number}" pos="open">&lt;i></it>',
                f'<mrk mtype="protected">{words(random) if depth == 2 else ""}</mrk>',
                f'<mrk mtype="term" mid="{number}">{inner}</mrk>',
                f'<g id="{number}"/>',
                "<!-- c -->",
                f'<bx id="{number}"/>a<g id="{number + 1}">b<ex id="{number}"/>c</g>',
            ]
        )

    return random.choice(["", " ", "\n  "]).join(piece() for _ in range(random.randint(1, 4)))


def inline_2(random: Random, depth: int = 2) -> str:
    def piece() -> str:
        number = random.randint(1, 999_999)
        inner = inline_2(random, depth - 1) if depth else escaped(random, words(random))
        return random.choice(
            [
                *[escaped(random, text(random))] * 5,
                f'<pc id="{number}" type="fmt">{inner}</pc>',
                f'<ph id="{number}" equiv="{"%s" * (depth == 2)}"/>',
                f'<ph id="{number}" type="fmt" subType="xlf:lb"/>',
                f'<sc id="{number}"/>{inner}<ec startRef="{number}"/>',
                f'<sc id="{number}"/>a<pc id="{number + 1}">b<ec startRef="{number}"/>c</pc>',
                f'<mrk id="m{number}" type="term">{inner}</mrk>',
                f'<mrk id="m{number}" translate="no">{words(random) if depth == 2 else ""}</mrk>',
                f'<sm id="s{number}"/>{inner}<em startRef="s{number}"/>',
                '<cp hex="001F"/>',
                f'<ec id="{number}" isolated="yes"/>',
            ]
        )

    return random.choice(["", " "]).join(piece() for _ in range(random.randint(1, 4)))


def xliff_file(random: Random) -> bytes:
    return (xliff_1 if random.random() < 0.6 else xliff_2)(random)


def xliff_1(random: Random) -> bytes:
    p = random.choice(["", "", "x:"])

    def unit(number: int) -> str:
        attributes = random.choice(["", ' approved="yes"', " translate='no'", ' xml:space="preserve"'])
        source = f"<source>{inline_1(random)}</source>"
        if random.random() < 0.2:
            parts = [f'<mrk mtype="seg" mid="{each}">{inline_1(random, 1)}</mrk>' for each in (1, 2)]
            source += "<seg-source>" + " ".join(parts) + "</seg-source>"
        target = random.choice(
            ["", "", "<target/>", '<target state="new">Alt</target>', "<target xml:lang='fr'>A &gt; b</target>"]
        )
        rest = random.choice(
            ["", "<note>Not this</note>", "<alt-trans><source>No</source><target>n</target></alt-trans>"]
        )
        gap = random.choice(["", "\n"])
        return f"<trans-unit id='{number}'{attributes}>\n   {source}{gap}{target}{rest}</trans-unit>"

    units = "\n".join(unit(number) for number in range(random.randint(1, 4)))
    units = random.choice([units, f'<group id="g">{units}</group>', f'<group translate="no">{units}</group>'])
    head = '<file source-language="en" original="a" datatype="x"><header><note>n</note></header>'
    space = 'xmlns="urn:oasis:names:tc:xliff:document:1.2"'
    file = f'<xliff version="1.2" {space}>{head}<body>{units}</body></file></xliff>'
    if p:  # the elements of the format have a prefix
        file = file.replace("</", "</\0").replace("<", "<x:").replace("<x:/\0", "</x:").replace("<x:!", "<!")
        file = file.replace(" xmlns=", " xmlns:x=")
    return _xml(random, file)


def xliff_2(random: Random) -> bytes:
    def segment() -> str:
        target = random.choice(["", "", "<target>Alt</target>", "<target/>"])
        state = random.choice(["", ' state="initial"', ' state="final"'])
        return f"<segment{state}>\n <source>{inline_2(random)}</source>{target}</segment>"

    def unit(number: int) -> str:
        inner = random.choice(["", "<ignorable><source> </source></ignorable>"]).join(
            segment() for _ in range(random.randint(1, 3))
        )
        data = random.choice(
            ["", '<notes><note>Not this</note></notes><originalData><data id="d">b</data></originalData>']
        )
        translate = random.choice(["", "", ' translate="no"'])
        return f'<unit id="{number}"{translate}>{data}{inner}</unit>'

    units = "".join(unit(number) for number in range(random.randint(1, 3)))
    units = random.choice([units, f'<group id="g">{units}</group>'])
    head = '<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.1" srcLang="en">'
    return _xml(random, f'{head}<file id="f">{units}</file></xliff>')


def _xml(random: Random, file: str) -> bytes:
    head = random.choice(["", '<?xml version="1.0" encoding="UTF-8"?>\n', "<!-- by x -->\n"])
    return encoded(random, head + file + random.choice(["", "\n"]))


SPACES = spaces("office text draw svg table style fo officeooo presentation xlink")
LOOKS = (
    '<style:style style:name="T1" style:family="text"><style:text-properties officeooo:rsid="1"/></style:style>'
    '<style:style style:name="T2" style:family="text"><style:text-properties fo:font-weight="bold"/></style:style>'
)
STYLES = (
    f'<office:document-styles {SPACES}><style:default-style style:family="paragraph"><style:text-properties '
    'fo:language="en" fo:country="US" style:language-asian="zh" style:country-asian="CN"/></style:default-style>'
    '<style:style style:name="Foreign"><style:text-properties fo:language="fr" fo:country="FR"/></style:style>'
    "<style:header><text:p>At the top</text:p></style:header></office:document-styles>"
)
BODY = "<text:note-body><text:p>Below</text:p></text:note-body>"
NOTE = f"<text:note><text:note-citation>1</text:note-citation>{BODY}</text:note>"
RUBY = "<text:ruby><text:ruby-base>b</text:ruby-base><text:ruby-text>c</text:ruby-text></text:ruby>"
FRAME = "<draw:frame><draw:text-box><text:p>In a box</text:p></draw:text-box><svg:desc>A key</svg:desc></draw:frame>"
COMMENT = "<office:annotation><text:p>Remark</text:p></office:annotation>"
DELETED = "<text:tracked-changes><text:deletion><text:p>Old</text:p></text:deletion></text:tracked-changes>"
TYPES = ["", ' office:value-type="float"', ' office:value-type="string"']
PAGE = '<text:page-number text:select-page="current">3</text:page-number>'
ATOMS = """<text:s text:c="3"/>|<text:s/>|<text:tab/>|<text:line-break/>|<text:bookmark text:name="a"/>|<!-- c -->
<text:bookmark-start text:name="b"/>|<text:bookmark-end text:name="b"/>|<text:change-start text:change-id="c"/>
<text:soft-page-break/>|<text:span/>|<text:alphabetical-index-mark text:string-value="key"/>|<text:s/>
<text:meta>Meta text</text:meta>|<![CDATA[raw & <b>]]>|<text:reference-mark-start text:name="r"/>"""
ATOMS_OF_TEXT = ATOMS.replace("\n", "|").split("|")


def odt_content(body: str, styles: str = STYLES, **members: str) -> bytes:
    """A file with this body."""
    content = f"<office:document-content {SPACES}>{LOOKS}<office:body>{body}</office:body></office:document-content>"
    first = {"mimetype": "application/vnd.oasis.opendocument.text", "content.xml": content, "styles.xml": styles}
    return zipped(first | members)


def odt_body(random: Random) -> str:
    def line(depth: int = 0) -> str:
        parts = []
        for _ in range(random.randint(1, 4)):
            inner = line(depth + 1) if depth < 3 else "x"
            style = random.randint(1, 2)
            made = [
                f'<text:span text:style-name="T{style}">{inner}</text:span>',
                f'<text:a xlink:href="x">{inner}</text:a>',
            ]
            parts.append(
                random.choice(
                    [words(random).replace("&", "&amp;"), "f&amp;r &lt;b&gt;", random.choice(ATOMS_OF_TEXT), *made]
                )
            )
            parts.append(
                random.choice([NOTE, FRAME, COMMENT, RUBY, PAGE])
                if depth == 0 and random.random() < 0.2
                else random.choice(["", " "])
            )
        return "".join(parts)

    def block(depth: int = 2) -> str:
        kind = random.choice("pphltsx" if depth else "ph")
        if kind in "ph":
            return f"<text:{kind}>{line()}</text:{kind}>"
        inner = "".join(block(depth - 1) for _ in range(random.randint(1, 2)))
        cells = "".join(f"<table:table-cell{random.choice(TYPES)}>{inner}</table:table-cell>" for _ in range(2))
        return {
            "l": f"<text:list><text:list-header>{inner}</text:list-header></text:list>",
            "t": f"<table:table><table:table-row>{cells}</table:table-row></table:table>",
            "s": f'<text:section text:name="s">{inner}</text:section>',
            "x": f"<text:table-of-content><text:index-body>{inner}</text:index-body></text:table-of-content>",
        }[kind]

    return (
        "<office:text>"
        + random.choice(["", DELETED])
        + "".join(block() for _ in range(random.randint(1, 5)))
        + "</office:text>"
    )


def odt_file(random: Random) -> bytes:
    return odt_content(odt_body(random))
