r"""Assumptions 1 and 2: noise exponents, and how errors under two distributions relate.

Assumption 1: $\Pr_P[h \ne h_P^*] \le \alpha_P \, \varepsilon_P(h)^{\beta_P}$.
Assumption 2: $|\varepsilon_P(h) - \varepsilon_Q(h)| \le \alpha \, \varepsilon_Q(h)^\beta$ for all h.
The second is strong: $\beta > 0$ forces P and Q to share a minimiser, and where clients never
sample, $\alpha$ is at least $n_S / n_T$.
"""

import math
from dataclasses import dataclass

from safari.errors import check


@dataclass(frozen=True)
class NoiseExponent:
    """alpha_P and beta_P of assumption 1."""

    beta: float
    alpha: float


def polynomial_noise(power: float) -> NoiseExponent:
    r"""Thresholds on U[0, 1] with $\Pr[y = 1 | x] = (1 + \mathrm{sgn}(x - t^*) |x - t^*|^k) / 2$."""
    return NoiseExponent(1 / (power + 1), (power + 1) ** (1 / (power + 1)))


def polynomial_excess(power: float, distance: float) -> float:
    """The excess error of a threshold that is `distance` off."""
    return distance ** (power + 1) / (power + 1)


def uniform_alpha(p: tuple[float, float], q: tuple[float, float], threshold: float) -> float:
    """The least alpha with beta = 1 for P = U[a, b], Q = U[a', b'] inside it, and threshold t*.

    The printed 1 - rho, rho = (b' - a') / (b - a), covers only hypotheses inside [a', b'].
    """
    (a, b), (inner_a, inner_b) = p, q
    rho = (inner_b - inner_a) / (b - a)
    above = _stretch(b - threshold, inner_b - threshold, rho)
    below = _stretch(threshold - a, threshold - inner_a, rho)
    return max(1 - rho, above, below)


def _stretch(whole: float, inner: float, rho: float) -> float:
    if inner > 0:
        return whole * rho / inner - 1
    return math.inf if whole > 0 else -math.inf


def mixture_alpha(server: int, clients: int) -> float:
    r"""$\alpha$ with $\beta = 1$ for a mixture of clients' and server's samples: $n_S / n_T$.

    Bounds $(\varepsilon_P - \varepsilon_Q) / \varepsilon_Q$; attained where the clients miss a
    region in which a hypothesis errs.
    """
    check(server > 0, "server", server, "must be at least 1: without server data nothing bounds alpha")
    return clients / server


def mixture_alpha_down(server: int, clients: int, omega: float) -> float:
    r"""The bound on $(\varepsilon_Q - \varepsilon_P) / \varepsilon_Q$, labels free of noise."""
    share = clients / (clients + server)
    return share * (1 - omega) / (share + (1 - share) * omega)
