"""WMT26's terminology task: a JSON file of documents in paragraphs, with the terms that people marked in them.

The task: https://github.com/wmt-conference/wmt26-terminology
"""

import re
from collections.abc import Iterator
from pathlib import Path

from hf_docmt.data.documents import make_row
from hf_docmt.data.language_codes import are_other_languages
from hf_docmt.data.readers.reader import Evidence, Reader, Sample
from hf_docmt.files import DataError, display_path, parse_json, read_lines
from hf_docmt.modeling.text_splitting import check_unicode

DELIMITER = "paragraph_delimiter"
HEAD = re.compile(rb'\s*\{.*"paragraph_delimiter"\s*:', re.DOTALL)
TARGETS = ("glossary_targets", "targets")  # by version of the set


class WmtTerminologyReader(Reader):
    """Documents whose sentences are the paragraphs; one without a reference has an empty one, and no terms.

    `terms` has each marked occurrence, in order: `source`, `targets`, the form `inflected` of the reference, and the
    number of its `sentence`, from 0. `paragraph_delimiter` divides the text of a document.
    """

    name = "wmt_terminology"

    def recognize(self, sample: Sample) -> Evidence:
        is_set = sample.argument == "path" and HEAD.match(sample.head)
        return Evidence.ARGUMENTS if is_set else Evidence.NONE

    def read(self, languages: list[str], path: str | Path) -> Iterator[tuple[str, dict]]:
        data, where = parse_json("\n".join(line for _, line in read_lines(path)), path), display_path(path)
        try:
            for side, asked in zip(("source_lang", "target_lang"), languages):
                if are_other_languages(asked, data[side]):
                    raise DataError(f"{where}: {side} is {data[side]!r}, got {asked!r}; name the file's language")
            for document in data["documents"]:
                doc_id, paragraphs = document["document_id"], document["paragraphs"]
                source, target = ([each.get(side) or "" for each in paragraphs] for side in ("source", "reference"))
                marked = [each["segments"] if reference else () for each, reference in zip(paragraphs, target)]
                terms = [_occurrence(n, term) for n, own in enumerate(marked) for each in own for term in each["terms"]]
                columns = {"terms": terms, DELIMITER: data[DELIMITER] or ""}
                location, target = f"{where}, document {doc_id!r}", target if languages[1:] else None
                yield location, make_row(location, doc_id, source, target, languages, **columns)
        except (KeyError, TypeError, AttributeError) as error:
            raise DataError(f"{where}: not a set of WMT26's terminology task ({error!r}); fetch it again") from error


def _occurrence(number: int, term: dict) -> dict:
    others = next((term[name] for name in TARGETS if name in term), [])
    targets, inflected = list(dict.fromkeys([term["target"], *others])), term.get("target_inflected")
    for text in (term["source"], *targets, inflected or ""):
        check_unicode(text, f"the term {text!r:.60}", DataError)
    return {"source": term["source"], "targets": targets, "inflected": inflected, "sentence": number}
