"""Every algorithm in plain NumPy: slow, and readable in a few minutes.

The engine must equal this, given the same batches, cohorts and coins. The model is softmax regression
with one matrix `w` (classes x features; a constant feature carries the bias). A batch is a pair
(inputs, labels). A twin is made from the settings of an algorithm of safari's and the `World`, has
`round(w, turn)`, and keeps its own state. `TWINS` has one for every name of the registry.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from safari.registry import ALGORITHMS


@dataclass
class World:
    """Who holds what: inputs and labels of every client and of the server."""

    clients: list
    server: tuple
    classes: int


@dataclass
class Turn:
    """One round: its number from 0, the coin, who reports, and their batches."""

    number: int
    coin: float
    cohort: list
    client_batches: Callable
    """Of a client: (client, steps, batch size)."""
    server_batches: Callable
    """(steps, batch size)"""


def probabilities(w, x):
    logits = x @ w.T
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


def gradient(w, batch):
    x, y = batch
    p = probabilities(w, x)
    p[np.arange(len(y)), y] -= 1
    return p.T @ x / len(y)


def sgd(w, batches, rate, clip=None, direction=lambda gradient, w: gradient):
    for batch in batches:
        g = gradient(w, batch)
        if clip is not None:
            g = g * min(1, clip / np.linalg.norm(g))
        w = w - rate * direction(g, w)
    return w


# Client algorithms: a member says what differs from FedAvg.


class FedAvg:
    """`round` gives the parameters and the kind of the round; `acted` is told by the kind."""

    def __init__(self, settings, world):
        self.set, self.world = settings, world

    def steps(self, client):
        samples, size = len(self.world.clients[client][1]), self.set.batch_size
        return self.set.local_steps or self.set.local_epochs * max(samples // size, 1)

    def prepare(self, w, turn):
        pass

    def direction(self, client, start):
        return lambda gradient, w: gradient

    def weights(self, w, changes, turn):
        sizes = {i: len(self.world.clients[i][1]) if self.set.weights == "size" else 1 for i in changes}
        return {i: size / sum(sizes.values()) for i, size in sizes.items()}

    def absorb(self, w, update):
        return w + self.set.global_rate * update

    def remember(self, changes):
        pass

    def round(self, w, turn):
        if not turn.cohort:
            return w, "idle"
        self.prepare(w, turn)
        changes = {}
        for i in turn.cohort:
            batches = turn.client_batches(i, self.steps(i), self.set.batch_size)
            end = sgd(w, batches, self.set.local_rate, self.set.clip, self.direction(i, w))
            changes[i] = end - w
        weights = self.weights(w, changes, turn)
        self.remember(changes)
        return self.absorb(w, sum(weights[i] * changes[i] for i in changes)), "client"


class FedProx(FedAvg):
    def direction(self, client, start):
        return lambda gradient, w: gradient + self.set.proximal * (w - start)


class FedAdam(FedAvg):
    m = v = t = 0

    def absorb(self, w, update):
        b1, b2 = self.set.b1, self.set.b2
        self.t += 1
        self.m = b1 * self.m + (1 - b1) * update
        self.v = b2 * self.v + (1 - b2) * update**2
        m, v = self.m / (1 - b1**self.t), self.v / (1 - b2**self.t)
        return w + self.set.global_rate * m / (np.sqrt(v) + self.set.eps)


class FedOpt(FedAvg):
    """With optax's sgd, which FedAvg's own step is."""


class SCAFFOLD(FedAvg):
    def prepare(self, w, turn):
        if not hasattr(self, "c"):
            self.c, self.c_i = np.zeros_like(w), [np.zeros_like(w) for _ in self.world.clients]

    def direction(self, client, start):
        return lambda gradient, w: gradient - self.c_i[client] + self.c

    def remember(self, changes):
        new = {
            i: self.c_i[i] - self.c - change / (self.steps(i) * self.set.local_rate)
            for i, change in changes.items()
        }
        self.c = self.c + sum(new[i] - self.c_i[i] for i in new) / len(self.c_i)
        for i in new:
            self.c_i[i] = new[i]


class FedNova(FedAvg):
    def weights(self, w, changes, turn):
        p, steps = super().weights(w, changes, turn), {i: self.steps(i) for i in changes}
        effective = sum(p[i] * steps[i] for i in changes)
        return {i: effective * p[i] / steps[i] for i in changes}


class DataSharing(FedAvg):
    """FedAvg; who holds what after the sharing is in the `World` already, and tested by itself."""


class FLTrust(FedAvg):
    def weights(self, w, changes, turn):
        samples, size = len(self.world.server[1]), self.set.batch_size
        steps = self.set.local_steps or self.set.local_epochs * max(samples // size, 1)
        batches = turn.server_batches(steps, min(size, samples))
        own = sgd(w, batches, self.set.local_rate, self.set.clip) - w
        norm = np.linalg.norm
        trust = {i: max(np.sum(d * own) / (norm(d) * norm(own)), 0) for i, d in changes.items()}
        total = sum(trust.values()) or 1.0
        return {i: trust[i] * norm(own) / norm(changes[i]) / total for i in changes}


class Corrected(FedAvg):
    def prepare(self, w, turn):
        self.server_gradient = gradient(w, self.world.server)

    def direction(self, client, start):
        off = self.server_gradient - gradient(start, self.world.clients[client])
        return lambda gradient, w: gradient + off


# The server, and both sides together.


class ServerSGD:
    def __init__(self, settings, world):
        self.set, self.world = settings, world

    def round(self, w, turn):
        size = min(self.set.batch_size, len(self.world.server[1]))
        batches = turn.server_batches(self.set.steps, size)
        return sgd(w, batches, self.set.rate, self.set.clip), "server"


class TwoSided:
    def __init__(self, settings, world):
        self.set, self.world = settings, world
        self.clients, self.server = twin_of(settings.clients, world), twin_of(settings.server, world)


class Safari(TwoSided):
    def round(self, w, turn):
        return (self.clients if turn.coin < self.set.q else self.server).round(w, turn)


class ServerOnly(TwoSided):
    def round(self, w, turn):
        return self.server.round(w, turn)


class Then(TwoSided):
    def amount(self, half, turn):
        return self.set.mix

    def round(self, w, turn):
        half, kind = self.clients.round(w, turn)
        ended, _ = self.server.round(half, turn)
        a = self.amount(half, turn)
        if a == 0:
            return half, kind
        return half + a * (ended - half), {"idle": "server", "client": "both"}.get(kind, kind)


class FedCLGC(Then):
    pass


class FedDU(Then):
    def amount(self, half, turn):
        def counts(labels):
            return np.bincount(labels, minlength=self.world.classes)

        everyone = sum(counts(y) for _, y in self.world.clients)
        chosen = sum((counts(self.world.clients[i][1]) for i in turn.cohort), np.zeros(self.world.classes))
        x, y = self.world.server
        theirs, ours = len(y) * divergence(chosen, everyone), sum(chosen) * divergence(counts(y), everyone)
        weight = theirs / (theirs + ours) if theirs + ours > 0 else 1.0
        accuracy = np.mean(probabilities(half, x).argmax(axis=1) == y)
        a = self.set.mix * (1 - accuracy) * weight * self.set.decay**turn.number
        return a if a > 0.001 else 0.0


def divergence(one, other):
    """Jensen-Shannon's, of two label distributions given by their counts."""
    if one.sum() == 0 or other.sum() == 0:
        return 0.0
    p, q = one / one.sum(), other / other.sum()
    middle = (p + q) / 2

    def relative(p):
        return sum(a * np.log(a / m) for a, m in zip(p, middle, strict=True) if a > 0)

    return (relative(p) + relative(q)) / 2


