"""What the engine draws, laid out round by round for the oracle."""

import jax
import jax.numpy as jnp
import numpy as np

from safari.engine import Run, draw_turn
from safari.models import Params


def inputs(run: Run) -> np.ndarray:
    """The training inputs in float64, flattened, with the constant feature last."""
    dataset = run.task.federation.dataset
    x = np.asarray(dataset.normalise(dataset.shaped(dataset.x)), np.float64).reshape(len(dataset.x), -1)
    return np.concatenate([x, np.ones((len(x), 1))], axis=1)


def rounds_of(run: Run, steps: int, size: int, server_steps: int):
    """Yields (coin, {client: batches}, server batches) as `oracle.safari` wants them."""
    federation = run.task.federation
    x, y = inputs(run), np.asarray(federation.dataset.y)

    schedule = jax.jit(lambda *arguments: federation.schedule(*arguments), static_argnums=(2, 3))
    draw = jax.jit(lambda availability, number: draw_turn(run, availability, number))

    def batches(shard, key, steps):
        plan = schedule(shard, key, steps, min(size, int(shard.count)))
        return [(x[samples], y[samples]) for samples in np.asarray(plan.samples)]

    availability = run.roster.init(run.streams)
    for number in range(run.rounds):
        availability, _, turn = draw(availability, jnp.int32(number))
        cohort = {
            int(client): batches(
                federation.client(client), jax.random.fold_in(turn.client_batches, client), steps
            )
            for client in turn.cohort.clients[turn.cohort.reported]
        }
        yield float(turn.coin), cohort, batches(federation.server, turn.server_batches, server_steps)


def as_matrix(params: Params) -> np.ndarray:
    """The engine's softmax regression as the oracle's one matrix."""
    return np.concatenate([params["weight"], params["bias"][:, None]], axis=1)
