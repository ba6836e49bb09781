"""Client methods without a server set: a twin says what differs from FedAvg."""

import numpy as np

from oracle.world import sgd


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


TWINS = {
    "fedavg": FedAvg,
    "fedprox": FedProx,
    "fedadam": FedAdam,
    "fedopt": FedOpt,
    "scaffold": SCAFFOLD,
    "fednova": FedNova,
}
