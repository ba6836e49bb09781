"""Client methods without a server set: a twin says what differs from FedAvg."""

import numpy as np

import oracle
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

    def deliver(self, w):
        return w

    def prefer(self, number):
        """Whom to pick first; None: nobody."""

    def start(self, client, w):
        return w

    def combine(self, w, changes, turn):
        weights = self.weights(w, changes, turn)
        self.remember(changes)
        return self.absorb(w, sum(weights[i] * changes[i] for i in changes))

    def round(self, w, turn):
        if not turn.cohort:
            return w, "idle"
        return self.combine(w, self.changes(w, turn), turn), "client"

    def changes(self, w, turn):
        self.prepare(w, turn)
        changes = {}
        for i in turn.cohort:
            batches = turn.client_batches(i, self.steps(i), self.set.batch_size)
            start = self.start(i, w)
            end = sgd(start, batches, self.set.local_rate, self.set.clip, self.direction(i, start))
            changes[i] = end - w
        return changes


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


class FedAvgM(FedAvg):
    v = 0

    def absorb(self, w, update):
        self.v = self.set.momentum * self.v + update
        return w + self.set.global_rate * self.v


class FedAdagrad(FedAvg):
    m, v = 0, None

    def second(self, v, update):
        return v + update**2

    def absorb(self, w, update):
        tau, b1 = self.set.tau, self.set.b1
        self.m = b1 * self.m + (1 - b1) * update
        self.v = self.second(np.full_like(w, tau**2) if self.v is None else self.v, update)
        return w + self.set.global_rate * self.m / (np.sqrt(self.v) + tau)


class FedYogi(FedAdagrad):
    def second(self, v, update):
        return v - (1 - self.set.b2) * update**2 * np.sign(v - update**2)


class FedExP(FedAvg):
    before = left = None

    def combine(self, w, changes, turn):
        weights = self.weights(w, changes, turn)
        mean = sum(weights[i] * changes[i] for i in changes)
        squares = sum(weights[i] * np.sum(changes[i] ** 2) for i in changes)
        rate = max(1, squares / (2 * (np.sum(mean**2) + self.set.eps)))
        self.before, self.left = w, w + self.set.global_rate * rate * mean
        return self.left

    def deliver(self, w):
        return (w + self.before) / 2 if w is self.left else w


class Amplify(FedAvg):
    u, stretch = 0, 0

    def combine(self, w, changes, turn):
        after = super().combine(w, changes, turn)
        self.u = self.u + after - w
        if (turn.number + 1) // self.set.every > self.stretch:
            after, self.u = after + (self.set.amplification - 1) * self.u, 0
            self.stretch = (turn.number + 1) // self.set.every
        return after


class OverEveryone(FedAvg):
    def __init__(self, settings, world):
        super().__init__(settings, world)
        self.clients, self.seen = range(len(world.clients)), set()

    def count(self, client):
        return len(self.world.clients[client][1]) if self.set.weights == "size" else 1

    def total(self, seen):
        return sum(self.count(i) for i in (self.clients if self.set.over == "all" else seen))


class FedDyn(OverEveryone):
    h = 0

    def __init__(self, settings, world):
        super().__init__(settings, world)
        self.h_i = [0 for _ in self.clients]

    def direction(self, client, start):
        return lambda gradient, w: gradient - self.h_i[client] + self.set.alpha * (w - start)

    def combine(self, w, changes, turn):
        self.seen |= set(changes)
        weights = self.weights(w, changes, turn)
        for i, change in changes.items():
            self.h_i[i] = self.h_i[i] - self.set.alpha * change
            self.h = self.h - self.set.alpha * self.count(i) / self.total(self.seen) * change
        mean = sum(weights[i] * changes[i] for i in changes)
        return w + self.set.global_rate * (mean - self.h / self.set.alpha)


class Remembers(OverEveryone):
    def __init__(self, settings, world):
        super().__init__(settings, world)
        self.latest = dict.fromkeys(self.clients, 0)

    def mean(self, seen):
        return sum(self.count(i) * self.latest[i] for i in self.clients) / max(self.total(seen), 1)


class MIFA(Remembers):
    def combine(self, w, changes, turn):
        self.seen |= set(changes)
        self.latest |= changes
        return w + self.set.global_rate * self.mean(self.seen)


