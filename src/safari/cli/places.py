"""Where a command's runs go: the options, and the place that they name."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from safari.cli.session import say
from safari.errors import InputError, check_count

if TYPE_CHECKING:
    from safari.experiment.sweep.places import Place

MOST_PROCESSES = 256
Processes = Annotated[
    int | None,
    typer.Option(
        "--processes",
        help="Train in so many processes of this machine, which share its cores or its GPU; with --on ray, "
        "so many runs share each GPU. Default: this process, one run per core.",
    ),
]
On = Annotated[
    str | None,
    typer.Option("--on", help="Train on a Ray cluster: ray (at RAY_ADDRESS), or ray://HOST:PORT."),
]


@contextmanager
def place_for(processes: int | None, on: str | None) -> "Iterator[Place | None]":
    """The place that the options name, for as long as the command lasts; None: this process."""
    if processes is not None:
        check_count("--processes", processes, most=MOST_PROCESSES)
    if on is not None:
        if on != "ray" and not on.startswith("ray://"):
            raise InputError("--on", on, "must be ray, or ray://HOST:PORT")
        from safari.experiment.sweep.places.on_ray import OnRay

        with OnRay(on, processes) as cluster:
            yield cluster
    elif processes is None or processes == 1:
        yield None
    else:
        from safari.experiment.sweep.places import Processes

        with Processes(processes, say) as several:
            yield several
