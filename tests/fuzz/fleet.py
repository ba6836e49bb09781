"""The server of a fleet, whose clients are in this process."""

import logging
from contextlib import contextmanager
from pathlib import Path

from fuzz.uses import Done

CLIENTS = 6


@contextmanager
def quiet():
    """Flower tells every round on the terminal."""
    log = logging.getLogger("flwr")
    before, log.disabled = log.disabled, True
    try:
        yield
    finally:
        log.disabled = before


def serve(state: Path, rounds: int) -> Done:
    """Train up to so many rounds, on from what `state` holds."""
    from local_grid import LocalGrid
    from numpy_app import make_app, nodes, server_step, start

    from safari.errors import InputError
    from safari.flower import SafariStrategy

    grid = LocalGrid(make_app(), nodes(CLIENTS))
    keys = {"q": 0.6, "fleet": CLIENTS, "per_round": 3, "start_deadline": 0.0}
    try:
        with quiet():
            made = SafariStrategy(server_step=server_step, checkpoint=state, **keys)
            made.start(grid, start(), num_rounds=rounds)
    except InputError as error:
        return Done(2, "", f"safari: {error}\n")
    except BaseException as error:
        return Done(1, "", "", error)
    return Done(0, "", "")
