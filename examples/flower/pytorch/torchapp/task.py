"""The model, the data, a training loop: what an app has with or without SAFARI."""

import torch
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset

CLIENTS, SERVER_SAMPLES, TEST_EVERY = 10, 50, 5


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10))

    def forward(self, x):
        return self.layers(x)


def samples(test):
    """The digits, every fifth of which is for the test."""
    x, y = load_digits(return_X_y=True)
    chosen = (torch.arange(len(y)) % TEST_EVERY == 0) == test
    return torch.tensor(x, dtype=torch.float32)[chosen] / 16, torch.tensor(y)[chosen]


def server_loader():
    """A few labelled samples of all digits."""
    x, y = samples(test=False)
    return DataLoader(TensorDataset(x[:SERVER_SAMPLES], y[:SERVER_SAMPLES]), batch_size=10, shuffle=True)


def client_loader(client):
    """A client holds the samples of one digit."""
    x, y = (values[SERVER_SAMPLES:] for values in samples(test=False))
    mine = y == client % CLIENTS
    return DataLoader(TensorDataset(x[mine], y[mine]), batch_size=10, shuffle=True)


def train(model, loader, rate=0.1):
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    for x, y in loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()


def accuracy_and_loss(model):
    x, y = samples(test=True)
    with torch.no_grad():
        logits = model(x)
        loss = torch.nn.functional.cross_entropy(logits, y).item()
        return (logits.argmax(1) == y).float().mean().item(), loss
