"""Actors of a Ray cluster: a node that is killed while it works costs time, and no document."""

import json
import os
import re
import subprocess
import sys
import time
from threading import Thread

import pytest
from support.tiny_models import WORDS, source_rows, write_model

from hf_docmt.messages import install_command
from hf_docmt.translation import ray_actors
from hf_docmt.translation.group_translation import GroupTranslator, TranslationSettings
from hf_docmt.translation.job_input import document_groups
from hf_docmt.translation.ray_actors import TranslatingActor, actor_needs, ray_engine


def nodes(*resources):
    return [{"Resources": dict(zip(("CPU", "GPU"), amounts))} for amounts in resources]


def test_actors_and_what_they_need():
    assert actor_needs("cuda", None, nodes((8, 2), (8, 1), (4,))) == (3, {"num_gpus": 1})
    assert actor_needs("cuda:0", 2, nodes((8, 2), (8, 1))) == (2, {"num_gpus": 1})
    assert actor_needs("cpu", None, nodes((8, 2), (6, 1), (0,))) == (2, {"num_cpus": 6})
    assert actor_needs("cpu", 4, nodes((8,), (6,))) == (4, {"num_cpus": 3})
    assert actor_needs("cpu", 14, nodes((8,), (6,))) == (14, {"num_cpus": 1})
    for device, count, message in (
        ("cpu", 15, "15 actors need as many CPUs, the Ray cluster has 14"),
        ("cuda", None, "GPUs"),
    ):
        with pytest.raises(ValueError, match=message):
            actor_needs(device, count, nodes((8,), (6,)))


def test_ray_is_an_extra(monkeypatch):
    monkeypatch.setattr(ray_actors, "ray", None)
    with pytest.raises(ValueError, match=re.escape(install_command("ray"))):
        ray_engine(TranslationSettings("folder"))


@pytest.fixture
def settings(tmp_path):
    return TranslationSettings(str(write_model(tmp_path / "model")), "en", strategy="sentence")


def documents(count):
    return source_rows(*[[f"{WORDS[number % 20]} {WORDS[k % 23]}" for k in range(32)] for number in range(count)])


def test_an_actor_gives_the_rows_of_the_translator_also_after_a_restart(settings):
    (group,) = document_groups(documents(3))
    expected = GroupTranslator(settings)(group)
    actor = TranslatingActor(settings, False, 1)
    assert actor.translate(group) == expected == actor.translate(group)


@pytest.mark.slow
def test_a_node_that_is_killed_costs_time_and_no_document(settings, tmp_path, capfd):
    pytest.importorskip("ray")
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    from ray.cluster_utils import Cluster

    rows = documents(640)
    (tmp_path / "in").mkdir()
    for part in range(4):
        lines = [json.dumps(row) + "\n" for row in rows[part * 160 : part * 160 + 160]]
        (tmp_path / "in" / f"part-{part}.jsonl").write_text("".join(lines))
    size = {"num_cpus": 1, "object_store_memory": 100 << 20}
    cluster = Cluster(initialize_head=True, head_node_args={"include_dashboard": False, **size})
    try:
        lost = cluster.add_node(**size)
        command = ["translate", settings.model, tmp_path / "in", "-o", tmp_path / "out", "--strategy", "sentence"]
        options = ["--engine", "ray", "--address", cluster.address, "--source-lang", "en"]
        job = subprocess.Popen(
            [sys.executable, "-m", "hf_docmt", *map(str, [*command, *options])], stderr=subprocess.PIPE
        )
        killer = Thread(target=_kill_after_the_first_shard, args=(cluster, lost, tmp_path / "out"), daemon=True)
        killer.start()
        messages = job.communicate(timeout=500)[1].decode()
    finally:
        cluster.shutdown()
    assert job.returncode == 0, messages
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    written = [json.loads(line) for shard in manifest["shards"] for line in (tmp_path / "out" / shard["file"]).open()]
    done = [row["doc_id"] for row in written]
    redone = sum(int(last) - int(first) + 1 for first, last in _lost_documents(messages))
    table = {"documents": len(rows), "done": len(done), "redone": redone}
    table |= {"lost": len({row["doc_id"] for row in rows} - {*done}), "doubled": len(done) - len({*done})}
    assert table == {"documents": 640, "done": 640, "redone": redone, "lost": 0, "doubled": 0} and 0 < redone <= 64
    assert done == [row["doc_id"] for row in rows] and manifest["complete"]
    translator = GroupTranslator(settings)
    first, *_, last = document_groups(rows)
    assert written[:32] == translator(first) and written[-32:] == translator(last)


def _kill_after_the_first_shard(cluster, node, folder):
    while not list(folder.glob("shard-*")):
        time.sleep(0.05)
    cluster.remove_node(node, allow_graceful=False)


def _lost_documents(messages):
    lines = [line.split("'") for line in messages.splitlines() if line.startswith("a process was lost")]
    return [(line[1][1:], line[3][1:]) for line in lines]
