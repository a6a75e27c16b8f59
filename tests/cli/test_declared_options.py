"""Commands made of declared options: parameters, dataclasses, values read from text, bounds."""

from collections.abc import Sequence
from dataclasses import dataclass

import pytest
import typer
from typer.testing import CliRunner

from hf_docmt.cli.options import command, refuse
from hf_docmt.options import REQUIRED, argument, names, option, out_of_bounds


@dataclass(kw_only=True)
class Sizes:
    """A group of options."""

    width: int = option(3, "How wide.", "-w", "--width", least=1)
    share: float = option(0.5, "A share.", least=0, below=1)
    weight: float = option(1.0, "A weight.", least=0, most=1)
    rate: float | None = option(None, "A rate.", above=0)


@command
def draw(
    *,
    call: typer.Context,
    file: str = argument("What is drawn."),
    colours: Sequence[str] = option((), "Names of colours.", read=names),
    marks: Sequence[str] | None = option(None, "Names, repeated.", "--mark", read=names, repeated=True),
    style: str = option(REQUIRED, "The style."),
    sizes: Sizes,
    plain: bool = option(False, "Without colours."),
) -> None:
    """Draw a file."""
    if plain:
        refuse(call, ("colours", "width"), "is for colours")
    print(file, colours, marks, style, sizes)


def run(*arguments):
    app = typer.Typer()
    app.command()(draw)
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    return result.exit_code, result.output, result.exception


def test_values():
    assert run("a", "--style", "x")[:2] == (0, f"a () None x {Sizes()}\n")
    options = ("--colours", "red,,blue", "--mark", "p,q", "--mark", "r", "-w", 7, "--rate", 2)
    expected = ("red", "blue"), ("p", "q", "r"), "x", Sizes(width=7, rate=2.0)
    assert run("a", "--style", "x", *options)[1] == " ".join(map(str, ("a", *expected))) + "\n"


def test_what_is_refused():
    assert run("a")[0] == 2 and "'--style'" in run("a")[1]
    assert run("a", "--style", "x", "--width", 0)[0] == 2
    for options, flag in ((("--colours", "red"), "--colours"), (("-w", 3), "--width")):
        error = run("a", "--style", "x", "--plain", *options)[2]
        assert str(error) == f"{flag} is for colours; remove it"


@pytest.mark.parametrize(
    ("values", "faults"),
    [
        ({}, []),
        ({"width": 0, "share": 1}, [("width", "at least 1", 0), ("share", "in [0, 1)", 1)]),
        ({"weight": 1.5, "rate": 0}, [("weight", "in [0, 1]", 1.5), ("rate", "more than 0", 0)]),
    ],
)
def test_bounds(values, faults):
    assert list(out_of_bounds(Sizes(**values))) == faults
