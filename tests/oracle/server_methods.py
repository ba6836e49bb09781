"""The server, both sides together, and client methods that look at the server's samples."""

import numpy as np

import oracle
from oracle.client_methods import FedAvg, Private
from oracle.world import gradient, probabilities, sgd


class ServerSGD:
    def __init__(self, settings, world):
        self.set, self.world = settings, world

    def deliver(self, w):
        return w

    def prefer(self, number):
        """Nobody."""

    def round(self, w, turn):
        size = min(self.set.batch_size, len(self.world.server[1]))
        batches = turn.server_batches(self.set.steps, size)
        return sgd(w, batches, self.set.rate, self.set.clip), "server"


class TwoSided:
    def __init__(self, settings, world):
        self.set, self.world = settings, world
        self.clients, self.server = (
            oracle.twin_of(settings.clients, world),
            oracle.twin_of(settings.server, world),
        )

    def deliver(self, w):
        return self.clients.deliver(w)

    def prefer(self, number):
        return self.clients.prefer(number)


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


class WarmStart(TwoSided):
    def round(self, w, turn):
        self.delivers = turn.number >= self.set.rounds
        return (self.clients if self.delivers else self.server).round(w, turn)


class FineTune(TwoSided):
    def round(self, w, turn):
        return (self.server if turn.rounds - turn.number <= self.set.rounds else self.clients).round(w, turn)


class Beside(TwoSided):
    def by_server(self, w, turn):
        return self.server.round(w, turn)[0]

    def round(self, w, turn):
        by_server = self.by_server(w, turn)
        by_clients, kind = self.clients.round(w, turn)
        sizes = getattr(self.set.clients, "weights", "equal") == "size"
        theirs = sum(len(self.world.clients[i][1]) if sizes else 1 for i in turn.cohort)
        ours = len(self.world.server[1]) if sizes else 1
        shares = (1, 1) if self.set.merge == "sum" else (theirs / (theirs + ours), ours / (theirs + ours))
        moved = w + shares[0] * (by_clients - w) + shares[1] * (by_server - w)
        return moved, {"idle": "server", "client": "both"}.get(kind, kind)


class MixedTwoWay(Beside):
    def by_server(self, w, turn):
        self.clients.prepare(w, turn)  # the clients' gradient is that of their last reports
        steer, weight, settings = self.clients.of_clients, self.clients.set.weight, self.set.server
        batches = turn.server_batches(settings.steps, min(settings.batch_size, len(self.world.server[1])))
        return sgd(w, batches, settings.rate, settings.clip, lambda g, w: weight * g + steer)


class Stages:
    def __init__(self, settings, world):
        self.set = settings
        self.first, self.second = (
            oracle.twin_of(settings.first, world),
            oracle.twin_of(settings.second, world),
        )

    def deliver(self, w):
        return w

    def prefer(self, number):
        return (self.first if number < self.set.rounds else self.second).prefer(number)

    def round(self, w, turn):
        part = self.first if turn.number < self.set.rounds else self.second
        found = part.round(w, turn)
        no_server = part is self.second and isinstance(part, FedAvg | Private)
        self.delivers = no_server or getattr(part, "delivers", False)
        return found


# Client methods.


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


class CorrectedAtServer(FedAvg):
    def prepare(self, w, turn):
        server = gradient(w, self.world.server)
        self.off = {i: server - gradient(w, self.world.clients[i]) for i in turn.cohort}

    def remember(self, changes):
        for i in changes:
            changes[i] = changes[i] - self.set.local_rate * self.steps(i) * self.off[i]


class MixedOneWay(FedAvg):
    of_clients = 0

    def prepare(self, w, turn):
        self.sent = self.set.weight * gradient(w, self.world.server)

    def direction(self, client, start):
        return lambda gradient, w: gradient + self.sent

    def remember(self, changes):
        weights, rate = self.weights(None, changes, None), self.set.local_rate
        mean = sum(-weights[i] * change / (rate * self.steps(i)) for i, change in changes.items())
        self.of_clients = mean - self.sent


class FedLAW(FedAvg):
    def prepare(self, w, turn):
        size = min(self.set.fit_batch_size, len(self.world.server[1]))
        steps = self.set.fit_epochs * (len(self.world.server[1]) // size)
        self.begun, self.batches = w, turn.server_batches(steps, size)

    def remember(self, changes):
        ends = np.array([self.begun + change for change in changes.values()])
        weights = self.weights(None, changes, None)
        fit = np.append(np.log(list(weights.values())), 0.0)  # l of every client, then g
        m = v = np.zeros_like(fit)

        def average():
            share = np.exp(fit[:-1] - fit[:-1].max())
            share = share / share.sum()
            return share, np.exp(fit[-1]) * np.tensordot(share, ends, 1)

        for t, batch in enumerate(self.batches, start=1):
            share, x = average()
            towards = gradient(x, batch)
            by_share = np.exp(fit[-1]) * np.tensordot(ends, towards, 2)
            slope = np.append(share * (by_share - share @ by_share), np.sum(towards * x))
            m, v = 0.5 * m + 0.5 * slope, 0.999 * v + 0.001 * slope**2
            fit = fit - self.set.fit_rate * (m / (1 - 0.5**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
        self.fitted = average()[1]

    def absorb(self, w, update):
        return w + self.set.global_rate * (self.fitted - w)


TWINS = {
    "safari": Safari,
    "server-only": ServerOnly,
    "then": Then,
    "beside": Beside,
    "stages": Stages,
    "warm-start": WarmStart,
    "fine-tune": FineTune,
    "hybrid-fl": Beside,
    "clg-sgd": Then,
    "sgd": ServerSGD,
    "data-sharing": DataSharing,
    "fltrust": FLTrust,
    "corrected": Corrected,
    "fedclg-c": Then,
    "corrected-at-server": CorrectedAtServer,
    "fedclg-s": Then,
    "feddu": FedDU,
    "fedlaw": FedLAW,
    "mixed-parallel": Beside,
    "mixed-one-way": MixedOneWay,
    "mixed-two-way": MixedTwoWay,
}
