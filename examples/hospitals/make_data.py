"""Write patients.csv, centre.csv and test.csv: a network of twelve hospitals, drawn with a fixed seed."""

from pathlib import Path

from safari.league.hospitals import drawn

for name, table in drawn(2026).items():
    table.write_csv(Path(__file__).parent / f"{name}.csv")
