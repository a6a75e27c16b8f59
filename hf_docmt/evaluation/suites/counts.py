"""How many items a suite has, and what differs from the published numbers."""

from collections import Counter
from collections.abc import Sequence

from hf_docmt.evaluation.suites.items import SuiteItem, labels_of
from hf_docmt.evaluation.suites.reading import suite_rules


def counts(items: Sequence[SuiteItem]) -> dict[str, int]:
    """How many items, candidates, groups, and items with each label (`phenomenon=il`, `distance=>3`, …) there are."""
    found = Counter(f"{name}={value}" for item in items for name, value in labels_of(item).items())
    groups = {item.group for item in items if item.group is not None}
    candidates = sum(len(item.candidates) for item in items)
    return {"items": len(items), "candidates": candidates, "groups": len(groups), **found}


def counts_note(items: Sequence[SuiteItem]) -> str | None:
    """What differs from the counts of the suite as published; None if nothing does, or none is known of that name.

    `items` are the whole suite; its name, such as `deixis_dev`, is that of the file without endings. What no item has
    (distances, say, where only texts were read) is not compared.
    """
    name, found = items[0].suite, counts(items)
    published = suite_rules(items).published_counts(name, items) or {}
    known = {key.partition("=")[0] for key in found}
    parts = [
        f"{key} {found.get(key, 0):,} (published {count:,})"
        for key, count in published.items()
        if key.partition("=")[0] in known and found.get(key, 0) != count
    ]
    return f"{name}: other counts than published: {', '.join(parts)}" if parts else None
