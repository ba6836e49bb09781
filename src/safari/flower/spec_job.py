"""What a spec's clients and server do, compiled: the same moves as in the simulator."""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from safari.algorithms import ClientAlgorithm, ClientState, Reports, Safari, ServerSGD, Task, Turn
from safari.data import Terms
from safari.engine import Run, initial_params
from safari.engine.compiled import keep_compiled_programs
from safari.engine.evaluation import Score, evaluate, metrics_on_test
from safari.engine.metrics import f1, mean_over_classes, precision, recall
from safari.engine.result import Measured
from safari.engine.trained_model import TrainedModel
from safari.errors import InputError, check
from safari.experiment.schema import NAME
from safari.experiment.spec import Spec, load_spec
from safari.flower.arrays import Arrays
from safari.flower.own_data import FLOWER_CAN, run_at_node, run_at_server
from safari.flower.settings import DELIVER
from safari.models import Params, from_named, named_arrays
from safari.participation import Cohort
from safari.registry import reason

WEIGHT = "weight"
Scores = int | float | list[int] | list[float]


class End(NamedTuple):
    """Where a client ended a round; how many samples it says that it holds."""

    client: int
    arrays: Arrays
    samples: int


class Deployed:
    """A run whose clients and server act one by one, compiled.

    Args:
        run: the run as the simulator would train it.
        name: what its algorithm is called in a message.

    Raises:
        InputError: if Flower cannot run the method as what it is.
    """

    def __init__(self, run: Run, name: str):
        self.run = run
        self.algorithm = run.algorithm
        self.clients = deployable_clients(run, name)
        self._like = jax.eval_shape(self.start)
        self._train = eqx.filter_jit(train_client)
        self._broadcast = eqx.filter_jit(broadcast)
        self._absorb = eqx.filter_jit(absorb)
        self.serve = eqx.filter_jit(serve)
        self._evaluate = eqx.filter_jit(evaluate)

    def start(self) -> Params:
        """The parameters before the first round."""
        return initial_params(self.run)

    def arrays(self, params: Params) -> Arrays:
        return named_arrays(params)

    def params(self, arrays: Arrays) -> Params:
        return from_named(arrays, self._like)

    def server_memory(self) -> Any:
        """What the server remembers before the first round."""
        return self.clients.memory(self.start(), self.run.task)[0]

    def broadcast(self, arrays: Arrays, memory: Any, round: int) -> Arrays:
        """What the clients are sent beside the model in a round, counted from 1."""
        sent = self._broadcast(self.run, self.clients, self.params(arrays), memory, jnp.int32(round - 1))
        return named_arrays(sent)

    def train(self, arrays: Arrays, sent: Arrays, client: int, round: int) -> Arrays:
        """A client's arrays after its part of a round, counted from 1."""
        like = self._like
        state = ClientState(like, jax.eval_shape(self.server_memory), None)
        shape = jax.eval_shape(lambda: self.clients.broadcast(state, self.run.task, turn_of(self.run, 0)))
        params = self._train(
            self.run, self.clients, self.params(arrays), from_named(sent, shape), jnp.int32(client),
            jnp.int32(round - 1),
        )  # fmt: skip
        return self.arrays(params)

    def absorb(self, arrays: Arrays, memory: Any, ends: list[End], round: int) -> tuple[Arrays, Any]:
        """The server's arrays and memory after clients ended a round there."""
        reports = self._reports(arrays, ends)
        start, number = self.params(arrays), jnp.int32(round - 1)
        state = self._absorb(self.run, self.clients, start, memory, reports, number)
        return self.arrays(state.params), state.server_memory

    def _reports(self, arrays: Arrays, ends: list[End]) -> Reports:
        who, start = jnp.array([end.client for end in ends], jnp.int32), self.params(arrays)
        change = jax.tree.map(
            lambda now, *then: jnp.stack([one - now for one in then]),
            start,
            *(self.params(end.arrays) for end in ends),
        )
        held = jnp.array([self.held(end) for end in ends], jnp.int32)
        return reports_of(self.clients, who, change, held)

    def held(self, end: End) -> int:
        """How many samples a client holds."""
        return self.samples(end.client)

    def mean_gradient(self, arrays: Arrays, ends: list[End]) -> Arrays:
        """The clients' mean gradient, as the simulator's adaptive q sees it."""
        reports = self._reports(arrays, ends)
        weights = reports.samples if self.clients.weights == "size" else jnp.ones(len(ends))
        reports = eqx.tree_at(lambda reports: reports.weight, reports, weights.astype(jnp.float32))
        return named_arrays(self.clients.mean_gradient(reports))

    def weight(self, client: int) -> float:
        """How much a client counts in a plain average."""
        return float(self.samples(client) if self.clients.weights == "size" else 1)

    def samples(self, client: int) -> int:
        return int(self.run.task.federation.clients.count[client])

    def evaluate(self, arrays: Arrays) -> dict[str, Scores]:
        """How good the arrays are on the test set, by the columns of a history; NaN where unknown."""
        score: Score = self._evaluate(self.run.task, self.params(arrays))
        dataset = self.run.task.federation.dataset
        counts = np.bincount(np.asarray(dataset.y_test), minlength=dataset.classes)
        correct, named = np.asarray(score.correct), np.asarray(score.predicted)
        recalls = recall(correct, counts)
        return {
            "accuracy": float(correct.sum() / counts.sum()),
            "balanced_accuracy": float(mean_over_classes(recalls, counts)),
            "macro_f1": float(mean_over_classes(f1(correct, named, counts), counts)),
            "loss": float(score.loss),
            "recall": recalls.tolist(),
            "precision": precision(correct, named).tolist(),
        }

    def trained(self, arrays: Arrays) -> TrainedModel:
        """The arrays as a model that is ready to predict."""
        task = self.run.task
        return TrainedModel.of(task.model, self.params(arrays), task.federation.dataset, task.precision)

    def measured(self, model: TrainedModel) -> Measured:
        """The metrics of a trained model on the test set, and what functions of the user's say of it."""
        return metrics_on_test(model, self.run.task.federation, self.run.metrics)


