"""Write patients.csv, centre.csv and test.csv: a network of twelve hospitals, drawn with a fixed seed.

Three diagnoses, of which one is rare. Three hospitals never take part in training, and nine tenths of the
sepsis cases lie there. The centre has sixty labelled patients of its own.
"""

from pathlib import Path

import numpy as np
import polars as pl

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


def patients(diagnoses: np.ndarray, rng: np.random.Generator) -> pl.DataFrame:
    """One patient for each diagnosis, with the signs that a hospital measures."""
    means = np.array([MEANS[diagnosis] for diagnosis in diagnoses])
    signs = np.clip(means + rng.normal(size=means.shape) * SPREADS, LEAST, MOST)
    columns = {name: np.round(signs[:, place], DIGITS[place]) for place, name in enumerate(SIGNS)}
    return pl.DataFrame({**columns, "diagnosis": diagnoses.tolist()})


def diagnoses_at(hospital: str, rng: np.random.Generator) -> np.ndarray:
    """The diagnoses of a hospital's patients; sepsis patients are sent to the three that never take part."""
    away = sum(size for name, size in SIZES.items() if name in ABSENT)
    here = sum(SIZES.values()) - away
    cases = USUAL[2] * (away + here)
    sepsis = (1 - SEPSIS_ELSEWHERE) * cases / away if hospital in ABSENT else SEPSIS_ELSEWHERE * cases / here
    others = np.array(USUAL[:2]) / sum(USUAL[:2]) * (1 - sepsis)
    return rng.choice(DIAGNOSES, SIZES[hospital], p=[*others, sepsis])


def main() -> None:
    rng = np.random.default_rng(2026)
    here = Path(__file__).parent
    tables = [
        patients(diagnoses_at(hospital, rng), rng).with_columns(pl.lit(hospital).alias("hospital"))
        for hospital in SIZES
    ]
    pl.concat(tables).write_csv(here / "patients.csv")
    for name, count in (("centre", 60), ("test", 3000)):
        patients(rng.choice(DIAGNOSES, count, p=USUAL), rng).write_csv(here / f"{name}.csv")


if __name__ == "__main__":
    main()
