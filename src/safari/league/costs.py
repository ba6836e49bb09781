"""What a round of a method costs, counted off the run itself."""

from dataclasses import dataclass

import jax

from safari.algorithms import ClientAlgorithm, ServerSGD
from safari.data import Federation
from safari.engine import initial_params
from safari.engine.size import bytes_of
from safari.experiment.spec import Spec


@dataclass(frozen=True)
class Costs:
    """What a round costs.

    Attributes:
        client_gradients: of how many samples a client computes gradients in a round that it trains in.
        plain_gradients: the same for plain local steps, as FedAvg's clients take them.
        server_steps: how many steps the server takes in a round that it trains in.
        model_bytes: the size of the model.
    """

    client_gradients: int
    plain_gradients: int
    server_steps: int
    model_bytes: int


def costs_of(spec: Spec) -> Costs:
    """The costs of the run that `spec` describes; a client of median size stands for all."""
    federation = spec.federation()
    run = spec.prepare(federation)
    parts = run.algorithm.parts()
    clients = next((part for part in reversed(parts) if isinstance(part, ClientAlgorithm)), None)
    server = next((part for part in reversed(parts) if isinstance(part, ServerSGD)), None)
    steps = 0 if server is None else server.steps
    assert isinstance(steps, int), "a bound server knows its steps"
    plain = 0 if clients is None else _of_steps(clients, federation)
    own = 0
    if clients is not None:
        passes = 0.0 if clients.about is None else clients.about.client_passes
        trained_on = run.task.federation
        own = _of_steps(clients, trained_on) + round(passes * trained_on.median_size)
    params = jax.eval_shape(lambda: initial_params(run))
    return Costs(own, plain, steps, bytes_of(params))


def _of_steps(clients: ClientAlgorithm, federation: Federation) -> int:
    """The samples that a client of median size goes through in a round."""
    size = federation.median_size
    return int(clients.steps(size)) * min(clients.batch_size, size)
