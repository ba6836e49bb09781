"""All rounds of a federation: from the checkpoint, if there is one, to the delivered model."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from logging import INFO, WARNING
from typing import TYPE_CHECKING, Any

import polars as pl
from flwr.app import ArrayRecord, ConfigRecord, MetricRecord
from flwr.common import log
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Result

from safari.flower.arrays import array_record, numpy_arrays
from safari.flower.ending import absence, delivery
from safari.flower.exchange import exchange, one_line
from safari.flower.journal import now
from safari.flower.options import changes
from safari.flower.prometheus import exported
from safari.flower.silence import check_silence
from safari.flower.state import Folder, Saved
from safari.flower.tables import worst_of
from safari.models import from_named, named_arrays

if TYPE_CHECKING:
    from safari.flower.strategy import SafariStrategy

Evaluate = Callable[[int, ArrayRecord], MetricRecord | None]


@dataclass
class Federation:
    """The rounds of a strategy over a grid, each no longer than `deadline`.

    `on_progress` of the strategy is called with it after every round. It then has, as a `safari.Training`
    has them, `done` of `rounds`, `history`, `finished` and `result()`; and `events`, `participation` and
    `strategy`.
    """

    strategy: "SafariStrategy"
    grid: Grid
    rounds: int
    deadline: float
    evaluate: Evaluate | None
    _result: Result = field(default_factory=Result)

    @property
    def done(self) -> int:
        """How many rounds are over."""
        return len(self.strategy.journal.rounds)

    @property
    def finished(self) -> bool:
        return self.done >= self.rounds

    @property
    def history(self) -> pl.DataFrame:
        """A row a round, as in metrics.parquet."""
        return self.strategy.journal.history()

    @property
    def events(self) -> pl.DataFrame:
        """A row for everything that befell a client, as in events.parquet."""
        return self.strategy.journal.happenings()

    @property
    def participation(self) -> pl.DataFrame:
        """A row a client, as in participation.parquet."""
        return pl.DataFrame(self.strategy.journal.participation(self.strategy.fleet))

    def result(self) -> Result:
        """Flower's result of the rounds so far."""
        return self._result

    def run(
        self, arrays: ArrayRecord, train_config: ConfigRecord | None, evaluate_config: ConfigRecord | None
    ) -> Result:
        """Carry out what is left of the rounds."""
        made = self.strategy
        configs = train_config or ConfigRecord(), evaluate_config or ConfigRecord()
        with exported(made.metrics_port) as exporter:
            folder = None if made.checkpoint is None else Folder(made.checkpoint, made.tables(self.rounds))
            watchers = [watch for watch in (exporter, made.on_progress) if watch is not None]
            self._carry_out(arrays, configs, folder, watchers)
        return self._result

    def _carry_out(
        self,
        arrays: ArrayRecord,
        configs: tuple[ConfigRecord, ConfigRecord],
        folder: Folder | None,
        watchers: Sequence[Callable[["Federation"], None]],
    ) -> None:
        """The rounds; after each it is saved, and the `watchers` are called."""
        made, begun = self.strategy, False
        try:
            done, arrays = self._begin(arrays, folder)
            begun = True
            made.summary()
            if done < self.rounds:
                made.fleet.gather(self.grid, made.start_deadline)
            for number in range(done + 1, self.rounds + 1):
                began = time.monotonic()
                arrays = self._round(number, arrays, *configs)
                self._score(number, arrays)
                made.journal.took(time.monotonic() - began)
                if folder is not None:
                    self._save(folder, number, arrays)
                for watch in watchers:
                    watch(self)
                check_silence(made.journal, made.fleet, made.silent_rounds, finished=False)
            self._conclude(folder, arrays)
        except Exception as error:
            if folder is not None and begun and made.journal.rounds:
                more = self._facts("failed", error=one_line(str(error)))
                folder.stop(made.journal, made.fleet, more)
            raise
        finally:
            if folder is not None:
                folder.close()

    def _facts(self, status: str, **more: Any) -> dict[str, Any]:
        """What summary.json says beyond the numbers: how far the federation is, and what was delivered."""
        made = self.strategy
        delivered = made.synced_round if made.delivers_synced else self.done
        facts = {"status": status, "updated": now(), "planned_rounds": self.rounds, **more}
        return {
            **facts,
            "excluded": sorted(made.excluded),
            "deliver": made.deliver,
            "delivered_round": delivered,
            **made.clients.privacy.summary(),
        }

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
                self._result.evaluate_metrics_serverapp[0] = first
            return 0, arrays
        made.clients.restore(saved.parts.get("clients", {}), saved.about["clients"], str(folder.path))
        made.synced, made.synced_round = saved.parts.get("synced"), saved.about["synced_round"]
        if made.coin.known is not None and "known" in saved.parts:
            made.coin.known = from_named(saved.parts["known"], made.coin.known)
        self._name_changes(folder, saved)
        word = "going on after" if saved.round < self.rounds else "finished already:"
        log(INFO, "safari: %s round %d of %d", word, saved.round, self.rounds)
        self._result.evaluate_metrics_serverapp |= made.journal.scores()
        self._result.train_metrics_clientapp |= made.journal.told("train")
        self._result.evaluate_metrics_clientapp |= made.journal.told("evaluate")
        return saved.round, array_record(saved.parts["model"])

    def _name_changes(self, folder: Folder, saved: Saved) -> None:
        """The operator's settings are the present ones; what they were is told."""
        made = self.strategy
        options = made.options(self.rounds)
        changed = changes(saved.about["options"], options)
        for change in changed:
            made.journal.note(saved.round + 1, "changed", made.fleet, detail=change)
        if changed or saved.about["options"]["train.rounds"] != self.rounds:
            notes = [f"from round {saved.round + 1}: {change}" for change in changed]
            folder.respecify(made.tables(self.rounds), notes)

    def _round(
        self, number: int, arrays: ArrayRecord, train_config: ConfigRecord, evaluate_config: ConfigRecord
    ) -> ArrayRecord:
        made, journal, fleet = self.strategy, self.strategy.journal, self.strategy.fleet
        back = exchange(
            self.grid, made.configure_train(number, arrays, train_config, self.grid), self.deadline
        )
        for node, reason in back.failed:
            journal.note(number, "failed", fleet, node, one_line(reason), seconds=back.seconds.get(node))
        for node in back.left:
            journal.note(number, "left", fleet, node, "went away before it answered")
        for node in back.late:
            journal.note(number, "late", fleet, node, f"no answer within {self.deadline:g} s")
        fleet.answered(reply.metadata.src_node_id for reply in back.replies)
        fleet.late(back.late)
        assert made.turn is not None
        made.turn.seconds = back.seconds
        after, metrics = made.aggregate_train(number, back.replies)
        arrays = arrays if after is None else after
        self._tell("train", number, metrics, self._result.train_metrics_clientapp)
        asked = made.configure_evaluate(number, arrays, evaluate_config, self.grid)
        found = made.aggregate_evaluate(number, exchange(self.grid, asked, self.deadline).replies)
        self._tell("evaluate", number, found, self._result.evaluate_metrics_clientapp)
        return arrays

    def _tell(
        self, kind: str, number: int, metrics: MetricRecord | None, kept: dict[int, MetricRecord]
    ) -> None:
        """Log and keep what the clients report, aggregated, as Flower's strategies do."""
        if metrics:
            kept[number] = metrics
            self.strategy.journal.tell(kind, metrics)
            log(INFO, "safari: round %d: clients report (%s): %s", number, kind, dict(metrics))

    def _score(self, number: int, arrays: ArrayRecord) -> None:
        found = None if self.evaluate is None else self.evaluate(number, arrays)
        if found is not None:
            self._result.evaluate_metrics_serverapp[number] = found
        journal = self.strategy.journal
        journal.score(found or {}, self.strategy.deliver)
        row = journal.rounds[-1]
        asked = f"{row['available']} available, {len(row['cohort'])} asked, {len(row['reported'])} answered"
        took = f": {asked}" if row["cohort"] else ""
        scored = "" if row["accuracy_round"] is None else f", accuracy {row['accuracy_round']:.4f}"
        if (worst := worst_of(journal.recall(found or {})))["worst_recall"] is not None:
            scored += f", least recall {worst['worst_recall']:.4f} (class {worst['worst_class']})"
        log(INFO, "safari: round %d of %d: %s%s%s", number, self.rounds, row["kind"], took, scored)

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
            "options": made.options(self.rounds),
            "clients": about,
            "classes": None if made.journal.classes is None else list(made.journal.classes),
        }
        facts = self._facts("running")
        folder.save(Saved(number, parts, more), made.journal, made.fleet, facts)

    def _conclude(self, folder: Folder | None, arrays: ArrayRecord) -> None:
        made = self.strategy
        check_silence(made.journal, made.fleet, made.silent_rounds, finished=True)
        self._result.arrays, facts = arrays, self._facts("finished")
        if made.delivers_synced:
            assert made.synced is not None
            self._result.arrays = array_record(made.synced)
        level, said = delivery(made.journal.rounds, facts["delivered_round"])
        log(level, "safari: %s", said)
        never = absence(made.journal.participation(made.fleet), made.excluded)
        log(INFO, "safari: clients that never took part: %s", never)
        if "privacy" in facts:
            log(INFO, "safari: privacy: %s", made.clients.privacy.said())
        if folder is not None:
            folder.finish(numpy_arrays(self._result.arrays), made.journal, made.fleet, made.job, facts)
