"""Experiment trackers: TensorBoard, MLflow, Weights & Biases. What a run's history holds goes to one of them.

A tracker gets the rounds of every run once, also when a run is stopped and resumed: `tracking.json` in the
directory says how far it was told. Rounds are told again only if safari is killed while it tells them.
"""

import json
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import polars as pl

from safari.engine.training import Training
from safari.errors import InputError, check
from safari.experiment.checksums import reading
from safari.experiment.directory import write_file
from safari.experiment.sweep.cells import flat
from safari.experiment.sweep.store import read_finished

TOLD = "tracking.json"
PROJECT = "safari"
MOST_AT_ONCE = 1000
"""How many numbers MLflow takes in one call."""

Settings = dict[str, Any]
Numbers = dict[str, float]


class Tracker(ABC):
    """Where the numbers of one run go.

    Args:
        folder: of the run, sweep or comparison.
        run: the name of the run.
        settings: the spec, its keys as dotted paths.
        known: what the tracker called this run before, if it knows it.
    """

    library: str
    known: str | None = None

    @abstractmethod
    def __init__(self, folder: Path, run: str, settings: Settings, known: str | None): ...

    @abstractmethod
    def log(self, rounds: Sequence[tuple[int, Numbers]]) -> None:
        """Tell the numbers of rounds."""

    @abstractmethod
    def close(self, summary: Numbers) -> None:
        """Tell the numbers of the finished run; `summary` is empty if it has only stopped."""


class TensorBoard(Tracker):
    """Event files in `tensorboard/`: `tensorboard --logdir` finds them in any folder above."""

    library = "tensorboardX"

    def __init__(self, folder: Path, run: str, settings: Settings, known: str | None):
        from tensorboardX import SummaryWriter

        # Files are named by the second: one that is resumed at once would overwrite the one before it.
        suffix = f".{time.time_ns()}"
        self._writer = SummaryWriter(logdir=str(folder / "tensorboard" / run), filename_suffix=suffix)
        if known is None:
            lines = "\n".join(f"    {key} = {value}" for key, value in settings.items())
            self._writer.add_text("spec", lines)
        self.known, self._last = run, 0

    def log(self, rounds: Sequence[tuple[int, Numbers]]) -> None:
        for number, found in rounds:
            for name, value in found.items():
                self._writer.add_scalar(name, value, number)
            self._last = number
        self._writer.flush()

    def close(self, summary: Numbers) -> None:
        for name, value in summary.items():
            self._writer.add_scalar(f"summary/{name}", value, self._last)
        self._writer.close()


class MLflow(Tracker):
    """A run in MLflow: at `MLFLOW_TRACKING_URI`, or in `mlruns/` beside the directory."""

    library = "mlflow"

    def __init__(self, folder: Path, run: str, settings: Settings, known: str | None):
        place = os.environ.get("MLFLOW_TRACKING_URI")
        if place is None:
            os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
            place = (folder.absolute().parent / "mlruns").as_uri()
        from mlflow import MlflowClient
        from mlflow.entities import Param

        self._client = MlflowClient(tracking_uri=place)
        if known is None:
            found = self._client.get_experiment_by_name(PROJECT)
            experiment = self._client.create_experiment(PROJECT) if found is None else found.experiment_id
            known = self._client.create_run(experiment, run_name=run).info.run_id
            params = [Param(key, str(value)) for key, value in settings.items()]
            self._client.log_batch(known, params=params)
        else:
            self._client.update_run(known, status="RUNNING")
        self.known = self._run = known

    def log(self, rounds: Sequence[tuple[int, Numbers]]) -> None:
        from mlflow.entities import Metric

        now = int(time.time() * 1000)
        found = [Metric(name, value, now, number) for number, row in rounds for name, value in row.items()]
        for first in range(0, len(found), MOST_AT_ONCE):
            self._client.log_batch(self._run, metrics=found[first : first + MOST_AT_ONCE])

    def close(self, summary: Numbers) -> None:
        self.log([(0, {f"summary.{name}": value for name, value in summary.items()})])
        self._client.set_terminated(self._run, "FINISHED" if summary else "KILLED")


class WeightsAndBiases(Tracker):
    """A run in Weights & Biases, its files beside the directory; `WANDB_MODE=offline` keeps it here."""

    library = "wandb"

    def __init__(self, folder: Path, run: str, settings: Settings, known: str | None):
        import wandb

        self._run = wandb.init(
            project=PROJECT, name=run, config=settings, dir=str(folder.absolute().parent), id=known,
            resume=None if known is None else "allow", reinit="create_new",
            settings=wandb.Settings(silent=True),
        )  # fmt: skip
        self.known = self._run.id

    def log(self, rounds: Sequence[tuple[int, Numbers]]) -> None:
        for number, found in rounds:
            self._run.log(found, step=number)

    def close(self, summary: Numbers) -> None:
        self._run.summary.update(summary)
        self._run.finish()


