r"""Where fixed mixtures of client and server rounds settle.

With small steps a fixed q minimises $(1 - w) F + w F_S$: the clients that take part weigh w.
"""

from collections.abc import Callable

SETTLED = 20_000


def client_weight(q: float, client_path: float, server_rate: float) -> float:
    """w for q, eta_c K and eta_s; with the paper's own rates it is nearly 1."""
    return q * client_path / (q * client_path + (1 - q) * server_rate)


def alternating_limit(server_rate: float) -> float:
    """On the counterexample, a client step (eta_c = 2 eta_s) and a server step in every round."""
    return 2 * (1 - server_rate) / (3 - 2 * server_rate)


def corrected_limit(server_rate: float, client_rate: float, steps: int) -> float:
    """On the counterexample, the aggregate corrected by grad F - grad F_S, then a server step.

    Exact for one local step, off by O(eta_c K) for more.
    """
    shrink = 1 - (1 - client_rate) ** steps

    def one_round(x: float) -> float:
        return (1 - server_rate) * (x - shrink * (x - 1) - client_rate * steps)

    return settle(one_round, 1.0)


def settle(step: Callable[[float], float], x: float) -> float:
    """The point that repeating `step` leads to."""
    for _ in range(SETTLED):
        x = step(x)
    return x
