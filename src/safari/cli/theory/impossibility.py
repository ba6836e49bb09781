"""`safari theory impossibility`: theorem 1 on drawn data sets, and on a partition."""

from pathlib import Path
from typing import Annotated

import typer

from safari.cli.session import command, show


def impossibility_command(
    clients: Annotated[int, typer.Option("--clients", help="All clients, M.")] = 10,
    participating: Annotated[int, typer.Option("--participating", help="Those that take part, m.")] = 6,
    samples: Annotated[int, typer.Option("--samples", help="Samples of each client, n.")] = 100,
    repetitions: Annotated[int, typer.Option("--repetitions", help="Drawn data sets.")] = 10_000,
    seed: Annotated[int, typer.Option("--seed", help="Of the draws.")] = 0,
    spec: Annotated[
        Path | None, typer.Option("--spec", help="A run's TOML file: the floor of its partition.")
    ] = None,
) -> None:
    """Theorem 1: how often learners fail when some clients never take part, against the floor."""
    with command():
        from safari.report.theory import impossibility_table, impossibility_words
        from safari.theory.impossibility import LEARNERS, Participation, simulate

        floor = _floor_of(spec) if spec is not None else ""
        place = Participation(clients, participating, samples)
        found = [simulate(place, learner, repetitions, seed) for learner in LEARNERS]
        show(impossibility_table(place, found, repetitions))
        print(impossibility_words(place))
        if floor:
            print(floor)


def _floor_of(path: Path) -> str:
    from safari.experiment import load_spec
    from safari.theory.impossibility import coverage_floor

    run = load_spec(path).prepare()
    floor = coverage_floor(run.task.federation, run.roster.excluded_clients)
    return f"{path}: training on its clients alone leaves at least {floor:.1%} of the test set wrong"
