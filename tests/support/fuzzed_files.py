"""Valid small files of every format, and files that are damaged from them at random, with a seed."""

import gzip
import io
import json
import random
import re

import pyarrow as pa
import pyarrow.parquet as pq

from support.reader_checks import CHAT, DOCHPLT

PAIRS = [("One. Two.", "Eins. Zwei."), ("", ""), ("Mr. A came – 3 < 4 & so on.", "Ärger, ja? 你好。"), ("x", "y")]
ROWS = [{"doc_id": f"d{n}", "translation": [{"en": a, "de": b} for a, b in PAIRS]} for n in range(3)]
LISTS = [{"id": n, "source": [a for a, _ in PAIRS], "target": [b for _, b in PAIRS], "more": [n]} for n in range(3)]
TEXTS = [{"text": "One. Two.\n\nThree.", "url": "x"}, {"id": "a", "text": ""}, {"doc_id": "b", "text": "你好。世界。"}]
WMT = {
    "doc_id": "a",
    "src_lang": "en",
    "tgt_lang": "de_DE",
    "src_text": "One.\n\nTwo.",
    "refs": {"refA": {"ref": "E\n\nZ"}},
}
SGM = (
    '<{0} setid="x" srclang="en"><doc docid="d"><p>\n<seg id="1">a &amp; b</seg>\n<seg id="2">c</seg></p></doc></{0}>\n'
)
XML = '<?xml version="1.0"?>\n' + SGM
TALKS = "<doc docid='1'>\n<url>http</url>\n<talkid>7</talkid>\n<seg id=\"1\"> One. </seg>\nTwo.\n</doc>\n"
WMT_XML = (
    '<?xml version="1.0"?><dataset id="x"><doc id="a" origlang="en"><src lang="en"><p><seg id="1">One.</seg></p></src>'
    '<ref lang="de" translator="A"><p><seg id="1">Eins.</seg></p></ref></doc></dataset>'
)
SRT = (
    "1\n00:00:01,000 --> 00:00:02,000\n<i>I know that</i>\n\n2\n00:00:02,500 --> 00:00:03,000\n- You?\n- {\\an8}Me.\n\n"
)
VTT = "WEBVTT - x\n\nname\n00:01.000 --> 00:02.000 align:start\n<v Mary>You &amp; me\n\nNOTE x\n\n" + SRT.replace(
    ",", "."
)
PARADOCS = "".join(
    "\t".join([f"S{n}", "T", ".9", ".8", "c", *"1111", *[str(2 * n)] * 4, "0.9", "0.9", "3", "s", "t"]) + "\n"
    for n in range(3)
)
MOSES_IDS = "en/1/2.xml.gz\tde/1/3.xml.gz\t1\t1\n" * 2 + "en/2/2.xml.gz\tde/2/3.xml.gz\t1\t1\n"


def json_lines(rows):
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def parquet_bytes(rows):
    file = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), file)
    return file.getvalue()


# format -> files by argument, as (ending of the name, content); a format may be there several times
TMX = """<?xml version="1.0"?><tmx version="1.4"><body>
<tu><tuv xml:lang="en"><seg>A <ph>x</ph></seg></tuv><tuv xml:lang="de"><seg>Ein</seg></tuv></tu></body></tmx>"""
XLIFF = """<xliff version="1.2"><file source-language="en" target-language="de"><body><trans-unit id="1">
<source>One <x id="1"/></source><target>Eins</target></trans-unit></body></file></xliff>"""
WMT_TERMS = {
    "source_lang": "en",
    "target_lang": "de",
    "paragraph_delimiter": "\n\n",
    "documents": [
        {
            "document_id": "a",
            "paragraphs": [
                {
                    "source": "The flap.",
                    "reference": "Die Klappe.",
                    "segments": [{"terms": [{"source": "flap", "target": "Klappe", "targets": ["Klappe"]}]}],
                }
            ],
        }
    ],
}
VALID = {
    "jsonl": ("jsonl", {"path": (".jsonl", json_lines(ROWS))}),
    "jsonl lists": ("jsonl", {"path": (".jsonl", json_lines(LISTS))}),
    "jsonl text": ("jsonl", {"path": (".jsonl", json_lines(TEXTS))}),
    "jsonl DocHPLT": ("jsonl", {"path": (".jsonl", json_lines([DOCHPLT]))}),
    "wmt_jsonl": ("wmt_jsonl", {"path": (".jsonl", json_lines([WMT]))}),
    "wmt_terminology": ("wmt_terminology", {"path": (".json", json.dumps(WMT_TERMS))}),
    "parquet": ("parquet", {"path": (".parquet", parquet_bytes(ROWS))}),
    "tsv": ("tsv", {"path": (".tsv", "doc_id\tsource\ttarget\na\tOne.\tEins.\na\t\t\nb\tTwo.\tZwei.\n")}),
    "commentary": ("commentary", {"path": (".tsv", "One.\tEins.\nTwo.\tZwei.\n\nThree.\tDrei.\n")}),
    "paradocs": ("paradocs", {"path": (".tsv", PARADOCS)}),
    "wmt": ("wmt", {"path": (".xml", WMT_XML)}),
    "tmx": ("tmx", {"path": (".tmx", TMX)}),
    "xliff": ("xliff", {"path": (".xlf", XLIFF)}),
    "po": (
        "po",
        {"path": (".po", 'msgid "One."\nmsgstr "Eins."\n\nmsgid "%d"\nmsgid_plural "%d a"\nmsgstr[0] "%d"\n')},
    ),
    "chat": ("chat", {"path": (".json", json.dumps(CHAT))}),
    "lines": ("lines", {"path": (".txt", "One.\n\nTwo.\n")}),
    "text": ("text", {"path": (".txt", "One. Two\nthree.\n\nFour.\n")}),
    "subtitles srt": ("subtitles", {"path": (".srt", SRT)}),
    "subtitles vtt": ("subtitles", {"path": (".vtt", VTT)}),
    "dtag": ("dtag", {"source": (".en", "<d>\nOne.\n\n<d>\nTwo.\n"), "target": (".de", "<d>\nEins.\n\n<d>\nZwei.\n")}),
    "blank": ("blank", {"source": (".en", "One.\nTwo.\n\nThree.\n"), "target": (".de", "Eins.\nZwei.\n\nDrei.\n")}),
    "voita": ("voita", {"source": (".en", "One. _eos Two.\nA _eos B\n"), "target": (".de", "E _eos Z\nA _eos B\n")}),
    "sgm": ("sgm", {"source": (".sgm", SGM.format("srcset")), "target": (".sgm", SGM.format("refset"))}),
    "iwslt xml": ("iwslt", {"source": (".xml", XML.format("srcset")), "target": (".xml", XML.format("refset"))}),
    "iwslt tags": ("iwslt", {"source": (".en", TALKS), "target": (".de", TALKS)}),
    "dialogue": (
        "dialogue",
        {"source": (".en", "A\nB\n"), "target": (".de", "A\nB\n"), "index": (".txt", "[0]\n[1]\n")},
    ),
    "moses": ("moses", {"source": (".en", "A\nB\nC\n"), "target": (".de", "A\nB\nC\n"), "ids": (".ids", MOSES_IDS)}),
}

