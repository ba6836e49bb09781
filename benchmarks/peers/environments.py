"""The contestants and their environments: one each under .venv-peers, safari in this one."""

import subprocess
import sys
import venv
from pathlib import Path

HERE = Path(__file__).parent
ENVIRONMENTS = HERE.parents[1] / ".venv-peers"
CONTESTANTS = ("safari", "pytorch", "fedjax", "pfl", "fluke", "flower")
PIP = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check")


class NotInstalled(RuntimeError):
    """An environment that cannot be made, and why."""


def make_all(names: list[str]) -> tuple[dict[str, Path], dict[str, str]]:
    """The Pythons of those that can be made, and of the others the reason why not."""
    pythons, missing = {}, {}
    for name in names:
        try:
            pythons[name] = Path(sys.executable) if name == "safari" else make(name)
        except NotInstalled as error:
            missing[name] = f"not installed: {error}"
            print(f"{name}: {missing[name]}", flush=True)
    return pythons, missing


def make(name: str) -> Path:
    """The Python of a peer's environment, which is made anew when its requirements have changed."""
    folder, wanted = ENVIRONMENTS / name, requirements(name)
    python, ready = folder / "bin" / "python", folder / "ready"
    if ready.is_file() and ready.read_text() == wanted:
        return python
    print(f"{name}: making {folder}", flush=True)
    venv.create(folder, clear=True, with_pip=True)
    for path, *options in installs(name):
        done = subprocess.run(
            [python, *PIP, *options, "--requirement", path], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise NotInstalled(reason(done.stderr))
    ready.write_text(wanted)
    return python


def installs(name: str) -> list[tuple]:
    """What pip is asked for, in turn: all requirements, then packages without those they name."""
    bare = HERE / "requirements" / f"{name}-bare.txt"
    return [(HERE / "requirements" / f"{name}.txt",), *([(bare, "--no-deps")] if bare.is_file() else [])]


def requirements(name: str) -> str:
    return "".join(path.read_text() for path, *_ in installs(name))


def reason(text: str) -> str:
    """The first error that pip names, else its last line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return next((line for line in lines if line.startswith("ERROR")), lines[-1] if lines else "no message")