class FedVARP(Remembers):
    def combine(self, w, changes, turn):
        weights = self.weights(w, changes, turn)
        news = sum(weights[i] * (changes[i] - self.latest[i]) for i in changes)
        step = self.mean(self.seen) + news
        self.seen |= set(changes)
        self.latest |= changes
        return w + self.set.global_rate * step


class FedStale(Remembers):
    def combine(self, w, changes, turn):
        beta, ever = self.set.beta, [i for i in self.clients if turn.rates[i] > 0]
        step = beta * self.mean(ever)
        for i, change in changes.items():
            step = step + self.count(i) / self.total(ever) / turn.rates[i] * (change - beta * self.latest[i])
        self.latest |= changes
        return w + self.set.global_rate * step


class KnownP(OverEveryone):
    def weights(self, w, changes, turn):
        ever = [i for i in self.clients if turn.rates[i] > 0]
        return {i: self.count(i) / self.total(ever) / turn.rates[i] for i in changes}


class FedAU(OverEveryone):
    """Counts every round as it goes by, as the authors' code does."""

    def __init__(self, settings, world):
        super().__init__(settings, world)
        self.away, self.lengths, self.next = [0] * len(self.clients), [[] for _ in self.clients], 0

    def tick(self, there):
        for i in self.clients:
            self.away[i] += 1
            if i in there or self.away[i] == self.set.longest:
                self.lengths[i].append(self.away[i])
                self.away[i] = 0

    def weights(self, w, changes, turn):
        self.seen |= set(changes)
        for _ in range(self.next, turn.number):
            self.tick(())
        found = {i: self.count(i) / self.total(self.seen) * np.mean(self.lengths[i] or [1]) for i in changes}
        self.tick(changes)
        self.next = turn.number + 1
        return found


class F3AST(OverEveryone):
    rate = None

    def prefer(self, number):
        counts = np.array([self.count(i) for i in self.clients], np.float32)
        return counts if self.rate is None else np.float32(counts / self.rate)

    def weights(self, w, changes, turn):
        self.seen |= set(changes)
        if self.rate is None:
            self.rate = np.full(len(self.clients), turn.expected / len(self.clients))
        heard = np.isin(self.clients, list(changes))
        self.rate = (1 - self.set.b) * self.rate + self.set.b * heard
        return {i: self.count(i) / self.total(self.seen) / self.rate[i] for i in changes}


class FedAWE(FedAvg):
    left = None

    def prepare(self, w, turn):
        if self.left is None:
            self.left, self.own = w, [w] * len(self.world.clients)
            self.last = [-1] * len(self.own)
        self.own = [own + w - self.left for own in self.own]

    def start(self, client, w):
        return self.own[client]

    def combine(self, w, changes, turn):
        weights, after = self.weights(w, changes, turn), 0
        for i, change in changes.items():
            by_steps = w + change - self.own[i]
            missed = turn.number - self.last[i]
            after = after + weights[i] * (self.own[i] + self.set.global_rate * missed * by_steps)
        for i in changes:
            self.own[i], self.last[i] = after, turn.number
        self.left = after
        return after


class Private:
    """Its clients' method sees the noisy average as if it were the only report."""

    def __init__(self, settings, world):
        self.set, self.clients = settings, oracle.twin_of(settings.clients, world)

    def deliver(self, w):
        return self.clients.deliver(w)

    def prefer(self, number):
        """Nobody."""

    def round(self, w, turn):
        clip, changes = self.set.clip, self.clients.changes(w, turn)
        total = sum(d * min(1, clip / np.linalg.norm(d)) for d in changes.values())
        average = (total + self.set.noise * clip * turn.noise) / max(turn.expected, 1)
        return self.clients.absorb(w, average), "client"


TWINS = {
    "fedavg": FedAvg,
    "fedprox": FedProx,
    "fedadam": FedAdam,
    "fedopt": FedOpt,
    "scaffold": SCAFFOLD,
    "fednova": FedNova,
    "fedavgm": FedAvgM,
    "fedadagrad": FedAdagrad,
    "fedyogi": FedYogi,
    "feddyn": FedDyn,
    "fedexp": FedExP,
    "mifa": MIFA,
    "fedvarp": FedVARP,
    "fedstale": FedStale,
    "fedau": FedAU,
    "known-p": KnownP,
    "f3ast": F3AST,
    "fedawe": FedAWE,
    "amplify": Amplify,
    "private": Private,
}
