"""`safari theory counterexample`: theorem 4 as printed, on two clients."""

from typing import Annotated

import typer

from safari.cli.session import command, show


def counterexample_command(
    q: Annotated[float, typer.Option("--q", help="Probability of a client round.")] = 0.8,
    start: Annotated[float, typer.Option("--start", help="Where the run begins.")] = 3.0,
    rounds: Annotated[int, typer.Option("--rounds", help="R; the server rate is 1 / sqrt(R).")] = 1_000_000,
    seed: Annotated[int, typer.Option("--seed", help="Of the adaptive runs.")] = 0,
) -> None:
    """Two clients, one of which never takes part: the printed bound, and what holds instead."""
    with command():
        from safari.errors import check, check_count, check_fraction, check_seed
        from safari.report.theory import adaptive_table, counterexample_table
        from safari.theory.counterexample import examine, simulate

        check_fraction("--q", q)
        check_count("--rounds", rounds)
        check(480 <= rounds <= 10**7, "--rounds", rounds, "must be from 480 (the step sizes) to 10,000,000")
        check(0.01 <= abs(start) <= 1000, "--start", start, "must be from 0.01 to 1000, either sign")
        check_seed("--seed", seed)
        show(counterexample_table(examine(q, start, rounds)))
        lengths = [length for length in (1_000, 10_000, 100_000) if length <= rounds]
        paths = {
            (rule, length): simulate(rule, start, length, 200_000 // length, seed)
            for rule in "ABC"
            for length in lengths
        }
        show(adaptive_table(paths))
