"""`safari theory`: the theorems on numbers."""

from pathlib import Path
from typing import Annotated

import typer

from safari.cli.session import command, show
from safari.errors import InputError

theory_app = typer.Typer(
    help="The paper's theorems on numbers, corrected.", no_args_is_help=True, rich_markup_mode=None
)


@theory_app.command("impossibility")
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

        place = Participation(clients, participating, samples)
        found = [simulate(place, learner, repetitions, seed) for learner in LEARNERS]
        show(impossibility_table(place, found, repetitions))
        print(impossibility_words(place))
        if spec is not None:
            print(_floor_of(spec))


def _floor_of(path: Path) -> str:
    from safari.experiment import load_spec
    from safari.theory.impossibility import coverage_floor

    run = load_spec(path).prepare()
    floor = coverage_floor(run.task.federation, run.roster.excluded_clients)
    return f"{path}: training on its clients alone leaves at least {floor:.1%} of the test set wrong"


@theory_app.command("generalization")
def generalization_command(
    dimension: Annotated[int, typer.Option("--dimension", help="VC dimension, d.")] = 10,
    server: Annotated[
        str, typer.Option("--server", help="Server samples n_T, separated by commas.")
    ] = "50,100,500,1000",
    clients_data: Annotated[
        int, typer.Option("--clients-data", help="Samples of the clients together, n_S.")
    ] = 32_400,
    beta_p: Annotated[float, typer.Option("--beta-p", help="Noise exponent of the population.")] = 1.0,
    beta_q: Annotated[float, typer.Option("--beta-q", help="Noise exponent of the training mixture.")] = 1.0,
    alpha: Annotated[
        float | None, typer.Option("--alpha", help="Of assumption 2; default: n_S / n_T, as for a mixture.")
    ] = None,
    beta: Annotated[float, typer.Option("--beta", help="Of assumption 2.")] = 1.0,
    delta: Annotated[float, typer.Option("--delta", help="Probability that the bound may fail.")] = 0.05,
) -> None:
    """Theorems 2 and 3: the bound with clients' samples, and with the server's alone."""
    with command():
        from safari.report.theory import generalization_table
        from safari.theory.generalization import Problem
        from safari.theory.relations import mixture_alpha

        rows = []
        for size in _sizes(server):
            relation = mixture_alpha(size, clients_data) if alpha is None else alpha
            problem = Problem(dimension, beta_p, beta_q, relation, beta, delta)
            rows.append(
                (size, relation, problem.client_bound(size, clients_data), problem.server_bound(size))
            )
        show(generalization_table(rows))


def _sizes(text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts or not all(part.isdigit() and int(part) > 0 for part in parts):
        raise InputError("--server", text, "must be whole numbers above 0, separated by commas")
    return [int(part) for part in parts]
