"""Runs the pages of docs/gallery and of examples: python docs/make_gallery.py [PAGE]...

The code blocks of a page run in order, in one folder, which an example's files are copied to. A block with
a title is saved under that name, a `python` block is executed, and the lines of a `bash` block are commands.
What a block prints follows it as a `text` block. Pictures that a page saves are kept beside it.
"""

import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

DOCS = Path(__file__).parent
EXAMPLES = DOCS.parent / "examples"
PAGES = (*sorted((DOCS / "gallery").glob("*.md")), EXAMPLES / "hospitals" / "README.md")
BLOCK = re.compile(
    r'(?P<block>```(?P<kind>python|bash|toml)(?: title="(?P<file>[^"]+)")?\n(?P<code>.*?)```\n)'
    r"(?:\n```text\n.*?```\n)?",
    re.DOTALL,
)


def rendered(page: str, folder: Path) -> str:
    """The page with the output of its blocks, which run in `folder`."""
    names: dict[str, object] = {}
    with contextlib.chdir(folder), importing(folder):
        return BLOCK.sub(lambda found: found["block"] + shown(output(found, names)), page)


def output(found: re.Match[str], names: dict[str, object]) -> str:
    """Save or run one block; what it printed."""
    if found["file"]:
        Path(found["file"]).write_text(found["code"], encoding="utf-8")
        return ""
    if found["kind"] == "bash":
        return "".join(printed(line) for line in found["code"].splitlines())
    with contextlib.redirect_stdout(io.StringIO()) as written:
        exec(found["code"], names)
    return written.getvalue()


def printed(command: str) -> str:
    words = shlex.split(command)
    assert words[0] in ("safari", "python"), command
    run = [sys.executable, *(["-m", *words] if words[0] == "safari" else words[1:])]
    done = subprocess.run(
        run,
        env={**as_in_a_shell(), "COLUMNS": "100", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    return "".join(f"{line.rstrip()}\n" for line in done.stdout.splitlines())


def as_in_a_shell() -> dict[str, str]:
    """The environment without what makes tests compile faster and results differ in their last digits."""
    quick = ("XLA_FLAGS", "JAX_DISABLE_MOST_OPTIMIZATIONS")
    return {name: value for name, value in os.environ.items() if name not in quick}


def shown(text: str) -> str:
    return f"\n```text\n{text.strip(chr(10))}\n```\n" if text.strip() else ""


@contextlib.contextmanager
def importing(folder: Path):
    """Modules can be imported from `folder`, as in a session that was started there."""
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))


def prepare(path: Path, folder: Path) -> None:
    """An example's own files, where its commands expect them."""
    if path.name == "README.md":
        for file in (*path.parent.glob("*.py"), *path.parent.glob("*.toml")):
            shutil.copy(file, folder)


def main(*names: str) -> None:
    for path in PAGES:
        if names and path.stem not in names and path.parent.name not in names:
            continue
        with tempfile.TemporaryDirectory() as folder:
            prepare(path, Path(folder))
            path.write_text(rendered(path.read_text(encoding="utf-8"), Path(folder)), encoding="utf-8")
            for picture in Path(folder).glob("*.png"):
                shutil.copy(picture, path.parent)


if __name__ == "__main__":
    main(*sys.argv[1:])