class Job(Deployed):
    """The deployed run of a spec as the server sees it, and nodes that cut their part out of a named set."""

    def __init__(self, spec: Spec):
        self.spec = spec
        refuse_what_fleets_lack(spec.tables["train"])
        super().__init__(run_at_server(spec), spec.tables["algorithm"]["name"])
        self.terms = Terms.of(self.run.task.federation.dataset) if spec.on_nodes else None

    @property
    def fleet(self) -> int | list[str] | None:
        """The clients, as `SafariStrategy` takes them."""
        federation = self.run.task.federation
        if not self.spec.on_nodes:
            return federation.size
        names = federation.client_names
        return None if names is None else list(names)

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the classes."""
        return self.run.task.federation.dataset.labels

    def held(self, end: End) -> int:
        return end.samples if self.spec.on_nodes else super().held(end)


class NodeJob(Deployed):
    """The same as a node runs it that has a file of its own."""

    def __init__(
        self, spec: Spec, path: Path, terms: str, client: int, class_weights: Sequence[float] | None
    ):
        run = run_at_node(spec, Terms.read(terms), path, client, class_weights)
        super().__init__(run, spec.tables["algorithm"]["clients"][NAME])


def refuse_what_fleets_lack(train: dict[str, Any]) -> None:
    """A fleet delivers the model of a round, and nothing else under another name."""
    deliver, able = train["deliver"], " and ".join(DELIVER)
    check(deliver in DELIVER, "train.deliver", deliver, f"cannot run on Flower; {able} can")
    for key in ("patience", "schedule"):
        check(train[key] is None, f"train.{key}", train[key], "cannot run on Flower")


def deployable_clients(run: Run, name: str) -> ClientAlgorithm:
    """The client algorithm that Flower's clients run, alone or inside SAFARI.

    Raises:
        InputError: for a method that Flower could only run as something else.
    """
    algorithm = run.algorithm
    clients = algorithm.clients if type(algorithm) is Safari else algorithm
    if not isinstance(clients, ClientAlgorithm):
        raise InputError("algorithm.name", name, FLOWER_CAN)
    params = jax.eval_shape(lambda: initial_params(run))
    memory = jax.eval_shape(lambda: clients.memory(initial_params(run), run.task))
    name = type(clients).__name__
    if memory[1] is not None or clients.models_up != 1:
        raise InputError(
            "algorithm.clients.name",
            name,
            "cannot run on Flower: its clients remember or report more than a model",
        )
    if clients.needs_rates:
        hint = "cannot run on Flower: nobody knows how often its clients come"
        raise InputError("algorithm.clients.name", name, hint)
    preferred = jax.eval_shape(
        lambda params, memory: clients.prefer(ClientState(params, memory, None), jnp.int32(0)),
        params, memory[0],
    )  # fmt: skip
    if preferred is not None:
        hint = "cannot run on Flower: it chooses who is asked, which the strategy does"
        raise InputError("algorithm.clients.name", name, hint)
    slots = jax.ShapeDtypeStruct((1,), jnp.int32)
    change = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct((1, *leaf.shape), leaf.dtype), params)
    try:
        eqx.filter_eval_shape(
            lambda params, memory, who, change: absorb(
                run, clients, params, memory, reports_of(clients, who, change, who), jnp.int32(0)
            ),
            params, memory[0], slots, change,
        )  # fmt: skip
    except (AttributeError, TypeError) as error:
        hint = f"cannot run on Flower: it needs what clients do not send ({reason(error)})"
        raise InputError("algorithm.clients.name", name, hint) from None
    return clients


def train_client(
    run: Run,
    clients: ClientAlgorithm,
    params: Params,
    sent: Any,
    client: Int[Array, ""],
    number: Int[Array, ""],
) -> Params:
    """The parameters that a client of the simulator would end a round at, which began at `params`."""
    turn = turn_of(run, number)
    minibatches = clients.minibatches(run.task, client, turn.client_batches)
    state = ClientState(params, None, None)
    change = clients.local_update(state, run.task, turn, client, sent, minibatches)[0]
    return jax.tree.map(jnp.add, params, change)


def broadcast(run: Run, clients: ClientAlgorithm, params: Params, memory: Any, number: Int[Array, ""]) -> Any:
    """What the simulator's server would send beside the model."""
    return clients.broadcast(ClientState(params, memory, None), run.task, turn_of(run, number))


