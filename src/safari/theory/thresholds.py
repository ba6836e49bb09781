r"""Theorem 2 on threshold classifiers: drawn data sets against exact excess errors and rates.

P = U[0, 1] and a hypothesis says 1 above its threshold. Each `Case` has $n_T$ samples of P at
the server and a multiple of them at the clients; its learner runs on drawn samples, with the
clients' and on the server's alone. Without noise the learner takes the smallest positive
sample; with noise, $\Pr[y = 1 | x] = (1 + \mathrm{sgn}(x - t^*) |x - t^*|^k) / 2$, it takes the
threshold with the fewest errors. `crossing` is the n from which the bound with clients is
below the one without.
"""

import bisect
import math
import zlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import stats

from safari.errors import check, check_count, check_seed
from safari.theory.generalization import Problem, root_excess, simulate_threshold
from safari.theory.impossibility import MOST_REPETITIONS
from safari.theory.relations import polynomial_noise

CONFIDENCE = 0.95
FALSE_ALARM = 0.001
"""How often chance alone may call exact values missed, over all sizes of one line together."""
RATE_SLACK = 0.05
"""How far from the rate a slope's interval may end: rates hold in the limit, sizes are finite."""
LEAST_REPETITIONS = 30
MOST_TOGETHER = 10**12
SIZES, NOISY_SIZES = (20, 40, 80, 160, 320, 640), (400, 800, 1600, 3200, 6400)
BLOCK = 500_000


@dataclass(frozen=True)
class Interval:
    """An estimate with its 95 % interval."""

    value: float
    low: float
    high: float

    @property
    def error(self) -> float:
        """The standard error behind the interval."""
        return (self.high - self.low) / 2 / float(stats.norm.ppf((1 + CONFIDENCE) / 2))

    def contains(self, value: float, slack: float = 0.0) -> bool:
        return self.low - slack <= value <= self.high + slack


@dataclass(frozen=True)
class Case:
    """What is sampled, how it is drawn, and what theory says; `ratios` are n_S / n_T, 0 first."""

    name: str
    about: str
    sizes: tuple[int, ...]
    ratios: tuple[int, ...]
    draw: Callable[[int, int, int, int], np.ndarray]
    problem: Callable[[int, int], Problem]
    exact: Callable[[int, int], float] | None = None

    def bound(self, server: int, clients: int) -> float:
        """Of theorem 2, constants taken as 1."""
        problem = self.problem(server, clients)
        return problem.client_bound(server, clients) if clients else problem.server_bound(server)

    def rate(self, assisted: bool) -> float:
        """The exponent of 1 / n in the bound, n_S / n_T being fixed."""
        problem = self.problem(1, int(assisted))
        if assisted:
            return min(problem.beta, 1) / (2 - problem.beta_q)
        return 1 / (2 - problem.beta_p)


@dataclass(frozen=True)
class Point:
    """The excess error at one pair of sizes, and how far it is from server-only training."""

    server: int
    clients: int
    excess: Interval
    change: Interval
    exact: float | None
    bound: float


