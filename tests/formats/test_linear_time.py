"""Time to read a file of twice the size: at most 2.3 times as long, whatever the file repeats."""

import gc
import time
from functools import partial

from support.office_files import zipped

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
AROUND = {  # of a text: the format, what stands before and behind it, and how it is written there
    "markdown": ("", "", {}),
    "mdx": ("", "", {}),
    "html": ("<html><body><p>", "</p></body></html>", {}),
    "json": ('{"a": "', '"}', {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t"}),
    "xliff": ("<xliff version='1.2'><file source-language='en'><body>", "</body></file></xliff>", {"<": "&lt;"}),
    "ass": ("[Script Info]\n[Events]\nFormat: Start, End, Text\nDialogue: 0:0:1,0:0:2,", "\n", {"\n": "\\N"}),
}
BOOK = "<w:document><w:body><w:p>{}</w:p></w:body></w:document>"
BEGIN, SEPARATE, END = (f"<w:r><w:fldChar w:fldCharType='{kind}'/></w:r>" for kind in ("begin", "separate", "end"))
LINK = f"{BEGIN}<w:r><w:instrText>HYPERLINK a</w:instrText></w:r>{SEPARATE}<w:r><w:t>a</w:t></w:r>"
RUNS = {  # what is repeated, and what closes it behind
    "docx, looks": ("<w:r><w:rPr><w:b w:val='{n}'/></w:rPr><w:t>a</w:t></w:r>", ""),
    "docx, open fields": (BEGIN, ""),
    "docx, nested fields": (LINK, END),
    "docx, links": ("<w:hyperlink w:id='{n}'><w:r><w:t>a</w:t></w:r></w:hyperlink>", ""),
}


def parse(format: str, data: bytes) -> None:
    try:
        document_formats()[format]().parse(data, FormatOptions("en", "de"))
    except DataError:  # is broken, which is said soon
        pass


def text_in(format: str, unit: str, size: int):
    before, behind, written = AROUND[format]
    text = (unit * (size // len(unit))).translate(str.maketrans(written))
    return partial(parse, format, (before + "a " + text + behind).encode())


def word_document(unit: str, closing: str, size: int):
    count = size // len(unit)
    runs = "".join(unit.format(n=n) for n in range(count)) + closing * count
    return partial(parse, "docx", zipped({"word/document.xml": BOOK.format(runs)}))


def sniffers(unit: str, size: int):
    """All that look at the first bytes of a file."""
    sample, head = Sample({"path": "a.unknown"}), (unit * size)[:size]
    vars(sample).update(head=head.encode(), first_line=head.partition("\n")[0])
    kinds = [*readers().values(), *document_formats().values()]
    return lambda: [kind().recognize(sample) for kind in kinds]


CASES = {f"{format}: {unit!r}": partial(text_in, format, unit) for format in AROUND for unit in TEXTS}
CASES |= {f"{format}: {unit!r}": partial(text_in, format, unit) for format in ("markdown", "mdx") for unit in BLOCKS}
CASES |= {name: partial(word_document, *parts) for name, parts in RUNS.items()}
CASES |= {f"sniffers: {unit!r}": partial(sniffers, unit) for unit in (*TEXTS, "#\n", "<?xml >", "<!DOCTYPE ", "1\n")}
CASES |= {
    f"{name}: {unit!r}": lambda size, call=call, unit=unit: partial(call, unit * (size // len(unit)))
    for name, call in (("sentences", split_text), ("opaque runs", Finder()))
    for unit in TEXTS
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
            if taken < ENOUGH / 2:
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