def absorb(
    run: Run,
    clients: ClientAlgorithm,
    params: Params,
    memory: Any,
    reports: Reports,
    number: Int[Array, ""],
) -> ClientState:
    """The state that the simulator's server would have after these reports."""
    turn = eqx.tree_at(lambda turn: turn.cohort, turn_of(run, number), reports.cohort)
    state = ClientState(params, memory, None)
    weight = clients.weigh(state, reports, run.task, turn)
    reports = eqx.tree_at(lambda reports: reports.weight, reports, weight)
    return clients.absorb(state, reports, run.task, turn)


def reports_of(
    clients: ClientAlgorithm, who: Int[Array, " replies"], change: Params, held: Int[Array, " replies"]
) -> Reports:
    """What the simulator's server would know of these changes of clients that hold so many samples."""
    steps = jnp.broadcast_to(jnp.asarray(clients.steps(held)), who.shape)
    return Reports(Cohort(who, who >= 0, who >= 0), change, None, steps, held, jnp.zeros(len(who)))


def serve(run: Run, server: ServerSGD, task: Task, params: Params, number: Int[Array, ""]) -> Params:
    """The parameters after a server round that began at `params`."""
    return server.round(server.init(params, task), task, turn_of(run, number))[0].params


def turn_of(run: Run, number: Int[Array, ""] | int) -> Turn:
    """The draws of a round but for coin and cohort, which Flower's server draws by itself."""
    nobody = Cohort(jnp.zeros(0, jnp.int32), jnp.zeros(0, bool), jnp.zeros(0, bool))
    streams = run.streams
    keys = (streams.client_batches, streams.server_batches, streams.methods)
    folded = (jax.random.fold_in(key, number) for key in keys)
    return Turn(jnp.asarray(number, jnp.int32), run.rounds, nobody, jnp.float32(0), *folded)


@lru_cache(maxsize=4)
def job_of(spec: Path, overrides: str = "") -> Job:
    """The job of a spec file, prepared once in a process; programs are kept on disk."""
    keep_compiled_programs(least_seconds=0.1)
    return Job(load_spec(spec, overrides.split()))


def node_job_of(
    spec: Path, overrides: str, path: Path, terms: str, client: int, class_weights: Sequence[float] | None
) -> NodeJob:
    """The job of a spec file on a node with a file of its own."""
    keep_compiled_programs(least_seconds=0.1)
    return NodeJob(load_spec(spec, overrides.split()), path, terms, client, class_weights)
