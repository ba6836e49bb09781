"""Patients of three hospitals, drawn at random: the tables that the tests of this folder read."""

import numpy as np
import polars as pl

import safari

FEATURES = ("age", "pressure", "temperature")
CLASSES, CLIENTS = ("flu", "pneumonia", "sepsis"), ("harbour", "lake", "north")


def patients(samples: int, seed: int = 0) -> pl.DataFrame:
    """A table of patients, hospital by hospital, of numbers that float32 holds exactly."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, samples)
    columns = [np.round(rng.normal(50 + 9 * y, 8) * 4) / 4 for _ in FEATURES]
    return pl.DataFrame(
        {
            **dict(zip(FEATURES, columns, strict=True)),
            "hospital": np.array(CLIENTS)[np.sort(rng.integers(0, 3, samples))],
            "diagnosis": np.array(CLASSES)[y],
        }
    )


TRAIN, SERVER, TEST = patients(240, 1), patients(40, 2), patients(60, 3)
COLUMNS = {"label": "diagnosis", "client": "hospital"}


def arrays(frame):
    return frame.select(FEATURES).to_numpy(), frame["diagnosis"].to_numpy(), frame["hospital"].to_numpy()


def by_folder(frame, folder, part):
    """Read from a folder with one file a hospital."""
    (folder / part).mkdir()
    for name in CLIENTS:
        frame.filter(pl.col("hospital") == name).drop("hospital").write_csv(folder / part / f"{name}.csv")
    return safari.read(folder / part, label="diagnosis")


def trained(federation):
    model = safari.Logistic()
    participation = safari.Participation(excluded=1, per_round=2)
    return safari.train(federation, model=model, participation=participation, rounds=4)
