"""Write a folder for each of six hospitals, with its own patients alone, and one for the centre.

They are six of the twelve in examples/hospitals. Three never take part, and most sepsis cases lie there.
"""

from pathlib import Path

import polars as pl

from safari.league.hospitals import drawn

HOSPITALS = ("ashford", "dover", "hazel", "harbour", "north", "summit")


def write(table: pl.DataFrame, folder: str, name: str) -> None:
    """Into a folder that its owner alone may open."""
    place = Path(folder)
    place.mkdir(mode=0o700, exist_ok=True)
    table.write_csv(place / name)


tables = drawn(2026)
for hospital in HOSPITALS:
    mine = tables["patients"].filter(hospital=hospital)
    write(mine.drop("hospital"), hospital, "patients.csv")
write(tables["centre"], "centre", "own.csv")
write(tables["test"].drop("hospital"), "centre", "test.csv")
