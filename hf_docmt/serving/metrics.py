"""Counters in the text format of Prometheus.

https://prometheus.io/docs/instrumenting/exposition_formats/
"""

from collections import Counter, defaultdict
from typing import Any

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
HELP = {  # name -> type, help
    "docmt_requests_total": ("counter", "Requests that were answered, by path and status."),
    "docmt_request_seconds_total": ("counter", "Seconds that they took, by path."),
    "docmt_batches_total": ("counter", "Batches of requests that were translated together."),
    "docmt_sentences_total": ("counter", "Sentences that were translated."),
    "docmt_waiting_sentences": ("gauge", "Sentences that wait."),
    "docmt_sessions": ("gauge", "Sessions with context."),
    "docmt_files": ("gauge", "Translated files that wait to be fetched."),
}


class Metrics:
    """Counts of requests; used in one thread."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, int]] = Counter()  # by path and status
        self.seconds: dict[str, float] = defaultdict(float)

    def add(self, path: str, status: int, seconds: float) -> None:
        self.requests[path, status] += 1
        self.seconds[path] += seconds

    def text(self, **values: float) -> str:
        """All counters, those of others by their names without `docmt_`."""
        samples: dict[str, dict[str, Any]] = {f"docmt_{name}": {"": value} for name, value in values.items()}
        samples["docmt_requests_total"] = {
            f'{{path="{path}",status="{status}"}}': count for (path, status), count in sorted(self.requests.items())
        }
        samples["docmt_request_seconds_total"] = {f'{{path="{path}"}}': time for path, time in self.seconds.items()}
        lines = []
        for name, (kind, help) in HELP.items():
            lines += [f"# HELP {name} {help}", f"# TYPE {name} {kind}"]
            lines += [f"{name}{labels} {value}" for labels, value in samples[name].items()]
        return "\n".join(lines) + "\n"
