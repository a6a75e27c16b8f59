"""Plugins: files and modules from outside the package, imported before a command runs."""

import sys

import pytest

from hf_docmt import cli
from hf_docmt.data.registration import VARIABLE, load_plugins


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder on the import path, for the current folder; what is imported from it is forgotten at the end."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_files_and_modules(folder, monkeypatch):
    (folder / "json.py").write_text("value = 1")
    (folder / "plugin_package").mkdir()
    (folder / "plugin_package" / "suites.py").write_text("value = 2")
    monkeypatch.setenv(VARIABLE, f"{folder / 'json.py'}, plugin_package.suites,")
    first, second = load_plugins()
    assert (first.value, second.value) == (1, 2)
    import json

    assert json is not first  # a plugin's name shadows no other module


def test_a_module_is_imported_once(folder):
    (folder / "one.py").write_text("value = []")
    (folder / "other").mkdir()
    (folder / "other" / "one.py").write_text("value = [2]")
    first, again, other = load_plugins(["one.py", str(folder / "one.py"), "other/one.py"])
    assert first is again and other.value == [2]


def test_no_plugins(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    assert load_plugins() == []


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("absent.py", "HF_DOCMT_PLUGINS: absent.py is not a file"),
        ("absent.plugin", "HF_DOCMT_PLUGINS: no module 'absent.plugin'"),
    ],
)
def test_what_is_missing(folder, name, message):
    with pytest.raises(ValueError, match=message):
        load_plugins([name])


def test_errors_of_a_plugin_are_passed_on(folder):
    (folder / "broken.py").write_text("import absent_library")
    for name in ("broken.py", "broken", "broken.py"):
        with pytest.raises(ModuleNotFoundError, match="absent_library"):
            load_plugins([name])


def test_the_command_loads_plugins(folder, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["docmt", "--help"])
    monkeypatch.setenv(VARIABLE, "absent.py")
    with pytest.raises(SystemExit):
        cli.main()
    assert "docmt: HF_DOCMT_PLUGINS: absent.py is not a file" in capsys.readouterr().err
    (folder / "absent.py").write_text("print('imported first')")
    with pytest.raises(SystemExit):
        cli.main()
    assert capsys.readouterr().out.startswith("imported first")