JSON_VALUES = [*'null 3 -1e999 NaN [] {} "" true "\\ud800"'.split(), "1" * 5000, "[" * 50_000, '{"a":' * 9000]
MARKS = (
    "\ufeff \x00 \t \x85 \u2028 < </ <!-- ]]> </doc> <doc> & &amp; &#xD800; \" ' { } [ \\ \\ud800 --> <d> _eos None é"
)
LINE_ENDS = ["\r", "\r\n", "\n\n", "\n\n00:00:01,000 --> 00:00:02,000\n"]
LONG = [" " * 20_000, "a" * 20_000, "9" * 5000, "&#99999999999;", "99999999999:00:00,000"]
TAGS = ["<style>", "<![CDATA[", "<seg id='1'>", "<!DOCTYPE x [<!ENTITY a 'b'>]>", "{\\p1}", "- ", "\U0001f600"]
PIECES = [*MARKS.split(" "), *LINE_ENDS, *LONG, *TAGS]


def damaged(content: str | bytes, draw: random.Random) -> bytes:
    """The content with one to three mutations."""
    data = content.encode() if isinstance(content, str) else content
    for _ in range(draw.randint(1, 3)):
        data = draw.choice(MUTATIONS)(data, draw)
    return data


def _flipped(data: bytes, draw: random.Random) -> bytes:
    content = bytearray(data)
    for _ in range(draw.randint(1, 5) if content else 0):
        content[draw.randrange(len(content))] = draw.randrange(256)
    return bytes(content)


def _cut(data: bytes, draw: random.Random) -> bytes:
    return data[: draw.randint(0, len(data))]


def _without_a_piece(data: bytes, draw: random.Random) -> bytes:
    begin = draw.randint(0, len(data))
    return data[:begin] + data[begin + draw.randint(1, 40) :]


def _with_a_piece(data: bytes, draw: random.Random) -> bytes:
    place = draw.randint(0, len(data))
    return data[:place] + draw.choice(PIECES).encode("utf-8", "surrogatepass") + data[place:]


def _lines_changed(data: bytes, draw: random.Random) -> bytes:
    lines = data.splitlines(keepends=True)
    if lines:
        number = draw.randrange(len(lines))
        change = draw.choice(["double", "drop", "swap"])
        if change == "double":
            lines.insert(number, lines[number])
        elif change == "drop":
            del lines[number]
        else:
            draw.shuffle(lines)
    return b"".join(lines)


def _json_value(data: bytes, draw: random.Random) -> bytes:
    """One value behind a colon or comma replaced by one of another type."""
    places = [match.start() for match in re.finditer(b"[:,]", data)]
    if not places:
        return data
    begin = draw.choice(places) + 1
    return data[:begin] + draw.choice(JSON_VALUES).encode() + data[begin + draw.randint(0, 12) :]


def _recoded(data: bytes, draw: random.Random) -> bytes:
    text = data.decode("utf-8", "replace")
    return text.encode(draw.choice(["utf-16", "latin-1", "utf-8-sig", "cp1252", "utf-32"]), "replace")


def _repeated(data: bytes, draw: random.Random) -> bytes:
    return data * draw.choice([2, 3, 50])


MUTATIONS = [_flipped, _cut, _without_a_piece, _with_a_piece, _lines_changed, _json_value, _recoded, _repeated]


def packed(data: bytes, draw: random.Random) -> bytes:
    """The data as a gzip file, at times a damaged one."""
    archive = gzip.compress(data, mtime=0)
    return archive if draw.random() < 0.5 else draw.choice([_flipped, _cut, _without_a_piece])(archive, draw)
