r"""What trained hypotheses show of assumptions 1 and 2, and the condition of theorem 3 that can be checked.

From hypotheses that a run visited: the least $\alpha$ of assumption 2 at a given $\beta$, the
largest $\beta$ at a given $\alpha$, and $(\alpha_P, \beta_P)$ of assumption 1. The assumptions speak
of all hypotheses: at a given $\beta$ the visited ones bound $\alpha$ from below, at a given $\alpha$
they bound $\beta$ from above.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog

from safari.errors import InputError, check, check_count, check_fraction, check_positive
from safari.theory.generalization import Problem

Errors = Sequence[float] | np.ndarray

CAUTION = (
    "From {count} visited hypotheses: at this beta alpha is at least this, at this alpha beta is at most "
    "this. Says nothing about hypotheses not visited; needs held-out data and a proxy for the best."
)
NO_SHARED_MINIMISER = "P and Q share no minimiser: assumption 2 fails for every alpha and every beta > 0."
DISAGREES_FOR_FREE = "A hypothesis differs from the best one at no excess error: beta_P is 0."


@dataclass(frozen=True)
class Shown:
    """alpha and beta as `hypotheses` visited hypotheses show them, and what the numbers are not."""

    alpha: float
    beta: float
    hypotheses: int
    caution: str


def _shown(alpha: float, beta: float, hypotheses: int, first: str = "") -> Shown:
    return Shown(alpha, beta, hypotheses, f"{first} {CAUTION.format(count=hypotheses)}".strip())


def alpha_at(beta: float, eps_p: Errors, eps_q: Errors) -> Shown:
    r"""The largest $(\varepsilon_P - \varepsilon_Q) / \varepsilon_Q^\beta$ of the visited hypotheses.

    Infinite if one is perfect under Q and not under P, and $\beta > 0$; 0 if none is worse under P.
    """
    check_fraction("beta", beta)
    p, q = _errors(eps_p=eps_p, eps_q=eps_q)
    apart = np.maximum(p - q, 0)
    scale = q**beta
    ratios = np.divide(apart, scale, out=np.where(apart > 0, math.inf, 0.0), where=scale > 0)
    alpha = float(ratios.max())
    return _shown(alpha, beta, len(p), "" if math.isfinite(alpha) else NO_SHARED_MINIMISER)


def largest_beta(most_alpha: float, eps_p: Errors, eps_q: Errors) -> Shown:
    r"""The largest $\beta \le 1$ with which $\alpha$ stays within `most_alpha` on the visited hypotheses.

    $\varepsilon_P - \varepsilon_Q \le \alpha \varepsilon_Q^\beta$ bounds $\beta$ by
    $\log((\varepsilon_P - \varepsilon_Q) / \alpha) / \log \varepsilon_Q$, one bound a hypothesis.
    """
    check_positive("most_alpha", most_alpha)
    p, q = _errors(eps_p=eps_p, eps_q=eps_q)
    worse = p > q
    p, q = p[worse], q[worse]
    widest = float(np.max(p - q, initial=0))
    check(most_alpha >= widest, "most_alpha", most_alpha, f"must be at least {widest:.4g}: no beta will do")
    if (q == 0).any():
        return _shown(widest, 0.0, len(worse), NO_SHARED_MINIMISER)
    bounds = np.log((p - q) / most_alpha) / np.log(q)
    beta = float(np.min(bounds, initial=1))
    return alpha_at(beta, eps_p, eps_q)


def noise_exponent(disagreement: Errors, excess: Errors) -> Shown:
    r"""The line over all points $(\log \varepsilon_P, \log \Pr[h \ne h^*])$ that is lowest mid-range.

    Its slope is $\beta_P$, from 0 to 1, and its height $\log \alpha_P$. A hypothesis that disagrees
    with $h^*$ at no excess error leaves $\beta_P = 0$.
    """
    apart, eps = _errors(disagreement=disagreement, excess=excess)
    telling = apart > 0
    check(telling.any(), "disagreement", disagreement, "needs a hypothesis other than the best one")
    apart, eps = apart[telling], eps[telling]
    if (eps == 0).any():
        return _shown(float(apart.max()), 0.0, len(eps), DISAGREES_FOR_FREE)
    x, y = np.log(eps), np.log(apart)
    check(x.max() > x.min(), "excess", excess, "needs hypotheses with at least two different errors")
    beta = _lowest_line(x - (x.max() + x.min()) / 2, y)
    return _shown(float(np.exp(np.max(y - beta * x))), beta, len(eps))


def _lowest_line(x: np.ndarray, y: np.ndarray) -> float:
    """The slope, from 0 to 1, of the line above all points that is lowest at 0."""
    above = -np.column_stack([np.ones_like(x), x])
    found = linprog([1.0, 0.0], A_ub=above, b_ub=-y, bounds=[(None, None), (0, 1)])
    return float(found.x[1])


def _errors(**given: Errors) -> list[np.ndarray]:
    """Arrays of probabilities, one value a hypothesis."""
    arrays = {name: np.asarray(values, float) for name, values in given.items()}
    (first, one), (second, other) = arrays.items()
    for name, values in arrays.items():
        if values.ndim != 1 or not len(values) or not ((values >= 0) & (values <= 1)).all():
            raise InputError(name, given[name], "must be one number from 0 to 1 for each hypothesis")
    check(len(one) == len(other), second, len(other), f"must have as many values as {first}: {len(one)}")
    return [one, other]


@dataclass(frozen=True)
class ServerFit:
    """Theorem 3 from what can be measured: tau, the tau it allows, and the bound that follows."""

    tau: float
    allowed: float
    bound: float

    @property
    def holds(self) -> bool:
        """Whether the federated model fits the server set well enough."""
        return self.tau <= self.allowed

    @property
    def words(self) -> str:
        """The statement for people."""
        if not self.holds:
            return (
                f"tau = {self.tau:.4g} is above {self.allowed:.4g}: the federated model fits the server set "
                "worse than server-only training; T3 gives no guarantee."
            )
        return (
            f"tau = {self.tau:.4g} is within {self.allowed:.4g}: the federated model is no worse than "
            f"server-only training in the rate; its excess error is at most {self.bound:.4g}, constants "
            "taken as given. tau is too small if no hypothesis passed in has the least error on the set."
        )


def tau(risk: float, others: Errors) -> float:
    r"""$\hat R_T(\hat h) - \min_h \hat R_T(h)$, the minimum over `others` and the model itself.

    Shares of the server set that are wrong. `others` should hold the server-only model's.
    """
    check_fraction("risk", risk)
    rest = np.asarray(others, float)
    if not len(rest) or not ((rest >= 0) & (rest <= 1)).all():
        raise InputError("others", others, "must be numbers from 0 to 1: what others get wrong on the set")
    return risk - min(risk, float(rest.min()))


def server_fit(problem: Problem, server: int, risk: float, others: Errors, alpha_p: float = 1.0) -> ServerFit:
    """The condition of theorem 3 that needs no assumption 2 and no unknown minimiser."""
    check_positive("alpha_p", alpha_p)
    check_count("server", server, problem.dimension)
    found = tau(risk, others)
    allowed = problem.complexity(server) ** (1 / (2 - problem.beta_p))
    return ServerFit(found, allowed, problem.checkable_bound(found, server, alpha_p))
