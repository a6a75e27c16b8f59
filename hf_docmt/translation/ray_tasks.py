"""Translation by tasks of a Ray cluster (extra `ray`): one for each GPU, or with a share of the cores.

The process that starts the job reads the input, hands out groups, and writes the output. Where a process or machine was
lost, Ray runs its task again where it finds room.
"""

import os
import signal
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from hf_docmt.loading.remote_code import is_trusted
from hf_docmt.messages import install_command
from hf_docmt.translation.group_translation import TranslationSettings
from hf_docmt.translation.interruption import SIGNALS
from hf_docmt.translation.job import Engine, Results
from hf_docmt.translation.job_input import Group
from hf_docmt.translation.processes import AHEAD, MAX_LOSSES, Worker, in_order, translate_group, user_error

try:
    import ray
    from ray.exceptions import RayError, RayTaskError
except ImportError:
    ray = None


def ray_engine(settings: TranslationSettings, address: str | None = None, processes: int | None = None) -> Engine:
    """The engine that translates on the Ray cluster at this address; None is RAY_ADDRESS, or this machine alone.

    There is a process for each GPU with device `cuda`, for each node, or `processes`. Every node needs the model folder
    and the package. Raises `ValueError` without Ray and for a cluster that is too small, in use as `job_engine`.
    """
    if ray is None:
        raise ValueError(f"--engine ray needs Ray: {install_command('ray')}")

    def translate(groups: Iterable[Group | None]) -> Results:
        with _cluster(address):
            count, needs = task_needs(settings.device, processes, [node for node in ray.nodes() if node["Alive"]])
            device = "cuda" if settings.device.startswith("cuda") else settings.device  # the one that a task may see
            worker = Worker(replace(settings, device=device), is_trusted(), needs.get("num_cpus"))
            # max_calls=0: a process stays, with its model
            task = ray.remote(max_calls=0, max_retries=MAX_LOSSES, **needs)(translate_group)
            try:
                yield from in_order(groups, lambda group: task.remote(worker, group).future(), AHEAD * count)
            except RayTaskError as error:
                raise user_error(error.cause) or RuntimeError(str(error)) from error
            except RayError as error:
                raise ChildProcessError(f"{error}; look for a lack of memory on the nodes") from error

    return translate


def task_needs(device: str, processes: int | None, nodes: list[dict[str, Any]]) -> tuple[int, dict[str, int]]:
    """The number of tasks at a time and what one of them needs, as options of Ray; `nodes` are the living ones.

    Raises `ValueError` for a cluster that is too small.
    """
    kind = "GPU" if device.startswith("cuda") else "CPU"
    amounts = [int(node["Resources"].get(kind, 0)) for node in nodes]
    count = processes or (sum(amounts) if kind == "GPU" else sum(amount > 0 for amount in amounts))
    if count < 1 or count > sum(amounts):
        raise ValueError(f"{max(count, 1)} processes need {max(count, 1)} {kind}s, the Ray cluster has {sum(amounts)}")
    if kind == "GPU":
        return count, {"num_gpus": 1}
    smallest = min(amount for amount in amounts if amount > 0)
    return count, {"num_cpus": max(1, min(sum(amounts) // count, smallest))}


@contextmanager
def _cluster(address: str | None) -> Iterator[None]:
    """Connect to the cluster unless connected; signals stay with the job."""
    if ray.is_initialized():
        yield
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    in_main_thread = threading.current_thread() is threading.main_thread()
    handlers = {number: signal.getsignal(number) for number in SIGNALS} if in_main_thread else {}
    try:
        ray.init(address, logging_level="ERROR", log_to_driver=False, include_dashboard=None if address else False)
        for number, handler in handlers.items():  # Ray has set its own
            signal.signal(number, handler)
        yield
    finally:
        ray.shutdown()
