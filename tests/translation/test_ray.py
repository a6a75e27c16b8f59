"""Tasks of a Ray cluster: a node that is killed while it works costs time, and no document."""

import json
import os
import re
import subprocess
import sys
import time
from threading import Thread

import pytest
from support.tiny_models import WORDS, source_rows, write_model

from hf_docmt.journal import Journal
from hf_docmt.messages import install_command
from hf_docmt.translation import ray_tasks
from hf_docmt.translation.group_translation import GroupTranslator, TranslationSettings
from hf_docmt.translation.job_input import document_groups
from hf_docmt.translation.ray_tasks import ray_engine, task_needs


def nodes(*resources):
    return [{"Resources": dict(zip(("CPU", "GPU"), amounts))} for amounts in resources]


def test_tasks_and_what_they_need():
    assert task_needs("cuda", None, nodes((8, 2), (8, 1), (4,))) == (3, {"num_gpus": 1})
    assert task_needs("cuda:0", 2, nodes((8, 2), (8, 1))) == (2, {"num_gpus": 1})
    assert task_needs("cpu", None, nodes((8, 2), (6, 1), (0,))) == (2, {"num_cpus": 6})
    assert task_needs("cpu", 4, nodes((8,), (6,))) == (4, {"num_cpus": 3})
    assert task_needs("cpu", 14, nodes((8,), (6,))) == (14, {"num_cpus": 1})
    for device, count, message in (
        ("cpu", 15, "15 processes need 15 CPUs, the Ray cluster has 14"),
        ("cuda", None, "GPUs"),
    ):
        with pytest.raises(ValueError, match=message):
            task_needs(device, count, nodes((8,), (6,)))


def test_ray_is_an_extra(monkeypatch):
    monkeypatch.setattr(ray_tasks, "ray", None)
    with pytest.raises(ValueError, match=re.escape(install_command("ray"))):
        ray_engine(TranslationSettings("folder"))


@pytest.fixture
def settings(tmp_path):
    return TranslationSettings(str(write_model(tmp_path / "model")), "en", strategy="sentence")


def documents(count):
    return source_rows(*[[f"{WORDS[number % 20]} {WORDS[k % 23]}" for k in range(32)] for number in range(count)])


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
        output = tmp_path / "out.jsonl"
        command = ["translate", settings.model, tmp_path / "in", "-o", output, "--strategy", "sentence"]
        options = ["--engine", "ray", "--address", cluster.address, "--source-lang", "en"]
        job = subprocess.Popen(
            [sys.executable, "-m", "hf_docmt", *map(str, [*command, *options])], stderr=subprocess.PIPE
        )
        killer = Thread(target=_kill_after_the_first_group, args=(cluster, lost, tmp_path), daemon=True)
        killer.start()
        messages = job.communicate(timeout=500)[1].decode()
    finally:
        cluster.shutdown()
    assert job.returncode == 0, messages
    assert not killer.is_alive(), "killed too late"
    written = [json.loads(line) for line in output.open()]
    assert [row["doc_id"] for row in written] == [row["doc_id"] for row in rows]
    translator = GroupTranslator(settings)
    first, *_, last = document_groups(rows)
    assert written[:32] == translator(first) and written[-32:] == translator(last)


def _kill_after_the_first_group(cluster, node, folder):
    while len(list(Journal(folder / "out.jsonl.journal").rows())) < 2:
        time.sleep(0.05)
    cluster.remove_node(node, allow_graceful=False)