TRACKERS: dict[str, type[Tracker]] = {
    "tensorboard": TensorBoard,
    "mlflow": MLflow,
    "wandb": WeightsAndBiases,
}


def find_tracker(name: str) -> type[Tracker]:
    """The tracker of this name, its library imported; refused before anything is trained."""
    check(name in TRACKERS, "--track", name, f"must be one of {', '.join(TRACKERS)}")
    try:
        import_module(TRACKERS[name].library)
    except ImportError:
        raise InputError("--track", name, f"needs a library: pip install 'safari-fl[{name}]'") from None
    return TRACKERS[name]


class Told:
    """What a tracker of a directory has been told of each run: its name for it, and how many rounds."""

    def __init__(self, folder: Path, name: str):
        self._file, self._name = folder / TOLD, name

    def __getitem__(self, run: str) -> tuple[str | None, int]:
        known, rounds = self._read().get(self._name, {}).get(run, (None, 0))
        return known, rounds

    def __setitem__(self, run: str, state: tuple[str | None, int]) -> None:
        whole = self._read()
        whole.setdefault(self._name, {})[run] = state
        write_file(self._file, json.dumps(whole, indent=1).encode())

    def _read(self) -> dict[str, dict[str, Any]]:
        if not self._file.is_file():
            return {}
        with reading(self._file, "is damaged; remove it, the trackers are then told of all rounds again"):
            return json.loads(self._file.read_text(encoding="utf-8"))


class TrackedRun:
    """Tells a tracker of one run, as it goes: call it with the training, `close` it in the end."""

    def __init__(self, folder: Path, name: str, settings: Settings):
        self._folder, self._name, self._settings = folder, name, settings
        self._class = find_tracker(name)
        self._tracker: Tracker | None = None
        self._seen = 0
        self._summary: Numbers = {}

    def __call__(self, training: Training) -> None:
        run, told = self._folder.name, Told(self._folder, self._name)
        if self._tracker is None:
            known, self._seen = told[run]
            self._tracker = self._class(self._folder, run, self._settings, known)
        history = training.history
        fresh = history[self._seen :]
        if len(fresh):
            labels = training.runs[0].task.federation.dataset.labels
            self._tracker.log(list(numbers_of(fresh, labels)))
            self._seen = len(history)
            told[run] = (self._tracker.known, self._seen)
        if training.finished:
            self._summary = numbers_in(training.result().summary())

    def close(self) -> None:
        if self._tracker is not None:
            self._tracker.close(self._summary)


class TrackedSweep:
    """Tells a tracker of every run of a sweep once it is finished: call it now and then, and in the end."""

    def __init__(self, folder: Path, name: str):
        self._folder, self._name = folder, name
        self._class = find_tracker(name)

    def __call__(self) -> None:
        told = Told(self._folder, self._name)
        for row in read_finished(self._folder).iter_rows(named=True):
            run = row["cell"]
            if told[run][0] is not None:
                continue
            settings = json.loads(row["settings"])
            title = ",".join(f"{key.rpartition('.')[2]}={value}" for key, value in settings.items())
            tracker = self._class(self._folder, f"{title[:80]}-{run[:6]}", settings, None)
            tracker.log(list(_curve(row)))
            tracker.close(numbers_in({key: row[key] for key in row if not key.startswith("curve_")}))
            told[run] = (tracker.known, len(row["curve_round"]))


def numbers_of(history: pl.DataFrame, labels: Sequence[str]) -> Iterable[tuple[int, Numbers]]:
    """The numbers of each round that are known; recall and precision by class name."""
    for row in history.iter_rows(named=True):
        by_class = {
            f"{name}/{label}": value
            for name in ("recall", "precision")
            for label, value in zip(labels, row[name] or (), strict=False)
        }
        yield row["round"], numbers_in({**row, **by_class})


def numbers_in(values: dict[str, Any]) -> Numbers:
    """What of it is a number, but for the round."""
    return {
        name: float(value)
        for name, value in values.items()
        if name != "round" and isinstance(value, int | float) and not isinstance(value, bool)
    }


def _curve(row: dict[str, Any]) -> Iterable[tuple[int, Numbers]]:
    curves = {key.removeprefix("curve_"): values for key, values in row.items() if key.startswith("curve_")}
    for place, number in enumerate(curves["round"]):
        yield number, numbers_in({name: values[place] for name, values in curves.items() if name != "round"})


def settings_of(tables: dict[str, Any]) -> Settings:
    """A spec as a tracker shows it: dotted keys."""
    return {key: value for key, value in flat(tables).items() if not key.startswith("versions.")}
