"""What the server does in its own rounds: SGD on its own samples.

A server step is any callable that takes the arrays by name and the number of the round, and
returns the arrays after it; NumPy in, NumPy out. It may have a `rate` and a method `halves`
(two gradients, from disjoint halves of a batch), which an adaptive q asks for.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from safari.errors import InputError, check_count, check_positive
from safari.flower.arrays import Arrays

if TYPE_CHECKING:
    import torch

ServerStep = Callable[[Arrays, int], Arrays]
LABELS = ("label", "labels", "fine_label", "target", "targets", "y")


@runtime_checkable
class Estimating(Protocol):
    """A server step that an adaptive q can learn from."""

    rate: float

    def halves(self, arrays: Arrays, round: int) -> tuple[Arrays, Arrays]:
        """Mean gradients at `arrays` over two disjoint halves of a batch."""
        ...


def torch_server_step(
    model: "torch.nn.Module",
    loader: Iterable[Any],
    *,
    lr: float = 0.1,
    steps: int = 1,
    loss: "Callable[[torch.Tensor, torch.Tensor], torch.Tensor] | None" = None,
    device: str = "cpu",
    seed: int = 0,
) -> "TorchServerStep":
    """`steps` steps of SGD at rate `lr` on the batches of `loader`, by the loss (default: cross-entropy).

    A batch is a pair of inputs and labels, or a dict with both. A loader that shuffles is
    dealt with anew in every round, from `seed` and the round: a restarted server goes on alike.
    """
    check_positive("lr", lr)
    check_count("steps", steps)
    return TorchServerStep(model, loader, lr, steps, loss, device, seed)


class TorchServerStep:
    """See `torch_server_step`."""

    def __init__(
        self, model: Any, loader: Iterable[Any], lr: float, steps: int, loss: Any, device: str, seed: int
    ):
        import torch

        self.model, self.loader, self.rate, self.steps = model, loader, lr, steps
        self.loss = loss or torch.nn.functional.cross_entropy
        self.device, self.seed = device, seed

    def __call__(self, arrays: Arrays, round: int) -> Arrays:
        import torch

        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed + round)
            model = self._load(arrays)
            optimizer = torch.optim.SGD(model.parameters(), lr=self.rate)
            for x, y in islice(self._batches(), self.steps):
                optimizer.zero_grad()
                self.loss(model(x), y).backward()
                optimizer.step()
        return {name: value.detach().cpu().numpy().copy() for name, value in model.state_dict().items()}

    def halves(self, arrays: Arrays, round: int) -> tuple[Arrays, Arrays]:
        """Gradients over the even and the odd samples of one batch; zero for what has none."""
        import torch

        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed + round + 2**31)
            model = self._load(arrays)
            x, y = next(self._batches())
        found = []
        for part in (slice(0, None, 2), slice(1, None, 2)):
            model.zero_grad()
            self.loss(model(x[part]), y[part]).backward()
            gradient = {name: np.zeros_like(array) for name, array in arrays.items()}
            for name, value in model.named_parameters():
                if value.grad is not None:
                    gradient[name] = value.grad.detach().cpu().numpy().copy()
            found.append(gradient)
        return found[0], found[1]

    def _load(self, arrays: Arrays) -> Any:
        import torch

        model = self.model.to(self.device)
        state = {name: torch.from_numpy(np.array(array)) for name, array in arrays.items()}
        model.load_state_dict(state, strict=True)
        return model.train()

    def _batches(self) -> Iterator[tuple[Any, Any]]:
        while True:
            empty = True
            for batch in self.loader:
                empty = False
                x, y = _pair(batch)
                yield x.to(self.device), y.to(self.device)
            if empty:
                raise InputError(
                    "server_step", "loader", "has no batches: the server needs samples of its own"
                )


def _pair(batch: Any) -> tuple[Any, Any]:
    """Inputs and labels of a batch."""
    if not isinstance(batch, dict):
        x, y = batch
        return x, y
    labels = [key for key in batch if key in LABELS]
    inputs = [key for key in batch if key not in LABELS]
    if len(labels) != 1 or len(inputs) != 1:
        raise InputError(
            "server_step", sorted(batch), f"a batch needs one input and one of {', '.join(LABELS)}"
        )
    return batch[inputs[0]], batch[labels[0]]
