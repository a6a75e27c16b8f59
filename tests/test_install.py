"""What a plain install brings, and what messages say of the rest: it works from where the reader is."""

import configparser
import os
import re
import shutil
import subprocess
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest
from support.errors import refused
from support.hidden_packages import HIDE
from support.language_models import sentence_model
from support.lower_bounds import lower_bounds
from transformers import AutoTokenizer

from hf_docmt.loading import registry
from hf_docmt.loading.remote_code import load_tokenizer
from hf_docmt.messages import core_command, extra_requirements, install_command, requirements

ROOT = Path(__file__).resolve().parent.parent
METADATA = [
    "torch>=2.13",
    'pysubs2>=1.8.0; extra == "subtitles"',
    'hf-docmt[text]; extra == "subtitles"',
    "sentencex>=1.0.32; extra == 'text'",
    'tensorboard; extra == "tracking"',
    'one>=1; python_version < "4" and extra == "both"',
    'hf-docmt[text]; extra == "both"',
    'hf-docmt[subtitles]; extra == "both"',
]
CONVERT = f"""{HIDE}
hide({{"sentencepiece", "google"}})
from hf_docmt import cli

for name in sys.argv[1:]:
    sys.argv = ["docmt", "convert", name, name + ".document", "--architecture", "caching"]
    try:
        cli.main()
    except SystemExit as end:
        assert end.code == 1, end.code
"""


def set_up() -> configparser.ConfigParser:
    found = configparser.ConfigParser()
    found.read(ROOT / "setup.cfg")
    return found


@pytest.fixture
def metadata(monkeypatch):
    monkeypatch.setattr("importlib.metadata.requires", lambda name: METADATA)


@pytest.mark.parametrize(
    ("extra", "command"),
    [
        ("text", "pip install 'sentencex>=1.0.32'"),
        ("subtitles", "pip install 'pysubs2>=1.8.0' 'sentencex>=1.0.32'"),
        ("tracking", "pip install tensorboard"),
        ("both", "pip install 'one>=1' 'sentencex>=1.0.32' 'pysubs2>=1.8.0'"),
        ("unknown", "pip install '.[unknown]' in the checkout of hf-docmt"),
    ],
)
def test_command_of_an_extra(metadata, extra, command):
    assert install_command(extra) == command


