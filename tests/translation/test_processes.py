"""Several processes: the rows of one in the groups' order, whatever becomes of a process; none is left behind."""

import os
import signal
import sys
import time
from concurrent.futures import BrokenExecutor, Future
from threading import Timer

import psutil
import pytest
import torch
from support.errors import refused
from support.processes import FORKS
from support.tiny_models import WORDS, source_rows, write_model

from hf_docmt.files import DataError
from hf_docmt.translation import processes
from hf_docmt.translation.group_translation import GroupTranslator, TranslationSettings
from hf_docmt.translation.job_input import Group, document_groups
from hf_docmt.translation.processes import MAX_LOSSES, in_order, job_engine, process_devices

ROWS = source_rows(*[[f"{WORDS[number % 20]} {WORDS[k]}" for k in range(1 + number % 4)] for number in range(60)])


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    folder = write_model(tmp_path_factory.mktemp("model"), 8)
    return TranslationSettings(str(folder), strategy="sequential", search={"num_beams": 2})


@pytest.fixture(autouse=True)
def forked(monkeypatch):
    """Processes have torch loaded when they start."""
    monkeypatch.setattr(processes, "get_context", lambda method: FORKS)


def workers():
    servers = [child for child in psutil.Process().children() if "forkserver" in " ".join(child.cmdline())]
    return [process for server in servers for process in server.children()]


def test_rows_of_one_process_though_another_is_killed(settings, capsys):
    groups = list(document_groups(ROWS, max_sentences=5))
    results, pairs = job_engine(settings, 2)(groups), []
    pairs.append(next(results))
    stopped = workers()[0]
    stopped.suspend()  # so that it has a group when it is killed
    Timer(1, stopped.kill).start()
    pairs += results
    assert pairs == [*zip(groups, map(GroupTranslator(settings), groups))] and len(groups) > 20
    assert "a process was lost; documents from 'd" in capsys.readouterr().err
    assert workers() == []


def test_devices(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert process_devices("cuda", 2) == ["cuda:0", "cuda:1"]
    assert process_devices("cuda:0", 3) == ["cuda:0"] * 3 and process_devices("cpu", 2) == ["cpu"] * 2
    refused("3 processes need 3 GPUs, found 2; give fewer processes", process_devices, "cuda", 3)
    refused("--processes must be at least 1, got 0", process_devices, "cpu", 0)


@pytest.mark.slow
def test_errors_of_a_process(settings):
    wrong = TranslationSettings(settings.model, strategy="stream")
    with pytest.raises(ValueError, match="strategy"):
        list(job_engine(wrong, 2)(document_groups(ROWS, max_sentences=5)))
    assert workers() == []


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_processes_end_with_the_one_that_started_them(settings, number, tmp_path):
    """Also where it has no time to end them; one of theirs translates a group for ever."""
    script = tmp_path / "job.py"
    script.write_text(
        "import os, pathlib, time\n"
        "from hf_docmt.translation import processes\n"
        "class Endless:\n"
        "    def __init__(self, settings): pass\n"
        "    def __call__(self, group):\n"
        "        pathlib.Path(__file__).with_name(f'{os.getpid()}.started').touch()\n"
        "        while True: time.sleep(0.01)\n"
        "processes.GroupTranslator = Endless\n"
        "if __name__ == '__main__':\n"
        "    from hf_docmt.translation.job_input import document_groups\n"
        "    settings = processes.TranslationSettings('none')\n"
        "    row = {'doc_id': 'a', 'translation': [{'en': 'b'}]}\n"
        "    list(processes.job_engine(settings, 2)(document_groups([row] * 9, 1)))\n"
    )
    job = psutil.Popen([sys.executable, script], stderr=open(tmp_path / "errors", "w"))
    while len(list(tmp_path.glob("*.started"))) < 2:
        assert job.poll() is None
        time.sleep(0.1)
    children = job.children(recursive=True)
    os.kill(job.pid, number)
    assert job.wait(20) != 0
    assert psutil.wait_procs(children, timeout=20)[1] == []
    # after SIGKILL Python's tracker frees the semaphores of concurrent.futures, and says so
    assert number == signal.SIGKILL or "leaked" not in (tmp_path / "errors").read_text()


class Pool:
    """In this process: the rows come when they are asked for, and some processes are lost in between."""

    def __init__(self, losses: dict[int, int] | None = None):
        self.losses, self.given = dict(losses or {}), []

    def __call__(self, group):
        self.given.append(group.number)
        future = Future()
        if self.losses.get(group.number):
            self.losses[group.number] -= 1
            future.set_exception(BrokenExecutor())
        else:
            future.set_result([{"number": group.number}])
        return future


def groups(count, taken=None):
    for number in range(count):
        if taken is not None:
            taken.append(number)
        yield Group(number, [{"doc_id": f"d{number}"}])


def test_order_and_bound(monkeypatch):
    """Futures that are not done say so, so that as many groups as may be are taken in."""
    monkeypatch.setattr(Future, "done", lambda self: self.exception() is not None)
    taken, pool = [], Pool({3: 1, 4: MAX_LOSSES - 1})
    for expected, (group, rows) in enumerate(in_order(groups(60, taken), pool, ahead=5)):
        assert group.number == expected and rows == [{"number": expected}] and len(taken) <= expected + 5
    assert expected == 59 and sorted(pool.given) == sorted([*range(60), 3] + [4] * (MAX_LOSSES - 1))


def test_groups_before_a_broken_document_are_given_out():
    def broken():
        yield from groups(9)
        raise DataError("line 10: no JSON")

    results = []
    with pytest.raises(DataError, match="line 10"):
        for _, rows in in_order(broken(), Pool(), 8):
            results += rows
    assert [row["number"] for row in results] == list(range(9))


def test_numbers_of_a_resumed_job_begin_anywhere():
    later = [group for group in groups(9) if group.number > 5]
    assert [rows[0]["number"] for _, rows in in_order(later, Pool(), 8)] == [6, 7, 8]
    assert list(in_order([], Pool(), 8)) == []


def test_rows_do_not_wait_for_groups_that_have_not_arrived():
    """The next group comes when the rows of the one before are given out, as with a program that waits for them."""
    numbers, asked = [], []

    def arriving():
        for group in groups(4):
            while len(numbers) < group.number:
                asked.append(group.number)
                assert len(asked) < 100, f"no rows of group {group.number - 1}"
                yield None
            yield group

    for _, rows in in_order(arriving(), Pool(), 12):
        numbers.append(rows[0]["number"])
    assert numbers == [0, 1, 2, 3]


def test_a_group_that_loses_its_processes_again_and_again_ends_the_job():
    results = in_order(groups(9), Pool({2: MAX_LOSSES}), 8)
    with pytest.raises(ChildProcessError, match="3 processes ended while documents 'd2' to 'd[2-8]' were translated"):
        list(results)
