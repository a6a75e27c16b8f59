"""Chats of a customer and an agent in one JSON object, as in BConTrasT (Farajian et al. 2020)."""

from collections.abc import Iterator
from pathlib import Path

from hf_docmt.data.documents import make_row
from hf_docmt.data.language_codes import primary_language
from hf_docmt.data.readers.reader import Reader
from hf_docmt.files import DataError, display_path, parse_json, read_lines
from hf_docmt.messages import closest_hint

AGENT_LANGUAGE = "en"
SPEAKERS = ("agent", "customer")


class ChatReader(Reader):
    """One object `{conversation id: [{"speaker", "source", "target", ...}, ...]}`, with the column `speaker`.

    `source` is English where the agent speaks and the customer's language where the customer does, so the two
    are exchanged in the turns of one speaker: the customer's where English is the requested source language. Text is
    not changed.
    """

    name = "chat"
    endings = (".json",)

    def read(self, languages: list[str], path: str | Path) -> Iterator[tuple[str, dict]]:
        chats = parse_json("\n".join(line for _, line in read_lines(path)), path)
        if not isinstance(chats, dict) or not chats:
            raise DataError(f"{display_path(path)}: a JSON object of conversation ids and turns is needed, not empty")
        primary = [primary_language(lang) for lang in languages]
        if len(languages) == 2 and AGENT_LANGUAGE not in primary:
            raise DataError(f"{display_path(path)}: agents write {AGENT_LANGUAGE!r}, got {languages}; ask for it")
        for doc_id, turns in chats.items():
            location = f"{display_path(path)}, document {doc_id!r}"
            if not isinstance(turns, list):
                raise DataError(f"{location}: a list of turns is needed, got {type(turns).__name__}")
            pairs = [_agent_and_customer(f"{location}, turn {number}", turn) for number, turn in enumerate(turns, 1)]
            english, other = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
            source, target = (english, other) if primary[0] == AGENT_LANGUAGE else (other, english)
            speakers = [turn["speaker"] for turn in turns]
            yield location, make_row(location, doc_id, source, target, languages, speaker=speakers)


def _agent_and_customer(location: str, turn: dict) -> tuple[str, str]:
    """One turn in the agent's and in the customer's language."""
    for key in ("speaker", "source", "target"):
        if not isinstance(turn, dict) or not isinstance(turn.get(key), str):
            raise DataError(f"{location}: {key!r} is missing or no string; a turn has speaker, source and target")
    speaker = turn["speaker"]
    if speaker not in SPEAKERS:
        hint = closest_hint(speaker, SPEAKERS, ", is {!r} meant?")
        raise DataError(f"{location}: unknown speaker {speaker!r}{hint}; it has the language: agent or customer")
    return (turn["source"], turn["target"]) if speaker == "agent" else (turn["target"], turn["source"])
