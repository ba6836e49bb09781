"""A spec as a Flower app: the same federation, model and algorithm, on real clients.

Client i of the spec is the node whose `partition-id` is i. Batches, cohorts and coins are drawn
as the simulator draws them, so that a simulation tells what the deployment will do.
"""

from functools import lru_cache
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from jaxtyping import Array, Int

from safari.algorithms import AdaptiveQ, Safari, ServerSGD, Task
from safari.algorithms.base import Turn
from safari.algorithms.client import ClientAlgorithm, ClientState, Reports
from safari.algorithms.server_sgd import ServerState
from safari.data.sources.download import cache_folder
from safari.engine import Run
from safari.errors import InputError
from safari.evaluation import evaluate
from safari.experiment.checkpoint import named_leaves
from safari.experiment.spec import Spec, load_spec
from safari.flower.arrays import Arrays, array_record, numpy_arrays
from safari.flower.fleet import identify
from safari.flower.strategy import SafariStrategy
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
        self._train = eqx.filter_jit(train_client)
        self._serve = eqx.filter_jit(serve)
        self._evaluate = eqx.filter_jit(lambda task, params: evaluate(task, params))

    def start(self) -> Params:
        """The parameters before the first round."""
        dataset = self.run.task.federation.dataset
        return self.run.task.model.init(self.run.streams.initialisation, dataset.shape, dataset.classes)

    def arrays(self, params: Params) -> Arrays:
        return {name: np.asarray(leaf) for name, leaf in named_leaves(params)}

    def params(self, arrays: Arrays) -> Params:
        like = jax.eval_shape(self.start)
        leaves = [jnp.asarray(arrays[name]) for name, _ in named_leaves(like)]
        return jax.tree.unflatten(jax.tree.structure(like), leaves)

    def train(self, arrays: Arrays, client: int, round: int) -> Arrays:
        """A client's arrays after its part of a round, counted from 1."""
        params = self._train(
            self.run, self.clients, self.params(arrays), jnp.int32(client), jnp.int32(round - 1)
        )
        return self.arrays(params)

    def weight(self, client: int) -> float:
        """How much a client counts in the average."""
        samples = int(self.run.task.federation.clients.count[client])
        return float(samples if self.clients.weights == "size" else 1)

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
    change = clients.local_change(
        ClientState(params, *clients.memory(params, run.task)),
        run.task,
        client,
        jax.random.fold_in(run.streams.client_batches, number),
    )[0]
    return jax.tree.map(jnp.add, params, change)


def serve(run: Run, server: ServerSGD, task: Task, params: Params, number: Int[Array, ""]) -> Params:
    """The parameters after a server round that began at `params`."""
    return server.round(ServerState(params), task, server_turn(run, number)).params


def server_turn(run: Run, number: Int[Array, ""]) -> Turn:
    """As much of a round as the server's part of it looks at."""
    nobody = Cohort(jnp.zeros(0, jnp.int32), jnp.zeros(0, bool), jnp.zeros(0, bool))
    key = jax.random.fold_in(run.streams.server_batches, number)
    return Turn(number, nobody, jnp.float32(0), key, key)


class SpecServerStep:
    """The server rounds of a spec."""

    def __init__(self, job: Job, algorithm: Safari):
        self.job, self.algorithm = job, algorithm
        self.rate = float(algorithm.server.rate)
        self.task = algorithm.own(job.run.task)

    def __call__(self, arrays: Arrays, round: int) -> Arrays:
        job = self.job
        params = job._serve(
            job.run, self.algorithm.server, self.task, job.params(arrays), jnp.int32(round - 1)
        )
        return job.arrays(params)

    def halves(self, arrays: Arrays, round: int) -> tuple[Arrays, Arrays]:
        """As the simulator's adaptive q estimates them."""
        assert isinstance(self.algorithm.q, AdaptiveQ)
        key = server_turn(self.job.run, jnp.int32(round - 1)).server_batches
        a, b = self.algorithm.q.halves(self.job.run.task, self.job.params(arrays), key)
        return self.job.arrays(a), self.job.arrays(b)