@dataclass(frozen=True)
class Line:
    """One case at one ratio of clients' to server's samples, over the sizes."""

    case: Case
    ratio: int
    points: tuple[Point, ...]
    repetitions: int

    @property
    def rate(self) -> float:
        return self.case.rate(self.ratio > 0)

    @property
    def slope(self) -> Interval:
        """Of log excess on log n, sizes weighted by how well they were measured."""
        x, weights = self._design()
        y = np.log([point.excess.value for point in self.points])
        reach = float(stats.norm.ppf((1 + CONFIDENCE) / 2)) / math.sqrt(float(np.sum(weights * x**2)))
        value = _fit(x, y, weights)
        return Interval(value, value - reach, value + reach)

    @property
    def exact_slope(self) -> float | None:
        """The same fit through the exact values."""
        exact = [point.exact for point in self.points if point.exact is not None]
        x, weights = self._design()
        return _fit(x, np.log(exact), weights) if exact else None

    @property
    def inside(self) -> int:
        """At how many sizes the 95 % interval holds the exact value."""
        return sum(point.exact is not None and point.excess.contains(point.exact) for point in self.points)

    @property
    def as_exact(self) -> bool | None:
        """Whether no exact value is further away than chance explains; None without exact values."""
        limit = float(stats.norm.isf(FALSE_ALARM / 2 / len(self.points)))
        far = [abs(p.excess.value - p.exact) / p.excess.error for p in self.points if p.exact is not None]
        return max(far) <= limit if far else None

    @property
    def as_theorem(self) -> bool:
        """Whether the excess falls at the rate of the theorem, which these families attain."""
        return self.slope.contains(-self.rate, RATE_SLACK)

    @property
    def against_server(self) -> str:
        """Where the clients' samples helped, in words."""
        if not self.ratio:
            return ""
        if all(point.change.low == point.change.high == 0 for point in self.points):
            return "no gain: equal on every drawn set"
        better = [point.server for point in self.points if point.change.high < 0]
        worse = [point.server for point in self.points if point.change.low > 0]
        if len(better) == len(self.points):
            return "better at every size"
        if len(worse) == len(self.points):
            return "worse at every size"
        parts = [f"better up to n_T = {max(better)}"] if better else []
        parts += [f"worse from n_T = {min(worse)}"] if worse else []
        return ", ".join(parts) or "no difference seen"

    def _design(self) -> tuple[np.ndarray, np.ndarray]:
        """log n about its weighted mean, and the weights: one over the variance of log excess."""
        x = np.log([point.server + point.clients for point in self.points])
        weights = np.array([(point.excess.value / point.excess.error) ** 2 for point in self.points])
        return x - np.average(x, weights=weights), weights


def _fit(x: np.ndarray, y: np.ndarray, weights: np.ndarray) -> float:
    return float(np.sum(weights * x * y) / np.sum(weights * x**2))


def half_seen_excess(threshold: float, server: int, clients: int) -> float:
    r"""Exact, no noise, clients sample U[0, 1/2]: `generalization.threshold_excess` as a finite sum.

    While the clients see, $(1 - u)^{n_T} (1 - 2u)^{n_S}$ with $v = 1 - 2u$ integrates to
    $E[(1 - (2 t^*)^{n_S + J + 1}) / (n_S + J + 1)] / 2$ for J binomial of $n_T$ tosses; beyond 1/2
    only the server sees.
    """
    edge = min(threshold, 0.5)
    tosses = np.arange(server + 1)
    seen = (1 - (2 * edge) ** (clients + tosses + 1)) / (clients + tosses + 1)
    near = float(np.sum(stats.binom.pmf(tosses, server, 0.5) * seen)) / 2
    start = min(0.5 + threshold, 1.0)
    beyond = (start ** (server + 1) - threshold ** (server + 1)) / (server + 1)
    return near + (2 * edge) ** clients * beyond


def half_seen(threshold: float) -> Case:
    """No noise; clients sample U[0, 1/2], so that a threshold above 1/2 is out of their sight."""

    def problem(server: int, clients: int) -> Problem:
        share, whole = clients / (server + clients), 1 - threshold
        seen = 2 * max(0.5 - threshold, 0.0)
        return Problem(1, alpha=whole / (share * seen + (1 - share) * whole) - 1)

    return Case(
        f"t* = {threshold:g}",
        "clients sample U[0, 1/2]",
        SIZES,
        (0, 1, 9),
        lambda server, clients, count, seed: simulate_threshold(threshold, server, clients, count, seed),
        problem,
        lambda server, clients: half_seen_excess(threshold, server, clients),
    )


def root() -> Case:
    """No noise, t* = 0, beta = 1/2: all n samples have density 2x; the server alone has U[0, 1]."""

    def draw(server: int, clients: int, repetitions: int, seed: int) -> np.ndarray:
        least = np.random.default_rng(seed).random((repetitions, server + clients)).min(axis=1)
        return np.sqrt(least) if clients else least

    return Case(
        "beta = 1/2",
        "all n samples of density 2x",
        SIZES,
        (0, 9, 99),
        draw,
        lambda server, clients: Problem(1, beta=0.5),
        lambda server, clients: root_excess(server + clients) if clients else 1 / (server + 1),
    )


