"""What a spec's clients and server do, compiled: the same steps as in the simulator."""

from functools import lru_cache
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from safari.algorithms import Safari, ServerSGD, Task
from safari.algorithms.base import Turn
from safari.algorithms.client import ClientAlgorithm, ClientState
from safari.algorithms.server_sgd import ServerState
from safari.compiled import keep_compiled_programs
from safari.engine import Run, initial_params
from safari.errors import InputError
from safari.evaluation import evaluate
from safari.experiment.checkpoint import from_named, named_arrays
from safari.experiment.spec import Spec, load_spec
from safari.flower.arrays import Arrays
from safari.models import Params
from safari.participation import Cohort

WEIGHT = "weight"


class Job:
    """The parts of a spec, bound, with what clients and server do compiled."""

    def __init__(self, spec: Spec):
        self.spec = spec
        self.run: Run = spec.prepare()
        self.algorithm = self.run.algorithm
        clients = self.algorithm.clients if isinstance(self.algorithm, Safari) else self.algorithm
        if not isinstance(clients, ClientAlgorithm):
            raise InputError("algorithm.name", spec.tables["algorithm"]["name"], "has no clients to deploy")
        if clients.memory(self.start(), self.run.task)[1] is not None:
            name = spec.tables["algorithm"]["clients"]["name"]
            raise InputError("algorithm.clients.name", name, "keeps a memory on clients; Flower's keep none")
        self.clients = clients
        self._like = jax.eval_shape(self.start)
        self._train = eqx.filter_jit(train_client)
        self.serve = eqx.filter_jit(serve)
        self._evaluate = eqx.filter_jit(evaluate)

    def start(self) -> Params:
        """The parameters before the first round."""
        return initial_params(self.run)

    def arrays(self, params: Params) -> Arrays:
        return named_arrays(params)

    def params(self, arrays: Arrays) -> Params:
        return from_named(arrays, self._like)

    def train(self, arrays: Arrays, client: int, round: int) -> Arrays:
        """A client's arrays after its part of a round, counted from 1."""
        params = self._train(
            self.run, self.clients, self.params(arrays), jnp.int32(client), jnp.int32(round - 1)
        )
        return self.arrays(params)

    def weight(self, client: int) -> float:
        """How much a client counts in the average."""
        return float(self.samples(client) if self.clients.weights == "size" else 1)

    def samples(self, client: int) -> int:
        return int(self.run.task.federation.clients.count[client])

    def evaluate(self, arrays: Arrays) -> tuple[float, float]:
        """Accuracy and loss on the test set."""
        score = self._evaluate(self.run.task, self.params(arrays))
        return float(score.correct.sum() / len(self.run.task.federation.dataset.y_test)), float(score.loss)


def train_client(
    run: Run, clients: ClientAlgorithm, params: Params, client: Int[Array, ""], number: Int[Array, ""]
) -> Params:
    """The parameters that a client of the simulator would end a round at, which began at `params`."""
    lesson = clients.lesson(run.task, client, jax.random.fold_in(run.streams.client_batches, number))
    state = ClientState(params, *clients.memory(params, run.task))
    change = clients.local_change(state, run.task, client, lesson)[0]
    return jax.tree.map(jnp.add, params, change)


def serve(run: Run, server: ServerSGD, task: Task, params: Params, number: Int[Array, ""]) -> Params:
    """The parameters after a server round that began at `params`."""
    return server.round(ServerState(params), task, server_turn(run, number)).params


def server_turn(run: Run, number: Int[Array, ""]) -> Turn:
    """As much of a round as the server's part of it looks at."""
    nobody = Cohort(jnp.zeros(0, jnp.int32), jnp.zeros(0, bool), jnp.zeros(0, bool))
    key = jax.random.fold_in(run.streams.server_batches, number)
    return Turn(number, nobody, jnp.float32(0), key, key)


@lru_cache(maxsize=4)
def job_of(spec: Path, overrides: str = "") -> Job:
    """The job of a spec file, prepared once in a process; programs are kept on disk."""
    keep_compiled_programs(least_seconds=0.1)
    return Job(load_spec(spec, overrides.split()))
