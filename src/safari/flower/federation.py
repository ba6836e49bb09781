"""All rounds of a federation: from the checkpoint, if there is one, to the delivered model."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from logging import INFO, WARNING
from typing import TYPE_CHECKING

from flwr.app import ArrayRecord, ConfigRecord, MetricRecord
from flwr.common import log
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Result

from safari.flower.arrays import array_record, numpy_arrays
from safari.flower.exchange import exchange, one_line
from safari.flower.options import changes
from safari.flower.silence import check_silence
from safari.flower.state import Folder, Saved
from safari.models import from_named, named_arrays

if TYPE_CHECKING:
    from safari.flower.strategy import SafariStrategy

Evaluate = Callable[[int, ArrayRecord], MetricRecord | None]


@dataclass
class Federation:
    """The rounds of a strategy over a grid: `last` of them, each no longer than `deadline`."""

    strategy: "SafariStrategy"
    grid: Grid
    last: int
    deadline: float
    evaluate: Evaluate | None
    result: Result = field(default_factory=Result)

    def run(
        self, arrays: ArrayRecord, train_config: ConfigRecord | None, evaluate_config: ConfigRecord | None
    ) -> Result:
        """Carry out what is left of the rounds."""
        made = self.strategy
        folder = None if made.checkpoint is None else Folder(made.checkpoint, made.tables(self.last))
        configs = train_config or ConfigRecord(), evaluate_config or ConfigRecord()
        try:
            done, arrays = self._begin(arrays, folder)
            made.summary()
            if done < self.last:
                made.fleet.gather(self.grid, made.start_deadline)
            for number in range(done + 1, self.last + 1):
                began = time.monotonic()
                arrays = self._round(number, arrays, *configs)
                self._score(number, arrays)
                made.journal.seconds += time.monotonic() - began
                if folder is not None:
                    self._save(folder, number, arrays)
                check_silence(made.journal, made.fleet, made.silent_rounds, finished=False)
            self._conclude(folder, arrays)
        finally:
            if folder is not None:
                folder.close()
        return self.result

    def _begin(self, arrays: ArrayRecord, folder: Folder | None) -> tuple[int, ArrayRecord]:
        """How many rounds are done, and the arrays after them."""
        made = self.strategy
        start = numpy_arrays(arrays)
        made.coin.start(start)
        saved = None
        if folder is not None:
            for name in made.clients.learnt.missed():
                log(WARNING, "safari: %s cannot be saved: a restarted server begins with a new one", name)
            saved = folder.load(made.draws.seed, start, made.fleet, made.journal)
        if folder is None or saved is None:
            first = None if self.evaluate is None else self.evaluate(0, arrays)
            if first is not None:
                self.result.evaluate_metrics_serverapp[0] = first
            return 0, arrays
        made.clients.restore(saved.parts.get("clients", {}), saved.about["clients"], str(folder.path))
        made.synced, made.synced_round = saved.parts.get("synced"), saved.about["synced_round"]
        if made.coin.known is not None and "known" in saved.parts:
            made.coin.known = from_named(saved.parts["known"], made.coin.known)
        self._name_changes(folder, saved)
        word = "going on after" if saved.round < self.last else "finished already:"
        log(INFO, "safari: %s round %d of %d", word, saved.round, self.last)
        self.result.evaluate_metrics_serverapp |= made.journal.scores()
        return saved.round, array_record(saved.parts["model"])

    def _name_changes(self, folder: Folder, saved: Saved) -> None:
        """The operator's settings are the present ones; what they were is told."""
        made = self.strategy
        options = made.options(self.last)
        changed = changes(saved.about["options"], options)
        for change in changed:
            made.journal.note(saved.round + 1, "changed", made.fleet, detail=change)
        if changed or saved.about["options"]["train.rounds"] != self.last:
            notes = [f"from round {saved.round + 1}: {change}" for change in changed]
            folder.respecify(made.tables(self.last), notes)

    def _round(
        self, number: int, arrays: ArrayRecord, train_config: ConfigRecord, evaluate_config: ConfigRecord
    ) -> ArrayRecord:
        made, journal, fleet = self.strategy, self.strategy.journal, self.strategy.fleet
        back = exchange(
            self.grid, made.configure_train(number, arrays, train_config, self.grid), self.deadline
        )
        for node, reason in back.failed:
            journal.note(number, "failed", fleet, node, one_line(reason))
        for node in back.left:
            journal.note(number, "left", fleet, node, "went away before it answered")
        for node in back.late:
            journal.note(number, "late", fleet, node, f"no answer within {self.deadline:g} s")
        fleet.answered(reply.metadata.src_node_id for reply in back.replies)
        fleet.late(back.late)
        after, metrics = made.aggregate_train(number, back.replies)
        arrays = arrays if after is None else after
        if metrics is not None:
            self.result.train_metrics_clientapp[number] = metrics
        asked = made.configure_evaluate(number, arrays, evaluate_config, self.grid)
        found = made.aggregate_evaluate(number, exchange(self.grid, asked, self.deadline).replies)
        if found is not None:
            self.result.evaluate_metrics_clientapp[number] = found
        return arrays

    def _score(self, number: int, arrays: ArrayRecord) -> None:
        found = None if self.evaluate is None else self.evaluate(number, arrays)
        if found is not None:
            self.result.evaluate_metrics_serverapp[number] = found
        accuracy, loss = (_number(found, name) for name in ("accuracy", "loss"))
        journal = self.strategy.journal
        journal.score(accuracy, loss, self.strategy.deliver)
        row = journal.rounds[-1]
        took = f", {len(row['reported'])} of {len(row['cohort'])} answered" if row["cohort"] else ""
        scored = "" if accuracy is None else f", accuracy {accuracy:.4f}"
        log(INFO, "safari: round %d of %d: %s%s%s", number, self.last, row["kind"], took, scored)

    def _save(self, folder: Folder, number: int, arrays: ArrayRecord) -> None:
        made = self.strategy
        learnt, about = made.clients.save()
        parts = {"model": numpy_arrays(arrays), "clients": learnt}
        if made.synced is not None:
            parts["synced"] = made.synced
        if made.coin.known is not None:
            parts["known"] = named_arrays(made.coin.known)
        more = {
            "seed": made.draws.seed,
            "synced_round": made.synced_round,
            "options": made.options(self.last),
            "clients": about,
        }
        folder.save(Saved(number, parts, more), made.journal, made.fleet)

    def _conclude(self, folder: Folder | None, arrays: ArrayRecord) -> None:
        made = self.strategy
        check_silence(made.journal, made.fleet, made.silent_rounds, finished=True)
        self.result.arrays, delivered = arrays, len(made.journal.rounds)
        if made.deliver == "synced" and made.synced is not None:
            self.result.arrays, delivered = array_record(made.synced), made.synced_round
        later = len(made.journal.rounds) - delivered
        hint = f'; {later} later rounds are left out (deliver="last" takes them)' if later else ""
        log(INFO, "safari: the delivered model is that after round %d%s", delivered, hint)
        never = made.journal.never_took_part(made.fleet)
        names = ", ".join(made.fleet.name(client) for client in never) or "none"
        log(INFO, "safari: clients that never took part: %s", names)
        privacy = made.clients.privacy.summary()
        if privacy:
            log(INFO, "safari: privacy: %s", made.clients.privacy.said())
        if folder is not None:
            more = {"deliver": made.deliver, "delivered_round": delivered, **privacy}
            folder.finish(numpy_arrays(self.result.arrays), made.journal, made.fleet, more)


def _number(record: MetricRecord | None, name: str) -> float | None:
    value = None if record is None else record.get(name)
    return float(value) if isinstance(value, int | float) else None
