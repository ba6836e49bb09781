"""Ten clients with handwritten digits of their own, in NumPy; some of them attack."""

import numpy as np
from flwr.app import ArrayRecord, MetricRecord, RecordDict
from flwr.app import Message as FlowerMessage
from flwr.clientapp import ClientApp
from sklearn.datasets import load_digits

from safari.flower import identify
from safari.flower.arrays import array_record, numpy_arrays

CLIENTS, CLASSES, SERVER, BATCH = 10, 10, 100, 10
FACTORS = {"scaled": 1e6, "tenfold": 10.0, "flipped": -1.0, "hidden": -4.0, "nan": np.nan}
ATTACKS = ("scaled", "flipped", "nan", "shape", "weight", "replayed")


class Digits:
    """Unequal clients (Dirichlet over classes), the server's samples, a test set.

    `samples` are inputs between 0 and 1, a row each, and their labels; without them, scikit-learn's digits.
    """

    def __init__(self, seed: int = 0, alpha: float = 0.5, samples=None, tested: int = 400):
        random = np.random.default_rng(seed)
        x, y = samples or small_digits()
        self.features = x.shape[1]
        order = random.permutation(len(x))
        x, y = x[order].astype(np.float32), y[order]
        self.test, (x, y) = (x[:tested], y[:tested]), (x[tested:], y[tested:])
        self.server, (x, y) = (x[:SERVER], y[:SERVER]), (x[SERVER:], y[SERVER:])
        held = [[] for _ in range(CLIENTS)]
        for label in range(CLASSES):
            where = np.flatnonzero(y == label)
            cuts = (np.cumsum(random.dirichlet([alpha] * CLIENTS))[:-1] * len(where)).astype(int)
            for client, part in enumerate(np.split(where, cuts)):
                held[client].extend(part)
        self.clients = [(x[part], y[part]) for part in held]

    def start(self) -> ArrayRecord:
        w = np.zeros((self.features, CLASSES), np.float32)
        return array_record({"w": w, "b": np.zeros(CLASSES, np.float32)})

    def server_step(self, arrays, round):
        return sgd(arrays, *self.server, rate=0.3, steps=20, seed=round)

    def evaluate(self, round, arrays) -> MetricRecord:
        model, (x, y) = numpy_arrays(arrays), self.test
        scores = x @ model["w"] + model["b"]
        return MetricRecord({"accuracy": float((scores.argmax(1) == y).mean()), "loss": 0.0})

    def app(self, attack: str = "", attackers: int = 0) -> ClientApp:
        """The first `attackers` clients do what `attack` says; the others are honest."""
        app, first = identify(ClientApp()), {}

        @app.train()
        def train(message, context):
            client = int(context.node_config["partition-id"])
            sent = numpy_arrays(message.content["arrays"])
            number, (x, y) = message.content["config"]["server-round"], self.clients[client]
            steps = max(len(x) // BATCH, 1)
            arrays = sgd(sent, x, y, rate=0.1, steps=steps, seed=1000 * number + client)
            change = {name: arrays[name] - sent[name] for name in sent}
            first.setdefault(client, change)
            weight: float = len(x)
            if client < attackers:
                arrays, weight = attacked(attack, sent, change, first[client], weight)
            content = {
                "arrays": array_record(arrays),
                "metrics": MetricRecord({"num-examples": weight}),
            }
            return FlowerMessage(RecordDict(content), reply_to=message)

        return app


def small_digits():
    """Scikit-learn's 1,797 digits."""
    x, y = load_digits(return_X_y=True)
    return x / 16, y


def attacked(attack, sent, change, first, weight):
    """What an attacker sends: the arrays, and the weight that it claims."""
    if attack == "weight":
        return {name: sent[name] + change[name] for name in sent}, 1e12
    if attack == "shape":
        return {name: np.zeros(3, np.float32) for name in sent}, weight
    factor = FACTORS.get(attack, 1.0)
    if attack == "replayed":
        change = first
    return {name: (sent[name] + factor * change[name]).astype(np.float32) for name in sent}, weight


def sgd(arrays, x, y, rate, steps, seed):
    """Softmax regression."""
    random, (w, b) = np.random.default_rng(seed), (arrays["w"].copy(), arrays["b"].copy())
    for _ in range(steps):
        part = random.integers(0, len(x), BATCH)
        scores = x[part] @ w + b
        odds = np.exp(scores - scores.max(1, keepdims=True))
        slope = odds / odds.sum(1, keepdims=True)
        slope[np.arange(BATCH), y[part]] -= 1
        w -= rate / BATCH * (x[part].T @ slope).astype(np.float32)
        b -= rate / BATCH * slope.sum(0).astype(np.float32)
    return {"w": w, "b": b}
