"""What a strategy may be told, checked before anything is sent to anybody."""

import math
from typing import Any

from flwr.serverapp.strategy import Strategy

from safari.algorithms import AdaptiveQ
from safari.errors import check, check_choice, check_count, check_fraction, check_positive, check_seed
from safari.flower.fleet import Fleet
from safari.flower.server_steps import Estimating
from safari.flower.wrapped import Needs

DELIVER = ("synced", "last")
TRUST = ("server",)


def check_rounds(seed: Any, round_deadline: float, start_deadline: float, deliver: str, delta: float) -> None:
    """Seed, deadlines, which model is delivered, the probability that goes with epsilon."""
    check(isinstance(seed, int), "seed", seed, "must be a whole number")
    check_seed("seed", seed)
    check_positive("round_deadline", round_deadline)
    check(start_deadline >= 0, "start_deadline", start_deadline, "must be at least 0")
    check_choice("deliver", deliver, DELIVER)
    check(0 < delta < 1, "delta", delta, "must be between 0 and 1")


def check_bounds(**bounds: float | None) -> None:
    """The longest change, and how much longer or heavier than the median a reply may be."""
    for name, bound in bounds.items():
        if bound is not None:
            check_positive(name, bound)
        if bound is not None and name != "most_norm":
            check(bound >= 1, name, bound, "is a multiple of the median: at least 1, or None for no bound")


def check_trust(trust: str | None, server_step: Any) -> None:
    """Who judges replies, beside the bounds: the server, if it takes steps, or nobody."""
    if trust is not None:
        check_choice("trust", trust, TRUST)
        check(server_step is not None, "trust", trust, "the server can only judge by a server_step")


def check_fleet(
    fleet: Fleet, per_round: int | None, min_replies: int, silent_rounds: int | None, needs: Needs
) -> None:
    """How many there are, are asked, and must answer; and what the client strategy needs of them."""
    if fleet.size is not None:
        check_count("fleet", fleet.size)
    check(len(set(fleet.names)) == len(fleet.names), "fleet", fleet.names, "needs each name once")
    size = fleet.size or math.inf
    why = f"is too few{needs.why(needs.answers)}"
    check(needs.answers <= size, "fleet", fleet.size, why)
    check(needs.connected <= size, "fleet", fleet.size, f"min_available_nodes is {needs.connected}")
    if per_round is not None:
        check_count("per_round", per_round)
        check(per_round <= size, "per_round", per_round, f"the fleet has {size} clients")
        check(per_round >= needs.answers, "per_round", per_round, why)
        check(
            needs.asked in (None, per_round), "per_round", per_round, f"its accountant counts {needs.asked}"
        )
    check_count("min_replies", min_replies)
    asked = min(per_round or size, size)
    check(min_replies <= asked, "min_replies", min_replies, f"no more than {asked} clients are asked")
    if silent_rounds is not None:
        check_count("silent_rounds", silent_rounds)


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
