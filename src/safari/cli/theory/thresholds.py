"""`safari theory thresholds`: theorem 2 on threshold classifiers, drawn and exact."""

from pathlib import Path
from typing import Annotated

import typer

from safari.cli.session import command, make_folder, show


def thresholds_command(
    out: Annotated[Path | None, typer.Option("--out", help="A directory for figures and CSV.")] = None,
    repetitions: Annotated[
        int, typer.Option("--repetitions", help="Drawn data sets at each pair of sizes.")
    ] = 1000,
    seed: Annotated[int, typer.Option("--seed", help="Of the draws.")] = 0,
) -> None:
    """Theorem 2 on threshold classifiers: excess errors and rates, with clients and without."""
    with command():
        from safari.experiment.directory import write_file
        from safari.report.learnability import case_table, crossing_table, files, slope_table
        from safari.theory.thresholds import CASES, measure

        if out is not None:
            make_folder(out)
        found = [measure(case, repetitions, seed) for case in CASES]
        if out is not None:
            for name, content in files(found).items():
                write_file(out / name, content)
        show(*(case_table(lines) for lines in found), slope_table(found), crossing_table())
        if out is not None:
            print(out)
