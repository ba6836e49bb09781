r"""Federations whose gradients are exact, and SAFARI on them, many runs at once.

Quadratics with a chosen bias at the minimum, and two models on the digits that ship with
scikit-learn, a client per class. A run keeps what the certificates ask for.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from safari.algorithms.q_rules import convex_rule, rule_a, rule_b
from safari.data.sources.digits import load_digits
from safari.theory.quadratics import Quadratics

CLASSES, PER_CLASS, COMPONENTS, HIDDEN = 10, 20, 16, 8
OWN_CLASS = np.eye(CLASSES, dtype=np.float32)[:, None, :, None]
"""Client i holds class i: (clients, runs, classes, samples)."""
KEPT_POINTS = 4
"""How many points of every run are kept, to look at the curvature there."""


@dataclass(frozen=True)
class Objective:
    """F, the mean over `clients` functions.

    `gradients` takes points (n, runs, d), one for each of the first n clients, and gives each
    client's gradient at its own point; `values` gives F at (runs, d). `smoothness` is L and
    `convexity` mu over all clients, `lowest` a lower bound of F; `starts(runs, seed)` draws starts.
    """

    clients: int
    gradients: Callable[[np.ndarray], np.ndarray]
    values: Callable[[np.ndarray], np.ndarray]
    starts: Callable[[int, int], np.ndarray]
    smoothness: float
    convexity: float
    lowest: float

    def everywhere(self, x: np.ndarray) -> np.ndarray:
        """All clients' gradients (clients, runs, d) at the same points (runs, d)."""
        return self.gradients(np.broadcast_to(x, (self.clients, *x.shape)))


def quadratic(problem: Quadratics, distance: float = 1.0) -> Objective:
    """Starts lie at `distance` from 0, in random directions."""

    def gradients(points: np.ndarray) -> np.ndarray:
        n = len(points)
        found: np.ndarray = (points - problem.centres[:n, None]) @ problem.hessians[:n]
        return found

    def values(x: np.ndarray) -> np.ndarray:
        return np.array([problem.values(point).mean() for point in x])

    def starts(runs: int, seed: int) -> np.ndarray:
        drawn = np.random.default_rng(seed).normal(size=(runs, problem.centres.shape[1]))
        return distance * drawn / np.linalg.norm(drawn, axis=1, keepdims=True)

    least = float(problem.values(problem.best()).mean())
    sizes = problem.smoothness, problem.convexity
    return Objective(problem.clients, gradients, values, starts, *sizes, least)


def biased_quadratics(
    clients: int, taking_part: int, bias: float, condition: float, spread: float, seed: int
) -> Quadratics:
    """Random quadratics in three dimensions, mu = 1, least at 0, with b* = `bias` there exactly.

    The first `taking_part` clients take part. `spread` is how far clients' gradients at the
    minimum lie apart; 0 makes all clients alike.
    """
    rng, d = np.random.default_rng(seed), 3
    basis = np.linalg.qr(rng.normal(size=(clients, d, d)))[0]
    hessians = np.einsum("iab,b,icb->iac", basis, np.linspace(1, condition, d), basis)
    if spread == 0:
        hessians = np.repeat(hessians[:1], clients, axis=0)
    pulls = spread * rng.normal(size=(clients, d))
    pulls[:taking_part] -= pulls[:taking_part].mean(axis=0)
    if taking_part < clients:
        pulls[taking_part:] -= pulls[taking_part:].mean(axis=0)
        pulls[:taking_part, 0] += bias
        pulls[taking_part:, 0] -= bias * taking_part / (clients - taking_part)
    return Quadratics(hessians, np.linalg.solve(hessians, pulls[..., None])[..., 0])


def digit_features() -> np.ndarray:
    """(classes, samples, features), single precision: principal components and a constant.

    Scaled so that the largest eigenvalue of any class's X'X/n is 1.
    """
    digits = load_digits()
    x, y = np.asarray(digits.x), np.asarray(digits.y)
    pixels = np.concatenate([x[y == label][:PER_CLASS] for label in range(CLASSES)]) * digits.scale
    pixels = pixels - pixels.mean(axis=0)
    left, scale, _ = np.linalg.svd(pixels, full_matrices=False)
    columns = np.column_stack((left[:, :COMPONENTS] * scale[:COMPONENTS], np.ones(len(pixels))))
    features = columns.reshape(CLASSES, PER_CLASS, -1)
    largest = np.linalg.eigvalsh(features.transpose(0, 2, 1) @ features / PER_CLASS).max()
    return (features / math.sqrt(largest)).astype(np.float32)


