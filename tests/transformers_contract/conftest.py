"""Which tests of transformers are skipped, and the table of passed, failed and skipped ones by model."""

from collections import defaultdict

import pytest
from transformers import __version__

OUTCOMES = ("passed", "failed", "skipped")
results = defaultdict(dict)  # class of tests -> name of the test -> outcome


@pytest.fixture(autouse=True)
def no_logged_deprecation():
    """In place of the check of all other tests: tests of transformers call what it deprecates."""


def pytest_collection_modifyitems(items):
    """The reason is found by the test's class, which knows its model."""
    for item in items:
        reason = item.cls.artefact(item.name) if item.path.name == "contract.py" else None
        if reason:
            item.add_marker(pytest.mark.skip(reason=reason))


def pytest_runtest_logreport(report):
    """A test has failed where one of its subtests has."""
    path, *names = report.nodeid.split("::")
    if not path.endswith("contract.py") or (report.when != "call" and report.passed):
        return
    tests, name = results[names[0]], names[1]
    if tests.get(name) != "failed":
        tests[name] = report.outcome


def pytest_terminal_summary(terminalreporter):
    if not results:
        return
    terminalreporter.section(f"the tests of transformers {__version__}")
    terminalreporter.line(f"{'model':32}" + "".join(f"{outcome:>9}" for outcome in OUTCOMES))
    for model, tests in sorted(results.items(), key=lambda item: (item[0] != "MarianTest", item[0])):
        found = list(tests.values())
        counts = "".join(f"{found.count(outcome):9}" for outcome in OUTCOMES)
        terminalreporter.line(f"{model.removesuffix('Test'):32}{counts}")
