"""`safari theory rates`: measured convergence rates against the corollaries."""

from pathlib import Path
from typing import Annotated

import typer

from safari.cli.session import command, make_folder, say, show


def rates_command(
    out: Annotated[
        Path | None, typer.Option("--out", help="A folder for rates.png and rates.csv (default: neither).")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer points and replications.")] = False,
    seed: Annotated[int, typer.Option("--seed", help="Of the federations, starts, coins and noise.")] = 0,
) -> None:
    """Corollaries 5 and 7: convergence rates, speedup and floors of SAFARI, measured."""
    with command():
        from safari.experiment.directory import write_file
        from safari.report.rates import draw_rates, points_table, rates_table, rates_words
        from safari.theory.rates import measure

        if out is not None:
            make_folder(out)
        cases = []
        for case in measure(quick, seed):
            say(f"measured: {case.setting}, {case.name}")
            cases.append(case)
        if out is not None:
            write_file(out / "rates.png", draw_rates(cases))
            write_file(out / "rates.csv", points_table(cases).write_csv().encode())
        show(rates_table(cases))
        print(rates_words(cases))
        if out is not None:
            print(out)
