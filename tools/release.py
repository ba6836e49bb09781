"""Build sdist and wheel into dist/ and try the wheel: python tools/release.py (or `make release`)

The wheel must hold every file of src/safari. It is then installed into an empty environment, outside
of the checkout, for each Python that pyproject.toml claims, and the demo runs there: a comparison on the
digits, and its page. Pythons that this machine does not have are named; they do not fail the release.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
DIST, PACKAGE = ROOT / "dist", ROOT / "src" / "safari"
CLAIM = "Programming Language :: Python :: 3."
DEMO = (
    ("--version",),
    ("compare", "digits.toml", "train.rounds=20", "--seeds", "2", "--out", "demo", "--quiet"),
    ("report", "demo"),
)


def main() -> int:
    wheel = build()
    lacking = sorted(source_files() - set(zipfile.ZipFile(wheel).namelist()))
    if lacking:
        print(f"the wheel lacks {', '.join(lacking)}")
        return 1
    said = {version: tried(version, wheel) for version in claimed()}
    print("\n".join(f"Python {version}: {what}" for version, (what, _) in said.items()))
    works = [works for _, works in said.values() if works is not None]
    return 0 if works and all(works) else 1


def build() -> Path:
    """The wheel, made from the sdist: a file that the sdist lacks is missed here."""
    shutil.rmtree(DIST, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "build", "--outdir", DIST, ROOT], check=True)
    (wheel,) = DIST.glob("*.whl")
    return wheel


def source_files() -> set[str]:
    found = (path for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(PACKAGE.parent).as_posix() for path in found}


def claimed() -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    ends = [line.removeprefix(CLAIM) for line in project["classifiers"] if line.startswith(CLAIM)]
    return [f"3.{end}" for end in ends]


def tried(version: str, wheel: Path) -> tuple[str, bool | None]:
    """What to say of a Python, and whether the demo works on it; None where it is not here."""
    python = interpreter(version)
    if python is None:
        return "not on this machine", None
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="safari-release-") as folder:
        try:
            demo(python, wheel, Path(folder))
        except subprocess.CalledProcessError as error:
            said = (error.stdout + error.stderr).strip()
            return f"FAILED ({python}): {' '.join(map(str, error.cmd))}\n{said}", False
    return f"the demo works ({python}, {time.monotonic() - began:.0f} s)", True


def interpreter(version: str) -> Path | None:
    """On the path, or pyenv's; what is on the path may be a shim that leads nowhere, so each is asked."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    named = [shutil.which(f"python{version}"), *sorted(pyenv.glob(f"{version}.*/bin/python"), reverse=True)]
    asked = ["-c", "import sys, venv; print('{}.{}'.format(*sys.version_info))"]
    for python in filter(None, named):
        answer = subprocess.run([python, *asked], capture_output=True, text=True, check=False)
        if answer.returncode == 0 and answer.stdout.strip() == version:
            return Path(python)
    return None


def demo(python: Path, wheel: Path, folder: Path) -> None:
    """Nothing of the user's is seen: no checkout, no PYTHONPATH, no compiled programs of other runs."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}

    def call(*command: str | Path, **more: str) -> None:
        subprocess.run(
            command, cwd=folder, env={**environment, **more}, capture_output=True, text=True, check=True
        )

    call(python, "-m", "venv", "env")
    scripts = folder / "env" / ("Scripts" if os.name == "nt" else "bin")
    call(scripts / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel)
    shutil.copy(ROOT / "examples" / "digits.toml", folder)
    for arguments in DEMO:
        call(scripts / "safari", *arguments, JAX_COMPILATION_CACHE_DIR=str(folder / "programs"))


if __name__ == "__main__":
    sys.exit(main())
