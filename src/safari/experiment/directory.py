"""The run directory: one writer, never half written, resumable at any moment.

    spec.toml           the complete spec, and the versions that wrote it
    metrics.parquet     the history, a row a round
    diagnostics.parquet what the theory asks for, a row a round, with `train.diagnostics`
    summary.json        the numbers of the run; written last: its presence means finished
    model.safetensors   the delivered parameters
    curves.png          accuracy over the rounds
    checkpoint/         the last two saved states; `round-N` is complete or absent
    SHA256SUMS          the checksums of these files; each saved state has its own
    lock, writer        held by the process that is writing, and its number

Files are written beside their place and renamed into it.
"""

import contextlib
import errno
import json
import os
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from filelock import BaseFileLock, FileLock, Timeout

from safari.errors import InputError
from safari.experiment.checksums import (
    SAY_SPEC,
    SPEC,
    SUMS,
    Damaged,
    digest,
    is_checked,
    pack_sums,
    read_folder,
    read_spec,
    read_sums,
)
from safari.experiment.writing import writing

LOCK, WRITER = "lock", "writer"
METRICS, SUMMARY = "metrics.parquet", "summary.json"
MODEL, CURVES, CHECKPOINT = "model.safetensors", "curves.png", "checkpoint"
DIAGNOSTICS = "diagnostics.parquet"


class Directory:
    """A directory that this process alone may write to, until `close`."""

    def __init__(self, path: Path, lock: BaseFileLock, warn: Callable[[str], None] = warnings.warn):
        self.path, self._lock, self._warn = path, lock, warn

    @classmethod
    @writing()
    def create(cls, path: Path, spec: str, more: dict[str, bytes] | None = None) -> "Directory":
        """A new directory that holds the spec, and `more` files; it appears whole or not at all."""
        refuse_existing(path)
        missing = [folder for folder in path.parents if not folder.exists()]
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            beside = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
        except OSError as error:
            _remove_empty(missing)
            raise InputError("--out", str(path), f"cannot be written ({error.strerror})") from None
        try:
            beside.chmod(0o777 & ~_umask())
            files = {SPEC: spec.encode(), **(more or {})}
            sums = pack_sums({name: [digest(content)] for name, content in files.items()})
            for name, content in {**files, SUMS: sums}.items():
                (beside / name).write_bytes(content)
            beside.rename(path)
        except OSError as error:
            shutil.rmtree(beside, ignore_errors=True)
            _remove_empty(missing)
            raise InputError("--out", str(path), f"cannot be written ({error.strerror})") from None
        return cls(path, _lock(path, "--out"))

    @classmethod
    def open(cls, path: Path, warn: Callable[[str], None] = warnings.warn) -> "Directory":
        """An existing directory, to go on with; `warn` is told what of it is unchecked or damaged."""
        if not (path / SPEC).is_file():
            raise InputError("--resume", str(path), "is not a run directory (no spec.toml in it)")
        return cls(path, _lock(path, "--resume"), warn)

    def close(self) -> None:
        (self.path / WRITER).unlink(missing_ok=True)
        self._lock.release()

    def __enter__(self) -> "Directory":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def write(self, name: str, content: bytes) -> None:
        """Write a file so that it is there whole or as before, and note its checksum."""
        self.write_all({name: content})

    @writing()
    def write_all(self, files: dict[str, bytes]) -> None:
        """Write files, each so that it is there whole or as before, and note their checksums."""
        sums = read_sums(self.path) or {}
        fresh = {name: [digest(content)] for name, content in files.items()}
        before = {name: [one for one in sums.get(name, []) if one not in fresh[name]] for name in files}
        self._write_sums({**sums, **{name: before[name] + fresh[name] for name in files}})
        for name, content in files.items():
            write_file(self.path / name, content, self.path)
        if any(before.values()):
            self._write_sums({**sums, **fresh})

    def remove(self, *names: str) -> None:
        """Remove files, and their checksums."""
        for name in names:
            (self.path / name).unlink(missing_ok=True)
        known = (read_sums(self.path) or {}).items()
        self._write_sums({name: sums for name, sums in known if name not in names})

    def _write_sums(self, sums: dict[str, list[str]]) -> None:
        write_file(self.path / SUMS, pack_sums(sums))

    def write_json(self, name: str, content: dict[str, Any]) -> None:
        self.write(name, pack_json(content))

    def finished(self) -> bool:
        return (self.path / SUMMARY).is_file()

    def read_spec(self) -> dict[str, Any]:
        """The tables of spec.toml, as they were written; says so where nobody can know.

        Raises:
            Damaged: if the file was changed, or has lost its end.
        """
        tables = read_spec(self.path)
        if not is_checked(self.path):
            if "versions" not in tables:
                raise Damaged(self.path / SPEC, SAY_SPEC)
            self._warn(f"{self.path} was made before safari kept checksums; its files are read unchecked")
        return tables

    @writing()
    def save_checkpoint(self, round: int, files: dict[str, bytes], place: str = CHECKPOINT) -> None:
        """Save `files` in `place`; of what was saved before, the last is kept."""
        folder = self.path / place
        target = folder / f"round-{round:08d}"
        write_folder(target, files)
        before = sorted(other for other in folder.glob("round-*") if other < target)
        for other in folder.iterdir():
            if other not in (target, *before[-1:]):
                shutil.rmtree(other, ignore_errors=True)

    def load_checkpoint(self, place: str = CHECKPOINT) -> dict[str, bytes] | None:
        """The files of the newest sound checkpoint in `place`, if there is one.

        Raises:
            Damaged: if there are some, and none is sound.
        """
        damaged: Damaged | None = None
        for saved in sorted((self.path / place).glob("round-*"), reverse=True):
            try:
                files = read_folder(saved)
            except Damaged as error:
                damaged = damaged or error
                continue
            if damaged is not None:
                self._warn(f"{damaged.value} is damaged; going on from {saved.name}, saved before it")
            return files
        if damaged is not None:
            anew = f"to begin anew, remove {self.path / place}"
            hint = f"is damaged, and no sound state was saved before it; {anew}"
            raise Damaged(damaged.value, hint)
        return None

    def sweep(self) -> None:
        """Remove what a killed writer left beside its target."""
        for left in self.path.rglob(".*"):
            if left.is_dir():
                shutil.rmtree(left, ignore_errors=True)
            else:
                with contextlib.suppress(OSError):
                    left.unlink()


