"""How bad input is refused: in one line."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

import safari
from safari.cli import app


def assert_command_refused(arguments, start, allowed):
    """One line that begins so and says what is allowed, exit code 2, nothing printed and nothing written."""
    before = sorted(Path().rglob("*"))
    result = CliRunner().invoke(app, arguments)
    assert (result.exit_code, result.stdout) == (2, ""), result.output
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"safari: {start}"), line
    assert allowed in line, line
    assert sorted(Path().rglob("*")) == before


def assert_refused(make, key, allowed):
    """One line that names the key first and says what is allowed."""
    with pytest.raises(safari.InputError) as caught:
        make()
    message = str(caught.value)
    assert message.startswith(key)
    assert allowed in message
    assert "\n" not in message
