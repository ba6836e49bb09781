"""`safari theory generalization`: theorem 2's bound beside that of the server alone."""

from typing import Annotated

import typer

from safari.cli.session import command, show
from safari.errors import InputError


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
        from safari.errors import check, check_not_negative
        from safari.report.theory import generalization_table
        from safari.theory.generalization import Problem
        from safari.theory.relations import mixture_alpha

        check_not_negative("--clients-data", clients_data)
        if alpha is not None:
            check_not_negative("--alpha", alpha)
        rows = []
        for size in _sizes(server):
            check(size >= dimension, "--server", size, f"must be at least the dimension, {dimension}")
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
