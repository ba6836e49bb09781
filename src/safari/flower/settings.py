"""What a strategy may be told, checked before anything is sent to anybody."""

import math
from typing import Any

from flwr.serverapp.strategy import Strategy

from safari.algorithms import AdaptiveQ
from safari.errors import check, check_count, check_fraction, check_positive, check_seed
from safari.flower.fleet import Fleet
from safari.flower.server_steps import Estimating


def check_rounds(seed: Any, round_deadline: float, start_deadline: float, most_norm: float | None) -> None:
    """Seed, deadlines, the longest change."""
    check(isinstance(seed, int), "seed", seed, "must be a whole number")
    check_seed("seed", seed)
    check_positive("round_deadline", round_deadline)
    check(start_deadline >= 0, "start_deadline", start_deadline, "must be at least 0")
    if most_norm is not None:
        check_positive("most_norm", most_norm)


def check_fleet(fleet: Fleet, per_round: int | None, min_replies: int) -> None:
    """How many there are, are asked, and must answer."""
    if fleet.size is not None:
        check_count("fleet", fleet.size)
    check(len(set(fleet.names)) == len(fleet.names), "fleet", fleet.names, "needs each name once")
    size = fleet.size or math.inf
    if per_round is not None:
        check_count("per_round", per_round)
        check(per_round <= size, "per_round", per_round, f"the fleet has {size} clients")
    check_count("min_replies", min_replies)
    asked = min(per_round or size, size)
    check(min_replies <= asked, "min_replies", min_replies, f"no more than {asked} clients are asked")


def check_parts(q: Any, server_step: Any, clients: Any, client_path: float | None) -> None:
    """The probability, and what server and clients do."""
    check(clients is None or isinstance(clients, Strategy), "clients", clients, "must be a Flower strategy")
    step = server_step is None or callable(server_step)
    check(step, "server_step", server_step, "must be a function of the arrays and the round")
    if isinstance(q, AdaptiveQ):
        able = isinstance(server_step, Estimating)
        check(able, "server_step", server_step, "an AdaptiveQ needs one that has `rate` and `halves`")
        known = client_path is not None and client_path > 0
        check(known, "client_path", client_path, "an AdaptiveQ needs a client's rate times its steps")
        return
    check(isinstance(q, int | float), "q", q, "must be a number or an AdaptiveQ")
    check_fraction("q", q)
    enough = server_step is not None or q == 1
    check(enough, "server_step", None, "the server needs a step to take in its rounds, unless q is 1")
