r"""Theorem 1: without server data no learner is safe, however many samples the clients have.

Two points, $P(x_2) = p$ and $P(x_1) = 1 - p$, and two target functions that differ at $x_2$
alone. Of the $Mn$ samples that all M clients hold, the $mn$ of those that take part are chosen
so that $x_1$ comes first. If at most $(M - m) n$ samples are $x_2$, no $x_2$ is seen, the two
targets look alike, and a deterministic learner is wrong at $x_2$ for one of them: its error is
p. With $\omega = m / M$ the paper takes $p = (1 - \omega) / 2$ and shows
$\Pr[\text{error} > (1 - \omega) / 8] > 1/20$. True, and weak: the same construction gives the
probability `unseen_probability`, above 0.9097 for every m < M and n.
"""

from dataclasses import dataclass

import numpy as np
from scipy import stats

from safari.data import Federation
from safari.errors import check, check_count, check_seed

MOST_REPETITIONS = 10_000_000
PAPER_PROBABILITY = 1 / 20
UNSEEN_AT_LEAST = 0.9097
"""Below `unseen_probability` at p = (1 - omega) / 2 for every m < M and n (found numerically)."""
LEARNERS = ("majority", "nearest", "logistic", "all but x2")
RANDOMISED = ("all but x2",)
LOGISTIC_STEPS, LOGISTIC_RATE = 50, 0.5


@dataclass(frozen=True)
class Participation:
    """M clients of n samples each, m of which take part."""

    clients: int
    participating: int
    samples: int

    def __post_init__(self) -> None:
        check_count("clients", self.clients)
        check(
            0 <= self.participating < self.clients,
            "participating",
            self.participating,
            f"must be from 0 to {self.clients - 1}: with all clients there is no floor",
        )
        check_count("samples", self.samples)

    @property
    def omega(self) -> float:
        """The share of clients that take part."""
        return self.participating / self.clients

    @property
    def rare(self) -> float:
        """P(x2), as the paper chooses it."""
        return (1 - self.omega) / 2

    @property
    def paper_floor(self) -> float:
        """The error that the printed theorem speaks of."""
        return (1 - self.omega) / 8

    @property
    def client_floor(self) -> float:
        """The error when participants hold x1 alone and the others x2: certain, whatever n."""
        return 1 - self.omega

    @property
    def absent(self) -> int:
        """Samples of the clients that do not take part: room for every x2 not to be seen."""
        return (self.clients - self.participating) * self.samples

    def unseen_probability(self, rare: float | None = None, strict: bool = False) -> float:
        """The probability that no x2 is seen; `strict` counts as the paper does, with `<`."""
        most = self.absent - 1 if strict else self.absent
        return float(stats.binom.cdf(most, self.clients * self.samples, self.rare if rare is None else rare))


@dataclass(frozen=True)
class Failure:
    """How often a learner's error reached P(x2), with a 95 % interval (Clopper-Pearson)."""

    learner: str
    frequency: float
    low: float
    high: float
    floor: float

    @property
    def clears_floor(self) -> bool:
        """Whether even the interval's lower end is above the paper's 1/20."""
        return self.low > PAPER_PROBABILITY


def failure_floor(participation: Participation, learner: str) -> float:
    """What the failure probability is at least: half for learners that toss coins."""
    unseen = participation.unseen_probability()
    return unseen / 2 if learner in RANDOMISED else unseen


def simulate(participation: Participation, learner: str, repetitions: int, seed: int) -> Failure:
    """Draw data sets, train, and count how often the learner is wrong at x2.

    The target is the one of the two that the learner gets wrong when it has not seen x2.
    """
    check(learner in LEARNERS, "learner", learner, f"must be one of {', '.join(LEARNERS)}")
    check_count("repetitions", repetitions, most=MOST_REPETITIONS)
    check_seed("seed", seed)
    rng = np.random.default_rng(seed)
    total = participation.clients * participation.samples
    rare_drawn = rng.binomial(total, participation.rare, repetitions)
    rare_seen = np.maximum(rare_drawn - participation.absent, 0)
    common_seen = participation.participating * participation.samples - rare_seen
    wrong = _says_common(learner, common_seen, rare_seen, rng)
    failures = int(wrong.sum())
    interval = stats.binomtest(failures, repetitions).proportion_ci(method="exact")
    return Failure(
        learner,
        failures / repetitions,
        float(interval.low),
        float(interval.high),
        failure_floor(participation, learner),
    )


def _says_common(learner: str, common: np.ndarray, rare: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Whether the trained learner gives x2 the label of x1; the target's label there is the other."""
    if learner == "majority":
        return common >= rare
    if learner == "nearest":
        return rare == 0
    if learner == "logistic":
        return _logistic_at_rare(common, rare) >= 0
    return np.where(rare == 0, rng.random(len(rare)) < 0.5, False)


def _logistic_at_rare(common: np.ndarray, rare: np.ndarray) -> np.ndarray:
    """The logit at x2 = 2 of logistic regression on x1 = 1 (label +) and x2 (label -)."""
    total = np.maximum(common + rare, 1)
    weight, bias = np.zeros(len(common)), np.zeros(len(common))
    for _ in range(LOGISTIC_STEPS):
        at_common = common / total / (1 + np.exp(weight + bias))
        at_rare = -rare / total / (1 + np.exp(-2 * weight - bias))
        weight += LOGISTIC_RATE * (at_common + 2 * at_rare)
        bias += LOGISTIC_RATE * (at_common + at_rare)
    return 2 * weight + bias


def coverage_floor(federation: Federation, excluded: np.ndarray | tuple[int, ...]) -> float:
    """The error on the test set below which training on the clients alone cannot get.

    The second construction on a real partition: the share of the test set in classes that
    no participating client holds.
    """
    return 1 - federation.coverage(excluded).accuracy_ceiling
