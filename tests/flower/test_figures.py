"""The figures in the docs of a fleet are those that the benchmarks left."""

import json
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = (ROOT / "docs" / "flower-operations.md").read_text()


def result(name: str) -> dict:
    return json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text())


def rise(cost: dict) -> str:
    return f"{cost['rise_percent']:+.1f} % ({cost['low']:.1f} to {cost['high']:.1f})"


def test_the_docs_say_what_a_round_costs_with_a_hundred_clients():
    found = [result(name)["costs"] for name in ("fleet", "fleet-in-process")]
    for words, name, shown in (
        ("processor time of the server", "client cpu", lambda cost: f"{1e3 * cost:.0f} ms"),
        ("saving it, tables included", "client checkpoint_seconds", lambda cost: f"{1e3 * cost:.0f} ms"),
        ("state, in bytes", "client checkpoint_bytes", lambda cost: f"{cost:,.0f}"),
        ("added to the log, in bytes", "client journal_bytes", lambda cost: f"{cost:,.0f}"),
    ):
        cells = [cell for one in found for cell in (shown(one[name]["median"]), rise(one[name]))]
        assert f"| {' | '.join([words, *cells])} |" in DOCS
    time = found[0]["client seconds"]
    assert f"| time | {time['median']:.2f} s | {rise(time)} | | |" in DOCS
    assert f"{result('fleet')['bytes_down_client_round']:,.0f} bytes are sent" in DOCS
