"""Checksums of what is read back: every folder that safari fills has its `SHA256SUMS`.

The format is that of `sha256sum`, which checks such a folder by itself: `sha256sum -c SHA256SUMS`. A last
line, a comment, is the checksum of the lines before it. While a file is replaced, both its old and its
new checksum stand in the list, so that a writer may be killed at any moment. A folder without a list was
made by an older version: its files are read as they are.
"""

import hashlib
import io
import json
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl

from safari.errors import InputError

SUMS, SPEC = "SHA256SUMS", "spec.toml"
LAST_LINE = b"# sha256 of the lines above: "
SAY_SPEC = (
    "is not as safari wrote it, by damage or by hand; put it back as it was, "
    "or start anew from it, into another directory"
)
Sums = dict[str, list[str]]
LOOKS, PAUSE = 5, 0.2


class Damaged(InputError):
    """A file of a directory is not what safari wrote: which, and what to do."""

    def __init__(self, file: Path | str, what_to_do: str):
        super().__init__("directory", str(file), what_to_do)
        self.args = (f"{file} {what_to_do}",)


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def pack_sums(sums: Mapping[str, Sequence[str]]) -> bytes:
    """The list as a file."""
    lines = "".join(f"{one}  {name}\n" for name, known in sorted(sums.items()) for one in known).encode()
    return lines + LAST_LINE + digest(lines).encode() + b"\n"


def read_sums(folder: Path) -> Sums | None:
    """What the files of `folder` may be, by their names; None where nobody noted it.

    Raises:
        Damaged: if the list itself is.
    """
    file = folder / SUMS
    try:
        content = file.read_bytes()
    except FileNotFoundError:
        return None
    lines, _, last = content.rpartition(LAST_LINE)
    if last != digest(lines).encode() + b"\n":
        raise Damaged(file, "is damaged; remove it, the files beside it are then read unchecked")
    sums: Sums = {}
    for line in lines.decode().splitlines():
        one, _, name = line.partition("  ")
        sums.setdefault(name, []).append(one)
    return sums


def read_checked(file: Path) -> bytes:
    """The content of a file, which is what safari wrote where that is known.

    Raises:
        Damaged: if it is not.
    """
    return _checked(file, file.parent, file.name)


def _checked(file: Path, folder: Path, name: str) -> bytes:
    """The content of a file that the list of `folder` has by this name.

    A fleet's server may replace file and list between our two looks: what does not agree is looked at again,
    and is damaged if nothing has changed since.
    """
    before = None
    while True:
        content, known = file.read_bytes(), (read_sums(folder) or {}).get(name)
        if known is None or digest(content) in known:
            return content
        if (content, known) == before:
            raise Damaged(file, _what_to_do(file))
        before = content, known


def read_folder(folder: Path) -> dict[str, bytes]:
    """All files of a folder that was written as a whole.

    Raises:
        Damaged: if one of them is not what was written, is missing, or cannot be read; or if there is none.
    """
    sums = read_sums(folder)
    found = {file.name: _content(file) for file in sorted(folder.iterdir()) if file.name != SUMS}
    if not found:
        raise Damaged(folder, "is empty")
    for name, known in (sums or {}).items():
        if name not in found or digest(found[name]) not in known:
            raise Damaged(folder / name, "is damaged")
    return found


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except PermissionError:
        raise
    except OSError as error:
        raise Damaged(file, f"is damaged ({error.strerror})") from None


def check_files(folder: Path) -> None:
    """Raise `Damaged` if a file of `folder` is not what safari wrote, or is there no more."""
    for name in read_sums(folder) or {}:
        if is_there(folder / name):
            read_checked(folder / name)


def is_checked(folder: Path) -> bool:
    """Whether checksums were kept when the directory was made."""
    return SPEC in (read_sums(folder) or {})


def is_there(file: Path) -> bool:
    """Whether there is such a file.

    Raises:
        Damaged: if there is none any more.
    """
    for _ in range(LOOKS):
        if file.is_file() or file.name not in (read_sums(file.parent) or {}):
            return file.is_file()
        time.sleep(PAUSE)  # a new file is on the list a moment before it is there
    raise Damaged(file, _what_to_do(file, "is missing"))


@contextmanager
def reading(file: Path | str, what_to_do: str | None = None) -> Iterator[None]:
    """What fails inside, fails because the file was not what safari wrote."""
    try:
        yield
    except (InputError, OSError):
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise Damaged(file, what_to_do or _what_to_do(Path(file))) from None


def read_json(file: Path) -> Any:
    content = read_checked(file)
    with reading(file):
        return json.loads(content)


def read_table(file: Path) -> pl.DataFrame:
    """A table that safari wrote: a file, or a folder of files whose checksums stand beside the folder."""
    if file.is_dir():
        return _read_parts(file)
    content = read_checked(file)
    with reading(file):
        return parse_table(content)


def _read_parts(folder: Path) -> pl.DataFrame:
    tables = []
    known = [name for name in read_sums(folder.parent) or {} if name.startswith(f"{folder.name}/")]
    parts = {*folder.glob("*.parquet"), *(folder.parent / name for name in known)}
    if not parts:
        raise Damaged(folder, _what_to_do(folder, "is empty"))
    for part in sorted(parts):
        if not part.is_file():
            raise Damaged(part, _what_to_do(part, "is missing"))
        content = _checked(part, folder.parent, f"{folder.name}/{part.name}")
        with reading(part):
            tables.append(parse_table(content))
    return pl.concat(tables)


def parse_table(content: bytes) -> pl.DataFrame:
    return pl.read_parquet(io.BytesIO(content))


def read_spec(folder: Path) -> dict[str, Any]:
    """The tables of a directory's spec.toml, as safari wrote them.

    Raises:
        Damaged: if the file was changed, or lost its end: nobody goes on with another run by mistake.
    """
    content = read_checked(folder / SPEC)
    with reading(folder / SPEC):
        tables = tomllib.loads(content.decode())
    if not tables:
        raise Damaged(folder / SPEC, SAY_SPEC)
    return tables


def _what_to_do(file: Path, what: str = "is damaged") -> str:
    if file.name == SPEC:
        return SAY_SPEC
    if (file.parent / "checkpoint").is_dir():
        again = f"`safari run --resume {file.parent}` writes it again from the checkpoint"
        return f"{what}; {again}, once there is no summary.json"
    return f"{what}; put a copy back, or start anew, into another directory"
