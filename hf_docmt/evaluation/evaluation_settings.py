"""What of translated documents is scored, and how."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path

from hf_docmt.evaluation.breakdowns import Domains
from hf_docmt.evaluation.metrics import CorpusScore, Metric, default_metrics, metric_choices, metric_class
from hf_docmt.messages import check_known
from hf_docmt.options import Scoring

UNITS = ("document", "paragraph", "sentence")


@dataclass(frozen=True, kw_only=True)
class Evaluation(Scoring):
    """What is scored, and how: the options of `docmt evaluate`, by the names of `options.Scoring`, and of Python.

    `metrics` and `discourse` name metrics by their `choice`, those of plugins included; by default s-BLEU, d-BLEU, chrF
    and TER. `domains` may be a mapping, too (see `breakdowns`). `repairs="none"`: documents are lines as a model wrote
    them, more or fewer than sentences, and are scored line by line (see `pair_lines`) unless they are aligned; None =
    as their rows say. `unit` None = sentences of a single document, which has no interval else. Intervals are of
    `samples` draws (0: none). `sentence_scores`: a file for the scores of every sentence (see `sentence_scores`). See
    `ExternalScore` for `external`, `write_scorer_input` for `scorer_input` and `scorer_window`.
    ValueError: an unknown metric, other `repairs`, options of a metric that is not scored.
    """

    domains: Domains | None = None
    unit: str | None = "document"
    sentence_scores: str | Path | None = None
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
        if not self.external:
            return []
        from hf_docmt.evaluation.metrics.external import ExternalScore

        return [ExternalScore(name, path) for name, path in self.external]

    def _chosen(self) -> list[type[Metric]]:
        if self.metrics is None:
            return [metric_class(name) for name in default_metrics()]
        if not self.metrics:
            raise ValueError(f"no metrics; give some of {', '.join(metric_choices(None))}, or leave them out")
        return _named(self.metrics, metric_choices(self.metrics), "metric")

    def _further(self) -> list[type[Metric]]:
        choices, chosen = metric_choices(self.discourse), self._chosen()
        measures = {name: metric for name, metric in choices.items() if not issubclass(metric, CorpusScore)}
        return [metric for metric in _named(self.discourse, measures, "discourse measure") if metric not in chosen]

    def _made(self, metric: type[Metric]) -> Metric:
        return metric(**{name: getattr(self, option) for option, name in metric.evaluation_options.items()})


def _named(names: Sequence[str], metrics: Mapping[str, type[Metric]], kind: str) -> list[type[Metric]]:
    for name in names:
        check_known(name, metrics, kind, "expected some of")
    return [metrics[name] for name in dict.fromkeys(names)]
