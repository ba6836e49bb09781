"""Tasks on their way to another process: a data set goes once, all else with every task.

Tasks travel as pickles between processes of one safari; nothing of it is ever read from a file.
"""

import io
import os
import pickle
import shutil
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax

from safari.data import Dataset
from safari.devices import cores, host, use_cores
from safari.engine.compiled import keep_compiled_programs
from safari.errors import InputError
from safari.experiment.sweep.task import Failed, Message, Task, told_elsewhere
from safari.experiment.versions import versions
from safari.registry import import_file, imported_files, reason

FORWARDED = ("JAX_", "XLA_", "SAFARI_")
"""How the environment variables begin that a worker elsewhere gets from the command."""


@dataclass(frozen=True)
class Parcel:
    """A task as bytes, and what a worker needs to open it: data sets by name, modules of the user's."""

    task: bytes
    datasets: tuple[str, ...]
    files: dict[str, str]
    folder: str
    own: bool
    software: dict[str, str]


def software() -> dict[str, str]:
    """The versions that decide what a run computes."""
    return {name: version for name, version in versions().items() if name != "device"}


@dataclass
class Packer:
    """Packs tasks; `known` are the data sets that it came across, by name."""

    known: dict[str, Dataset] = field(default_factory=dict)
    _names: dict[tuple[int, ...], str] = field(default_factory=dict)

    def pack(self, task: Task) -> Parcel:
        buffer, used = io.BytesIO(), []

        class Pickler(pickle.Pickler):
            def persistent_id(_, value: Any) -> str | None:  # noqa: N805 - `self` is the packer
                if not isinstance(value, Dataset):
                    return None
                used.append(self._name(value))
                return used[-1]

        Pickler(buffer, protocol=pickle.HIGHEST_PROTOCOL).dump(task)
        names = tuple(dict.fromkeys(used))
        return Parcel(
            buffer.getvalue(), names, imported_files(), os.getcwd(), os.getcwd() in sys.path, software()
        )

    def _name(self, dataset: Dataset) -> str:
        """One name for data sets that have their arrays in common."""
        key = tuple(id(leaf) for leaf in jax.tree.leaves(dataset))
        if key not in self._names:
            self._names[key] = f"{len(self._names)}"
            self.known[self._names[key]] = dataset
        return self._names[key]


def open_parcel(parcel: Parcel, dataset: Callable[[str], Dataset]) -> Task:
    """The task of a parcel, its arrays on the host; `dataset` gives a data set by its name."""
    _import_theirs(parcel)

    class Unpickler(pickle.Unpickler):
        def persistent_load(_, name: str) -> Dataset:  # noqa: N805
            return dataset(name)

    with jax.default_device(host()):
        try:
            return Unpickler(io.BytesIO(parcel.task)).load()
        except (ImportError, AttributeError) as error:
            raise _not_importable(os.getcwd(), error) from None


def copy_own_modules(target: Path) -> None:
    """Copy the modules of the user's that were imported from the current folder, for workers elsewhere."""
    here = Path.cwd()
    for name, module in list(sys.modules.items()):
        path = Path(getattr(module, "__file__", None) or os.devnull)
        if name.partition(".")[0] == "safari" or not path.is_relative_to(here):
            continue
        place = path.relative_to(here)
        if not any(part.startswith(".") or part == "site-packages" for part in place.parts):
            (target / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target / place)


def _import_theirs(parcel: Parcel) -> None:
    """Make the user's own modules importable, from where the command ran or a copy of that folder here."""
    if parcel.own and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    for name, file in parcel.files.items():
        path = Path(file)
        if not path.is_file() and path.is_relative_to(parcel.folder):
            path = Path.cwd() / path.relative_to(parcel.folder)
        try:
            import_file(name, path)
        except (Exception, SystemExit) as error:
            raise _not_importable(str(path), error) from None


def _not_importable(where: str, error: BaseException) -> InputError:
    hint = f"a worker cannot import there what the spec names ({reason(error)})"
    return InputError("worker", where, hint)


def check_software(parcel: Parcel, where: str) -> None:
    """Raise `InputError` if this worker would compute something else than the command does."""
    for name, version in parcel.software.items():
        here = software().get(name)
        if here != version:
            raise InputError(
                "--on", where, f"has {name} {here}, and this command {version}: install the same"
            )


def settings_for_workers() -> dict[str, str]:
    """Environment variables with which a worker computes the same, bit for bit.

    XLA divides a large product by the number of its threads, so a worker has as many as the command has,
    however many cores it runs on.
    """
    threads = os.environ.get("PJRT_NPROC", os.environ.get("NPROC", str(cores())))
    found = {name: value for name, value in os.environ.items() if name.startswith(FORWARDED)}
    return {**found, "NPROC": threads, "PJRT_NPROC": threads}


def begin_as_worker() -> None:
    """What a process that trains tasks does first."""
    warnings.simplefilter("ignore")
    keep_compiled_programs()
    use_cores(1)


def sendable(message: Message) -> bytes:
    """A message as bytes; an error that cannot be copied goes as its text."""
    try:
        return pickle.dumps(told_elsewhere(message))
    except Exception:
        assert isinstance(message, Failed)
        return pickle.dumps(told_elsewhere(Failed(RuntimeError(reason(message.error)))))
