"""A network of twelve hospitals and a rare diagnosis, drawn at random: the data of examples/hospitals.

Three diagnoses, of which one is rare. Three hospitals never take part in training, and nine tenths of the
sepsis cases lie there. The centre has sixty labelled patients of its own.
"""

import numpy as np
import polars as pl

from safari.data import Dataset, Source, read
from safari.data.own import dataset_of
from safari.errors import check_seed

SIZES = {
    "ashford": 640, "birch": 60, "cedar": 180, "dover": 420, "elm": 90, "falcon": 250,
    "grove": 130, "hazel": 330, "isle": 45, "harbour": 300, "north": 380, "summit": 220,
}  # fmt: skip
ABSENT = ("harbour", "north", "summit")
DIAGNOSES = ("flu", "pneumonia", "sepsis")
USUAL = (0.71, 0.24, 0.05)
SEPSIS_ELSEWHERE = 0.1
"""The share of the sepsis cases that the nine hospitals hold that take part."""

SIGNS = (
    "age",
    "temperature",
    "heart_rate",
    "breathing_rate",
    "blood_pressure",
    "white_cells",
    "lactate",
    "oxygen",
)
MEANS = {
    "flu": (44, 38.4, 92, 18, 122, 7.5, 1.3, 96.5),
    "pneumonia": (58, 38.7, 99, 22, 118, 12.5, 1.8, 92.5),
    "sepsis": (64, 38.8, 110, 24, 104, 14.5, 2.9, 93.0),
}
SPREADS = (17, 0.7, 14, 4, 15, 4.0, 1.0, 2.6)
LEAST, MOST = (18, 35, 40, 8, 60, 0.5, 0.3, 70), (99, 42, 190, 50, 220, 40, 15, 100)
DIGITS = (0, 1, 0, 0, 0, 1, 1, 1)
CENTRE, TEST = 60, 3000


class Hospitals(Source):
    """The patients of twelve hospitals, of the centre and of the test set.

    Args:
        draw: the seed that draws all of them.

    Examples:
        >>> from safari.league.hospitals import Hospitals
        >>> dataset = Hospitals(draw=2026).load()
        >>> dataset.labels, dataset.own_server, len(dataset.y)
        (('flu', 'pneumonia', 'sepsis'), 60, 3105)
    """

    draw: int = 0

    def __check_init__(self) -> None:
        check_seed("draw", self.draw)

    def load(self) -> Dataset:
        tables = drawn(self.draw)
        patients = read(tables["patients"], label="diagnosis", client="hospital")
        test = tables["test"].drop("hospital")
        return dataset_of(patients, *(read(one, label="diagnosis") for one in (tables["centre"], test)))


def drawn(seed: int) -> dict[str, pl.DataFrame]:
    """The tables `patients`, `centre` and `test`; where test patients are treated is drawn last."""
    rng = np.random.default_rng(seed)
    tables = [
        _patients(rng.choice(DIAGNOSES, size, p=_shares_at(hospital)), rng).with_columns(
            pl.lit(hospital).alias("hospital")
        )
        for hospital, size in SIZES.items()
    ]
    centre = _patients(rng.choice(DIAGNOSES, CENTRE, p=USUAL), rng)
    diagnoses = rng.choice(DIAGNOSES, TEST, p=USUAL)
    places = _hospitals_of(diagnoses, np.random.default_rng(seed + 1))
    test = _patients(diagnoses, rng).with_columns(hospital=pl.Series(places))
    return {"patients": pl.concat(tables), "centre": centre, "test": test}


def _patients(diagnoses: np.ndarray, rng: np.random.Generator) -> pl.DataFrame:
    """One patient for each diagnosis, with the signs that a hospital measures."""
    means = np.array([MEANS[diagnosis] for diagnosis in diagnoses])
    signs = np.clip(means + rng.normal(size=means.shape) * SPREADS, LEAST, MOST)
    columns = {name: np.round(signs[:, place], DIGITS[place]) for place, name in enumerate(SIGNS)}
    return pl.DataFrame({**columns, "diagnosis": diagnoses.tolist()})


def _shares_at(hospital: str) -> list[float]:
    """How common each diagnosis is there; sepsis patients are sent to the three that never take part."""
    away = sum(size for name, size in SIZES.items() if name in ABSENT)
    here = sum(SIZES.values()) - away
    cases = USUAL[2] * (away + here)
    sepsis = (1 - SEPSIS_ELSEWHERE) * cases / away if hospital in ABSENT else SEPSIS_ELSEWHERE * cases / here
    others = np.array(USUAL[:2]) / sum(USUAL[:2]) * (1 - sepsis)
    return [*others.tolist(), sepsis]


def _hospitals_of(diagnoses: np.ndarray, rng: np.random.Generator) -> list[str]:
    """Where patients with these diagnoses are treated."""
    cases = np.array([SIZES[hospital] * np.array(_shares_at(hospital)) for hospital in SIZES])
    cases /= cases.sum(axis=0)
    return [str(rng.choice(list(SIZES), p=cases[:, DIAGNOSES.index(diagnosis)])) for diagnosis in diagnoses]
