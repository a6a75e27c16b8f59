"""What `docmt serve` refuses before it listens, and that its settings are those of the requests."""

import gc
import os
import shlex
from pathlib import Path
from types import SimpleNamespace

from support.errors import refused
from support.tiny_models import build, word_tokenizer, write_model
from typer.testing import CliRunner

from hf_docmt.cli import app
from hf_docmt.cli.translation_settings import JobOptions, SystemOptions, translation_settings
from hf_docmt.options import DocumentSearch, ModelLanguages, ServerLimits
from hf_docmt.serving import server
from hf_docmt.serving.server import make_server
from hf_docmt.systems import DocMTSystem


def test_settings_of_the_command(tmp_path):
    """All arguments of a job's translation are those of the server's."""
    search = DocumentSearch(num_beams=2, past_context=0, max_new_tokens=5, batch_tokens=50)
    options = JobOptions(strategy="sliding", batch_size=3, device="cpu")
    arguments = (ModelLanguages(), search, options, SystemOptions())
    system = translation_settings(str(write_model(tmp_path)), *arguments).load()
    document = ["w7 w8", "w9"]
    chosen = {"num_beams": 2, "past_context": 0, "max_new_tokens": 5, "batch_tokens": 50}
    assert system.generate_kwargs | {"batch_tokens": system.batch_tokens} == chosen and (
        system.strategy,
        system.batch_size,
    ) == ("sliding", 3)
    expected = system.model.translate_documents([document], system.tokenizer, strategy="sliding", **chosen)
    assert system.translate([document]) == expected


def test_unnamed_languages():
    system = DocMTSystem(build("concat", source_lang=None), word_tokenizer(), "runs/concat")
    end = ServerLimits(timeout=30), "127.0.0.1", 0
    refused("runs/concat names no source language.*give --source-lang", make_server, system, (None, None), *end)
    made = make_server(system, ("en", None), *end)
    assert (made.model.languages, made.config.timeout_graceful_shutdown) == ([["en"], ["de"]], 35)


def test_collections_of_all_objects_are_rare():
    """Each one stops every thread, also that of /health."""
    before, collections = gc.get_threshold(), []
    make_server(DocMTSystem(build("concat"), word_tokenizer()), ("en", "de"), ServerLimits(), "127.0.0.1", 0)
    gc.callbacks.append(count := lambda phase, info: collections.append(info["generation"]))
    try:
        kept = [[] for _ in range(500_000)]
    finally:
        gc.callbacks.remove(count)
        gc.set_threshold(*before)
    assert len(kept) and 1 in collections and 2 not in collections


def test_settings_that_do_not_fit(tmp_path):
    system = DocMTSystem(build("concat"), word_tokenizer(), strategy="stream")
    refused("stream", make_server, system, (None, None), ServerLimits(), "127.0.0.1", 0)


def test_command_of_the_space(tmp_path, monkeypatch):
    """The command of its Dockerfile serves the model."""
    text = (Path(__file__).parents[2] / "examples/space/Dockerfile").read_text("utf-8")
    docmt, *arguments = shlex.split(text.partition("\nCMD ")[2])
    served = []
    monkeypatch.setattr(server, "make_server", lambda *given: SimpleNamespace(run=lambda: served.extend(given)))
    monkeypatch.setenv("DOCMT_MODEL", str(write_model(tmp_path)))
    result = CliRunner().invoke(app, list(map(os.path.expandvars, arguments)))
    assert docmt == "docmt" and result.exit_code == 0 and served[-2:] == ["0.0.0.0", 7860], result.output
