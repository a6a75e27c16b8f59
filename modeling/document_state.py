"""A document while it is translated: its sentences as token ids, their translations, and what was repaired."""

from dataclasses import dataclass, field
from typing import NamedTuple
from unicodedata import category

INVISIBLE = ("Cc", "Cf", "Zl", "Zp", "Zs")  # categories of Unicode


@dataclass
class SentencePart:
    """What is translated as one sentence: a sentence of the document, or a part of an over-long one.

    `sentence` is its index in the document, `ids` are the source tokens, `target` those of the translation. `lines` are
    the sentences written in its place where they were left as they are, any number; None = `target`. `candidates` are
    translations that the search found, where they are kept.
    """

    sentence: int
    ids: list[int]
    target: list[int] = field(default_factory=list)
    lines: list[list[int]] | None = None
    candidates: list[list[int]] = field(default_factory=list)


@dataclass(eq=False)
class DocumentState:
    """A document of `size` sentences: the parts of those that are not blank, in order. Equal to itself only.

    `repairs` are dicts: `sentence` is an index in the document, `kind` one of `split` (over-long, translated in parts),
    `separators` (its segment was written in another number of sentences than its source has), `misaligned` (the same,
    and left so), `length` (stopped at `max_new_tokens`) and `positions` (translated with fewer sentences than asked
    for, as learned positions do not reach for more). `number` is its index in the call, None in a stream.
    """

    size: int
    parts: list[SentencePart]
    repairs: list[dict] = field(default_factory=list)
    number: int | None = None

    def report_count(self, index: int, expected: int, got: int, remedy: str | None = None) -> None:
        """The translation of the part at `index` came in `got` sentences; without a remedy it was left so."""
        detail = f"{got} sentences for {expected}: {remedy or 'left as written'}"
        self.add_repair(self.parts[index].sentence, "separators" if remedy else "misaligned", detail)

    def report_length(self, index: int, tokens: int, remedy: str = "raise max_new_tokens if more is right") -> None:
        """The translation of the part at `index` stopped after so many tokens."""
        detail = f"stopped after {tokens} tokens without an end: {remedy}"
        self.add_repair(self.parts[index].sentence, "length", detail)

    def report_positions(self, indices: range, got: int, expected: int, limit: int) -> None:
        """The parts at `indices` were translated with `got` sentences, themselves among them, not `expected`."""
        for index in indices:
            detail = f"{got} sentences instead of {expected}: learned positions for {limit} tokens"
            self.add_repair(self.parts[index].sentence, "positions", detail)

    def add_repair(self, sentence: int, kind: str, detail: str) -> None:
        self.repairs.append({"sentence": sentence, "kind": kind, "detail": detail})

    def report(self) -> list[dict]:
        """The repairs in the order of the sentences."""
        return sorted(self.repairs, key=lambda repair: repair["sentence"])


class CurrentSentence(NamedTuple):
    """A part of a document that is to be translated."""

    document: DocumentState
    index: int

    @property
    def part(self) -> SentencePart:
        return self.document.parts[self.index]


def all_sentences(documents: list[DocumentState]) -> list[CurrentSentence]:
    """All parts of the documents, in order."""
    return [CurrentSentence(document, index) for document in documents for index in range(len(document.parts))]


def read_document(
    sentences: list[str], tokenizer, max_sentence_tokens: int, number: int | None = None
) -> DocumentState:
    """Token ids of what has text (see `has_text`), over-long sentences in parts."""
    document = DocumentState(len(sentences), [], number=number)
    for index, sentence in enumerate(sentences):
        if not has_text(sentence):
            continue
        parts = split_sentence(sentence, tokenizer, max_sentence_tokens)
        if len(parts) > 1:
            tokens = sum(map(len, parts))
            detail = f"{tokens} tokens, limit {max_sentence_tokens}: translated in {len(parts)} parts"
            document.add_repair(index, "split", detail)
        document.parts.extend(SentencePart(index, ids) for ids in parts)
    return document


def translated_sentences(document: DocumentState, tokenizer) -> list[str]:
    """Texts of all sentences, as many as were read, unless parts have `lines`; parts of one sentence are joined."""
    texts: list[list[str] | None] = [None] * document.size
    for part in document.parts:
        lines = [part.target] if part.lines is None else part.lines
        lines = [tokenizer.decode(line, skip_special_tokens=True).strip() for line in lines]
        before = texts[part.sentence] or []
        if before and lines:
            lines[0] = f"{before.pop()} {lines[0]}".strip()
        texts[part.sentence] = before + lines
    return [line for lines in texts for line in ([""] if lines is None else lines)]


def candidate_sentences(document: DocumentState, tokenizer, count: int) -> list[list[str]]:
    """Of every sentence at most so many texts that the search found, the most probable first; of parts joined."""
    found: list[list[list[str]]] = [[] for _ in range(document.size)]
    for part in document.parts:
        texts = tokenizer.batch_decode((part.candidates or [part.target])[:count], skip_special_tokens=True)
        found[part.sentence].append([text.strip() for text in texts])
    return [list(map(" ".join, zip(*parts))) or [""] for parts in found]


def has_text(text: str) -> bool:
    """Whether a text has a character that is seen: blanks, controls and format characters such as U+200B are not."""
    return not text.isspace() and any(category(character) not in INVISIBLE for character in text)


def split_at(ids: list[int], sep: int) -> list[list[int]]:
    """Generated ids as sentences, without the separators."""
    ends = [index for index, token in enumerate(ids) if token == sep]
    return [ids[first:end] for first, end in zip([0, *(end + 1 for end in ends)], [*ends, len(ids)])]


# Text to token ids


def split_sentence(text: str, tokenizer, limit: int) -> list[list[int]]:
    """Ids of a sentence, cut at the blank nearest to its middle (or in the middle) until every part fits."""
    text = text.strip()
    ids = token_ids(text, tokenizer)
    if len(ids) <= limit or len(text) < 2:
        return [ids]
    middle = len(text) // 2
    blanks = [offset for offset, character in enumerate(text) if character.isspace() and 0 < offset < len(text) - 1]
    cut = min(blanks, key=lambda offset: abs(offset - middle), default=middle)
    return split_sentence(text[:cut], tokenizer, limit) + split_sentence(text[cut:], tokenizer, limit)


def token_ids(text: str, tokenizer) -> list[int]:
    """Ids of a text as in training: the name of a special token is read as text, or becomes the unknown token."""
    ids = tokenizer(text, add_special_tokens=False, split_special_tokens=True)["input_ids"]
    special, unknown = set(tokenizer.all_special_ids), tokenizer.unk_token_id
    return ids if unknown is None else [unknown if token in special else token for token in ids]


def check_unicode(text: str, name: str, error_class: type[ValueError] = ValueError) -> None:
    """`error_class` for half of a surrogate pair, which tokenizers do not read; `name` is where the text stands."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise error_class(
            f"{name} holds half of a surrogate pair, {text[error.start]!r}, which is not Unicode text: repair the "
            "escape or the encoding that it was read with."
        ) from error
