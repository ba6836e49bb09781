"""The models in PyTorch, and safari's first parameters in PyTorch's layout."""

import numpy as np
import torch
from task import Task
from torch import nn


def network(task: Task) -> nn.Module:
    """The job's model at its start."""
    net = convolutional() if task.model == "cnn" else nn.Linear(task.x[0].size, 10)
    net.load_state_dict(start(task, net))
    return net


def convolutional() -> nn.Sequential:
    """For CIFAR-10. Padding keeps the size; pooling before the ReLU gives the same and is cheaper."""
    return nn.Sequential(
        nn.Conv2d(3, 32, 5, padding=2),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Conv2d(32, 64, 5, padding=2),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(64 * 8 * 8, 512),
        nn.ReLU(),
        nn.Linear(512, 10),
    )


def start(task: Task, net: nn.Module) -> dict[str, torch.Tensor]:
    """safari's first parameters: kernels (rows, columns, in, out), dense weights (in, out)."""
    given = task.start
    if task.model != "cnn":
        arrays = [given["weight"], given["bias"]]
    else:
        after_pooling = given["dense0.weight"].reshape(8, 8, 64, 512)
        arrays = [
            given["conv0.kernel"].transpose(3, 2, 0, 1),
            given["conv0.bias"],
            given["conv1.kernel"].transpose(3, 2, 0, 1),
            given["conv1.bias"],
            after_pooling.transpose(3, 2, 0, 1).reshape(512, -1),
            given["dense0.bias"],
            given["dense1.weight"].T,
            given["dense1.bias"],
        ]
    tensors = [torch.tensor(np.ascontiguousarray(array)) for array in arrays]
    return dict(zip(net.state_dict(), tensors, strict=True))


def inputs(task: Task, x: np.ndarray) -> torch.Tensor:
    """Normalised samples as the network takes them."""
    if task.model == "cnn":
        return torch.from_numpy(np.ascontiguousarray(x.transpose(0, 3, 1, 2)))
    return torch.from_numpy(x.reshape(len(x), -1))


def client_tensors(task: Task) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Samples and labels of each client, normalised and in memory."""
    x, y = inputs(task, task.normalised(task.x)), torch.from_numpy(task.y).long()
    return [(x[task.held_by(client)], y[task.held_by(client)]) for client in range(task.clients)]


def logits_of(task: Task, net: nn.Module):
    """`Logits` of a network as it stands."""

    @torch.no_grad()
    def logits(x: np.ndarray) -> np.ndarray:
        return net(inputs(task, x)).numpy()

    return logits
