"""Runs the fenced blocks of a Markdown file in order, in a fresh folder, as a reader would.

A block whose first line is a comment with a file name becomes that file. `sh` blocks run command by command, `python`
blocks share one namespace. `# -> words` after a command is what it prints. `bibtex` blocks are entries of papers.bib.
"""

import contextlib
import io
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from multiprocessing.connection import Connection, Listener
from pathlib import Path
from threading import Thread
from typing import NamedTuple

from support.processes import run_python

FILE_NAME = re.compile(r"(?:# |\{# )([\w/-]+\.[\w.]+)( #\})?$")
PAPERS = {*(Path(__file__).parents[2] / "hub_cards" / "papers.bib").read_text("utf-8").strip().split("\n\n")}
PRINTS = re.compile(r"  # -> (.+)")
CLIENT = """#!{python} -IS
import os, sys
from multiprocessing.connection import Client
name, *arguments = sys.argv
arguments = ["-m", "hf_docmt", *arguments] if name.endswith("docmt") else arguments
if "serve" in arguments:
    os.execv({python!r}, [{python!r}, *arguments])
with Client({address!r}) as server:
    server.send((arguments, os.getcwd(), dict(os.environ)))
    code, output, errors = server.recv()
sys.stdout.write(output), sys.stderr.write(errors)
sys.exit(code)
"""


class Block(NamedTuple):
    language: str
    text: str

    def commands(self) -> list[str]:
        """Of a shell block; a backslash continues a line, comments alone are none."""
        lines = re.split(r"(?<!\\)\n", self.text.strip())
        return [line for line in lines if line.strip() and not line.startswith("#")]


class Counts(NamedTuple):
    blocks: int
    run: int
    not_run: list[str]
    printed: int  # outputs that were compared


def blocks_of(text: str) -> list[Block]:
    return [Block(*found) for found in re.findall(r"^```(\w*)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)]


def run_blocks(
    blocks: list[Block],
    folder: Path,
    not_run: Mapping[str, str] | None = None,
    smaller: Mapping[str, str] | None = None,
    outputs: bool = True,
    forked: bool = True,
) -> Counts:
    """AssertionError: a block fails, or prints something else than it shows.

    `not_run` has the beginnings of commands and blocks that are not run, each with the reason; `smaller` has words of
    commands and files, and what replaces them here. Every key must be found. `outputs` are compared. Commands that are
    not `forked` import the package of the folder.
    """
    not_run, smaller, unused = not_run or {}, smaller or {}, {*(not_run or ()), *(smaller or ())}
    names: dict[str, object] = {"__name__": "__main__"}
    run, printed, left_out = 0, 0, []

    def skipped(text: str) -> bool:
        found = [start for start in not_run if text.startswith(start)]
        unused.difference_update(found)
        left_out.extend(found)
        return bool(found)

    with Shell(folder, forked) as shell, contextlib.chdir(folder):
        for block in blocks:
            text = block.text
            for words, others in smaller.items():
                unused -= {words} if words in text else set()
                text = text.replace(words, others)
            name = FILE_NAME.match(text.partition("\n")[0])
            if name:
                Path(name[1]).parent.mkdir(parents=True, exist_ok=True)
                Path(name[1]).write_text(text, "utf-8")
            elif block.language == "sh":
                commands = [command for command in Block("sh", text).commands() if not skipped(command)]
                if not commands:
                    continue
                for command in commands:
                    output, expected = shell.run(command), PRINTS.search(command)
                    if expected and outputs:
                        assert expected[1] in " ".join(output.split()), (command, output)
                        printed += 1
            elif block.language == "bibtex":
                assert {*text.strip().split("\n\n")} <= PAPERS, text
            elif skipped(text):
                continue
            else:
                assert block.language == "python", f"not run, without a reason:\n{text}"
                with contextlib.redirect_stdout(io.StringIO()):
                    exec(compile(text, text, "exec"), names)
            run += 1
    assert not unused, f"not in the document: {unused}"
    return Counts(len(blocks), run, list(dict.fromkeys(left_out)), printed)


class Shell:
    """Runs commands with bash; `docmt` and `python` are forked from a process that has them imported, or not."""

    def __init__(self, folder: Path, forked: bool = True):
        self.folder, self.servers = folder, []
        self.listener = Listener(family="AF_UNIX")
        programs = folder / ".bin"
        programs.mkdir(exist_ok=True)
        for name in ("docmt", "python"):
            path = programs / name
            client = CLIENT.format(python=sys.executable, address=self.listener.address)
            module = "-m hf_docmt" if name == "docmt" else ""
            path.write_text(client if forked else f'#!/bin/sh\nexec {sys.executable} {module} "$@"\n')
            path.chmod(0o755)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = str(free.getsockname()[1])
        self.environment = os.environ | {"PATH": f"{programs}:{os.environ['PATH']}"}
        Thread(target=self._answer, daemon=True).start()

    def __enter__(self) -> "Shell":
        return self

    def __exit__(self, *_) -> None:
        for server in self.servers:
            os.killpg(server.pid, signal.SIGTERM)
            server.wait()
        self.listener.close()

    def _answer(self) -> None:
        for connection in self._connections():
            with connection:
                arguments, folder, environment = connection.recv()
                done = run_python(*arguments, cwd=folder, env=environment)
                connection.send((done.returncode, done.stdout, done.stderr))

    def _connections(self) -> Iterator[Connection]:
        with contextlib.suppress(OSError):
            while True:
                yield self.listener.accept()

    def run(self, command: str) -> str:
        """What the command prints. A server stays until the end; its port is a free one."""
        arguments = ["bash", "-c", command.replace("5000", self.port)]
        options = {"cwd": self.folder, "env": self.environment, "stdin": subprocess.DEVNULL}
        if "docmt serve" in command:
            self.servers.append(subprocess.Popen(arguments, start_new_session=True, **options))
            while subprocess.run(["curl", "-sf", f"localhost:{self.port}/health"], capture_output=True).returncode:
                assert self.servers[-1].poll() is None, command
                time.sleep(0.2)
            return ""
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=600, **options)
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        return done.stdout
