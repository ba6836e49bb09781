"""`SafariStrategy`: SAFARI as a Flower strategy.

Every round a coin says whose it is. A client round is that of any Flower strategy, among
clients that are drawn here; a server round sends nobody anything.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from logging import INFO
from pathlib import Path
from typing import Any

from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord
from flwr.common import log
from flwr.serverapp import Grid
from flwr.serverapp.strategy import FedAvg, Result, Strategy

from safari.algorithms import AdaptiveQ
from safari.engine.result import HISTORY_SCHEMA
from safari.errors import InputError
from safari.flower.arrays import Arrays, array_record, cast_like, numpy_arrays
from safari.flower.draws import Coin, Draws
from safari.flower.exchange import Only, bytes_of, exchange, one_line
from safari.flower.fleet import Fleet
from safari.flower.journal import Journal
from safari.flower.replies import Gate
from safari.flower.rounds import Round, TellsGradient
from safari.flower.server_steps import Estimating, ServerStep
from safari.flower.settings import check_fleet, check_parts, check_rounds
from safari.flower.state import Folder
from safari.flower.wrapped import attribute_of, show_everyone

MOST_STUMBLES = 3
Evaluate = Callable[[int, ArrayRecord], MetricRecord | None]


class SafariStrategy(Strategy):
    """With probability `q` the clients train, otherwise the server does, on samples of its own.

    - `q`: a number, or an `AdaptiveQ` (which needs `client_path`, a client's rate times its steps).
    - `server_step`: what the server does in its rounds; needed unless q is 1.
    - `clients`: the Flower strategy of client rounds (default: FedAvg). Whom it asks is decided
      here: `per_round` of the connected clients, drawn by `seed`; everyone if not given.
    - `fleet`: how many clients there are, or their names. Draws are the same from start to start
      if it is given; without it the fleet is whoever has been seen.
    - `excluded`: clients that are never asked, connected or not: absence, simulated.
    - `round_deadline`: seconds to wait for replies; `start_deadline`: for the fleet to connect
      before the first round.
    - `min_replies`: with fewer, the server takes the round.
    - `most_norm`: a reply that asks for a longer change than that is rejected.
    - `checkpoint`: a folder; the state is saved there after every round, and a strategy that
      finds one there goes on with the next round.
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
        most_norm: float | None = None,
        client_path: float | None = None,
        seed: int = 0,
        checkpoint: str | Path | None = None,
        spec: dict[str, Any] | None = None,
    ):
        check_parts(q, server_step, clients, client_path)
        check_rounds(seed, round_deadline, start_deadline, most_norm)
        self.clients = clients or FedAvg(fraction_evaluate=0.0)
        self.server_step = server_step
        self.fleet = Fleet.of(fleet, round_deadline)
        self.excluded = frozenset(excluded)
        self.per_round, self.min_replies = per_round, min_replies
        self.round_deadline, self.start_deadline = round_deadline, start_deadline
        self.coin = Coin(q, getattr(server_step, "rate", 0.0), client_path)
        self.draws = Draws(seed)
        self.checkpoint = Path(checkpoint) if checkpoint else None
        self.spec = spec
        check_fleet(self.fleet, per_round, min_replies)
        self.gate = Gate(attribute_of(self.clients, "weighted_by_key", "num-examples"), most_norm)
        self.evaluated = float(attribute_of(self.clients, "fraction_evaluate", 0.0))
        show_everyone(self.clients)
        self.journal = Journal()
        self.left: Arrays | None = None
        self.stumbles = 0
        self._turn: Round | None = None

    def summary(self) -> None:
        """Log what this strategy is."""
        q = self.coin.q if isinstance(self.coin.q, AdaptiveQ) else f"{self.coin.q:g}"
        log(INFO, "\t├──> SAFARI: q %s, %s clients a round", q, self.per_round or "all")
        log(INFO, "\t├──> Deadline: %g s, replies needed: %d", self.round_deadline, self.min_replies)
        if self.checkpoint is not None:
            log(INFO, "\t├──> State saved in %s", self.checkpoint.resolve())
        log(INFO, "\t└──> Client rounds by %s:", type(self.clients).__name__)
        self.clients.summary()

    # One round, in the steps that Flower asks for.

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Toss the coin; the messages to the cohort, or none in a server round."""
        if self.coin.adaptive and self.coin.known is None:
            self.coin.start(numpy_arrays(arrays))
        q = self.coin.probability()
        if self.draws.coin(server_round) >= q:
            self._turn = Round(server_round, "server", arrays, q, len(self._available(grid)))
            return []
        online = self._available(grid)
        chosen = self.draws.cohort(server_round, online, max(self.fleet.known, 1), self.per_round)
        self._turn = Round(server_round, "client", arrays, q, len(online), tuple(online[c] for c in chosen))
        if not chosen:
            return []
        shown = Only(grid, self._turn.cohort)
        messages = list(self.clients.configure_train(server_round, arrays, config, shown))
        for message in messages:
            self.journal.note(server_round, "asked", self.fleet, message.metadata.dst_node_id)
        self._turn.down = bytes_of(messages)
        return messages

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """The arrays after the round: the clients' average, or what the server makes of them."""
        turn = self._turn
        assert turn is not None, "configure_train comes first"
        arrays, metrics = None, None
        if turn.kind == "client":
            arrays, metrics = self._absorb(turn, list(replies))
        if arrays is None and self.server_step is not None:
            turn.kind, arrays = "server", self._serve(turn)
        elif arrays is None:
            turn.kind = "idle"
        if self.coin.adaptive and arrays is not None:
            self._learn(turn, arrays)
        self._write_down(turn)
        return arrays, metrics

    def _absorb(self, turn: Round, replies: list[Message]) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """What the client strategy makes of the replies that count; nothing if they are too few."""
        taken, turned = self.gate.sort(turn.arrays, replies)
        turn.up = bytes_of(replies)
        for one in turned:
            self.journal.note(turn.round, "rejected", self.fleet, one.node, one.reason)
        if len(taken) < self.min_replies:
            detail = (
                f"{len(taken)} of {len(turn.cohort)} clients gave a sound reply, {self.min_replies} needed"
            )
            self.journal.note(turn.round, "replaced", self.fleet, detail=detail)
            return None, None
        if self.coin.adaptive:
            turn.gradient = self._client_gradient(turn, taken)
        arrays, metrics, fault = self._aggregate(turn, taken)
        if arrays is None:
            detail = f"{type(self.clients).__name__} could not use the replies: {fault}"
            self.journal.note(turn.round, "replaced", self.fleet, detail=detail)
            return None, None
        for reply in taken:
            self.journal.note(turn.round, "answered", self.fleet, reply.metadata.src_node_id)
        return arrays, metrics

    def _client_gradient(self, turn: Round, taken: list[Message]) -> Arrays:
        """The clients' mean gradient, before the client strategy makes something else of the replies."""
        if isinstance(self.clients, TellsGradient):
            return self.clients.mean_gradient(taken)
        sent, average = numpy_arrays(turn.arrays), self.gate.average(taken)
        assert self.coin.path is not None
        return {name: (sent[name] - average[name]) / self.coin.path for name in sent}

    def _aggregate(
        self, turn: Round, replies: list[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None, str | None]:
        """The client strategy's arrays and metrics, or why there are none.

        It may stumble over replies that look sound; several times in a row, the fault is its own.
        """
        try:
            arrays, metrics = self.clients.aggregate_train(turn.round, replies)
        except Exception as error:
            self.stumbles += 1
            if self.stumbles == MOST_STUMBLES:
                raise
            return None, None, f"{type(error).__name__}: {error}"
        self.stumbles = 0
        if arrays is None:
            return None, None, "it made nothing of them"
        arrays = cast_like(arrays, turn.arrays)
        fault = Gate().arrays_fault(turn.arrays, arrays)
        return (None, None, f"its result: {fault}") if fault else (arrays, metrics, None)

    def _serve(self, turn: Round) -> ArrayRecord:
        assert self.server_step is not None
        made = self.server_step(numpy_arrays(turn.arrays), turn.round)
        if not isinstance(made, dict):
            kind = type(made).__name__
            raise InputError("server_step", f"in round {turn.round}", f"must return the arrays, not {kind}")
        arrays = cast_like(array_record(made), turn.arrays)
        fault = Gate().arrays_fault(turn.arrays, arrays)
        if fault is not None:
            raise InputError(
                "server_step", f"in round {turn.round}", f"gave arrays that cannot be used: {fault}"
            )
        self.left = numpy_arrays(arrays)
        return arrays

    def _learn(self, turn: Round, arrays: ArrayRecord) -> None:
        assert isinstance(self.server_step, Estimating)
        after = numpy_arrays(arrays)
        halves = self.server_step.halves(after, turn.round)
        self.coin.learn(halves, turn.gradient if turn.kind == "client" else None)

    def _write_down(self, turn: Round) -> None:
        asked = self.journal.clients(turn.round, "asked")
        row = {
            "round": turn.round,
            "kind": turn.kind,
            "q": turn.q,
            "available": turn.available,
            "cohort": asked,
            "reported": self.journal.clients(turn.round, "answered"),
            "bytes_down": turn.down,
            "bytes_up": turn.up,
        }
        self.journal.rounds.append({**dict.fromkeys(HISTORY_SCHEMA), **row})

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Evaluation by clients, after client rounds, where the client strategy wants it."""
        turn = self._turn
        if self.evaluated == 0 or turn is None or turn.kind != "client":
            return []
        online = self._available(grid)
        wanted = max(round(self.evaluated * len(online)), 1)
        known = max(self.fleet.known, 1)
        chosen = self.draws.cohort(server_round, online, known, wanted, evaluation=True)
        shown = Only(grid, [online[client] for client in chosen])
        return self.clients.configure_evaluate(server_round, arrays, config, shown) if chosen else []

    def aggregate_evaluate(self, server_round: int, replies: Iterable[Message]) -> MetricRecord | None:
        """What the client strategy makes of the evaluations."""
        sound = [reply for reply in replies if not reply.has_error()]
        return self.clients.aggregate_evaluate(server_round, sound) if sound else None

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
        the result are the delivered model: what the last server round left, if there was one.
        """
        deadline = min(self.round_deadline, timeout)
        folder = None if self.checkpoint is None else Folder(self.checkpoint, self._about(num_rounds))
        try:
            return self._rounds(
                grid, initial_arrays, num_rounds, deadline, train_config, evaluate_config, evaluate_fn, folder
            )
        finally:
            if folder is not None:
                folder.close()

    def _rounds(
        self, grid: Grid, arrays: ArrayRecord, last: int, deadline: float, train_config: ConfigRecord | None,
        evaluate_config: ConfigRecord | None, evaluate: Evaluate | None, folder: Folder | None,
    ) -> Result:  # fmt: skip
        result, done = Result(), 0
        start = numpy_arrays(arrays)
        self.coin.start(start)
        saved = None if folder is None else folder.load(self.draws.seed, start, self.fleet, self.clients)
        if saved is not None:
            done, self.left, self.journal = saved.round, saved.left, saved.journal
            self.coin.known = saved.known(self.coin.known)
            arrays = array_record(saved.arrays)
            word = "going on after" if done < last else "finished already:"
            log(INFO, "safari: %s round %d of %d", word, done, last)
            result.evaluate_metrics_serverapp |= self.journal.scores()
        elif evaluate is not None and (first := evaluate(0, arrays)) is not None:
            result.evaluate_metrics_serverapp[0] = first
        self.summary()
        if done < last:
            self.fleet.gather(grid, self.start_deadline)
        for number in range(done + 1, last + 1):
            began = time.monotonic()
            arrays = self._round(grid, number, arrays, deadline, train_config, evaluate_config, result)
            self._score(number, last, arrays, evaluate, result)
            self.journal.seconds += time.monotonic() - began
            if folder is not None:
                folder.save(
                    number, self.draws.seed, numpy_arrays(arrays), self.left, self.journal, self.fleet,
                    self.coin.known, self.clients,
                )  # fmt: skip
        result.arrays = arrays if self.left is None else array_record(self.left)
        self._conclude(folder, result)
        return result

    def _round(
        self, grid: Grid, number: int, arrays: ArrayRecord, deadline: float,
        train_config: ConfigRecord | None, evaluate_config: ConfigRecord | None, result: Result,
    ) -> ArrayRecord:  # fmt: skip
        config = ConfigRecord() if train_config is None else train_config
        back = exchange(grid, self.configure_train(number, arrays, config, grid), deadline)
        for node, reason in back.failed:
            self.journal.note(number, "failed", self.fleet, node, one_line(reason))
        for node in back.left:
            self.journal.note(number, "left", self.fleet, node, "went away before it answered")
        for node in back.late:
            self.journal.note(number, "late", self.fleet, node, f"no answer within {deadline:g} s")
        self.fleet.answered(reply.metadata.src_node_id for reply in back.replies)
        self.fleet.late(back.late)
        after, metrics = self.aggregate_train(number, back.replies)
        arrays = arrays if after is None else after
        if metrics is not None:
            result.train_metrics_clientapp[number] = metrics
        config = ConfigRecord() if evaluate_config is None else evaluate_config
        asked = self.configure_evaluate(number, arrays, config, grid)
        found = self.aggregate_evaluate(number, exchange(grid, asked, deadline).replies)
        if found is not None:
            result.evaluate_metrics_clientapp[number] = found
        return arrays

    def _score(
        self, number: int, last: int, arrays: ArrayRecord, evaluate: Evaluate | None, result: Result
    ) -> None:
        found = None if evaluate is None else evaluate(number, arrays)
        if found is not None:
            result.evaluate_metrics_serverapp[number] = found
        accuracy, loss = (_number(found, name) for name in ("accuracy", "loss"))
        self.journal.score(accuracy, loss)
        row = self.journal.rounds[-1]
        took = f", {len(row['reported'])} of {len(row['cohort'])} answered" if row["cohort"] else ""
        scored = "" if accuracy is None else f", accuracy {accuracy:.4f}"
        log(INFO, "safari: round %d of %d: %s%s%s", number, last, row["kind"], took, scored)

    def _conclude(self, folder: Folder | None, result: Result) -> None:
        never = self.journal.never_took_part(self.fleet)
        names = ", ".join(self.fleet.name(client) for client in never) or "none"
        log(INFO, "safari: clients that never took part: %s", names)
        if folder is not None:
            folder.finish(numpy_arrays(result.arrays), self.journal, self.fleet)

    def _about(self, rounds: int) -> dict[str, Any]:
        """What spec.toml says of a federation that was not begun from one."""
        if self.spec is not None:
            return self.spec
        q = "adaptive" if isinstance(self.coin.q, AdaptiveQ) else self.coin.q
        name = type(self.clients).__name__.lower() if q == 1 else "safari"
        return {
            "algorithm": {"name": name, "q": q, "clients": {"name": type(self.clients).__name__}},
            "participation": {} if self.per_round is None else {"per_round": self.per_round},
            "train": {"rounds": rounds, "seed": self.draws.seed},
        }

    def _available(self, grid: Grid) -> dict[int, int]:
        """The clients that can be asked, each with its node."""
        found = self.fleet.awake(self.fleet.online(grid))
        return {client: node for client, node in found.items() if client not in self.excluded}


def _number(record: MetricRecord | None, name: str) -> float | None:
    value = None if record is None else record.get(name)
    return float(value) if isinstance(value, int | float) else None
