"""`docmt evaluate`: scores of translations, with sacrebleu's options by the names of its command line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from hf_docmt.cli.options import command
from hf_docmt.cli.output import check_different, print_report, terminal_width
from hf_docmt.files import check_writable_file, check_writable_folder, data_name
from hf_docmt.options import AS_JSON, BASIC, FILES, ReferenceReading, Scoring, argument, names, option

if TYPE_CHECKING:
    from hf_docmt.reports.comparison import Comparison


@dataclass(kw_only=True)
class ReferenceOptions(ReferenceReading):
    """The source of references."""

    PANEL: ClassVar[str] = FILES

    test_set: str | None = option(
        None, "Score against a test set of sacrebleu, such as wmt24.", "-t", "--test-set", metavar="NAME", panel=BASIC
    )
    origlang: str | None = option(
        None, "Test set: only documents originally in this language; non-de: in another.", metavar="CODE"
    )
    translators: Sequence[str] = option(
        (), "WMT sets: use references by these translators.", "--translator", read=names
    )
    reference_columns: Sequence[str] = option((), "JSON lines: columns with further references.", read=names)


@dataclass(kw_only=True)
class Translations:
    """The translations to score, and facts about their system for the report."""

    PANEL: ClassVar[str] = FILES

    system: str | None = option(None, "WMT set in XML: score this system, by the set's references.", metavar="NAME")
    name: str | None = option(None, "Name of the system. Default: the file name.")
    strategy: str | None = option(None, "For the report: strategy of the translations.", metavar="NAME")
    beams: int | None = option(None, "For the report: beam size of the translations.")
    sentence_scores: str | None = option(None, "Also write scores per sentence, as JSON lines.", metavar="FILE")


@command
def evaluate(
    *,
    translations: str = argument("JSON lines by docmt translate, plain lines, or the XML of a WMT set (--system)."),
    reference: list[str] | None = argument(
        "Further systems (JSON lines), then references: documents, the target file of a pair, or plain lines. With "
        "--reference or --test-set every file is a system.",
        default=None,
        metavar="FILE",
    ),
    reference_file: list[str] | None = option(
        None, "Reference, if every other file is a system; repeatable.", "-r", "--reference", metavar="FILE"
    ),
    references: ReferenceOptions,
    language_pair: str | None = option(None, "Both languages, such as en-de.", "-l", "--language-pair", metavar="PAIR"),
    scored: Translations,
    scoring: Scoring,
    baseline: str | None = option(
        None, "Translations of another system: show differences and p-values.", metavar="FILE"
    ),
    output: str | None = option(None, "Report file; for several systems a folder.", "-o", "--output", metavar="FILE"),
    as_json: bool = AS_JSON,
) -> None:
    """Score translations with sacrebleu: BLEU of sentences and documents, chrF, TER, with signatures.

    Examples:
      docmt evaluate out.jsonl test.jsonl --source-lang en --target-lang de
      docmt evaluate out.de.txt ref.de.txt -m bleu,chrf
      docmt evaluate out.txt --test-set wmt24 --language-pair en-de
      docmt evaluate a.jsonl b.jsonl test.jsonl -l en-de    # several systems
      docmt evaluate out.jsonl test.jsonl -l en-de --discourse pronouns,formality

    References may be documents or plain lines. Several systems are tested against the first.
    """
    from hf_docmt.evaluation.translation_files import holds_translations
    from hf_docmt.evaluation.translation_scores import evaluate_files

    systems, files = [translations], list(reference or [])
    while files and (reference_file or references.test_set or holds_translations(files[0])):
        systems.append(files.pop(0))
    same = [translations] if scored.system and not references.test_set else []  # which contains references, too
    reference = [*(reference_file or []), *files] or same
    if language_pair is not None:
        references.source_lang, references.target_lang = languages_of_pair(language_pair, references)
    if scoring.unit is None and baseline is None and len(systems) == 1:
        scoring = replace(scoring, unit="document")
    shared = {"reference": reference, **vars(references), **vars(scoring)}
    if len(systems) > 1:
        if own := [name for name, value in vars(scored).items() if value is not None]:
            option_name = f"--{own[0].replace('_', '-')}"
            raise ValueError(f"{option_name} is for one system, got files of {len(systems)} systems; remove it")
        evaluate_several([*([baseline] if baseline else []), *systems], shared, output, as_json)
        return
    if baseline is not None and (scoring.external or scoring.scorer_input):
        raise ValueError(
            "--external and --scorer-input are for one system; write a report per system, then run docmt compare"
        )
    outputs = {"report": output, "sentence_scores": scored.sentence_scores}
    outputs["scorer_input"] = scoring.scorer_input[1] if scoring.scorer_input else None
    for path in outputs.values():
        check_writable_file(path or "-", [translations, *reference, baseline, *dict(scoring.external or ()).values()])
    check_different(**outputs)
    shown = bool(output or as_json or baseline)  # intervals, which the table of one system lacks
    report = evaluate_files(translations, **shared, **vars(scored), samples=1000 * shown)
    if baseline is None:
        print_report(report, as_json, output)
        return
    from hf_docmt.evaluation.comparison import compare

    other = evaluate_files(baseline, **shared)
    if output:
        report.write(output)
    systems = [other.name if other.name != report.name else f"{other.name} (baseline)", report.name]
    tests = {"method": "randomisation", "breakdown": "all" if scoring.by else "none"}
    print_comparison(compare([other, report], names=systems, **tests), as_json)


def evaluate_several(systems: list[str], shared: dict[str, Any], output: str | None, as_json: bool) -> None:
    """Print systems as rows, tested against the first; their reports go to the folder `output`."""
    from hf_docmt.evaluation.comparison import compare
    from hf_docmt.evaluation.translation_scores import evaluate_systems
    from hf_docmt.reports.columns import system_names
    from hf_docmt.reports.ranking import format_ranking

    names, _ = system_names([Path(path) for path in systems], [data_name(path) for path in systems], None)
    stems = [name.replace("/", "_") for name in names]
    if output and len(set(stems)) < len(stems):
        raise ValueError(f"two reports would be named {max(stems, key=stems.count)}.json; rename the files")
    check_writable_folder(output or ".")
    files = [Path(output) / f"{stem}.json" for stem in stems] if output else []
    for file in files:
        if file.exists():
            check_writable_file(file, [*systems, *shared["reference"]])
    reports = evaluate_systems(systems, names=names, **shared)
    if output:
        Path(output).mkdir(parents=True, exist_ok=True)
        for report in reports:
            report.write(Path(output) / f"{report.name.replace('/', '_')}.json")
    comparison = compare(reports, method="randomisation", breakdown="all" if shared["by"] else "none")
    if as_json or shared["by"]:  # whose parts a ranking lacks
        print_comparison(comparison, as_json)
    else:
        print(format_ranking(comparison))


def print_comparison(comparison: Comparison, as_json: bool) -> None:
    """Print systems side by side, as text that fits the terminal or as JSON."""
    from hf_docmt.reports.comparison_tables import format_comparison

    print(format_comparison(comparison, "json" if as_json else "text", width=terminal_width()))


def languages_of_pair(pair: str, references: ReferenceOptions) -> list[str]:
    """Both codes of a pair such as `en-de`. ValueError: single languages were also given, or it is not a pair."""
    if references.source_lang or references.target_lang:
        raise ValueError(f"got --language-pair {pair} and --source-lang or --target-lang; give one of the two")
    codes = pair.split("-")
    if len(codes) != 2 or not all(codes):
        raise ValueError(
            f"--language-pair: got {pair!r}, expected two codes such as en-de; for codes with a hyphen use "
            "--source-lang and --target-lang"
        )
    return codes
