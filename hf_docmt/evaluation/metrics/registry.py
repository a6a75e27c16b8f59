"""The metrics there are: those of this package, and those that plugins have registered."""

from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from hf_docmt.evaluation.metrics.metric import METRICS, Metric
from hf_docmt.messages import closest_hint


def metric_classes() -> dict[str, type[Metric]]:
    """Every metric by its name; the modules of this package are imported first."""
    _import_modules()
    return METRICS


def metric_class(name: str) -> type[Metric]:
    """The metric of this name; ValueError with the closest one for an unknown one."""
    known = metric_classes()
    if name not in known:
        raise ValueError(f"unknown metric {name!r}: expected one of {', '.join(known)}{closest_hint(name, known)}")
    return known[name]


def default_metrics() -> tuple[str, ...]:
    """The names of the metrics that are scored where none are named."""
    return tuple(name for name, metric in metric_classes().items() if metric.default)


def metric_choices() -> dict[str, type[Metric]]:
    """The metrics that can be asked for, by the names of these choices."""
    return {metric.choice: metric for metric in metric_classes().values() if metric.choice is not None}


@cache
def _import_modules() -> None:
    for module in iter_modules([str(Path(__file__).parent)]):
        if not module.ispkg:
            import_module(f"{__package__}.{module.name}")
