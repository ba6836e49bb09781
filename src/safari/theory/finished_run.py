"""Theorem 4 on a finished run: what its diagnostics say, and what they prove.

The constants are suprema, the diagnostics see single points: the largest value along the run
stands for each. Smoothness has a closed form for softmax regression; for other models the
largest curvature seen is a lower estimate, and so is a certificate made of it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from safari.theory.nonconvex import (
    Constants,
    Terms,
    best_a_priori,
    broken_conditions,
    certificate,
    printed_q_limit,
    q_after_the_run,
)


@dataclass(frozen=True)
class Rates:
    """How a run stepped. `smoothness` is a closed form of L where there is one, `convex` says so."""

    client_rate: float
    local_steps: int
    per_round: int
    server_rate: float
    server_steps: int
    smoothness: float | None = None
    convex: bool = False
    fixed_q: bool = True


@dataclass(frozen=True)
class Measured:
    """A mean over rounds with its standard error, or a largest value (no error)."""

    value: float
    error: float | None = None

    @classmethod
    def mean(cls, values: Sequence[float] | np.ndarray) -> "Measured":
        found = np.asarray(values, float)
        error = float(found.std(ddof=1) / math.sqrt(len(found))) if len(found) > 1 else None
        return cls(float(found.mean()) if len(found) else math.nan, error)


@dataclass(frozen=True)
class Findings:
    """What is known of a finished run."""

    constants: Constants
    rounds: int
    client_rounds: int
    gradient: Measured
    server_gradient: Measured
    move: Measured
    bias: Measured
    server_gap: Measured
    largest_gradient: float
    largest_move: float
    gap: float
    closed_form: bool
    fixed_q: bool
    terms: Terms
    terms_error: float
    not_covered: tuple[str, ...]

    @property
    def q(self) -> float:
        return self.client_rounds / self.rounds

    @property
    def floor(self) -> float:
        """What |grad F|^2 a fixed q may stop at: q b^2."""
        return self.q * max(self.bias.value, 0.0)

    @property
    def q_after(self) -> float | None:
        """The q up to which the printed bound would have followed; None without both kinds of rounds."""
        if not 0 < self.client_rounds < self.rounds:
            return None
        return q_after_the_run(self.constants, [self.server_gradient.value], [self.move.value])

    @property
    def printed_q(self) -> float | None:
        """The limit as printed, from the largest values: necessary, not sufficient."""
        if not 0 < self.client_rounds < self.rounds:
            return None
        return printed_q_limit(self.constants, self.largest_gradient, self.largest_move)

    def before_the_run(self) -> Terms:
        """What could have been promised for this q, had the constants been known."""
        return best_a_priori(self.constants, self.gap, self.rounds, self.q, max(self.bias.value, 0.0))

    @property
    def covered_rates(self) -> tuple[float, float]:
        """A server rate that theorem 4 covers here, near the largest, and the client rate coupled to it.

        Rounded down to two digits: these are rates to copy.
        """
        server = 1 / (4 * math.sqrt(30) * self.constants.smoothness)
        digit = 10 ** (math.floor(math.log10(server)) - 1)
        rounded = float(f"{math.floor(server / digit) * digit:.2g}")
        return rounded, 2 * rounded / self.constants.steps


def findings(kinds: Sequence[str], seen: pl.DataFrame, rates: Rates) -> Findings:
    """`kinds` are those of the rounds, `seen` is the run's diagnostics."""
    kind = np.asarray(kinds)
    client, server = kind == "client", kind == "server"
    constants = Constants(
        smoothness=rates.smoothness or _largest(seen, "smoothness"),
        steps=rates.local_steps,
        per_round=rates.per_round,
        server_rate=rates.server_rate,
        client_noise=_largest(seen, "client_noise"),
        server_noise=_largest(seen, "server_noise"),
        dissimilarity=_largest(seen, "dissimilarity"),
    )
    gradient = seen["gradient"].to_numpy()
    squares = seen["move"].to_numpy()[client].astype(float)
    noise = rates.local_steps * constants.client_noise / rates.per_round
    moves = (squares if rates.convex else squares / 2) - noise
    gap = max(float(seen["loss"][0]), 0.0)
    biases = seen["bias"].to_numpy().astype(float)[client]
    terms = certificate(constants, gap, gradient[server].tolist(), moves.tolist(), biases.tolist())
    K, L, rate = constants.steps, constants.smoothness, constants.server_rate
    spread = (constants.slack**2) * _sum_variance(gradient[server])
    spread += (2 / K**2 * (1 - 4 * L * rate)) ** 2 * _sum_variance(moves) + 16 * _sum_variance(biases)
    return Findings(
        constants=constants,
        rounds=len(kind),
        client_rounds=int(client.sum()),
        gradient=Measured.mean(gradient),
        server_gradient=Measured.mean(gradient[server]),
        move=Measured.mean(moves),
        bias=Measured.mean(seen["bias_available"].drop_nulls().to_numpy()),
        server_gap=Measured.mean(seen["server_gap"].drop_nulls().to_numpy()),
        largest_gradient=float(gradient[server].max()) if server.any() else math.nan,
        largest_move=float(moves.max()) if client.any() else math.nan,
        gap=gap,
        closed_form=rates.smoothness is not None,
        fixed_q=rates.fixed_q,
        terms=terms,
        terms_error=math.sqrt(spread) / len(kind),
        not_covered=tuple(_not_covered(constants, rates)),
    )


def _not_covered(constants: Constants, rates: Rates) -> list[str]:
    found = broken_conditions(constants, rates.client_rate)
    if rates.server_steps > 1:
        found.append(f"a server round takes {rates.server_steps} steps, theorem 4 is about one")
    return found


def _largest(seen: pl.DataFrame, column: str) -> float:
    known = seen[column].drop_nulls()
    return max(float(known.to_numpy().max()), 0.0) if len(known) else 0.0


def _sum_variance(values: np.ndarray) -> float:
    """Of a sum of independent values, its trend counted as noise: an upper estimate."""
    return float(len(values) * values.var(ddof=1)) if len(values) > 1 else 0.0
