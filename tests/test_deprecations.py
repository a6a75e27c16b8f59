"""What transformers calls deprecated fails a test, whichever way it says so."""

import warnings
from pathlib import Path

import pytest
from support.deprecations import logged_deprecations
from support.processes import run_python
from transformers.utils import logging

ROOT = Path(__file__).resolve().parent.parent
logger = logging.get_logger("transformers.generation.utils")


@pytest.mark.parametrize("category", [FutureWarning, DeprecationWarning])
def test_warnings_by_module_and_by_words(category):
    def warn(text, module):
        warnings.warn_explicit(text, category, "file.py", 1, module=module)

    with pytest.raises(category):
        warn("use another", "transformers.trainer")
    with pytest.raises(category):
        warn("gone in\nTransformers v6", "hf_docmt.loading.registry")
    with pytest.warns(category):
        warn("use another", "other.library")


def test_log_records():
    """Each time, though it is logged once a process, and not at all by the verbosity of tests."""
    for _ in range(2):
        with logged_deprecations() as found:
            logger.warning_once("`torch_dtype` is deprecated! Use `dtype` instead!")
            logger.warning("something else")
            logging.logging.getLogger("other").warning("deprecated")
        assert set(found) == {"`torch_dtype` is deprecated! Use `dtype` instead!"}


def test_deprecations_of_peft_only():
    """The exemption of setup.cfg hides no use of our own."""
    files = [path for room in ("hf_docmt", "modeling", "examples") for path in (ROOT / room).rglob("*.py")]
    assert files and [path for path in files if "is_gradient_checkpointing" in path.read_text()] == []


def test_a_log_record_fails_a_test(tmp_path):
    """By the fixture of every test."""
    test = tmp_path / "test_logs.py"
    test.write_text(
        "from transformers.utils import logging\n\n\ndef test_logs():\n"
        "    logging.get_logger('transformers').warning_once('`x` is deprecated')\n"
    )
    options = ["-q", "-p", "conftest", "-p", "no:cacheprovider", f"--rootdir={ROOT}"]
    done = run_python("-m", "pytest", *options, test, cwd=ROOT / "tests")
    assert done.returncode == 1 and "use what it names in the place of it: ['`x` is deprecated" in done.stdout