class Beside(TwoSided):
    def round(self, w, turn):
        by_clients, kind = self.clients.round(w, turn)
        by_server, _ = self.server.round(w, turn)
        sizes = getattr(self.set.clients, "weights", "equal") == "size"
        theirs = sum(len(self.world.clients[i][1]) if sizes else 1 for i in turn.cohort)
        ours = len(self.world.server[1]) if sizes else 1
        shares = (1, 1) if self.set.merge == "sum" else (theirs / (theirs + ours), ours / (theirs + ours))
        moved = w + shares[0] * (by_clients - w) + shares[1] * (by_server - w)
        return moved, {"idle": "server", "client": "both"}.get(kind, kind)


class Stages:
    def __init__(self, settings, world):
        self.set = settings
        self.first, self.second = twin_of(settings.first, world), twin_of(settings.second, world)

    def round(self, w, turn):
        return (self.first if turn.number < self.set.rounds else self.second).round(w, turn)


TWINS = {
    "safari": Safari,
    "server-only": ServerOnly,
    "then": Then,
    "beside": Beside,
    "stages": Stages,
    "fedavg": FedAvg,
    "fedprox": FedProx,
    "fedadam": FedAdam,
    "fedopt": FedOpt,
    "scaffold": SCAFFOLD,
    "fednova": FedNova,
    "sgd": ServerSGD,
    "data-sharing": DataSharing,
    "fltrust": FLTrust,
    "corrected": Corrected,
    "fedclg-c": FedCLGC,
    "feddu": FedDU,
}


def twin_of(algorithm, world):
    """The twin of an algorithm, settings and all."""
    return TWINS[ALGORITHMS.name_of(type(algorithm))](algorithm, world)


def train(twin, w, turns):
    """The last model, the delivered one, and the kinds of the rounds."""
    delivered, kinds = None, []
    for turn in turns:
        w, kind = twin.round(w, turn)
        kinds.append(kind)
        if kind in ("server", "both"):
            delivered = w
    return w, w if delivered is None else delivered, kinds
