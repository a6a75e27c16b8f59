"""What is scored of translations, and how: the metrics and their options."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

from hf_docmt.evaluation.breakdowns import Domains
from hf_docmt.evaluation.metrics.comet import Comet, DocumentComet
from hf_docmt.evaluation.metrics.comet_program import MODEL
from hf_docmt.evaluation.metrics.corpus_scores import CorpusScore
from hf_docmt.evaluation.metrics.metric import Metric
from hf_docmt.evaluation.metrics.registry import default_metrics, metric_choices, metric_class
from hf_docmt.messages import closest_hint

UNITS = ("document", "sentence")


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """What is scored, and how.

    `metrics` names the metrics to score by their `choice`; by default s-BLEU, d-BLEU, chrF and TER. `discourse` names
    others besides, those of plugins included. `tokenize` and `lowercase` (of BLEU), `chrf_lowercase` and the options of
    TER are those of sacrebleu's command line. `by` and `domains` ask for parts of the scores (see `breakdowns`),
    `align` cuts translations with other sentences than the reference (see `alignment`). `repairs="none"`: documents are
    lines as a model wrote them, more or fewer than sentences, and are scored line by line (see `pair_lines`) unless
    they are aligned; None = as their rows say. `unit` is what intervals and significance tests draw, `document`, or
    `sentence` as sacrebleu does (of BLEU, chrF and TER; a single document, such as plain lines, has no interval else);
    None = sentences of a single document. `sentence_scores`: a
    file for the scores of every sentence (see `sentence_scores`). `comet`, the Python of an environment with
    unbabel-comet, adds COMET by `comet_model`, with `comet_context` sentences of context document-level COMET, too.
    ValueError: an unknown metric, other `repairs`, options of a metric that is not scored, or of COMET without `comet`.
    """

    metrics: Sequence[str] | None = None
    discourse: Sequence[str] = ()
    tokenize: str | None = None
    lowercase: bool = False
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
    comet: str | None = None
    comet_model: str | None = None
    comet_context: int = 0

    def __post_init__(self):
        if self.repairs not in (None, "none"):
            raise ValueError(f"repairs is {self.repairs!r}, expected none, for lines as they were written, or nothing")
        if self.unit not in (None, *UNITS):
            raise ValueError(f"unknown unit {self.unit!r}: expected {' or '.join(UNITS)}")
        if self.comet is None and (self.comet_model is not None or self.comet_context):
            raise ValueError(
                "a model or context for COMET, but no COMET: give the Python of an environment with unbabel-comet "
                "(--comet)"
            )
        scored = [*self._chosen(), *self._further()]
        for option in fields(self):
            takers = [metric for metric in metric_choices().values() if option.name in metric.evaluation_options]
            if takers and getattr(self, option.name) != option.default and not set(takers) & set(scored):
                names = " and ".join(str(metric.choice) for metric in takers)
                raise ValueError(
                    f"{option.name} is an option of {names}, which is not scored; add it to the metrics, or leave the "
                    "option out"
                )

    def with_domains(self, known: Domains | None) -> "Evaluation":
        """With the domains that the documents are known to have, where no others were given."""
        return self if self.domains is not None else replace(self, domains=known)

    def corpus_metrics(self) -> list[Metric]:
        """The metrics of `metrics`, or the default ones."""
        return [self._made(metric) for metric in self._chosen()]

    def discourse_metrics(self, source_lang: str | None, target_lang: str | None) -> list[Metric]:
        """The metrics of `discourse`; ValueError for one that is not made for these languages, where they are known."""
        further = self._further()
        for metric in (*further, *self._chosen()):
            metric.check_languages(source_lang, target_lang)
        return [self._made(metric) for metric in further]

    def comet_metrics(self) -> list[Metric]:
        if self.comet is None:
            return []
        options = {"python": self.comet, "model": self.comet_model or MODEL}
        return [Comet(**options)] + ([DocumentComet(**options, context=self.comet_context)] * bool(self.comet_context))

    def _chosen(self) -> list[type[Metric]]:
        if self.metrics is None:
            return [metric_class(name) for name in default_metrics()]
        if not self.metrics:
            raise ValueError(f"no metrics; give some of {', '.join(metric_choices())}, or leave them out")
        return [_named(choice, metric_choices(), "metric") for choice in dict.fromkeys(self.metrics)]

    def _further(self) -> list[type[Metric]]:
        chosen = self._chosen()
        known = {name: metric for name, metric in metric_choices().items() if not issubclass(metric, CorpusScore)}
        found = [_named(choice, known, "discourse measure") for choice in dict.fromkeys(self.discourse)]
        return [metric for metric in found if metric not in chosen]

    def _made(self, metric: type[Metric]) -> Metric:
        return metric(**{name: getattr(self, option) for option, name in metric.evaluation_options.items()})


def _named(choice: str, known: Mapping[str, type[Metric]], kind: str) -> type[Metric]:
    if choice not in known:
        hint = closest_hint(choice, known)
        raise ValueError(f"unknown {kind} {choice!r}: expected some of {', '.join(known)}{hint}")
    return known[choice]
