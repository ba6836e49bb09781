"""What the command says of itself, without loading what it does not need."""

import subprocess
import sys

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from safari.cli import app
from safari.version import __version__


def paths(command, path=()):
    yield path
    for name, inner in getattr(command, "commands", {}).items():
        yield from paths(inner, (*path, name))


@pytest.mark.parametrize("path", list(paths(get_command(app))), ids=" ".join)
def test_h_is_help_for_every_command(path):
    short, long = (CliRunner().invoke(app, [*path, option]) for option in ("-h", "--help"))
    assert short.exit_code == long.exit_code == 0
    assert short.output == long.output
    assert "-h, --help" in short.output


def test_the_version_is_the_distributions():
    assert CliRunner().invoke(app, ["--version"]).output == f"{__version__}\n"


def test_a_shell_can_be_taught_to_complete():
    done = CliRunner().invoke(
        app,
        [],
        env={"_SAFARI_COMPLETE": "complete_bash", "COMP_WORDS": "safari re", "COMP_CWORD": "1"},
        prog_name="safari",
    )
    assert done.output.split() == ["reproduce", "report"]


def test_the_command_starts_without_numpy_or_jax():
    for module, heavy in (("application", ("jax", "numpy")), ("signals", ("typer", "rich"))):
        program = f"import sys, safari.cli.{module}; print([name for name in {heavy} if name in sys.modules])"
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        assert done.stdout == "[]\n"