class SpecClients(FedAvg):
    """The client algorithm of a spec as a Flower strategy: replies averaged and absorbed as there."""

    def __init__(self, job: Job):
        super().__init__(fraction_evaluate=0.0, weighted_by_key=WEIGHT)
        self.job = job
        self.memory, _ = job.clients.memory(job.start(), job.run.task)
        self.sent: Arrays = {}

    def configure_train(self, server_round: int, arrays: ArrayRecord, config: Any, grid: Grid) -> Any:
        self.sent = numpy_arrays(arrays)
        return super().configure_train(server_round, arrays, config, grid)

    def aggregate_train(self, server_round: int, replies: Any) -> Any:
        replies = sorted(replies, key=lambda reply: int(_metrics(reply)["client"]))
        start = self.job.params(self.sent)
        ends = [self.job.params(numpy_arrays(reply.content["arrays"])) for reply in replies]
        change = jax.tree.map(lambda now, *then: jnp.stack([one - now for one in then]), start, *ends)
        weight = jnp.array([float(_metrics(reply)[WEIGHT]) for reply in replies])
        who = jnp.array([int(_metrics(reply)["client"]) for reply in replies], jnp.int32)
        everyone = Cohort(who, who >= 0, who >= 0)
        reports = Reports(everyone, change, jnp.zeros_like(who), weight / weight.sum())
        state = self.job.clients.absorb(ClientState(start, self.memory, None), reports)
        self.memory = state.server_memory
        return array_record(self.job.arrays(state.params)), None


def _metrics(reply: Message) -> Any:
    return next(iter(reply.content.metric_records.values()))


def server_app(spec: Path) -> ServerApp:
    """The server of a spec.

    Its run config may set rounds, round-deadline, start-deadline, min-replies, checkpoint,
    simulate-absence (the clients that the spec excludes are not asked, even where connected)
    and overrides (such as "algorithm.q=1.0 train.seed=3").
    """
    app = ServerApp()

    @app.main()
    def main(grid: Grid, context: Context) -> None:
        config = context.run_config
        job = job_of(spec, str(config.get("overrides", "")))
        strategy = strategy_of(job, config)
        strategy.start(
            grid,
            initial_arrays=array_record(job.arrays(job.start())),
            num_rounds=int(config.get("rounds", 0)) or job.run.rounds,
            evaluate_fn=lambda round, arrays: _scored(job, arrays),
        )

    return app


def _scored(job: Job, arrays: ArrayRecord) -> MetricRecord:
    accuracy, loss = job.evaluate(numpy_arrays(arrays))
    return MetricRecord({"accuracy": accuracy, "loss": loss})


def strategy_of(job: Job, config: Any) -> SafariStrategy:
    """The strategy that a spec and a run config describe."""
    algorithm = job.algorithm if isinstance(job.algorithm, Safari) else None
    q = 1.0 if algorithm is None else algorithm.q
    participation, clients = job.spec.participation(), job.clients
    steps = int(clients.steps(job.run.task.federation.typical))
    return SafariStrategy(
        q=q if isinstance(q, AdaptiveQ) else float(q),
        server_step=None if algorithm is None else SpecServerStep(job, algorithm),
        clients=SpecClients(job),
        fleet=job.run.task.federation.size,
        excluded=job.run.roster.excluded_clients if config.get("simulate-absence", False) else (),
        per_round=participation.per_round,
        round_deadline=float(config.get("round-deadline", 60.0)),
        start_deadline=float(config.get("start-deadline", 10.0)),
        min_replies=int(config.get("min-replies", 1)),
        client_path=float(clients.global_rate) * float(clients.local_rate) * steps,
        seed=job.spec.seed,
        checkpoint=str(config.get("checkpoint", "")) or None,
        spec=job.spec.plain(),
    )


def client_app(spec: Path) -> ClientApp:
    """The clients of a spec."""
    app = ClientApp()

    @app.train()
    def train(message: Message, context: Context) -> Message:
        job = job_of(spec, str(context.run_config.get("overrides", "")))
        client = int(context.node_config["partition-id"])
        number = int(str(message.content.config_records["config"]["server-round"]))
        arrays = job.train(numpy_arrays(message.content.array_records["arrays"]), client, number)
        metrics = MetricRecord()
        metrics["num-examples"], metrics["client"] = job.samples(client), client
        metrics[WEIGHT] = job.weight(client)
        content = RecordDict({"arrays": array_record(arrays), "metrics": metrics})
        return Message(content, reply_to=message)

    return identify(app)


@lru_cache(maxsize=4)
def job_of(spec: Path, overrides: str = "") -> Job:
    """The job of a spec file, prepared once in a process; programs are kept on disk."""
    jax.config.update("jax_compilation_cache_dir", str(cache_folder() / "compiled"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)
    return Job(load_spec(spec, overrides.split()))
