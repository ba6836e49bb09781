"""The server of a spec, as a Flower app.

Batches, cohorts and coins are drawn as the simulator draws them, so that a simulation tells what
the deployment will do.
"""

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg

from safari.algorithms import AdaptiveQ, Safari
from safari.errors import MOST_INT, check
from safari.flower.arrays import Arrays, array_record, numpy_arrays
from safari.flower.fleet import Fleet
from safari.flower.spec_client import BROADCAST, CLIENT
from safari.flower.spec_job import WEIGHT, End, Job, job_of, turn_of
from safari.flower.strategy import SafariStrategy
from safari.flower.wrapped import without_evaluation
from safari.models import from_named, named_arrays


class SpecServerStep:
    """The server rounds of a spec."""

    def __init__(self, job: Job, algorithm: Safari):
        self.job, self.algorithm = job, algorithm
        self.rate = float(algorithm.server.rate)
        self.task = algorithm.own(job.run.task)

    def __call__(self, arrays: Arrays, round: int) -> Arrays:
        job = self.job
        params = job.serve(
            job.run, self.algorithm.server, self.task, job.params(arrays), jnp.int32(round - 1)
        )
        return job.arrays(params)

    def halves(self, arrays: Arrays, round: int) -> tuple[Arrays, Arrays]:
        """As the simulator's adaptive q estimates them."""
        assert isinstance(self.algorithm.q, AdaptiveQ)
        key = turn_of(self.job.run, round - 1).server_batches
        a, b = self.algorithm.q.halves(self.job.run.task, self.job.params(arrays), key)
        return self.job.arrays(a), self.job.arrays(b)


class SpecClients(FedAvg):
    """The client algorithm of a spec as a Flower strategy: the server's moves of the simulator."""

    transient = ("job", "sent", "fleet")

    def __init__(self, job: Job):
        super().__init__(weighted_by_key=WEIGHT, min_train_nodes=1, min_available_nodes=1)
        without_evaluation(self)
        self.job = job
        self._like = jax.eval_shape(job.server_memory)
        self.memory: Arrays = named_arrays(job.server_memory())
        self.sent: Arrays = {}
        self.fleet: Fleet | None = None

    def configure_train(self, server_round: int, arrays: ArrayRecord, config: Any, grid: Grid) -> Any:
        self.sent = numpy_arrays(arrays)
        messages = list(super().configure_train(server_round, arrays, config, grid))
        beside = self.job.broadcast(self.sent, self._server_memory(), server_round)
        for message in messages:
            more: dict[str, Any] = {CLIENT: self._told(message)}
            if beside:
                more[BROADCAST] = array_record(beside)
            message.content = RecordDict({**message.content, **more})
        return messages

    def _told(self, message: Message) -> ConfigRecord:
        """What one node is told: which client it is, and how to read its file."""
        told = ConfigRecord({"number": self._client(message.metadata.dst_node_id)})
        if self.job.terms is not None:
            told["terms"] = self.job.terms.text()
            weights = self.job.run.task.class_weights
            if weights is not None:
                told["class-weights"] = [float(weight) for weight in weights]
        return told

    def _client(self, node: int) -> int:
        assert self.fleet is not None
        return self.fleet.nodes[node]

    def aggregate_train(self, server_round: int, replies: Any) -> Any:
        ends = self._ends(replies)
        arrays, memory = self.job.absorb(self.sent, self._server_memory(), ends, server_round)
        self.memory = named_arrays(memory)
        return array_record(arrays), None

    def mean_gradient(self, replies: list[Message]) -> Arrays:
        """The clients' mean gradient in the round that was sent last."""
        return self.job.mean_gradient(self.sent, self._ends(replies))

    def _ends(self, replies: Iterable[Message]) -> list[End]:
        """Where those who replied ended, by the numbers of the clients."""
        found = []
        for reply in replies:
            arrays, metrics = numpy_arrays(reply.content.array_records["arrays"]), _metrics(reply)
            # By size, what counts is the weight: it has been held to its bound.
            claimed = metrics[WEIGHT if self.job.clients.weights == "size" else "num-examples"]
            found.append(End(self._client(reply.metadata.src_node_id), arrays, _count(claimed)))
        return sorted(found, key=lambda end: end.client)

    def _server_memory(self) -> Any:
        return from_named(self.memory, self._like)


def _count(claimed: Any) -> int:
    """A number of samples, whatever a client claims."""
    sound = isinstance(claimed, int | float) and math.isfinite(claimed)
    return min(max(round(claimed), 1), MOST_INT) if sound else 1


def _metrics(reply: Message) -> Any:
    return next(iter(reply.content.metric_records.values()))


def server_app(spec: Path) -> ServerApp:
    """The server of a spec.

    Its run config may set rounds, round-deadline, start-deadline, min-replies, silent-rounds, norm-bound
    and weight-bound (0: none), trust, checkpoint, metrics-port (for Prometheus), simulate-absence (the
    clients that the spec excludes are not asked, even where connected) and overrides (such as
    "algorithm.q=1.0 train.seed=3").
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
            evaluate_fn=lambda round, arrays: scores(job, arrays),
        )

    return app


def scores(job: Job, arrays: ArrayRecord) -> MetricRecord:
    """How good the arrays are on the server's test set."""
    return MetricRecord(job.evaluate(numpy_arrays(arrays)))


def strategy_of(job: Job, config: Any) -> SafariStrategy:
    """The strategy that a spec and a run config describe."""
    algorithm = job.algorithm if isinstance(job.algorithm, Safari) else None
    q = 1.0 if algorithm is None else algorithm.q
    participation, clients = job.spec.participation(), job.clients
    steps = int(clients.steps(job.run.task.federation.median_size))
    simulated = bool(config.get("simulate-absence", False))
    hint = "needs data.client_names, the names of all clients"
    check(not simulated or job.fleet is not None, "simulate-absence", True, hint)
    spec_clients = SpecClients(job)
    strategy = SafariStrategy(
        q=q if isinstance(q, AdaptiveQ) else float(q),
        server_step=None if algorithm is None else SpecServerStep(job, algorithm),
        clients=spec_clients,
        fleet=job.fleet,
        excluded=job.run.roster.excluded_clients if simulated else (),
        per_round=participation.per_round,
        round_deadline=float(config.get("round-deadline", 60.0)),
        start_deadline=float(config.get("start-deadline", 10.0)),
        min_replies=int(config.get("min-replies", 1)),
        silent_rounds=int(config.get("silent-rounds", 20)) or None,
        norm_bound=float(config.get("norm-bound", 5.0)) or None,
        weight_bound=float(config.get("weight-bound", 3.0)) or None,
        trust=str(config.get("trust", "")) or None,
        client_path=float(clients.local_rate) * steps,
        seed=job.spec.seed,
        deliver=job.spec.tables["train"]["deliver"],
        checkpoint=str(config.get("checkpoint", "")) or None,
        metrics_port=str(config.get("metrics-port", "")) or None,
        job=job,
    )
    spec_clients.fleet = strategy.fleet
    return strategy
