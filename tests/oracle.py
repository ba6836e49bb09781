"""The whole of SAFARI in plain NumPy: slow, and readable in two minutes.

The engine must equal this, given the same batches, cohorts and coins. The model is softmax
regression with one matrix `w` (classes x features; a constant feature carries the bias). A
batch is a pair (inputs, labels).
"""

import numpy as np


def gradient(w, batch):
    x, y = batch
    logits = x @ w.T
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    p[np.arange(len(y)), y] -= 1
    return p.T @ x / len(y)


def sgd(w, batches, rate, direction=lambda gradient, w: gradient):
    for batch in batches:
        w = w - rate * direction(gradient(w, batch), w)
    return w


class FedAvg:
    """`cohort` maps each client of the round to its batches."""

    def __init__(self, local_rate, global_rate=1.0):
        self.local_rate, self.global_rate = local_rate, global_rate

    def direction(self, client, start):
        return lambda gradient, w: gradient

    def absorb(self, w, change):
        return w + self.global_rate * change

    def round(self, w, cohort):
        ends = {i: sgd(w, batches, self.local_rate, self.direction(i, w)) for i, batches in cohort.items()}
        self.remember(w, ends, cohort)
        return self.absorb(w, np.mean([end - w for end in ends.values()], axis=0))

    def remember(self, w, ends, cohort):
        pass


class Clipped(FedAvg):
    def __init__(self, local_rate, clip):
        super().__init__(local_rate)
        self.clip = clip

    def direction(self, client, start):
        return lambda gradient, w: gradient * min(1, self.clip / np.linalg.norm(gradient))


class FedProx(FedAvg):
    def __init__(self, local_rate, proximal):
        super().__init__(local_rate)
        self.proximal = proximal

    def direction(self, client, start):
        return lambda gradient, w: gradient + self.proximal * (w - start)


class FedAdam(FedAvg):
    def __init__(self, local_rate, global_rate, b1, b2, eps):
        super().__init__(local_rate, global_rate)
        self.b1, self.b2, self.eps = b1, b2, eps
        self.m = self.v = self.t = 0

    def absorb(self, w, change):
        self.t += 1
        self.m = self.b1 * self.m + (1 - self.b1) * change
        self.v = self.b2 * self.v + (1 - self.b2) * change**2
        m, v = self.m / (1 - self.b1**self.t), self.v / (1 - self.b2**self.t)
        return w + self.global_rate * m / (np.sqrt(v) + self.eps)


class SCAFFOLD(FedAvg):
    def __init__(self, local_rate, clients, like):
        super().__init__(local_rate)
        self.c, self.c_i = np.zeros_like(like), [np.zeros_like(like) for _ in range(clients)]

    def direction(self, client, start):
        return lambda gradient, w: gradient - self.c_i[client] + self.c

    def remember(self, w, ends, cohort):
        new = {
            i: self.c_i[i] - self.c + (w - end) / (len(cohort[i]) * self.local_rate)
            for i, end in ends.items()
        }
        self.c = self.c + sum(new[i] - self.c_i[i] for i in new) / len(self.c_i)
        for i in new:
            self.c_i[i] = new[i]


def safari(w, rounds, clients, q, server_rate):
    """`rounds` yields (coin, cohort, server batches); returns the last and the synced model."""
    synced = None
    for coin, cohort, server_batches in rounds:
        if coin < q:
            w = clients.round(w, cohort) if cohort else w
        else:
            w = synced = sgd(w, server_batches, server_rate)
    return w, synced
