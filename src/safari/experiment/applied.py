"""A trained model applied to files: scored, or asked for predictions."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from safari.data.reading import CLIENT, has_column, open_for_model
from safari.engine import TrainedModel, load
from safari.engine.evaluation import metrics_on_test
from safari.engine.metrics import Metrics
from safari.errors import InputError, check
from safari.experiment.checksums import is_there, read_spec
from safari.experiment.directory import SPEC, write_file
from safari.experiment.spec import Spec, complete

PREDICTED, PROBABILITY = "predicted", "probability_"


def evaluated(place: Path, file: Path | None, label: str | None, client: str | None) -> Metrics:
    """The metrics of the model in `place` on the samples in `file`, or on the test set of its run."""
    model, spec = load(place), _spec_of(place)
    if file is not None:
        label, client = label or _named(spec, "label"), client or _client_in(file, spec, model)
        try:
            return model.evaluate(file, label, client)
        except InputError as error:
            known = {"label", "client"} & {error.key}
            raise InputError(f"--{error.key}", error.value, error.allowed) if known else error from None
    if spec is None:
        raise InputError("FILE", "(nothing)", "needs labelled samples: a model by itself has no test set")
    return metrics_on_test(model, spec.at_server() if spec.on_nodes else spec.federation())[0]


def predicted(place: Path, file: Path) -> pl.DataFrame:
    """The table in `file` with the class that the model predicts, and the probability of each."""
    model = load(place)
    found = open_for_model(file, None, "data")
    probabilities = model.probabilities(model.samples(found, file.name))
    columns = _predictions(model, probabilities)
    if not isinstance(found, pl.DataFrame):
        return pl.DataFrame(columns)
    for name in columns:
        check(name not in found.columns, "data", file.name, f"has a column {name} already; rename it")
    return found.with_columns(**{name: pl.Series(values) for name, values in columns.items()})


def _predictions(model: TrainedModel, probabilities: np.ndarray) -> dict[str, Any]:
    named = model.named(np.argmax(probabilities, axis=1)) if len(probabilities) else np.zeros(0, np.int64)
    each = {f"{PROBABILITY}{name}": probabilities[:, number] for number, name in enumerate(model.labels)}
    return {PREDICTED: named, **each}


def _spec_of(place: Path) -> Spec | None:
    """The spec of a run directory."""
    return complete(read_spec(place)) if place.is_dir() and is_there(place / SPEC) else None


def _named(spec: Spec | None, key: str) -> Any:
    """What a spec says about a column."""
    return None if spec is None else spec.tables["data"].get(key)


def _client_in(file: Path, spec: Spec | None, model: TrainedModel) -> str | None:
    """The column of a file that says which client a sample is of: the run's, if the file has it."""
    named = _named(spec, "client")
    name = named if isinstance(named, str) else CLIENT
    known = named is not False and name not in (model.features or ()) and has_column(file, name)
    return name if known else None


def _writers() -> dict[str, Callable[[pl.DataFrame, Any], Any]]:
    return {
        ".csv": pl.DataFrame.write_csv,
        ".parquet": pl.DataFrame.write_parquet,
        ".arrow": pl.DataFrame.write_ipc,
        ".feather": pl.DataFrame.write_ipc,
    }


def check_table_name(path: Path) -> None:
    """Refuse a file that no table can be written to, before anything is computed."""
    check(path.suffix in _writers(), "--out", str(path), f"must end in {', '.join(_writers())}")
    check(path.parent.is_dir(), "--out", str(path), "is in a folder that does not exist")


def write_table(table: pl.DataFrame, path: Path) -> None:
    """Write a table by the ending of its file, so that it is there whole or not at all."""
    buffer = io.BytesIO()
    _writers()[path.suffix](table, buffer)
    try:
        write_file(path, buffer.getvalue())
    except OSError as error:
        raise InputError("--out", str(path), f"cannot be written ({error.strerror})") from None
