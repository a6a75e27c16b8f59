"""Time to read a file of twice the size: at most 2.3 times as long, whatever the file repeats."""

import gc
import time
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from support.office_files import open_document, presentation, workbook, zipped

from hf_docmt.data.readers.reader import Sample, readers
from hf_docmt.files import DataError
from hf_docmt.formats import document_formats
from hf_docmt.formats.document_format import FormatOptions
from hf_docmt.modeling.opaque_runs import Finder
from hf_docmt.modeling.text_splitting import split_text

ENOUGH, LARGEST, MOST = 0.01, 1 << 16, 2.3  # seconds to measure, characters, times as long
# what is repeated: what opens and does not close, what closes, marks, blanks, addresses
TEXTS = "[a ¦[¦[code]a¦{a ¦{{ a ¦(¦<a ¦<b>a¦<b>a</b> ¦<!-- a -->\n¦<!-- a ¦*a ¦_a ¦`a ¦$a ¦a. ¦.¦ ¦\n¦\t".split("¦")
TEXTS += "http://¦http://a.b/c ¦a@b.¦a_¦:a:¦%a ¦''a ¦\"a ¦|a ¦a¦\\".split("¦")
BLOCKS = "{% raw %}\n¦{% comment %}\n¦{{< code >}}\n¦\\begin{a}\n¦{/*\n¦- a\n¦> a\n¦[^a]: b\n¦a\n: b\n¦<div>\n".split(
    "¦"
)
BLOCKS += "<div>a\n\n¦| a | b |\n¦```\n¦::: a\n¦!!! a\n    b\n¦import a\n¦![a](".split("¦")
XML, JSON = {"<": "&lt;", "&": "&amp;"}, {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t"}
UNIT, CELL = "<tuv xml:lang='en'><seg>", '<c r="A{n}" t="inlineStr">'
TIMES, TALK = "1\n00:00:01,000 --> 00:00:02,000\n", '<srcset setid="a" srclang="en"><doc docid="a">\n'
AROUND = {  # of a text: the format, what stands before and behind it, and how it is written there
    "markdown": ("", "", {}),
    "mdx": ("", "", {}),
    "html": ("<html><body><p>", "</p></body></html>", {}),
    "json": ('{"a": "', '"}', JSON),
    "yaml": ('a: "', '"\n', JSON),
    "po": ('msgid "', '"\nmsgstr ""\n', JSON),
    "csv": ('a\n"', '"\n', {'"': '""'}),
    "xliff": (
        "<xliff version='1.2'><file source-language='en'><body><trans-unit id='1'><source>",
        "</source></trans-unit></body></file></xliff>",
        XML,
    ),
    "tmx": (f"<tmx version='1.4'><body><tu>{UNIT}", "</seg></tuv></tu></body></tmx>", XML),
    "ass": ("[Script Info]\n[Events]\nFormat: Start, End, Text\nDialogue: 0:0:1,0:0:2,", "\n", {"\n": "\\N"}),
    "odt": ("<text:p>", "</text:p>", XML),
    "pptx": ("<a:p><a:r><a:t>", "</a:t></a:r></a:p>", XML),
    "xlsx": (f"{CELL}<is><t>", "</t></is></c>", XML),
    "srt": (TIMES, "", {}),
    "tsv": ("d\t", "\n", {}),
    "sgm": (f'{TALK}<seg id="1">', "</seg></doc></srcset>\n", {}),
    "docx": ("<w:document><w:body><w:p><w:r><w:t>", "</w:t></w:r></w:p></w:body></w:document>", XML),
    "txt": ("", "", {}),
    "lines": ("", "", {}),
    "text": ("", "", {}),
    "voita": ("", "", {"\n": " _eos a"}),
    "dtag": ("<d>\n", "", {}),
    "blank": ("", "", {"\n": "\n\na"}),
    "commentary": ("a\t", "\n", {"\t": " ", "\n": "\na\t"}),
    "paradocs": ("d\t", "\t1" * 17 + "\n", {"\t": " ", "\n": " "}),
    "iwslt": ('<doc docid="a">\n', "\n</doc>\n", {}),
    "wmt": ('<dataset><doc id="a"><src lang="en"><p><seg id="1">', "</seg></p></src></doc></dataset>", XML),
    "jsonl": ('{"doc_id": "a", "translation": [{"en": "', '"}]}\n', JSON),
    "wmt_jsonl": ('{"doc_id": "a", "src_lang": "en", "tgt_lang": "de_DE", "src_text": "', '", "refs": {}}\n', JSON),
    "chat": ('{"a": [{"speaker": "agent", "target": "b", "source": "', '"}]}', JSON),
}
PARTS = {  # of formats: what stands before and behind units that are repeated
    "yaml": ("", "", ("- a b\n", "a{n}: a b\n", "a: |\n\n", "--- a\n", "[a, ", "&a ")),
    "po": ("", "", ('msgid "a b{n}"\nmsgstr ""\n\n', "# a\n", "#, a\n", "#~ a\n")),
    "csv": ("a\n", "", ("a b,c\n", '"', '"a"\n')),
    "tmx": (
        "<tmx version='1.4'><body><tu>",
        "</tu></body></tmx>",
        (f"</tu><tu>{UNIT}a b</seg></tuv>", "<note>a</note>"),
    ),
    "odt": (
        "<text:p>",
        "</text:p>",
        ("<text:span text:style-name='T{n}'>a</text:span>", "<text:note><text:p>b</text:p></text:note>"),
    ),
    "pptx": ("<a:p>", "</a:p>", ("<a:r><a:rPr sz='{n}'/><a:t>a</a:t></a:r>", "<a:r><a:t>a</a:t></a:r><a:br/>")),
    "xlsx": ("", "", (f"{CELL}<is><t>a b{{n}}</t></is></c>", CELL, "<c a='b' ", "<f ")),
    "srt": ("", "", (f"{TIMES}a b\n\n", f"{TIMES}- a\n- b\n", "{{\\i1}} ")),
    "tsv": ("", "", ("d\ta\n", "d{n}\ta\n", "a\t")),
    "sgm": (
        TALK,
        "</doc></srcset>\n",
        ("<p>\n", '<seg id="{n}">a b</seg>\n', "<!-- a ", "<!-- \n", "<a b='c' ", "<seg id='2\n", "<seg id='a' x y\n"),
    ),
    "iwslt": ("", "", ("<doc a", "<seg id= ")),
    "wmt": ('<dataset><doc id="a" x="', '"></doc></dataset>', ("x y z\n", " ")),
    "jsonl": ('{"doc_id": "a", ', '"a": 2}\n', ('"k{n}": 1, ',)),
}
ARCHIVES = {"odt": open_document, "pptx": presentation, "xlsx": workbook}
ARCHIVES["docx"] = lambda text: zipped({"word/document.xml": text})
MEMORIES = ("tmx", "po", "xliff")  # are readers and formats
AROUND |= {f"{name} reader": AROUND[name] for name in MEMORIES}
READERS = {"srt": "subtitles"} | {f"{name} reader": name for name in MEMORIES}  # others: by the format's name
FOLDER = TemporaryDirectory()
BOOK = "<w:document><w:body><w:p>{}</w:p></w:body></w:document>"
BEGIN, SEPARATE, END = (f"<w:r><w:fldChar w:fldCharType='{kind}'/></w:r>" for kind in ("begin", "separate", "end"))
LINK = f"{BEGIN}<w:r><w:instrText>HYPERLINK a</w:instrText></w:r>{SEPARATE}<w:r><w:t>a</w:t></w:r>"
RUNS = {  # what is repeated, and what closes it behind
    "docx, looks": ("<w:r><w:rPr><w:b w:val='{n}'/></w:rPr><w:t>a</w:t></w:r>", ""),
    "docx, open fields": (BEGIN, ""),
    "docx, nested fields": (LINK, END),
    "docx, links": ("<w:hyperlink w:id='{n}'><w:r><w:t>a</w:t></w:r></w:hyperlink>", ""),
}


def parse(format: str, text: str) -> None:
    try:
        if format not in document_formats():
            path = Path(FOLDER.name, f"a.{format}")
            path.write_text(text)
            list(readers()[READERS.get(format, format)]().read(["en"], path))
        else:
            options = FormatOptions("en", "de", columns=("a",) if format == "csv" else None)
            data = ARCHIVES.get(format, str.encode)(text)
            document_formats()[format]().parse(data, options)
    except DataError:  # is broken, which is said soon
        pass


def text_in(format: str, unit: str, size: int):
    before, behind, written = AROUND[format]
    text = (unit * (size // len(unit))).translate(str.maketrans(written))
    return partial(parse, format, before + "a " + text + behind)


def parts_in(format: str, unit: str, size: int):
    before, behind, _ = PARTS[format]
    text = "".join(unit.format(n=n) for n in range(size // len(unit)))
    return partial(parse, format, before + text + behind)


def word_document(unit: str, closing: str, size: int):
    count = size // len(unit)
    runs = "".join(unit.format(n=n) for n in range(count)) + closing * count
    return partial(parse, "docx", BOOK.format(runs))


def sniffers(unit: str, size: int):
    """All that look at the first bytes of a file."""
    sample, head = Sample({"path": "a.unknown"}), (unit * size)[:size]
    vars(sample).update(head=head.encode(), first_line=head.partition("\n")[0])
    kinds = [*readers().values(), *document_formats().values()]
    return lambda: [kind().recognize(sample) for kind in kinds]


CASES = {f"{format}: {unit!r}": partial(text_in, format, unit) for format in AROUND for unit in TEXTS}
CASES |= {f"{format}: {unit!r}": partial(text_in, format, unit) for format in ("markdown", "mdx") for unit in BLOCKS}
CASES |= {
    f"{format}: {unit!r}": partial(parts_in, format, unit) for format, parts in PARTS.items() for unit in parts[2]
}
CASES |= {name: partial(word_document, *parts) for name, parts in RUNS.items()}
CASES |= {f"sniffers: {unit!r}": partial(sniffers, unit) for unit in (*TEXTS, "#\n", "<?xml >", "<!DOCTYPE ", "1\n")}
CASES |= {
    f"{name}: {unit!r}": lambda size, call=call, unit=unit: partial(call, unit * (size // len(unit)))
    for name, call in (("sentences", split_text), ("opaque runs", Finder()))
    for unit in (*TEXTS, *'` ¦\\(¦@a¦a-¦/a¦((¦“¦。¦. ((((¦.".¦"""". '.split("¦"))
}


def seconds(call) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def test_twice_the_size_takes_twice_as_long():
    gc.collect()
    gc.disable()
    slow = {}
    try:
        for name, made in CASES.items():
            size = 1 << 13  # beyond what patterns reach
            while (taken := seconds(made(size))) < ENOUGH and size < LARGEST:
                size *= 4 if taken < ENOUGH / 8 else 2
            if taken < ENOUGH:  # memory that the system gives counts more
                continue
            twice, tries = seconds(made(2 * size)), 1
            while twice > MOST * taken + ENOUGH and tries < 8:
                taken, twice = min(taken, seconds(made(size))), min(twice, seconds(made(2 * size)))
                tries += 1
            if twice > MOST * taken + ENOUGH:
                slow[name] = (size, round(taken, 3), round(twice / taken, 2))
    finally:
        gc.enable()
    assert slow == {}
