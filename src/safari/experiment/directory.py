"""The run directory: one writer, never half written, resumable at any moment.

    spec.toml           the complete spec, and the versions that wrote it
    metrics.parquet     the history, a row a round
    diagnostics.parquet what the theory asks for, a row a round, with `train.diagnostics`
    summary.json        the numbers of the run; written last: its presence means finished
    model.safetensors   the delivered parameters
    curves.png          accuracy over the rounds
    checkpoint/         the last saved state; `round-N` is complete or absent
    lock, writer        held by the process that is writing, and its number

Files are written beside their place and renamed into it.
"""

import contextlib
import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from filelock import BaseFileLock, FileLock, Timeout

from safari.errors import InputError
from safari.experiment.writing import writing

LOCK, WRITER = "lock", "writer"
SPEC, METRICS, SUMMARY = "spec.toml", "metrics.parquet", "summary.json"
MODEL, CURVES, CHECKPOINT = "model.safetensors", "curves.png", "checkpoint"
DIAGNOSTICS = "diagnostics.parquet"


class Directory:
    """A directory that this process alone may write to, until `close`."""

    def __init__(self, path: Path, lock: BaseFileLock):
        self.path, self._lock = path, lock

    @classmethod
    @writing()
    def create(cls, path: Path, spec: str, more: dict[str, bytes] | None = None) -> "Directory":
        """A new directory that holds the spec, and `more` files; it appears whole or not at all."""
        refuse_existing(path)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            beside = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
        except OSError as error:
            raise InputError("--out", str(path), f"cannot be written ({error.strerror})") from None
        try:
            beside.chmod(0o777 & ~_umask())
            for name, content in {SPEC: spec.encode(), **(more or {})}.items():
                (beside / name).write_bytes(content)
            beside.rename(path)
        except OSError as error:
            shutil.rmtree(beside, ignore_errors=True)
            raise InputError("--out", str(path), f"cannot be written ({error.strerror})") from None
        return cls(path, _lock(path, "--out"))

    @classmethod
    def open(cls, path: Path) -> "Directory":
        """An existing directory, to go on with."""
        if not (path / SPEC).is_file():
            raise InputError("--resume", str(path), "is not a run directory (no spec.toml in it)")
        return cls(path, _lock(path, "--resume"))

    def close(self) -> None:
        (self.path / WRITER).unlink(missing_ok=True)
        self._lock.release()

    def __enter__(self) -> "Directory":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def write(self, name: str, content: bytes) -> None:
        """Write a file so that it is there whole or as before."""
        write_file(self.path / name, content)

    def write_json(self, name: str, content: dict[str, Any]) -> None:
        self.write(name, (json.dumps(content, indent=2) + "\n").encode())

    def finished(self) -> bool:
        return (self.path / SUMMARY).is_file()

    @writing()
    def save_checkpoint(self, round: int, files: dict[str, bytes], place: str = CHECKPOINT) -> None:
        """Replace the checkpoint in `place` by one that holds `files`."""
        folder = self.path / place
        folder.mkdir(parents=True, exist_ok=True)
        beside = Path(tempfile.mkdtemp(prefix=".", dir=folder))
        for name, content in files.items():
            with (beside / name).open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        target = folder / f"round-{round:08d}"
        if target.exists():
            shutil.rmtree(beside)
            return
        beside.rename(target)
        for other in folder.iterdir():
            if other != target:
                shutil.rmtree(other, ignore_errors=True)

    def load_checkpoint(self, place: str = CHECKPOINT) -> dict[str, bytes] | None:
        """The files of the newest complete checkpoint in `place`, if there is one."""
        saved = sorted((self.path / place).glob("round-*"))
        return {file.name: file.read_bytes() for file in saved[-1].iterdir()} if saved else None

    def sweep(self) -> None:
        """Remove what a killed writer left beside its target."""
        for left in self.path.rglob(".*"):
            if left.is_dir():
                shutil.rmtree(left, ignore_errors=True)
            else:
                with contextlib.suppress(OSError):
                    left.unlink()


@writing()
def write_file(target: Path, content: bytes) -> None:
    """Write a file so that it is there whole or as before."""
    target.parent.mkdir(exist_ok=True)
    handle, beside = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.chmod(beside, 0o666 & ~_umask())
    os.replace(beside, target)


def refuse_existing(path: Path) -> None:
    if path.exists() or path.is_symlink():
        hint = f"exists; choose another, or go on with --resume {path}"
        raise InputError("--out", str(path), hint if (path / SPEC).is_file() else "exists; choose another")


def _lock(path: Path, option: str) -> BaseFileLock:
    """The lock of a directory, which the system lets go of when its process dies, however it dies.

    The process is named in a file of its own: some systems let nobody read a file that is locked.
    """
    lock = FileLock(path / LOCK, timeout=0, thread_local=False)
    try:
        lock.acquire()
        (path / WRITER).write_text(f"{os.getpid()}\n", encoding="utf-8")
    except Timeout:
        raise InputError(option, str(path), f"process {_writer(path)} is writing to it") from None
    except OSError as error:
        lock.release()
        raise InputError(option, str(path), f"cannot be written ({error.strerror})") from None
    return lock


def _writer(path: Path) -> str:
    try:
        return (path / WRITER).read_text(encoding="utf-8").strip() or "unknown"
    except OSError:
        return "unknown"


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
