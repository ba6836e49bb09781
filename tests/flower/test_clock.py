"""A clock that is set while a fleet trains moves no deadline and no duration (see benchmarks/faults.py)."""

import itertools
import time

import polars as pl
import pytest
from local_grid import LocalGrid
from numpy_app import make_app, nodes, start

from safari.flower import SafariStrategy

HOUR = 3600.0


class SlowGrid(LocalGrid):
    """Every other look for replies finds none, so that the server has to wait."""

    def __init__(self, *given):
        super().__init__(*given)
        self.looks = itertools.count()

    def pull_messages(self, message_ids):
        return super().pull_messages(message_ids) if next(self.looks) % 2 else []


@pytest.mark.parametrize("step", [HOUR, -HOUR])
def test_a_clock_that_is_set_makes_nobody_late_and_no_round_long(monkeypatch, step):
    steps, real = itertools.count(), time.time
    monkeypatch.setattr(time, "time", lambda: real() + step * next(steps))
    made = SafariStrategy(1.0, fleet=6, start_deadline=0.0, round_deadline=60.0)
    made.start(SlowGrid(make_app(), nodes(6)), start(), num_rounds=3)
    history, events = made.journal.history(), made.journal.happenings()
    assert history["reported"].to_list() == [list(range(6))] * 3
    assert set(events["event"]) == {"asked", "answered"}
    for seconds in (history["seconds"], events.filter(pl.col("event") == "answered")["seconds"]):
        assert seconds.min() >= 0
        assert seconds.max() < 60


@pytest.mark.parametrize("step", [HOUR, -HOUR])
def test_a_clock_that_is_set_wakes_nobody_who_was_late(monkeypatch, step):
    fleet = SafariStrategy(1.0, fleet=3, start_deadline=0.0, round_deadline=60.0).fleet
    online, real = fleet.online(LocalGrid(make_app(), nodes(3))), time.time
    fleet.late([online[1]])
    monkeypatch.setattr(time, "time", lambda: real() + step)
    assert list(fleet.awake(online)) == [0, 2]
    fleet.answered([online[1]])
    assert list(fleet.awake(online)) == [0, 1, 2]
