"""Prometheus reads what happens in a federation, by its own parser, while the federation runs."""

import socket
import urllib.request

import numpy as np
import polars as pl
import pytest
from flwr.app import MetricRecord
from flwr.serverapp.strategy import DifferentialPrivacyServerSideFixedClipping, FedAvg
from local_grid import LocalGrid
from numpy_app import make_app, nodes, server_step, start

from safari.errors import InputError
from safari.flower import SafariStrategy

parser = pytest.importorskip("prometheus_client.parser")


@pytest.fixture
def port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as opened:
        return opened.getsockname()[1]


def spoil(client, number, arrays, metrics):
    if client == 0:
        arrays = {name: np.full_like(array, np.nan) for name, array in arrays.items()}
    if client == 1 and number > 2:
        arrays = {name: array + 1e6 for name, array in arrays.items()}
    return arrays, metrics


def read(port: int) -> dict[tuple[str, ...], float]:
    """All samples by name and labels (in the order of their names), as Prometheus would store them."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    families = parser.text_string_to_metric_families(text)
    return {(one.name, *one.labels.values()): one.value for family in families for one in family.samples}


def carry_out(port, rounds=12, app=None, **keys):
    pages = []
    keys = {"q": 0.7, "fleet": 6, "start_deadline": 0.0, "round_deadline": 0.5, **keys}
    made = SafariStrategy(
        server_step=server_step, metrics_port=port, on_progress=lambda _: pages.append(read(port)), **keys
    )
    scored = {"evaluate_fn": lambda number, arrays: MetricRecord({"accuracy": number / 100, "loss": 2.0})}
    grid = LocalGrid(app or make_app(spoil), nodes(6))
    made.start(grid, start(), num_rounds=rounds, **scored)
    return pages


def test_every_round_can_be_read_as_it_is_in_the_tables(tmp_path, port):
    pages = carry_out(port, checkpoint=tmp_path / "state")
    assert [page[("safari_round",)] for page in pages] == list(range(1, 13))
    last, events = pages[-1], pl.read_parquet(tmp_path / "state" / "events.parquet")
    history = pl.read_parquet(tmp_path / "state" / "metrics.parquet")
    for kind, count in history["kind"].value_counts().iter_rows():
        assert last[("safari_rounds_total", kind)] == count
        assert last[("safari_round_seconds_count", kind)] == count
    counted = events.filter(pl.col("event").is_in(["answered", "rejected"])).group_by("event", "cause").len()
    assert set(counted["cause"]) == {None, "not finite", "norm"}
    for event, cause, count in counted.iter_rows():
        assert last[("safari_replies_total", cause or "", event)] == count
    norms = events.filter(event="rejected", cause="norm")["norm"]
    assert last[("safari_update_norm_count", "rejected")] == len(norms)
    assert last[("safari_update_norm_sum", "rejected")] == pytest.approx(norms.sum())
    assert last[("safari_reply_seconds_count",)] == events["seconds"].is_not_null().sum()
    assert last[("safari_accuracy_round",)] == pytest.approx(0.12)
    assert last[("safari_q",)] == pytest.approx(0.7)
    assert last[("safari_checkpoint_seconds_count",)] == 12
    assert last[("safari_checkpoint_seconds_sum",)] == pytest.approx(history["checkpoint_seconds"].sum())
    assert last[("safari_bytes_total", "down")] == history["bytes_down"].sum()
    assert ("safari_client_last_reply_timestamp_seconds", "2") in last
    assert ("safari_client_last_reply_timestamp_seconds", "0") not in last
    with pytest.raises(OSError, match="refused"):
        read(port)


def test_counters_go_on_after_a_restart(tmp_path, port):
    before = carry_out(port, rounds=5, checkpoint=tmp_path / "state")[-1]
    after = carry_out(port, rounds=6, checkpoint=tmp_path / "state")[-1]
    kinds = [("safari_rounds_total", kind) for kind in ("client", "server")]
    assert sum(before.get(kind, 0) for kind in kinds) == 5
    assert sum(after.get(kind, 0) for kind in kinds) == 6


def test_late_clients_and_spent_privacy_are_counted(port):
    app, slow = make_app(), set()
    clients = DifferentialPrivacyServerSideFixedClipping(
        FedAvg(fraction_evaluate=0.0), noise_multiplier=1.0, clipping_norm=2.0, num_sampled_clients=5
    )
    made = SafariStrategy(
        1.0, clients=clients, fleet=6, start_deadline=0.0, round_deadline=0.5, metrics_port=port,
        on_progress=lambda _: slow.add(tuple(sorted(read(port).items()))),
    )  # fmt: skip
    grid = LocalGrid(app, nodes(6))
    grid.get_node_ids()
    made.fleet.online(grid)
    grid.silent = {list(nodes(6))[3]}
    made.start(grid, start(), num_rounds=1)
    (page,) = (dict(one) for one in slow)
    assert page[("safari_replies_total", "", "late")] == 1
    assert page[("safari_replies_total", "", "answered")] == 5
    assert page[("safari_privacy_epsilon", "1e-05")] == pytest.approx(made.clients.privacy.spent())


@pytest.mark.parametrize("wrong", [0, 70000, "here", "host:", True])
def test_a_port_that_is_none_is_refused(wrong):
    with pytest.raises(InputError, match=r"metrics_port = .*must be a port"):
        SafariStrategy(server_step=server_step, metrics_port=wrong)


def test_a_port_that_is_taken_ends_the_run_in_one_line_before_anything_is_written(tmp_path, port):
    with socket.create_server(("127.0.0.1", port)), pytest.raises(InputError, match="cannot be opened"):
        carry_out(port, checkpoint=tmp_path / "state")
    assert not (tmp_path / "state").exists()