def test_commands_of_a_checkout_that_is_not_installed(monkeypatch):
    def requires(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.requires", requires)
    assert install_command("text") == "pip install '.[text]' in the checkout of hf-docmt"
    assert core_command(["protobuf"]) == "pip install protobuf"


def test_command_of_dependencies(metadata):
    assert core_command(["torch", "other"]) == "pip install 'torch>=2.13' other"


@pytest.mark.parametrize("extra", sorted(set_up()["options.extras_require"]))
def test_installed_metadata(extra):
    """Those of the package as it is here have what setup.cfg has."""
    named = set_up()["options.extras_require"][extra].split("\n")
    expected = {one for one in named if one and not one.startswith(("#", "hf-docmt["))}
    found = list(extra_requirements(extra, requirements()))
    assert expected <= set(found) and not any("hf-docmt" in one for one in found)


def test_lower_bounds_that_matter():
    bounds = dict(line.split("==") for line in lower_bounds(str(ROOT / "setup.cfg")))
    assert tuple(map(int, bounds["ctranslate2"].split("."))) >= (4, 8, 1)  # a heap overflow before
    core = set_up()["options"]["install_requires"]
    assert "\nsentencepiece>=" in core and "\nprotobuf>=" in core


def test_nothing_points_at_an_index():
    """The package is on none: `pip install hf-docmt[...]` would install nothing, or somebody else's."""
    asked = re.compile(r"""pip install (-\S+ )*['"]?hf[-_]docmt""")
    rooms = [room for room in ROOT.iterdir() if not room.name.startswith(".")]
    files = [path for room in rooms for path in (room, *room.rglob("*"))]
    kept = (path for path in files if path.suffix in (".py", ".md", ".j2", ".yaml", ".txt") and path.is_file())
    texts = {path: path.read_text("utf-8") for path in kept}
    faults = [str(path) for path, text in texts.items() if path != Path(__file__) and asked.search(text)]
    assert faults == []
    assert asked.search("pip install 'hf-docmt[text]'") and asked.search("pip install hf-docmt\n")


def test_converting_without_packages(tmp_path):
    """One line says what is missing, where transformers names all classes that it has, or a package for other files."""
    names = []
    for family in ("marian", "nllb"):
        files = tmp_path / f"{family}-files"
        files.mkdir()
        made, folder = sentence_model(family, files), tmp_path / family
        made.model.save_pretrained(folder)
        made.tokenizer.save_pretrained(folder)
        names.append(str(folder))
    as_on_the_hub(tmp_path / "marian", tmp_path / "nllb", tmp_path / "marian-files" / "source.spm")
    done = subprocess.run(
        [sys.executable, "-c", CONVERT, *names], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stderr.splitlines() if str(tmp_path) in line and "sentencepiece.bpe" not in line]
    command = core_command(["sentencepiece", "protobuf"])
    assert lines == [
        f"docmt: {name}: the tokenizer cannot be loaded without sentencepiece and protobuf: {command}" for name in names
    ]
    assert "GPT2Config" not in done.stderr


def test_converting_with_them(run, tmp_path):
    """Old folders of both families, which have no tokenizer of the library tokenizers."""
    files = tmp_path / "files"
    files.mkdir()
    for family in ("marian", "nllb"):
        made, folder = sentence_model(family, files), tmp_path / family
        made.model.save_pretrained(folder)
        made.tokenizer.save_pretrained(folder)
    as_on_the_hub(tmp_path / "marian", tmp_path / "nllb", files / "source.spm")
    codes = {"marian": (), "nllb": ("--source-lang", "eng_Latn", "--target-lang", "deu_Latn")}
    for family, languages in codes.items():
        code, out, err = run("convert", tmp_path / family, tmp_path / f"{family}-document", *languages)
        assert code == 0, err


def as_on_the_hub(marian: Path, nllb: Path, pieces: Path) -> None:
    """Opus-MT does not say its tokenizer's class; folders of NLLB and mBART may hold a model of sentencepiece alone."""
    (marian / "tokenizer_config.json").write_text('{"source_lang": "en", "target_lang": "de"}')
    (nllb / "tokenizer.json").unlink()
    shutil.copy(pieces, nllb / "sentencepiece.bpe.model")


def test_a_folder_without_tokenizer(monkeypatch, tmp_path):
    registry.register_all()
    (tmp_path / "config.json").write_text('{"model_type": "docmt-concat"}')
    message = f"{tmp_path}: no tokenizer is there: expected tokenizer.json, or files of a class that"
    refused(message, load_tokenizer, tmp_path)

    def names_all(*_, **__):
        raise ValueError("Unrecognized configuration class X to build an AutoTokenizer.\nModel type should be one of Y")

    monkeypatch.setattr(AutoTokenizer, "from_pretrained", names_all)
    refused(message, load_tokenizer, tmp_path)


def planned(*arguments) -> str:
    """The commands that make would run, whatever was given to the `make test` that this runs in."""
    given = ("MAKEFLAGS", "MAKEOVERRIDES", "EXTRA", "TORCH", "PIP_OPTIONS")
    outer = {name: value for name, value in os.environ.items() if name not in given}
    command = ["make", "-n", *arguments]
    return subprocess.run(command, cwd=ROOT, env=outer, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("target", ["demo", "real", "test"])
def test_the_demo_installs_no_test_tools(target, tmp_path):
    commands = planned(target, f"VENV={tmp_path}")
    assert ("'.[test]'" in commands) == (target == "test") and "'.[documents,peft,serve]'" in commands


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ((), "--upgrade --upgrade-strategy eager --editable '.[test]'"),
        (("TORCH=torch==9.9",), "'.[test]' torch==9.9"),
        (("PIP_OPTIONS=--constraint FILE",), "pip install --constraint FILE --upgrade"),
    ],
)
def test_newest_versions_are_installed(settings, words):
    """`make test-latest` in an environment of its own, without the pins."""
    commands = planned("test-latest", *settings)
    assert words in commands and "constraints.txt" not in commands
    assert commands.count(".venv-latest/bin/python -m p") == 3
