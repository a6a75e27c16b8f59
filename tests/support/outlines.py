"""What other programs read of a document: its structure and texts, of which marks and white space are left out."""

import csv
import gettext
import io
import json
import re
import subprocess
import zipfile
from collections import Counter

import pysubs2
import yaml
from lxml import etree

MARKS = "«»"
TAG = re.compile(r"<[^<>]+>")


def marked(sentence: str) -> str:
    return f"{MARKS[0]}{sentence}{MARKS[1]}"


def letters(text: str) -> str:
    """A text without marks and white space, behind its tags; two escapes of YAML that are one character as that."""
    text = text.encode("utf-16", "surrogatepass").decode("utf-16")
    tags = sorted(TAG.findall(text))
    return re.sub(rf"[{MARKS}\s]", "", "".join([*tags, TAG.sub("", text)]))


def decoded(data: bytes) -> str:
    return data.decode("utf-16" if data.startswith(b"\xff\xfe") else "utf-8-sig")


def outline(format: str, data: bytes):
    """What is the same before and after a translation that only sets marks."""
    return globals()[f"{format}_outline"](data)


def json_outline(data: bytes):
    def plain(value):
        if isinstance(value, str):
            return letters(value)
        return [plain(each) for each in value] if isinstance(value, list | tuple) else value

    return plain(json.loads(decoded(data), object_pairs_hook=lambda pairs: ["object", *pairs]))


def yaml_outline(data: bytes) -> list:
    events = yaml.parse(decoded(data), yaml.SafeLoader)
    names = ("anchor", "tag", "flow_style")
    return [
        (type(event), *(getattr(event, name, None) for name in names), letters(getattr(event, "value", "")))
        for event in events
    ]


def csv_outline(data: bytes) -> list:
    text = decoded(data)
    delimiter = re.search(r"[,;\t|]", text)[0]
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    return [[letters(field) for field in row] for row in rows]


def po_outline(data: bytes) -> dict:
    """The catalog that msgfmt makes: what is marked, and sources in place of all else."""
    data = _gettext(["msgattrib", "--clear-fuzzy", "--no-obsolete"], data)
    data = data if MARKS[0].encode() in data else _gettext(["msgen", "-"], data)
    catalog = gettext.GNUTranslations(io.BytesIO(_gettext(["msgfmt", "-o", "-", "-"], data)))._catalog
    singular = {key: text for key, text in catalog.items() if isinstance(key, str) and key}
    sources = {key: key.rpartition("\4")[2] for key in singular}
    return {key: letters(text if MARKS[0] in text else sources[key]) for key, text in singular.items()}


def _gettext(command: list[str], data: bytes) -> bytes:
    return subprocess.run(command, input=data, capture_output=True, check=True).stdout


def ass_outline(data: bytes) -> tuple:
    script = pysubs2.SSAFile.from_string(decoded(data), format_="ass")
    tag = re.compile(r"(?<!\\)\{[^{}]*\}|\\[Nnh]")
    events = []
    for event in script:
        text = tag.sub("", event.text).replace("\\\u2060", "\\")  # the joiner that keeps a backslash from a tag
        events.append({**event.as_dict(), "text": (sorted(tag.findall(event.text)), sorted(letters(text)))})
    return script.info, script.styles, events


def xliff_outline(data: bytes) -> list:
    """Everything outside of targets, and for each unit its source or, where it was translated, its target."""
    root = etree.fromstring(data)
    found = []
    for element in root.iter(etree.Element):
        name = etree.QName(element).localname
        if name in ("trans-unit", "segment"):
            texts = {etree.QName(child).localname: child for child in element.iterchildren(etree.Element)}
            source = texts.get("seg-source", texts["source"])
            target = texts.get("target", source)
            is_new = MARKS[0] in "".join(target.xpath(".//text()"))
            found += [_content(source), _content(target if is_new else source)]
        elif not any(etree.QName(each).localname == "target" for each in [element, *element.iterancestors()]):
            found.append((name, letters(element.text or "")))
    return found


def _content(element: etree._Element) -> tuple:
    inner = [(each.tag, sorted(each.attrib.items())) for each in element.iterdescendants(etree.Element)]
    return sorted(inner, key=str), sorted(set(letters("".join(element.xpath(".//text()")))))


def odt_outline(data: bytes) -> list:
    archive = zipfile.ZipFile(io.BytesIO(data))
    found: list = archive.namelist()
    for name in [name for name in found if name.endswith(".xml")]:
        root = etree.fromstring(archive.read(name))
        names = Counter(each.tag for each in root.iter(etree.Element) if not each.tag.endswith("}span"))
        found.append((names, sorted(letters("".join(root.xpath("//text()"))))))
    return found
