"""`SafariStrategy`: SAFARI as a Flower strategy.

Every round a coin says whose it is. A client round is that of any Flower strategy, among
clients that are drawn here; a server round sends nobody anything.
"""

from collections.abc import Callable, Iterable, Sequence
from logging import INFO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord
from flwr.common import log
from flwr.serverapp import Grid
from flwr.serverapp.strategy import FedAvg, Result, Strategy

from safari.algorithms import AdaptiveQ
from safari.errors import InputError
from safari.flower.arrays import Arrays, array_record, cast_like, numpy_arrays
from safari.flower.bounds import Bounds
from safari.flower.clients import Clients
from safari.flower.draws import Coin, Draws
from safari.flower.exchange import Only
from safari.flower.federation import Evaluate, Federation
from safari.flower.fleet import Fleet
from safari.flower.journal import Journal
from safari.flower.options import flat, plain_attributes, plain_q, toml_tables
from safari.flower.prometheus import place_of
from safari.flower.replies import arrays_fault
from safari.flower.rounds import Round
from safari.flower.server_steps import Estimating, ServerStep
from safari.flower.settings import check_bounds, check_fleet, check_parts, check_rounds, check_trust
from safari.flower.wrapped import attribute_of, without_evaluation

if TYPE_CHECKING:
    from safari.flower.spec_job import Job


