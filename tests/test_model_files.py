"""What JSON files of a model folder may hold, and that finding out takes no time."""

import json
import os
import re
import socket
import subprocess
import sys
import time

import pytest
from support.errors import refused
from tokenizers import Regex, Tokenizer, models, normalizers

from hf_docmt import info, reachability, registry
from hf_docmt.model_files import check_model_files, check_normalizers, check_patterns, reading_model
from hf_docmt.systems import kind_of


@pytest.mark.parametrize(
    "pattern",
    ["(a+)+$", "(a|aa)*b", "(x){2,}", ".*.*.*.*q", "(.*a){20}", "a+b+c+d+", "(a{1,9}){1,9}", r"(\w+\.)*q", "[)](a)+"],
)
@pytest.mark.parametrize("field", ["target_modules", "exclude_modules", "layers_pattern", "rank_pattern"])
def test_regular_expressions_that_may_not_end(tmp_path, field, pattern):
    """One of an adapter is matched against the name of every module."""
    value = {pattern: 8} if field == "rank_pattern" else pattern
    (tmp_path / "adapter_config.json").write_text(json.dumps({field: value}))
    start = time.perf_counter()
    refused(f"adapter_config.json: {field} has the regular expression", check_model_files, tmp_path)
    assert time.perf_counter() - start < 1


UNSLOTH = (  # as that package writes it
    r"(?:.*?(?:language|text).*?(?:self_attn|attention|attn|mlp|feed_forward|ffn|dense).*?(?:q_proj|k_proj|o_proj).*?)"
    r"|(?:\bmodel\.layers\.[\d]{1,}\.(?:self_attn|mlp)\.(?:(?:q_proj|k_proj|o_proj|gate_proj)))"
)


@pytest.mark.parametrize(
    "value",
    [
        "all-linear",
        r".*decoder.*(SelfAttention|EncDecAttention).*(q|v)$",
        r"model\.(encoder|decoder)\.layers\.[0-9+*]+\.fc1",
        r"\(\)+|[a)*(+]x",
        UNSLOTH,
        ["q_proj", "(a+)+"],
        None,
    ],
)
def test_regular_expressions_in_use(value):
    """Names in a list are compared, not matched; what is taken is done quickly with the worst name."""
    check_patterns({"target_modules": value, "rank_pattern": {"layers.0.fc1": 4}}, "a")
    if isinstance(value, str):
        start = time.perf_counter()
        for name in ("decoder" * 20, "q" * 150, "()))" * 30):
            re.fullmatch(value, name)
        assert time.perf_counter() - start < 1


STEPS = {
    "Replace of a text": normalizers.Replace("ab", "x" * 100),
    "Replace of a pattern": normalizers.Replace("a", "a" * 30),
    "Replace of a boundary": normalizers.Replace(Regex(r"\b|(?<=b)"), "x" * 60),
    "Replace of blanks": normalizers.Replace(Regex(" {2,}"), " "),
    "Prepend": normalizers.Prepend("▁" * 20),
    "Lowercase": normalizers.Lowercase(),
    "NFKC": normalizers.NFKC(),
}


@pytest.mark.parametrize("names", [[name] for name in STEPS] + [["Replace of a pattern", "Replace of a text"]])
def test_growth_of_normalisers(names):
    """Never less than the library makes of the worst texts."""
    steps = [STEPS[name] for name in names]
    tokenizer = Tokenizer(models.WordLevel({"a": 0}, unk_token="a"))
    tokenizer.normalizer = normalizers.Sequence(steps)
    growth = max(len(tokenizer.normalizer.normalize_str(text)) / len(text) for text in ("a" * 9, "ab" * 9, "a", "b"))
    normalizer = json.loads(tokenizer.to_str())["normalizer"]
    if growth > 64:
        refused("may make a text", check_normalizers, normalizer, "tokenizer.json")
    else:
        check_normalizers(normalizer, "tokenizer.json")
    nested = {"type": "Sequence", "normalizers": [normalizer] * 20}
    if names in (["Replace of blanks"], ["Replace of a text"]):  # what it writes is not replaced again
        check_normalizers(nested, "tokenizer.json")
    elif len(names) == 1 and names[0].startswith("Replace"):
        refused("may make a text", check_normalizers, nested, "tokenizer.json")


def test_unusual_fields(tmp_path):
    """Null where a name may be missing, a length without a limit; one line where nothing can be made of a field."""
    (tmp_path / "config.json").write_text('{"model_type": null, "max_length": 1e30, "architectures": null}')
    check_model_files(tmp_path)
    (tmp_path / "config.json").write_text('{"max_length": 1e20}')
    refused("max_length is 1e.20, expected 16777216 at most", check_model_files, tmp_path)
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "adapter_config.json").write_text('{"layers_pattern": 5}')
    refused("layers_pattern is 5, expected names or expressions", check_model_files, tmp_path)


def test_errors_of_libraries_are_one_line():
    for error in (
        Exception("data did not match\nany variant"),
        KeyError("a"),
        RecursionError("deep"),
        OSError("no\nx"),
    ):
        with pytest.raises(ValueError, match="cannot load a model from m: ") as told:
            with reading_model("m"):
                raise error
        assert "\n" not in str(told.value)
    with pytest.raises(KeyboardInterrupt):
        with reading_model("m"):
            raise KeyboardInterrupt


@pytest.fixture
def online(monkeypatch):
    """As without HF_HUB_OFFLINE, which tests have."""
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    for name in reachability.PROXIES:
        monkeypatch.delenv(name, raising=False)


def test_a_name_that_nobody_answers_for(online, monkeypatch, tmp_path):
    """Within two seconds, where no address is found and where nobody answers; of a folder, and offline, not asked."""
    from huggingface_hub import constants

    asked = []

    def connect(address, seconds):
        asked.append(address)
        raise OSError("no network")

    monkeypatch.setattr(reachability.socket, "create_connection", connect)
    monkeypatch.setattr(info, "check_model_files", lambda *_: pytest.fail("asks for nine files"))
    for load in (registry.load_model, kind_of, info.describe):
        refused("owner/mispelled: no such folder, no such model in the cache, and hug", load, "owner/mispelled")
    assert asked == [("huggingface.co", 443)] * 3
    monkeypatch.setattr(reachability.socket, "create_connection", lambda *_: time.sleep(30))
    begin = time.monotonic()
    refused("cannot be reached", kind_of, "owner/mispelled")
    assert time.monotonic() - begin < 2
    reachability.check_within_reach(tmp_path)
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy")
    reachability.check_within_reach("owner/mispelled")
    monkeypatch.delenv("HTTPS_PROXY")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    reachability.check_within_reach("owner/mispelled")


def test_a_mistyped_name_is_told_before_heavy_imports(tmp_path):
    (tmp_path / "a.txt").write_text("A.\n")
    network = {"HF_HUB_OFFLINE": "0", "HF_ENDPOINT": "http://127.0.0.1:1"} | dict.fromkeys(reachability.PROXIES, "")
    shown = "print({'torch', 'transformers'} & {*sys.modules})"
    script = f"import sys; from hf_docmt.cli import main\ntry: main()\nfinally: {shown}"
    arguments = [sys.executable, "-c", script, "translate", "owner/mispelled", str(tmp_path / "a.txt")]
    done = subprocess.run(arguments, env=os.environ | network, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "set()\n") and "cannot be reached" in done.stderr


def test_a_name_that_somebody_answers_for(online, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert reachability.is_reachable("127.0.0.1", server.getsockname()[1])
    assert not reachability.is_reachable("127.0.0.1", 1, seconds=0.5)
