"""`safari` commands, many in one process of their own: starting one takes seconds.

The process imports safari as a user's shell does. Under pytest, safari checks the shapes of all that it
is handed, and would refuse a wrong class of the user's for another reason.
"""

import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass
class Ran:
    """What a command left: `written` are the files and folders that were not there before."""

    exit_code: int
    stdout: str
    stderr: str
    written: list[str]


def run_all(folder: Path, commands: list[list[str]]) -> list[Ran]:
    """Run the commands one after another in `folder`; each is the words behind `safari`."""
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


def _run(words: list[str]) -> Ran:
    from typer.testing import CliRunner

    from safari.cli import app

    before = set(Path().rglob("*"))
    result = CliRunner().invoke(app, words)
    written = sorted(str(path) for path in set(Path().rglob("*")) - before)
    return Ran(result.exit_code, result.stdout, result.stderr, written)


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    print(json.dumps([asdict(_run(words)) for words in json.load(sys.stdin)]))
