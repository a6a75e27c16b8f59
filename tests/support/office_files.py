"""Office documents and books as archives of a few members, and what stands in them."""

import io
import zipfile

from hf_docmt.formats.zip_archive import ZipArchive


def zipped(members: dict[str, str | bytes], comment: bytes = b"") -> bytes:
    """An archive; a member `mimetype` is not compressed."""
    with zipfile.ZipFile(buffer := io.BytesIO(), "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content, zipfile.ZIP_STORED if name == "mimetype" else zipfile.ZIP_DEFLATED)
        archive.comment = comment
    return buffer.getvalue()


def member(data: bytes, name: str) -> str:
    return ZipArchive(data).read(name).decode()


def spaces(prefixes: str) -> str:
    """Declarations of these prefixes."""
    return " ".join(f'xmlns:{prefix}="urn:{prefix}"' for prefix in prefixes.split())


def relations(**targets: tuple[str, str]) -> str:
    """Kind and target of each by its id."""
    each = (f'<Relationship Id="{name}" Type="http://x/{kind}" Target="{to}"/>' for name, (kind, to) in targets.items())
    return f"<Relationships>{''.join(each)}</Relationships>"


MAINS = (("word", "document.xml"), ("ppt", "presentation.xml"), ("xl", "workbook.xml"))
SLIDES = spaces("a p r")


def presentation(paragraphs: str, **members: str) -> bytes:
    """Of one slide; names of further members begin in ppt/."""
    first = {
        "presentation.xml": f'<p:presentation {SLIDES}><p:sldId r:id="x"/></p:presentation>',
        "_rels/presentation.xml.rels": relations(x=("slide", "slides/slide1.xml")),
        "slides/slide1.xml": f"<p:sld {SLIDES}>{paragraphs}</p:sld>",
    }
    return zipped({f"ppt/{name}": text for name, text in (first | members).items()})


def workbook(sheet: str, **members: str) -> bytes:
    """Of one sheet."""
    first = {
        "xl/workbook.xml": f'<workbook {SLIDES}><sheets><sheet name="One" r:id="x"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": relations(
            x=("worksheet", "worksheets/sheet1.xml"), t=("sharedStrings", "sharedStrings.xml")
        ),
        "xl/worksheets/sheet1.xml": f"<worksheet>{sheet}</worksheet>",
    }
    return zipped(first | members)


def open_document(text: str, **members: str) -> bytes:
    content = f"<office:document-content {spaces('office text style')}>{text}</office:document-content>"
    return zipped({"content.xml": content} | members)


def book(body: str) -> bytes:
    """Of one page."""
    item = '<item id="x" href="x.xhtml" media-type="application/xhtml+xml"/>'
    spine = '<spine toc="toc"><itemref idref="x"/></spine>'
    return zipped(
        {
            "META-INF/container.xml": '<container><rootfile full-path="a.opf"/></container>',
            "a.opf": f"<package><language>en</language>{item}{spine}</package>",
            "x.xhtml": f'<html lang="en">{body}</html>',
        }
    )


def with_main(data: bytes, name: str) -> bytes:
    """A document of Office whose first member has another name, which only the relations of the archive say."""
    archive = ZipArchive(data)
    folder, old = next(each for each in MAINS if "/".join(each) in archive.names)
    names = {f"{folder}/{old}": f"{folder}/{name}", f"{folder}/_rels/{old}.rels": f"{folder}/_rels/{name}.rels"}
    members = {names.get(each, each): archive.read(each) for each in archive.names}
    return zipped(members | {"_rels/.rels": relations(x=("officeDocument", f"{folder}/{name}"))})