def pack_json(content: dict[str, Any]) -> bytes:
    return (json.dumps(content, indent=2) + "\n").encode()


@writing()
def write_file(target: Path, content: bytes, beside_in: Path | None = None) -> None:
    """Write a file so that it is there whole or as before.

    Until it is whole it lies in the folder `beside_in` of the same file system; not given: in the target's.
    The target's folder is made if need be, and stays only if the file comes to be.
    """
    with _about(target):
        new = not target.parent.exists()
        target.parent.mkdir(exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=beside_in or target.parent)
        os.close(handle)
        beside = Path(name)
        try:
            _write_through(beside, content)
            beside.chmod(0o666 & ~_umask())
            beside.replace(target)
        except BaseException:
            beside.unlink(missing_ok=True)
            if new:
                with contextlib.suppress(OSError):  # somebody else may have put a file there
                    target.parent.rmdir()
            raise


@writing()
def write_folder(target: Path, files: dict[str, bytes]) -> None:
    """Write a folder of files and their checksums, whole or not at all, in the place of what was there."""
    sums = pack_sums({name: [digest(content)] for name, content in files.items()})
    with _about(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        beside = Path(tempfile.mkdtemp(prefix=".", dir=target.parent))
        try:
            beside.chmod(0o777 & ~_umask())
            for name, content in {**files, SUMS: sums}.items():
                _write_through(beside / name, content)
            if target.exists():
                shutil.rmtree(target)
            beside.rename(target)
        except BaseException:
            shutil.rmtree(beside, ignore_errors=True)
            raise


def _write_through(file: Path, content: bytes) -> None:
    """To the disk itself, so that a crash leaves no empty file behind a new name."""
    with file.open("wb") as opened:
        opened.write(content)
        opened.flush()
        os.fsync(opened.fileno())


@contextlib.contextmanager
def _about(target: Path) -> Iterator[None]:
    """The system's errors name what was to be written, not what lies beside it for a moment."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(target)) from None


def refuse_existing(path: Path) -> None:
    if path.exists() or path.is_symlink():
        hint = f"exists; choose another, or go on with --resume {path}"
        raise InputError("--out", str(path), hint if (path / SPEC).is_file() else "exists; choose another")


def _remove_empty(folders: list[Path]) -> None:
    """Remove folders that were made in vain, the innermost first, unless somebody else has filled one."""
    with contextlib.suppress(OSError):
        for folder in folders:
            folder.rmdir()


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
        # On a full disk only this is lost: a second writer is refused without the number of the first.
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            lock.release()
            raise InputError(option, str(path), f"cannot be written ({error.strerror})") from None
    return lock


def _writer(path: Path) -> str:
    try:
        return (path / WRITER).read_text(encoding="utf-8", errors="replace").strip() or "unknown"
    except OSError:
        return "unknown"


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
