"""Counters in the text format of Prometheus.

https://prometheus.io/docs/instrumenting/exposition_formats/
"""

from collections import Counter, defaultdict

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """Counts of requests; used in one thread."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, int]] = Counter()  # by path and status
        self.seconds: dict[str, float] = defaultdict(float)

    def add(self, path: str, status: int, seconds: float) -> None:
        self.requests[path, status] += 1
        self.seconds[path] += seconds

    def text(self, **values: float) -> str:
        """All of them, those of others by their names without `docmt_`; what ends in `_total` is a counter."""
        samples: dict[str, dict[str, float]] = {name: {"": value} for name, value in values.items()}
        samples["requests_total"] = {
            f'{{path="{path}",status="{status}"}}': count for (path, status), count in sorted(self.requests.items())
        }
        samples["request_seconds_total"] = {f'{{path="{path}"}}': seconds for path, seconds in self.seconds.items()}
        text = ""
        for name, lines in samples.items():
            text += f"# TYPE docmt_{name} {'counter' if name.endswith('_total') else 'gauge'}\n"
            text += "".join(f"docmt_{name}{labels} {value}\n" for labels, value in lines.items())
        return text
