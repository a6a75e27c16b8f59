"""How result rows become the text of the output: a function for each format, chosen by the reader of the input."""

from collections.abc import Callable

from hf_docmt.data.readers import Reader
from hf_docmt.data.readers.row_layouts import TEXT_LINES
from hf_docmt.data.readers.running_text import join_lines
from hf_docmt.data.readers.wmt_jsonl import KEPT
from hf_docmt.translation.corpus import json_line, plain_lines
from hf_docmt.translation.subtitle_output import subtitle_text

Render = Callable[[dict, dict], str]


def renderer(reader: Reader) -> Render:
    """The function that gives the text of one document from its row of the input and its row of `translate_corpus`.

    The output of a job is what it returns for each document, one after the other. A document that failed has empty
    sentences: blank lines in plain output, and the key `error` in rows of JSON.
    """
    return RENDERERS[reader.output_format or ("lines" if reader.plain else "jsonl")]


def check_repairs(reader: Reader, repairs: str | None) -> None:
    """ValueError where the output needs a translation of each sentence and `repairs` does not see to that."""
    if repairs == "none" and reader.output_format is not None:
        raise ValueError(
            f"repairs='none' may give more or fewer sentences, and translations of {reader.name} are put in the places "
            "of the sentences; leave it out"
        )


def json_row(document: dict, result: dict) -> str:
    """The result row as a line of JSON; that of running text has `text` again in place of its sentences."""
    if TEXT_LINES not in document:
        return json_line(result)
    columns = {key: value for key, value in document.items() if key not in ("doc_id", "translation", TEXT_LINES)}
    rest = {key: value for key, value in result.items() if key not in ("source", "translation")}
    return json_line(columns | {"text": document_text(document, result)} | rest)


def plain_row(document: dict, result: dict) -> str:
    """A line for each sentence."""
    return plain_lines(result)


def document_text(document: dict, result: dict) -> str:
    """The translation of running text, with the lines of the text; of other lengths than the text's, as one line."""
    if len(result["translation"]) != len(result["source"]):
        return join_lines(result["translation"], [len(result["translation"])])
    return join_lines(result["translation"], document[TEXT_LINES])


def hypothesis_row(document: dict, result: dict) -> str:
    """A line of a system's output as WMT's general task collects them: ids, languages and `hypothesis`."""
    known = {name: document[name] for name in KEPT if document.get(name) is not None}
    failed = {"error": result["error"]} if "error" in result else {}
    return json_line({"doc_id": result["doc_id"], **known, "hypothesis": document_text(document, result), **failed})


RENDERERS: dict[str, Render] = {
    "jsonl": json_row,
    "lines": plain_row,
    "wmt_jsonl": hypothesis_row,
    "subtitles": subtitle_text,
}
