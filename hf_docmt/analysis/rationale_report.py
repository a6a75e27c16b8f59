"""Reports of the agreement of attention with the marked words of SCAT (Yin et al. 2021)."""

from pathlib import Path

from hf_docmt.analysis.rationales import Agreement, rationale_agreement
from hf_docmt.analysis.scat import read_scat
from hf_docmt.evaluation.suites import check_languages
from hf_docmt.evaluation.systems.forced_decoding import ForcedDecoding
from hf_docmt.reports.report import Report
from hf_docmt.reports.resampling import bootstrap_interval
from hf_docmt.reports.result import Part, Result
from hf_docmt.reports.statistics import Statistics, score_function


def rationales_files(
    system: ForcedDecoding,
    folder: str | Path,
    *,
    split: str = "train",
    source_lang: str = "en",
    target_lang: str = "fr",
    only: tuple[int, int] | None = None,
    attention: str = "decoder",
    step: str = "writes",
) -> Report:
    """The report of `rationale_agreement` on the files of SCAT in a folder (see `read_scat`).

    `only` is (first, last) line, from 1: the rest may be in the training data. The report's `data` has the number of
    lines, and of lines that could not be read, by reason. ValueError: no example between the lines, other languages
    than the system's.
    """
    scat = read_scat(folder, split, source_lang, target_lang)
    check_languages(str(folder), (source_lang, target_lang), *system.languages)
    first, last = only or (1, scat.lines)
    examples = [one for one in scat.examples if first <= int(one.example_id.rpartition(":")[2]) <= last]
    if not examples:
        raise ValueError(f"no example can be read in lines {first}-{last}, {folder} has {scat.lines}; give others")
    found = rationale_agreement(system, examples, attention=attention, step=step)
    part = split if only is None else f"{split}, lines {first}-{last}"
    data = {"lines": scat.lines, "examples": len(examples), "skipped": scat.reasons}
    return Report(model=system.describe(), data=data, results=rationale_results(found, split=part))


def rationale_results(
    found: Agreement, *, dataset: str = "scat", split: str = "train", samples: int = 1000, seed: int = 1
) -> list[Result]:
    """Share and precisions as report results in percent: means over examples, for each head in the breakdown.

    `details` holds the 95 % bootstrap interval over examples, `chance`, and the reasons why examples have no value.
    """
    results = []
    for column, metric in enumerate(["attention on marked words", *(f"precision@{k}" for k in found.at)]):
        values, n = 100 * found.values[:, :, column].mean(axis=0), len(found.ids)
        rows = [[float(value), 1] for value in found.values[:, 0, column]]
        details = {"chance": float(100 * found.chance[:, column].mean()), "unused": found.unused}
        details["statistics"] = Statistics(found.ids, rows, "example").to_dict()
        interval = bootstrap_interval(rows, score_function(metric, 2), samples, seed)
        results.append(
            Result(
                task="context use",
                dataset=dataset,
                split=split,
                metric=metric,
                value=float(values[0]),
                signature=found.signature,
                n=n,
                breakdown={name: Part(float(value), n) for name, value in zip(found.heads, values[1:])},
                details=details if interval is None else details | {"interval": list(interval)},
            )
        )
    return results
