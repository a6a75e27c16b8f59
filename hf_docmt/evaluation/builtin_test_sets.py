"""Test sets that sacrebleu knows and downloads, such as `wmt24`, as reference documents."""

from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

import sacrebleu
from sacrebleu.dataset.base import Dataset

from hf_docmt.evaluation.references import References
from hf_docmt.files import DataError, read_lines
from hf_docmt.messages import closest_hint


def builtin_references(
    name: str, source_lang: str | None, target_lang: str | None, translators: Sequence[str] = ()
) -> References:
    """The test set of this name and language pair, with the references that sacrebleu scores against.

    Documents are those of the set's document ids; a set without them is one document. `translators` names other
    references of the set. Files come from the folder SACREBLEU (~/.sacrebleu), or from the network the first time.
    DataError: no such set, pair or translator, or a set that cannot be downloaded.
    """
    if not source_lang or not target_lang:
        raise DataError(f"the test set {name} needs both languages; give them, such as -l en-de")
    dataset, pair = _dataset(name), f"{source_lang}-{target_lang}"
    if pair not in dataset.langpairs:
        raise DataError(f"the test set {name} has no pair {pair}; -l is one of {', '.join(sorted(dataset.langpairs))}")
    try:
        fields = dict(zip(dataset.fieldnames(pair), dataset.get_files(pair)))
        paths = dataset.get_reference_files(pair)
    except (OSError, SystemExit) as error:
        reason = error if isinstance(error, OSError) else "sacrebleu says why"
        raise DataError(
            f"the test set {name} cannot be downloaded ({reason}); run sacrebleu --download {name} -l {pair} where "
            "there is a network, and set SACREBLEU to the folder it went to (default: ~/.sacrebleu)"
        ) from error
    if translators:
        paths = [_translator_path(name, fields, translator) for translator in translators]
    sides = [_lines(path) for path in paths]
    count = len(sides[0])
    columns = {field: _lines(fields[field]) for field in ("src", "docid", "origlang", "domain") if field in fields}
    runs = [list(run) for _, run in groupby(range(count), key=lambda line: columns.get("docid", [name] * count)[line])]
    ids = _distinct([columns["docid"][run[0]] if "docid" in columns else name for run in runs])
    cut = [[[side[line] for line in run] for run in runs] for side in (columns["src"], *sides)]
    labels = {
        field: {doc_id: columns[field][run[0]] for doc_id, run in zip(ids, runs)}
        for field in ("origlang", "domain")
        if field in columns
    }
    return References(
        path=f"the test set {name}",
        dataset=name,
        split=pair + (f", references {', '.join(translators)}" if translators else ""),
        ids=ids,
        sides=cut[1:],
        sources=cut[0],
        domains=labels.get("domain"),
        origlangs=labels.get("origlang"),
    )


def _dataset(name: str) -> Dataset:
    known = sacrebleu.DATASETS
    if name not in known:
        raise DataError(
            f"unknown test set {name!r}{closest_hint(name, known)}; sacrebleu knows {', '.join(sorted(known))}"
        )
    return known[name]


def _translator_path(name: str, fields: dict[str, str], translator: str) -> str:
    if f"ref:{translator}" not in fields:
        names = sorted(field.removeprefix("ref:") for field in fields if field.startswith("ref:"))
        raise DataError(f"the test set {name} has no translator {translator!r}, it has {', '.join(names) or 'none'}")
    return fields[f"ref:{translator}"]


def _lines(path: str | Path) -> list[str]:
    return [line.rstrip() for _, line in read_lines(path)]


def _distinct(ids: list[str]) -> list[str]:
    """The ids, with a number at those that were there before: `a`, `b`, `a-2`."""
    times, found = Counter[str](), []
    for doc_id in ids:
        times[doc_id] += 1
        found.append(doc_id if times[doc_id] == 1 else f"{doc_id}-{times[doc_id]}")
    return found
