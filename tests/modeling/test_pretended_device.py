"""No tensor of a forward, a backward or a search is on another device than the model: a device that is pretended."""

import re
from pathlib import Path

import pytest
import torch
from support.processes import run_python

from hf_docmt.loading import registry

FOLDER = Path(__file__).parent


def on_pretended_device(*names: str) -> int:
    """The number of tests of these names that pass on the device, one configuration of each architecture."""
    command = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "--device", "pretended", "--cases", "1"]
    command += [str(FOLDER), "-k", " or ".join(names)]
    done = run_python(*command, timeout=900)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
    return int(re.search(r"(\d+) passed", done.stdout)[1])


@pytest.mark.slow
def test_forward_and_backward():
    assert on_pretended_device("test_gradients", "test_devices") >= len(registry.ARCHITECTURES) + 1


@pytest.mark.slow
def test_search_and_strategies():
    names = ("test_cached_is_uncached", "test_one_translation_per_source_sentence")
    assert on_pretended_device(*names) >= len(names) * len(registry.ARCHITECTURES)


def test_devices_do_not_meet(device):
    """What the tests above rely on."""
    other = "meta" if device.type == "cpu" else "cpu"
    assert torch.ones(2, device=device).device.type == device.type
    with pytest.raises(RuntimeError, match="device"):
        torch.ones(2, device=device) + torch.ones(2, device=other)
