"""Chats of a customer and an agent in one JSON object, as in BConTrasT (Farajian et al. 2020)."""

from collections.abc import Iterator
from pathlib import Path

from hf_docmt.data.documents import make_row
from hf_docmt.files import DataError, parse_json, read_lines, shown
from hf_docmt.messages import closest_hint

AGENT_LANGUAGE = "en"
SPEAKERS = ("agent", "customer")


def read_chat(languages: list[str], path: str | Path) -> Iterator[tuple[str, dict]]:
    """Rows of `{conversation id: [{"speaker", "source", "target", ...}, ...]}`, with the column `speaker`.

    `source` is English where the agent speaks and the customer's language where the customer does, so the turns of one
    of them are turned round: the customer's if English is the source language asked for. Text is kept as it is.
    """
    chats = parse_json("\n".join(line for _, line in read_lines(path)), path)
    if not isinstance(chats, dict) or not chats:
        raise DataError(f"{shown(path)}: a JSON object of conversation id and turns is needed, with at least one")
    if len(languages) == 2 and AGENT_LANGUAGE not in languages:
        raise DataError(f"{shown(path)}: agents write {AGENT_LANGUAGE!r}, which is not in {languages}; ask for it")
    for doc_id, turns in chats.items():
        place = f"{shown(path)}, document {doc_id!r}"
        if not isinstance(turns, list):
            raise DataError(f"{place}: a list of turns is needed, got {type(turns).__name__}")
        pairs = [_agent_and_customer(f"{place}, turn {number}", turn) for number, turn in enumerate(turns, 1)]
        english, other = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        source, target = (english, other) if languages[0] == AGENT_LANGUAGE else (other, english)
        yield place, make_row(place, doc_id, source, target, languages, speaker=[turn["speaker"] for turn in turns])


def _agent_and_customer(place: str, turn: dict) -> tuple[str, str]:
    """One turn in the agent's and in the customer's language."""
    for key in ("speaker", "source", "target"):
        if not isinstance(turn, dict) or not isinstance(turn.get(key), str):
            raise DataError(f"{place}: {key!r} is missing or no string; a turn has speaker, source and target")
    speaker = turn["speaker"]
    if speaker not in SPEAKERS:
        hint = closest_hint(speaker, SPEAKERS, ", is {!r} meant?")
        raise DataError(
            f"{place}: unknown speaker {speaker!r}{hint}; it tells the language and must be agent or customer"
        )
    return (turn["source"], turn["target"]) if speaker == "agent" else (turn["target"], turn["source"])
