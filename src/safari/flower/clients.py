"""The clients' part of a round: any Flower strategy, behind what guards it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord
from flwr.serverapp import Grid
from flwr.serverapp.exception import PrivacyBudgetExhausted
from flwr.serverapp.strategy import FedAdam, Strategy

from safari.flower.arrays import Arrays, cast_like, numpy_arrays
from safari.flower.bounds import Bounds
from safari.flower.exchange import Only, bytes_of
from safari.flower.fleet import Fleet
from safari.flower.journal import Journal
from safari.flower.learnt import Learnt
from safari.flower.privacy import Privacy
from safari.flower.replies import Gate, arrays_fault
from safari.flower.rounds import Round, TellsGradient
from safari.flower.wrapped import (
    Needs,
    attribute_of,
    begin_at,
    inner_strategies,
    needs_of,
    refuse,
    show_everyone,
)

MOST_STUMBLES = 3


@dataclass
class Clients:
    """A client strategy: what it needs, what of its replies counts, what it learnt, what it spent.

    `path` is a client's rate times its steps, where an adaptive q asks for the clients' gradient.
    """

    strategy: Strategy
    gate: Gate
    needs: Needs
    learnt: Learnt
    privacy: Privacy
    path: float | None = None
    stumbles: int = 0

    @classmethod
    def of(
        cls, strategy: Strategy, most_norm: float | None, bounds: Bounds, delta: float, path: float | None
    ) -> "Clients":
        """Guard `strategy`; from now on it asks everyone whom it is shown."""
        refuse(strategy)
        needs, learnt, privacy = needs_of(strategy), Learnt(strategy), Privacy(strategy, delta)
        if privacy.clips_here:
            bounds.norm = None
        show_everyone(strategy)
        gate = Gate(attribute_of(strategy, "weighted_by_key", "num-examples"), most_norm, bounds)
        return cls(strategy, gate, needs, learnt, privacy, path)

    @property
    def name(self) -> str:
        return type(self.strategy).__name__

    def ask(self, turn: Round, config: ConfigRecord, grid: Grid) -> list[Message]:
        """The messages to the cohort of `turn`; none, and the reason in it, if it cannot be."""
        if not turn.cohort or turn.off:
            return []
        begin_at(self.strategy, turn.arrays)
        shown = Only(grid, turn.cohort)
        try:
            messages = list(self.strategy.configure_train(turn.round, turn.arrays, config, shown))
        except PrivacyBudgetExhausted as error:
            turn.off = f"the privacy budget is spent: {error}"
            return []
        turn.down = bytes_of(messages)
        return messages

    def absorb(
        self, turn: Round, replies: Sequence[Message], least: int, journal: Journal, fleet: Fleet
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """What the strategy makes of the replies that count; nothing if they are fewer than `least`."""
        turn.up = bytes_of(replies)
        taken, turned = self.gate.sort(turn.arrays, replies, turn.own)
        for one in turned:
            journal.note(
                turn.round, "rejected", fleet, one.node, one.fault.sentence, one.fault.cause,
                norm=one.norm, cosine=one.cosine, seconds=turn.seconds.get(one.node),
            )  # fmt: skip
        if not turn.off and len(taken) < least:
            why = f"{least} needed{self.needs.why(least)}"
            turn.off = f"{len(taken)} of {len(turn.cohort)} clients gave a sound reply, {why}"
        elif not turn.off and len(taken) + len(turned) < self.needs.answers:
            why = f"{self.needs.answers} needed{self.needs.why(self.needs.answers)}"
            turn.off = f"{len(taken) + len(turned)} of {len(turn.cohort)} clients answered, {why}"
        if turn.off:
            journal.note(turn.round, "replaced", fleet, detail=turn.off)
            return None, None
        sound = [one.reply for one in taken]
        if self.path is not None:
            turn.gradient = self._gradient(turn, sound)
        arrays, metrics, fault = self._aggregate(turn, sound, journal.averaged + 1)
        if arrays is None:
            turn.off = f"{self.name} could not use the replies: {fault}"
            journal.note(turn.round, "replaced", fleet, detail=turn.off)
            return None, None
        for good in taken:
            node = good.reply.metadata.src_node_id
            journal.note(
                turn.round, "answered", fleet, node, norm=good.norm, weight=good.weight, share=good.share,
                cosine=good.cosine, seconds=turn.seconds.get(node),
            )  # fmt: skip
        self.privacy.release([good.share for good in taken])
        return arrays, metrics

    def _gradient(self, turn: Round, taken: list[Message]) -> Arrays:
        """The clients' mean gradient, before the strategy makes something else of the replies."""
        if isinstance(self.strategy, TellsGradient):
            return self.strategy.mean_gradient(taken)
        sent, average = numpy_arrays(turn.arrays), self.gate.average(taken)
        assert self.path is not None
        return {name: (sent[name] - average[name]) / self.path for name in sent}

    def _aggregate(
        self, turn: Round, replies: list[Message], number: int
    ) -> tuple[ArrayRecord | None, MetricRecord | None, str | None]:
        """The strategy's arrays and metrics, or why there are none.

        It may stumble over replies that look sound; several times in a row, the fault is its own.
        FedAdam corrects its moments by how many there were: it is told the number of the client round.
        """
        counts = any(isinstance(one, FedAdam) for one in inner_strategies(self.strategy))
        try:
            arrays, metrics = self.strategy.aggregate_train(number if counts else turn.round, replies)
        except Exception as error:
            self.stumbles += 1
            if self.stumbles == MOST_STUMBLES:
                raise
            return None, None, f"{type(error).__name__}: {error}"
        self.stumbles = 0
        if arrays is None:
            return None, None, "it made nothing of them"
        arrays = cast_like(arrays, turn.arrays)
        fault = arrays_fault(turn.arrays, arrays)
        return (None, None, f"its result: {fault}") if fault else (arrays, metrics, None)

    def save(self) -> tuple[Arrays, dict[str, Any]]:
        """Arrays, and what goes into JSON, of all that was learnt."""
        arrays, learnt = self.learnt.save()
        releases = list(self.privacy.releases.items())
        return arrays, {"learnt": learnt, "bounds": self.gate.bounds.save(), "releases": releases}

    def restore(self, arrays: Arrays, about: dict[str, Any], where: str) -> None:
        """Go on from what was saved; `where` names the place in errors."""
        self.learnt.restore(arrays, about["learnt"], where)
        self.gate.bounds.restore(**about["bounds"])
        self.privacy.releases = dict(about["releases"])
