"""`safari` commands and Python programs, many in one process of their own: starting one takes seconds.

The process imports safari as a user's shell does. Under pytest, safari checks the shapes of all that it
is handed, and would refuse a wrong class of the user's for another reason.
"""

import contextlib
import io
import json
import os
import subprocess
import sys
import traceback
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass
class Ran:
    """What a command left: `written` are the files and folders that were not there before."""

    exit_code: int
    stdout: str
    stderr: str
    written: list[str]


def run_all(folder: Path, commands: list[list[str] | str]) -> list[Ran]:
    """Run commands one after another in `folder`.

    Args:
        folder: where they run.
        commands: each is the words behind `safari`, or a text of Python; the texts share their names.
    """
    done = subprocess.run(
        [sys.executable, __file__],
        cwd=folder,
        input=json.dumps(commands),
        env={**os.environ, "COLUMNS": "100", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return [Ran(**one) for one in json.loads(done.stdout)]


def _run(command: list[str] | str, names: dict[str, object]) -> Ran:
    before = set(Path().rglob("*"))
    exit_code, stdout, stderr = _python(command, names) if isinstance(command, str) else _safari(command)
    written = sorted(str(path) for path in set(Path().rglob("*")) - before)
    return Ran(exit_code, stdout, stderr, written)


def _safari(words: list[str]) -> tuple[int, str, str]:
    from typer.testing import CliRunner

    from safari.cli import app

    result = CliRunner().invoke(app, words)
    return result.exit_code, result.stdout, result.stderr


def _python(code: str, names: dict[str, object]) -> tuple[int, str, str]:
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        try:
            exec(code, names)
        except Exception:
            return 1, printed.getvalue(), traceback.format_exc()
    return 0, printed.getvalue(), ""


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    sys.path[0] = os.getcwd()
    shared: dict[str, object] = {}
    print(json.dumps([asdict(_run(command, shared)) for command in json.load(sys.stdin)]))