def logistic(penalty: float) -> Objective:
    """Multinomial logistic regression with the penalty (lambda/2)|x|^2, a client per class."""
    X = digit_features()
    width = X.shape[-1]

    def logits(points: np.ndarray) -> np.ndarray:
        n, runs, _ = points.shape
        weights = points.reshape(n, runs, CLASSES, width)
        return weights @ X[:n, None].swapaxes(-1, -2)

    def gradients(points: np.ndarray) -> np.ndarray:
        n = len(points)
        found = _residual(logits(points)) @ X[:n, None]
        return found.reshape(points.shape) + penalty * points

    def values(x: np.ndarray) -> np.ndarray:
        points = np.broadcast_to(x, (CLASSES, *x.shape))
        return _cross_entropy(logits(points)) + penalty / 2 * np.sum(x**2, axis=-1)

    def starts(runs: int, seed: int) -> np.ndarray:
        drawn = np.random.default_rng(seed).normal(size=(runs, CLASSES * width))
        return (0.1 * drawn).astype(np.float32)

    L = penalty + 0.5
    rough = Objective(CLASSES, gradients, values, starts, L, penalty, 0.0)
    x = np.zeros((1, CLASSES * width))
    for _ in range(400):
        x = x - rough.everywhere(x).mean(axis=0) / L
    left = float(np.sum(rough.everywhere(x).mean(axis=0) ** 2))
    return Objective(
        CLASSES, gradients, values, starts, L, penalty, float(values(x)[0]) - left / (2 * penalty)
    )


