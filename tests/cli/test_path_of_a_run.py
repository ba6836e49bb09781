"""CONTRIBUTING.md lists the files that `safari run` enters: all of them, each once."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
GROUND_FLOOR = {"devices.py", "errors.py", "names.py", "randomness.py", "registry.py"}

FOLLOWED = """
import json, os, sys
import safari
from safari.cli import main

SOURCE = os.path.dirname(safari.__file__) + os.sep
entered = set()


def enter(frame, event, argument):
    file = frame.f_code.co_filename
    if event == "call" and file.startswith(SOURCE) and file not in entered and not importing(frame):
        entered.add(file)


def importing(frame):
    while frame is not None and not frame.f_code.co_filename.startswith("<frozen importlib"):
        frame = frame.f_back
    return frame is not None


sys.setprofile(enter)
try:
    main()
finally:
    sys.setprofile(None)
    print(json.dumps([os.path.relpath(file, SOURCE) for file in entered]))
"""


def test_the_files_that_a_run_enters_are_listed_each_once(tmp_path):
    spec = ROOT / "examples" / "digits.toml"
    environment = {name: value for name, value in os.environ.items() if name != "JAX_COMPILATION_CACHE_DIR"}
    done = subprocess.run(
        [sys.executable, "-c", FOLLOWED, "run", str(spec), "train.rounds=3", "--out", str(tmp_path / "run")],
        env={**environment, "SAFARI_CACHE": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        check=True,
    )
    entered = {Path(file).as_posix() for file in json.loads(done.stdout.splitlines()[-1])} - GROUND_FLOOR
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = (
        page.partition("## The path of `safari run`")[2].partition("| what happens")[2].partition("\n\n")[0]
    )
    listed = re.findall(r"`([a-z_/0-9]+\.py)`", section)
    assert len(listed) == len(set(listed))
    assert set(listed) == entered
