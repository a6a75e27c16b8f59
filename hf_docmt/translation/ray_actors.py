"""Translation by actors of a Ray cluster: one for each GPU, or with a share of the cores (extra `ray`).

The process that starts the job reads the input, hands groups to the actors, and writes the shards; Ray starts a lost
actor again where it finds room. Blocks of Ray Data have no fixed place in the output, so that shards could be neither
named beforehand nor made one by one.
"""

import os
import signal
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from hf_docmt.messages import install_command
from hf_docmt.remote_code import is_trusted
from hf_docmt.translation.group_translation import GroupTranslator, TranslationSettings
from hf_docmt.translation.interruption import SIGNALS
from hf_docmt.translation.job import Engine, Results
from hf_docmt.translation.job_input import Group
from hf_docmt.translation.processes import Workers, user_error, worker_translator

try:
    import ray
    from ray.exceptions import ObjectLostError, RayActorError, RayTaskError
except ImportError:
    ray = None

MAX_RESTARTS = 100  # of one actor, by Ray


def ray_engine(settings: TranslationSettings, address: str | None = None, actors: int | None = None) -> Engine:
    """The engine that translates on the Ray cluster at this address; None is RAY_ADDRESS, or this machine alone.

    With device `cuda` there is an actor for each GPU, else one for each node, or so many as `actors` says, which share
    the cores. Model folder and package have to be there on every node; an actor that finds no room is waited for.
    Raises `ValueError` without Ray and for a cluster without what actors need, and as `process_engine` in use.
    """
    if ray is None:
        raise ValueError(f"--engine ray needs Ray: {install_command('ray')}")

    def translate(groups: Iterable[Group | None]) -> Results:
        with _cluster(address):
            count, needs = actor_needs(settings.device, actors, [node for node in ray.nodes() if node["Alive"]])
            yield from RayActors(settings, count, needs).translate(groups)

    return translate


def actor_needs(device: str, actors: int | None, nodes: list[dict[str, Any]]) -> tuple[int, dict[str, int]]:
    """The number of actors and what one of them needs, as options of Ray; `nodes` are the living ones of the cluster.

    Raises `ValueError` for a cluster that is too small.
    """
    kind = "GPU" if device.startswith("cuda") else "CPU"
    amounts = [int(node["Resources"].get(kind, 0)) for node in nodes]
    count = actors or (sum(amounts) if kind == "GPU" else sum(amount > 0 for amount in amounts))
    if count < 1 or count > sum(amounts):
        raise ValueError(f"{max(count, 1)} actors need as many {kind}s, the Ray cluster has {sum(amounts)}")
    if kind == "GPU":
        return count, {"num_gpus": 1}
    smallest = min(amount for amount in amounts if amount > 0)
    return count, {"num_cpus": max(1, min(sum(amounts) // count, smallest))}


class RayActors(Workers):
    """The actors of a Ray cluster. One that is lost works again when Ray has started it again."""

    def __init__(self, settings: TranslationSettings, count: int, needs: dict[str, int]):
        super().__init__(count)
        self.calls: dict[Any, tuple[Any, Group | None]] = {}  # of an actor: a group, or None while it loads the model
        actor_class = ray.remote(max_restarts=MAX_RESTARTS, max_task_retries=0, **needs)(TranslatingActor)
        for _ in range(count):
            self._load(actor_class.remote(settings, is_trusted(), needs.get("num_cpus")))

    def _load(self, actor) -> None:
        self.calls[actor.load.options(max_task_retries=-1).remote()] = actor, None

    def submit(self, worker, group: Group) -> None:
        self.calls[worker.translate.remote(group)] = worker, group

    def wait(self) -> list[tuple[Group, list[dict] | None]]:
        if not self.calls:
            raise ChildProcessError(f"every actor was lost {MAX_RESTARTS} times; look for a lack of memory on its node")
        done, _ = ray.wait(list(self.calls), num_returns=1)
        actor, group = self.calls.pop(done[0])
        try:
            rows = ray.get(done[0])
        except RayTaskError as error:
            raise user_error(error.cause) or RuntimeError(str(error)) from error
        except (RayActorError, ObjectLostError):
            if group is None:  # Ray does not start it again
                return []
            self._load(actor)
            return [(group, None)]
        self.idle.append(actor)
        return [] if group is None else [(group, rows)]


class TranslatingActor:
    """A translator in a process of the cluster. After a restart by Ray it has to `load` again."""

    def __init__(self, settings: TranslationSettings, is_trusted: bool, threads: int | None):
        self.settings, self.is_trusted, self.threads = settings, is_trusted, threads
        self.translator: GroupTranslator | None = None

    def load(self) -> None:
        """Load the model."""
        device = "cuda" if self.settings.device.startswith("cuda") else self.settings.device  # the one that it may see
        self.translator = worker_translator(replace(self.settings, device=device), self.is_trusted, self.threads)

    def translate(self, group: Group) -> list[dict]:
        """The result rows of a group."""
        if self.translator is None:
            self.load()
        return self.translator(group)


@contextmanager
def _cluster(address: str | None) -> Iterator[None]:
    """A connection to the cluster, if there is none yet; signals stay with the job."""
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