def network(penalty: float, smoothness: float) -> Objective:
    """One hidden layer of tanh, cross-entropy and (lambda/2)|x|^2; L is taken on trust."""
    X = digit_features()
    width = X.shape[-1]
    split = HIDDEN * width

    def layers(points: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        n, runs, _ = points.shape
        inner = points[..., :split].reshape(n, runs, HIDDEN, width)
        outer = points[..., split:].reshape(n, runs, CLASSES, HIDDEN + 1)
        hidden = np.tanh(inner @ X[:n, None].swapaxes(-1, -2))
        logits = outer[..., :-1] @ hidden + outer[..., -1:]
        return hidden, outer, logits

    def gradients(points: np.ndarray) -> np.ndarray:
        n, runs, _ = points.shape
        hidden, outer, logits = layers(points)
        residual = _residual(logits)
        back = (outer[..., :-1].swapaxes(-1, -2) @ residual) * (1 - hidden**2)
        inner = back @ X[:n, None]
        outer = np.concatenate(
            (residual @ hidden.swapaxes(-1, -2), residual.sum(axis=-1, keepdims=True)), axis=-1
        )
        found = (inner.reshape(n, runs, -1), outer.reshape(n, runs, -1))
        return np.concatenate(found, axis=-1) + penalty * points

    def values(x: np.ndarray) -> np.ndarray:
        points = np.broadcast_to(x, (CLASSES, *x.shape))
        return _cross_entropy(layers(points)[2]) + penalty / 2 * np.sum(x**2, axis=-1)

    def starts(runs: int, seed: int) -> np.ndarray:
        drawn = np.random.default_rng(seed).normal(size=(runs, split + CLASSES * (HIDDEN + 1)))
        return (0.3 * drawn).astype(np.float32)

    return Objective(CLASSES, gradients, values, starts, smoothness, 0.0, 0.0)


def _residual(logits: np.ndarray) -> np.ndarray:
    """Softmax less the label, over the samples' number."""
    weight = np.exp(logits - logits.real.max(axis=-2, keepdims=True))
    weight /= weight.sum(axis=-2, keepdims=True)
    weight -= OWN_CLASS[: len(weight)]
    weight /= PER_CLASS
    return weight


def _cross_entropy(logits: np.ndarray) -> np.ndarray:
    """The mean over clients and samples, for every run."""
    off = logits - logits.max(axis=-2, keepdims=True)
    total = np.log(np.exp(off).sum(axis=-2))
    own = np.sum(off * OWN_CLASS, axis=-2)
    return np.mean(total - own, axis=(0, 2))


def largest_curvature(objective: Objective, x: np.ndarray, iterations: int = 20) -> float:
    """The largest |eigenvalue| of any client's Hessian at any of the points (n, d).

    Power iteration on Hessian-vector products, which are exact: the gradient is differentiated
    by a complex step.
    """
    reach = 1e-20
    rng = np.random.default_rng(0)
    v = rng.normal(size=(objective.clients, *x.shape))
    size = np.ones(v.shape[:-1])
    for _ in range(iterations):
        v = objective.gradients(x.astype(float) + 1j * reach * v).imag / reach
        size = np.linalg.norm(v, axis=-1)
        v /= size[..., None]
    return float(size.max())


@dataclass(frozen=True)
class Settings:
    """How runs go on: rates, the rule for q, and total variances of one gradient's noise."""

    steps: int
    taking_part: int
    server_rate: float
    client_rate: float
    rule: str = "fixed"
    q: float = 0.0
    bias_at_best: float = 0.0
    client_noise: float = 0.0
    server_noise: float = 0.0


@dataclass(frozen=True)
class Record:
    """What was seen at the start of every round, (rounds, runs), and points of the runs.

    `bias` is b^2, `dissimilarity` the largest |grad F_i - grad F|^2, `move` is B where `client`,
    `size` is |x|^2 with one row more, for the end.
    """

    client: np.ndarray
    gradient: np.ndarray
    bias: np.ndarray
    dissimilarity: np.ndarray
    move: np.ndarray
    size: np.ndarray
    points: np.ndarray


def simulate(
    objective: Objective, settings: Settings, rounds: int, start: np.ndarray, rng: np.random.Generator
) -> Record:
    """SAFARI from every row of `start`; the first clients all take part in every client round.

    Rule A is told the dissimilarity at the round's own point: the least that is safe there.
    """
    x, m = start, settings.taking_part
    client = np.zeros((rounds, len(x)), bool)
    gradient, bias, apart, move = (np.zeros(client.shape) for _ in range(4))
    size, points = [], []
    for r in range(rounds):
        own = objective.everywhere(x)
        mean = own.mean(axis=0)
        gradient[r] = _square(mean)
        bias[r] = _square(own[:m].mean(axis=0) - mean)
        apart[r] = _square(own - mean).max(axis=0)
        size.append(_square(x))
        if r % max(1, rounds // KEPT_POINTS) == 0:
            points.append(x)
        client[r] = there = rng.random(len(x)) < _q(objective, settings, gradient[r], bias[r], apart[r])
        moved = x - settings.server_rate * (mean + _noise(rng, settings.server_noise, mean))
        if there.any():
            moved[there], move[r, there] = _client_round(objective, settings, x[there], rng)
        x = moved
    size.append(_square(x))
    return Record(client, gradient, bias, apart, move, np.array(size, float), np.array([*points, x]))


def _q(
    objective: Objective, settings: Settings, gradient: np.ndarray, bias: np.ndarray, apart: np.ndarray
) -> np.ndarray | float:
    L, rate = objective.smoothness, settings.server_rate
    if settings.rule == "A":
        return np.asarray(rule_a(gradient, apart, L, rate))
    if settings.rule == "B":
        return np.asarray(rule_b(gradient, bias, L, rate))
    if settings.rule == "convex":
        return np.asarray(convex_rule(gradient, settings.bias_at_best**2, L, objective.convexity))
    return settings.q


def _client_round(
    objective: Objective, settings: Settings, x: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Where the clients' mean ends, and B."""
    local = np.repeat(x[None], settings.taking_part, axis=0)
    total = np.zeros_like(local)
    for _ in range(settings.steps):
        own = objective.gradients(local)
        total += own
        local = local - settings.client_rate * (own + _noise(rng, settings.client_noise, own))
    return local.mean(axis=0), _square(total.mean(axis=0))


def _noise(rng: np.random.Generator, variance: float, like: np.ndarray) -> np.ndarray | float:
    return math.sqrt(variance / like.shape[-1]) * rng.standard_normal(like.shape) if variance else 0.0


def _square(x: np.ndarray) -> np.ndarray:
    return np.einsum("...a,...a->...", x, x)
