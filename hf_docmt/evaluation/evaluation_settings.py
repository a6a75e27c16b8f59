"""What of translated documents is scored, and how."""

from __future__ import annotations

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
        chosen, further = self._named
        for option in fields(self):
            takers = [metric for metric in metric_choices().values() if option.name in metric.evaluation_options]
            if takers and getattr(self, option.name) != option.default and not {*takers} & {*chosen, *further}:
                names = " and ".join(str(metric.choice) for metric in takers)
                raise ValueError(
                    f"{option.name} is an option of {names}, which is not scored; add it to the metrics, or leave the "
                    "option out"
                )

    def metrics_for(self, source_lang: str | None, target_lang: str | None) -> tuple[list[Metric], list[Metric]]:
        """Those of `metrics`, or the default ones, and of `discourse`, the same objects each time.

        ValueError for one that is not made for these languages, where they are known.
        """
        for metrics in self._named:
            for metric in metrics:
                metric.check_languages(source_lang, target_lang)
        return self._made

    @property
    def external_scores(self) -> list[Metric]:
        if not self.external:
            return []
        from hf_docmt.evaluation.metrics.external import ExternalScore

        return [ExternalScore(name, path) for name, path in self.external]

    @cached_property
    def _named(self) -> tuple[list[type[Metric]], list[type[Metric]]]:
        if self.metrics is not None and not self.metrics:
            raise ValueError(f"no metrics; give some of {', '.join(metric_choices(None))}, or leave them out")
        named = [*dict.fromkeys(self.metrics or ())], [*dict.fromkeys(self.discourse)]
        choices = metric_choices([*named[0], *named[1]])
        measures = {name: metric for name, metric in choices.items() if not issubclass(metric, CorpusScore)}
        for names, known, kind in zip(named, (choices, measures), ("metric", "discourse measure")):
            for name in names:
                check_known(name, known, kind, "expected some of")
        chosen = [metric_class(name) for name in default_metrics()] if self.metrics is None else []
        chosen += [choices[name] for name in named[0]]
        return chosen, [measures[name] for name in named[1] if measures[name] not in chosen]

    @cached_property
    def _made(self) -> tuple[list[Metric], list[Metric]]:
        chosen, further = (
            [
                metric(**{to: getattr(self, option) for option, to in metric.evaluation_options.items()})
                for metric in some
            ]
            for some in self._named
        )
        return chosen, further