def noisy(power: float) -> Case:
    """Labels that are coin tosses at t* = 1/2 and less so away from it; clients sample U[1/4, 3/4]."""
    beta = polynomial_noise(power).beta

    def draw(server: int, clients: int, repetitions: int, seed: int) -> np.ndarray:
        rng = np.random.default_rng(seed)
        middle = 0.25 + rng.random((repetitions, clients)) / 2
        offset = np.concatenate([rng.random((repetitions, server)), middle], axis=1) - 0.5
        offset.sort(axis=1)
        tilt = np.copysign(np.abs(offset) ** power, offset)
        says_one = rng.uniform(-1, 1, offset.shape) < tilt
        return np.abs(fewest_errors(offset, says_one)) ** (power + 1) / (power + 1)

    def problem(server: int, clients: int) -> Problem:
        share = clients / (server + clients)
        alpha = 1 / (1 - share + share * 0.5**power) - 1
        return Problem(1, beta_p=beta, beta_q=beta, alpha=alpha)

    return Case(f"noise k = {power:g}", "clients sample U[1/4, 3/4]", NOISY_SIZES, (0, 3), draw, problem)


def fewest_errors(offset: np.ndarray, says_one: np.ndarray) -> np.ndarray:
    """The threshold of fewest errors in each row of sorted samples of [-1/2, 1/2]; the least of equals."""
    gained = (2 * says_one.view(np.int8) - 1).cumsum(axis=1, dtype=np.int32)
    best = gained.argmin(axis=1)
    rows = np.arange(len(offset))
    return np.where(gained[rows, best] < 0, offset[rows, best], -0.5)


CASES = (half_seen(0.75), half_seen(0.25), root(), noisy(0.5), noisy(1), noisy(2))


def measure(case: Case, repetitions: int, seed: int) -> list[Line]:
    """Draw `repetitions` data sets at each pair of sizes; the first line is the server's alone."""
    check_count("repetitions", repetitions, LEAST_REPETITIONS, MOST_REPETITIONS)
    check_seed("seed", seed)
    points: dict[int, list[Point]] = {ratio: [] for ratio in case.ratios}
    for server in case.sizes:
        without = _drawn(case, server, 0, repetitions, seed)
        for ratio in case.ratios:
            clients = ratio * server
            found = _drawn(case, server, clients, repetitions, seed) if clients else without
            exact = case.exact(server, clients) if case.exact else None
            change = mean_interval(found - without)
            points[ratio].append(
                Point(server, clients, mean_interval(found), change, exact, case.bound(server, clients))
            )
    return [Line(case, ratio, tuple(found), repetitions) for ratio, found in points.items()]


def _drawn(case: Case, server: int, clients: int, repetitions: int, seed: int) -> np.ndarray:
    """Excess errors, a block of data sets at a time; seeds and blocks are the same for every ratio."""
    most = max(1, BLOCK // (server * (1 + max(case.ratios))))
    blocks = [min(most, repetitions - start) for start in range(0, repetitions, most)]
    stream = np.random.SeedSequence([seed, zlib.crc32(case.name.encode()), server])
    seeds = stream.generate_state(len(blocks))
    return np.concatenate(
        [case.draw(server, clients, count, int(one)) for count, one in zip(blocks, seeds, strict=True)]
    )


def mean_interval(values: np.ndarray) -> Interval:
    """The mean with its 95 % interval by the normal law."""
    mean = float(values.mean())
    reach = float(stats.norm.ppf((1 + CONFIDENCE) / 2) * values.std(ddof=1) / math.sqrt(len(values)))
    return Interval(mean, mean - reach, mean + reach)


def crossing(problem: Problem, server: int) -> int | None:
    """The least n = n_T + n_S at which the bound with clients is below that of the server's n_T alone.

    None if there is none up to `MOST_TOGETHER`. The relation's alpha is that of `problem` at every n.
    """
    least = math.ceil(math.e * problem.dimension)
    check(server >= least, "server", server, f"must be at least {least}: below, bounds grow with n")
    sizes = range(server + 1, MOST_TOGETHER + 1)
    place = bisect.bisect_left(sizes, True, key=lambda n: problem.gains(server, n - server))
    return sizes[place] if place < len(sizes) else None
