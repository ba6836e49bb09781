"""What all twins stand on: who holds what, a round, softmax regression and its SGD."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


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
    rounds: int
    """How many the run has."""
    rates: np.ndarray | None = None
    """The probability that each client reports."""
    expected: float = 0.0
    """About how many reports were to be expected."""
    noise: np.ndarray | None = None
    """Standard normal numbers in the shape of the model."""


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
