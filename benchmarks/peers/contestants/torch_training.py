"""A client's local epoch, as one writes it in PyTorch: shared by the plain loop and by Flower."""

import torch
from task import Task
from torch import nn

loss = nn.CrossEntropyLoss()


def local_epoch(net: nn.Module, x: torch.Tensor, y: torch.Tensor, task: Task) -> None:
    """Train `net` on one shuffled pass over a client's samples."""
    optimizer = torch.optim.SGD(net.parameters(), lr=task.rate, fused=True)
    order = torch.randperm(len(y))[: task.batches * task.batch]
    for inputs, labels in zip(x[order].split(task.batch), y[order].split(task.batch), strict=True):
        optimizer.zero_grad()
        loss(net(inputs), labels).backward()
        optimizer.step()
