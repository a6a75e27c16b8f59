"""What of translated documents is scored, and how."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path

from hf_docmt.evaluation.breakdowns import Domains
from hf_docmt.evaluation.metrics.corpus_scores import CorpusScore
from hf_docmt.evaluation.metrics.external import ExternalScore
from hf_docmt.evaluation.metrics.metric import Metric, default_metrics, metric_choices, metric_class
from hf_docmt.messages import check_known

UNITS = ("document", "paragraph", "sentence")


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """What is scored, and how.

    `metrics` names the metrics to score by their `choice`; by default s-BLEU, d-BLEU, chrF and TER. `discourse` names
    others besides, those of plugins included. `tokenize` and `lowercase` (of BLEU), `chrf_lowercase` and the options of
    TER are those of sacrebleu's command line; `joiner` (space, newline, none) stands between the sentences of a
    document that is a segment. `by` and `domains` ask for parts of the scores (see `breakdowns`),
    `align` cuts translations with other sentences than the reference (see `alignment`). `repairs="none"`: documents are
    lines as a model wrote them, more or fewer than sentences, and are scored line by line (see `pair_lines`) unless
    they are aligned; None = as their rows say. `unit` is what intervals and significance tests draw, `document`,
    `paragraph` (of documents with blank lines between them), or `sentence` as sacrebleu does (of BLEU, chrF and TER; a
    single document, such as plain lines, has no interval else); None = sentences of a single document. Intervals are of
    `samples` draws (0: none).
    `sentence_scores`: a file for the scores of every sentence (see `sentence_scores`). `external` has names and files
    of scores that others gave (see `ExternalScore`), and `scorer_input` writes what such a program takes, (format,
    file), in windows of `scorer_window` (see `write_scorer_input`).
    ValueError: an unknown metric, other `repairs`, options of a metric that is not scored.
    """

    metrics: Sequence[str] | None = None
    discourse: Sequence[str] = ()
    tokenize: str | None = None
    lowercase: bool = False
    joiner: str = "space"
    chrf_lowercase: bool = False
    ter_normalized: bool = False
    ter_no_punct: bool = False
    ter_asian_support: bool = False
    ter_case_sensitive: bool = False
    by: Sequence[str] = ()
    domains: Domains | None = None
    align: bool = False
    repairs: str | None = None
    unit: str | None = "document"
    sentence_scores: str | Path | None = None
    external: Sequence[tuple[str, str | Path]] | None = None
    scorer_input: tuple[str, str] | None = None
    scorer_window: tuple[int, int | None] | None = None
    samples: int = 1000

    def __post_init__(self):
        if self.repairs not in (None, "none"):
            raise ValueError(f"repairs is {self.repairs!r}, expected none, for lines as they were written, or nothing")
        if self.unit is not None:
            check_known(self.unit, UNITS, "unit", "expected one of")
        if self.scorer_window and not self.scorer_input:
            raise ValueError("scorer_window is of what scorer_input writes; give that, too, or leave the window out")
        if isinstance(self.domains, str) and "domain" not in self.by:
            raise ValueError("domains are for scores by domain; add domain to `by` (--by), or leave them out")
        names = [name.partition(":")[0] for name, _ in self.external or ()]
        if len(set(names)) < len(names):
            raise ValueError(f"external scores are called {max(names, key=names.count)!r} twice; name each differently")
        scored = [*self._chosen(), *self._further()]
        for option in fields(self):
            takers = [metric for metric in metric_choices().values() if option.name in metric.evaluation_options]
            if takers and getattr(self, option.name) != option.default and not set(takers) & set(scored):
                names = " and ".join(str(metric.choice) for metric in takers)
                raise ValueError(
                    f"{option.name} is an option of {names}, which is not scored; add it to the metrics, or leave the "
                    "option out"
                )

    @cached_property
    def corpus_metrics(self) -> list[Metric]:
        """The metrics of `metrics`, or the default ones."""
        return [self._made(metric) for metric in self._chosen()]

    def discourse_metrics(self, source_lang: str | None, target_lang: str | None) -> list[Metric]:
        """The metrics of `discourse`; ValueError for one that is not made for these languages, where they are known."""
        further = self._further()
        for metric in (*further, *self._chosen()):
            metric.check_languages(source_lang, target_lang)
        return [self._made(metric) for metric in further]

    @cached_property
    def external_scores(self) -> list[Metric]:
        return [ExternalScore(name, path) for name, path in self.external or ()]

    def _chosen(self) -> list[type[Metric]]:
        if self.metrics is None:
            return [metric_class(name) for name in default_metrics()]
        if not self.metrics:
            raise ValueError(f"no metrics; give some of {', '.join(metric_choices())}, or leave them out")
        return _named(self.metrics, metric_choices(), "metric")

    def _further(self) -> list[type[Metric]]:
        measures = {name: metric for name, metric in metric_choices().items() if not issubclass(metric, CorpusScore)}
        chosen = self._chosen()
        return [metric for metric in _named(self.discourse, measures, "discourse measure") if metric not in chosen]

    def _made(self, metric: type[Metric]) -> Metric:
        return metric(**{name: getattr(self, option) for option, name in metric.evaluation_options.items()})


def _named(names: Sequence[str], metrics: Mapping[str, type[Metric]], kind: str) -> list[type[Metric]]:
    for name in names:
        check_known(name, metrics, kind, "expected some of")
    return [metrics[name] for name in dict.fromkeys(names)]
