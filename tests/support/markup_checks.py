"""Round trips that every format of documents with markup passes."""

from collections import Counter
from random import Random

from hf_docmt.formats.document_file import DocumentFile, WrittenFile
from hf_docmt.formats.document_format import DocumentFormat, FormatOptions, Piece, Segment, Tag


def parsed(format: type[DocumentFormat], data: bytes, **options) -> tuple[DocumentFormat, list[Segment]]:
    instance = format()
    return instance, instance.parse(data, FormatOptions(**options))


def translated(format: type[DocumentFormat], data: bytes, translate, **options) -> bytes:
    """The file with `translate` of the pieces of each segment."""
    instance, segments = parsed(format, data, **options)
    return instance.write([translate(segment.pieces) for segment in segments])


def shown(format: type[DocumentFormat], data: bytes, **options) -> list[str]:
    """The texts of the segments."""
    return [segment.text for segment in parsed(format, data, **options)[1]]


def translated_file(
    format: type[DocumentFormat], data: bytes, change=str.upper, **options
) -> tuple[bytes, list[str], WrittenFile]:
    """The file with another text for each sentence, the sentences, and what is told of it."""
    file = DocumentFile(data, "a", format(), FormatOptions(**options))
    rows = [row for _, row in file.rows(["en"])]
    texts = {row["doc_id"]: [pair["en"] for pair in row["translation"]] for row in rows}
    new, written = file.translated({name: {"translation": list(map(change, own))} for name, own in texts.items()})
    return new, [text for own in texts.values() for text in own], written


def upper(pieces: list[Piece]) -> list[Piece]:
    return [piece.upper() if isinstance(piece, str) else piece for piece in pieces]


def swapped(pieces: list[Piece]) -> list[Piece]:
    return [piece.swapcase() if isinstance(piece, str) and _is_ascii(piece) else piece for piece in pieces]


def _is_ascii(piece: str) -> bool:
    return all(character.isascii() or not character.isalpha() for character in piece)


def shuffled(pieces: list[Piece], random: Random) -> list[Piece]:
    """The same texts and tags in another order, well nested."""
    stack: list[list] = [[]]
    for piece in pieces:
        if isinstance(piece, Tag) and piece.kind == "open":
            stack.append([piece])
        elif isinstance(piece, Tag) and piece.kind == "close":
            element = [*stack.pop(), piece]
            stack[-1].append(element)
        else:
            stack[-1].append(piece)
    assert len(stack) == 1, f"not well nested: {pieces}"
    random.shuffle(stack[0])
    return _flat(stack[0], random)


def _flat(nodes: list, random: Random) -> list[Piece]:
    pieces: list[Piece] = []
    for node in nodes:
        if isinstance(node, list):
            inner = node[1:-1]
            random.shuffle(inner)
            pieces += [node[0], *_flat(inner, random), node[-1]]
        else:
            pieces.append(node)
    return pieces


def tags(pieces: list[Piece]) -> Counter:
    return Counter((piece.kind, piece.raw) for piece in pieces if isinstance(piece, Tag))


def check_identity(format: type[DocumentFormat], data: bytes) -> int:
    """Bytes stay where nothing is translated; the number of tags."""
    assert translated(format, data, lambda pieces: None, target_lang="de", all=True) == data
    assert format.is_bilingual or translated(format, data, list, target_lang="de") == data
    return sum(sum(tags(segment.pieces).values()) for segment in parsed(format, data)[1])


def check_swapped(format: type[DocumentFormat], data: bytes, exact: bool = True) -> None:
    """Texts with upper and lower case exchanged are read again as such, and exchanged again they give the file."""
    once = translated(format, data, swapped)
    before, after = (parsed(format, version)[1] for version in (data, once))
    assert [_words(swapped(segment.pieces)) for segment in before] == [_words(segment.pieces) for segment in after]
    twice = translated(format, once, swapped)
    assert twice == data or not exact
    assert translated(format, twice, lambda pieces: swapped(swapped(pieces))) == twice


def _words(pieces: list[Piece]) -> list[Piece]:
    return [" ".join(piece.split()) if isinstance(piece, str) else piece for piece in pieces]


def check_shuffled(format: type[DocumentFormat], data: bytes, seed: int = 0) -> None:
    """Tags and texts in another order are read again: the same tags, the same letters."""
    random = Random(seed)
    written = translated(format, data, lambda pieces: shuffled(pieces, random))
    before, after = (parsed(format, version)[1] for version in (data, written))
    assert _contents(format, before) == _contents(format, after)


def _contents(format: type[DocumentFormat], segments: list[Segment]) -> list:
    """Tags and letters of each; texts within tags, which are segments, may come in another order."""
    letters = [sorted(character for character in segment.text if character.isalnum()) for segment in segments]
    names = [[format.tag_name(raw) or "" for _, raw in tags(segment.pieces).elements()] for segment in segments]
    return sorted((own, sorted(filter(None, markup))) for own, markup in zip(letters, names))