class SafariStrategy(Strategy):
    """With probability `q` the clients train, otherwise the server does, on samples of its own.

    - `q`: a number, or an `AdaptiveQ` (which needs `client_path`, a client's rate times its steps).
    - `server_step`: what the server does in its rounds; needed unless q is 1.
    - `clients`: the Flower strategy of client rounds (default: FedAvg). Whom it asks is decided
      here: `per_round` of the connected clients, drawn by `seed`; everyone if not given. How many it
      needs is its own: with fewer the server takes the round.
    - `fleet`: how many clients there are, or their names. Draws are the same from start to start
      if it is given; without it the fleet is whoever has been seen.
    - `excluded`: clients that are never asked, connected or not: absence, simulated.
    - `round_deadline`: seconds to wait for replies; `start_deadline`: for the fleet to connect
      before the first round.
    - `min_replies`: with fewer, the server takes the round.
    - `silent_rounds`: after so many client rounds in a row without clients the run ends in an error;
      None: only if none ever had any.
    - `norm_bound`: a reply that asks for a change so many times longer than the running median is
      rejected; `most_norm`: one that is longer than this number. `weight_bound`: a reply counts no more
      than so many times the running median weight. None: no bound.
    - `trust`: "server" also rejects a reply whose change does not go the way of the change that
      `server_step` would make, as FLTrust does; None: replies are not compared with it.
    - `deliver`: the model after the last server round ("synced"), or after the last round ("last").
    - `delta`: epsilon is told at this delta, under Flower's wrappers for differential privacy.
    - `checkpoint`: a folder; the state is saved there after every round, and a strategy that
      finds one there goes on with the next round.
    - `on_progress`: called after every round with the federation so far, as `safari.train` does: its
      `history`, `done` of `rounds`, `finished`, `result()`; here also `events` and `participation`. What it
      raises ends the run.
    - `metrics_port`: Prometheus reads metrics there while the run goes on; a port of this machine, or
      `0.0.0.0:9464` for all of its addresses (the extra `safari-fl[prometheus]`).
    - `rebind`: names of clients that may come with a new key, where nodes authenticate.
    - `job`: the spec that `safari flower deploy` wrote the app from, where it did.
    """

    def __init__(
        self,
        q: float | AdaptiveQ = 0.8,
        server_step: ServerStep | None = None,
        *,
        clients: Strategy | None = None,
        fleet: int | Sequence[str] | None = None,
        excluded: Sequence[int] = (),
        per_round: int | None = None,
        round_deadline: float = 60.0,
        start_deadline: float = 10.0,
        min_replies: int = 1,
        silent_rounds: int | None = 20,
        most_norm: float | None = None,
        norm_bound: float | None = 5.0,
        weight_bound: float | None = 3.0,
        trust: str | None = None,
        client_path: float | None = None,
        seed: int = 0,
        deliver: str = "synced",
        delta: float = 1e-5,
        checkpoint: str | Path | None = None,
        rebind: Sequence[str] = (),
        on_progress: Callable[[Federation], None] | None = None,
        metrics_port: int | str | None = None,
        job: "Job | None" = None,
    ):
        check_parts(q, server_step, clients, client_path)
        check_rounds(seed, round_deadline, start_deadline, deliver, delta)
        check_bounds(most_norm=most_norm, norm_bound=norm_bound, weight_bound=weight_bound)
        check_trust(trust, server_step)
        strategy = clients or without_evaluation(FedAvg(min_train_nodes=1, min_available_nodes=1))
        self.evaluated = float(attribute_of(strategy, "fraction_evaluate", 0.0))
        path = client_path if isinstance(q, AdaptiveQ) else None
        self.clients = Clients.of(strategy, most_norm, Bounds(norm_bound, weight_bound), delta, path)
        self.server_step, self.trust = server_step, trust
        self.fleet = Fleet.of(fleet, round_deadline)
        self.fleet.keys.rebind = frozenset(rebind)
        self.excluded = frozenset(excluded)
        self.per_round = per_round
        self.min_replies = max(min_replies, self.clients.needs.replies)
        self.silent_rounds, self.deliver = silent_rounds, deliver
        self.round_deadline, self.start_deadline = round_deadline, start_deadline
        self.coin = Coin(q, getattr(server_step, "rate", 0.0), client_path)
        self.draws = Draws(seed)
        self.checkpoint = Path(checkpoint) if checkpoint else None
        self.on_progress, self.metrics_port = on_progress, metrics_port
        if metrics_port is not None:
            place_of(metrics_port)
        self.job = job
        check_fleet(self.fleet, per_round, min_replies, silent_rounds, self.clients.needs)
        self.journal = Journal(classes=None if job is None else job.labels)
        self.synced: Arrays | None = None
        self.synced_round = 0
        self.turn: Round | None = None

    @property
    def delivers_synced(self) -> bool:
        """Whether the model is delivered that the last server round left."""
        return self.deliver == "synced" and self.synced is not None

    def options(self, rounds: int) -> dict[str, Any]:
        """All that the operator set, as one flat table."""
        gate = self.clients.gate
        fleet = {
            "excluded": sorted(self.excluded),
            "round_deadline": self.round_deadline,
            "start_deadline": self.start_deadline,
            "min_replies": self.min_replies,
            "silent_rounds": self.silent_rounds,
            "most_norm": gate.most_norm,
            "norm_bound": gate.bounds.norm,
            "weight_bound": gate.bounds.weight,
            "trust": self.trust,
            "deliver": self.deliver,
            "delta": self.clients.privacy.delta,
            "server_step": plain_attributes(self.server_step),
        }
        if self.job is not None:
            return flat({**self.tables(rounds), "fleet": fleet})
        q = plain_q(self.coin.q)
        name = self.clients.name.lower() if q == 1 else "safari"
        clients = {"name": self.clients.name, **self.clients.learnt.settings()}
        return {
            **flat({"algorithm": {"name": name, "q": q, "clients": clients}, "fleet": fleet}),
            "participation.per_round": self.per_round,
            "train.rounds": rounds,
            "train.seed": self.draws.seed,
        }

    def tables(self, rounds: int) -> dict[str, Any]:
        """What spec.toml says; of a federation that began from a spec, that."""
        if self.job is None:
            return toml_tables(self.options(rounds))
        spec = self.job.spec.plain()
        return {**spec, "train": {**spec["train"], "rounds": rounds}}

    def summary(self) -> None:
        """Log what this strategy is."""
        q = self.coin.q if isinstance(self.coin.q, AdaptiveQ) else f"{self.coin.q:g}"
        needs = self.clients.needs
        why = needs.why(self.min_replies)
        log(INFO, "\t├──> SAFARI: q %s, %s clients a round", q, self.per_round or needs.asked or "all")
        log(INFO, "\t├──> Deadline: %g s, replies needed: %d%s", self.round_deadline, self.min_replies, why)
        if self.checkpoint is not None:
            log(INFO, "\t├──> State saved in %s", self.checkpoint.resolve())
        shown = "which sees only the clients that are asked, and so needs 1"
        log(INFO, "\t└──> Client rounds by %s, %s:", self.clients.name, shown)
        self.clients.strategy.summary()
        self.clients.privacy.warn(needs.asked or self.per_round or self.fleet.size)

    # One round, in the steps that Flower asks for.

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Toss the coin; the messages to the cohort, or none in a server round."""
        if self.coin.adaptive and self.coin.known is None:
            self.coin.start(numpy_arrays(arrays))
        q, online = self.coin.probability(), self.available(grid)
        kind = "server" if self.draws.coin(server_round) >= q else "client"
        self.turn = turn = Round(server_round, kind, arrays, q, len(online))
        if kind == "server":
            return []
        needs = self.clients.needs
        wanted = needs.asked or self.per_round
        chosen = self.draws.cohort(server_round, online, max(self.fleet.known, 1), wanted)
        turn.cohort = tuple(online[client] for client in chosen)
        if 1 < needs.connected > len(online):
            turn.off = f"{len(online)} clients connected, {needs.connected} needed (min_available_nodes)"
        elif len(chosen) < (least := max(self.min_replies, needs.answers, needs.asked or 0)):
            turn.off = f"{len(chosen)} clients can be asked, {least} needed{needs.why(least)}"
        messages = self.clients.ask(turn, config, grid)
        for message in messages:
            self.journal.note(server_round, "asked", self.fleet, message.metadata.dst_node_id)
        return messages

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """The arrays after the round: the clients' average, or what the server makes of them."""
        turn = self.turn
        assert turn is not None, "configure_train comes first"
        arrays, metrics = None, None
        if turn.kind == "client":
            replies = list(replies)
            turn.own = self._own_change(turn) if self.trust and replies else None
            arrays, metrics = self.clients.absorb(turn, replies, self.min_replies, self.journal, self.fleet)
            self.journal.count(arrays is not None)
        if arrays is None and self.server_step is not None:
            turn.kind, arrays = "server", self._serve(turn)
        elif arrays is None:
            turn.kind = "idle"
        if self.coin.adaptive and arrays is not None:
            self._learn(turn, arrays)
        self.journal.end(turn)
        return arrays, metrics

    def _serve(self, turn: Round) -> ArrayRecord:
        arrays = self._server_arrays(turn)
        self.synced, self.synced_round = numpy_arrays(arrays), turn.round
        return arrays

    def _own_change(self, turn: Round) -> Arrays:
        """What the server's step would change; counters left out."""
        sent, after = numpy_arrays(turn.arrays), numpy_arrays(self._server_arrays(turn))
        return {name: after[name] - array for name, array in sent.items() if array.dtype.kind == "f"}

    def _server_arrays(self, turn: Round) -> ArrayRecord:
        assert self.server_step is not None
        made = self.server_step(numpy_arrays(turn.arrays), turn.round)
        if not isinstance(made, dict):
            kind = type(made).__name__
            raise InputError("server_step", f"in round {turn.round}", f"must return the arrays, not {kind}")
        arrays = cast_like(array_record(made), turn.arrays)
        fault = arrays_fault(turn.arrays, arrays)
        if fault is not None:
            raise InputError(
                "server_step", f"in round {turn.round}", f"gave arrays that cannot be used: {fault}"
            )
        return arrays

    def _learn(self, turn: Round, arrays: ArrayRecord) -> None:
        assert isinstance(self.server_step, Estimating)
        after = numpy_arrays(arrays)
        halves = self.server_step.halves(after, turn.round)
        self.coin.learn(halves, turn.gradient if turn.kind == "client" else None)

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Evaluation by clients, after client rounds, where the client strategy wants it."""
        if self.evaluated == 0 or self.turn is None or self.turn.kind != "client":
            return []
        online, least = self.available(grid), self.clients.needs.evaluating
        wanted = max(round(self.evaluated * len(online)), least)
        known = max(self.fleet.known, 1)
        chosen = self.draws.cohort(server_round, online, known, wanted, evaluation=True)
        if len(chosen) < least:
            return []
        shown = Only(grid, [online[client] for client in chosen])
        return self.clients.strategy.configure_evaluate(server_round, arrays, config, shown)

    def aggregate_evaluate(self, server_round: int, replies: Iterable[Message]) -> MetricRecord | None:
        """What the client strategy makes of the evaluations."""
        sound = [reply for reply in replies if not reply.has_error()]
        return self.clients.strategy.aggregate_evaluate(server_round, sound) if sound else None

    def available(self, grid: Grid) -> dict[int, int]:
        """The clients that can be asked, each with its node."""
        found = self.fleet.awake(self.fleet.online(grid))
        return {client: node for client, node in found.items() if client not in self.excluded}

    # All rounds.

    def start(
        self,
        grid: Grid,
        initial_arrays: ArrayRecord,
        num_rounds: int = 3,
        timeout: float = 3600,
        train_config: ConfigRecord | None = None,
        evaluate_config: ConfigRecord | None = None,
        evaluate_fn: Evaluate | None = None,
    ) -> Result:
        """Carry the rounds out, from where the checkpoint left off if there is one.

        `timeout` is that of Flower; a round waits for `round_deadline` at the most. The arrays of
        the result are the delivered model, as `deliver` says.
        """
        federation = Federation(self, grid, num_rounds, min(self.round_deadline, timeout), evaluate_fn)
        return federation.run(initial_arrays, train_config, evaluate_config)
