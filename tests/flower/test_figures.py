"""The figures in the docs of a fleet are those that the benchmarks left."""

import json
import statistics
from pathlib import Path

import numpy as np

from safari.flower.tables import PART

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "flower.md").read_text()
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
    saving = found[1]["client checkpoint_cpu"]
    assert f"| processor time of saving | | | {1e3 * saving['median']:.0f} ms | {rise(saving)} |" in DOCS
    time = found[0]["client seconds"]
    assert f"| time | {time['median']:.2f} s | {rise(time)} | | |" in DOCS
    assert f"{result('fleet')['bytes_down_client_round']:,.0f} bytes are sent" in DOCS


def test_saving_does_not_grow_with_the_number_of_the_round():
    """It follows how many rows the newest file of events has, which is written anew until it is full."""
    rounds = result("fleet-in-process")["by_round"]
    client = [number for number, kind in enumerate(rounds["kind"]) if kind == "client"]
    rows = np.cumsum([2 * rounds["answered"][number] for number in client]) % PART
    known = np.column_stack([np.ones(len(client)), rows / PART, np.array(client) / len(rounds["kind"])])
    spent = 1e3 * np.array([rounds["checkpoint_cpu"][number] for number in client])
    empty, full, grown = np.linalg.lstsq(known, spent, rcond=None)[0]
    assert f"{empty:.0f} ms with an empty one, {full:.0f} ms more with a full one" in " ".join(DOCS.split())
    assert abs(grown) < 0.5
    assert "adds less than half a millisecond over all 200 rounds" in " ".join(DOCS.split())


def fault_line(row: dict) -> str:
    """Of the table in the docs: what was lost, what had to be done, and what became of the model."""
    model = "the same" if row["equal"] else "of who answered" if row["follows"] else "wrong"
    again = str(len(row["resumed"]))
    return f"| {row['fault']} | {row['lost']} | {again} | {row['short']} | {row['seconds']:.0f} s | {model} |"


def test_the_docs_say_what_each_fault_costs():
    rows = [row for row in result("faults")["rows"] if row["fault"] != "none"]
    shown = [
        line
        for line in DOCS.splitlines()
        if line.startswith(("| kill", "| full", "| trunc", "| clock", "| one"))
    ]
    assert shown == [fault_line(row) for row in rows]


def test_no_fault_loses_more_than_the_round_under_way():
    rows = {row["fault"]: row for row in result("faults")["rows"]}
    for fault, row in rows.items():
        assert row["follows"], fault
        assert row["lost"] == (1 if fault == "truncated checkpoint" else 0), fault
    assert rows["none"]["equal"]


TRIMMED = "FedTrimmedAvg(beta=0.3)"
WORDS = {
    "none": "none", "scaled": "update times 1,000,000", "tenfold": "update times 10",
    "hidden": "update times -4", "flipped": "update times -1", "nan": "NaN", "shape": "wrong shape",
    "weight": "`num-examples` = 1e12", "replayed": "first update again",
}  # fmt: skip
COLUMNS = [
    *[(0.7, name) for name in ("open", "default", "trust", TRIMMED, "FedMedian", "Krum", "MultiKrum")],
    *[(1.0, name) for name in ("default", "trust", "MultiKrum")],
]
SEEN = ("scaled", "tenfold", "nan", "shape", "weight", "replayed")
"""Attacks that bounds, or the look at a reply's arrays, can see."""


def under_attack(data: str) -> dict[tuple, float]:
    """Mean accuracy in per cent by q, strategy, attack and number of attackers."""
    return {
        (row["q"], row["strategy"], row["attack"], row["attackers"]): 100 * statistics.mean(row["accuracy"])
        for row in result("attackers")["rows"]
        if row["data"] == data
    }


def attack_line(found: dict[tuple, float], attack: str, attackers: int) -> str:
    cells = [found.get((*column, attack, attackers)) for column in COLUMNS]
    shown = ["" if cell is None else f"{cell:.1f}" for cell in cells]
    return f"| {WORDS[attack]} | {attackers} | {' | '.join(shown)} |"


def losses(found: dict[tuple, float]):
    """Points that are lost, beside the defaults without attackers at the same q, as they are written."""

    def lost(q: float, strategy: str, *cells: tuple[str, int]) -> str:
        return f"{max(found[q, 'default', 'none', 0] - found[q, strategy, *cell] for cell in cells):.1f}"

    return lost


def attack_sentences(mnist: dict[tuple, float], digits: dict[tuple, float]) -> list[str]:
    """What the docs say of the figures."""
    lost, other = losses(mnist), losses(digits)
    none, one, three, below = ("none", 0), ("flipped", 1), ("flipped", 3), ("hidden", 3)
    seen = [(attack, attackers) for attack in SEEN for attackers in (1, 3)]
    without = min(float(other(1.0, name, none)) for name in (TRIMMED, "FedMedian", "Krum"))
    return [
        f"**Defaults.** With server rounds (q = 0.7) they lose no more than {lost(0.7, 'default', *seen)} "
        "points to updates times 1,000,000 or 10, NaN, wrong shapes, huge weights and replayed updates, and "
        f"{lost(0.7, 'default', one)} to one attacker who turns the sign of the update. They do **not** hold "
        f"against three who do so: {lost(0.7, 'default', three)} points are lost. An attacker who stays just "
        f"below the bound (-4 times the update) costs {lost(0.7, 'default', ('hidden', 1))}, three cost "
        f"{lost(0.7, 'default', below)}. With q = 1, three who turn their updates cost "
        f"{lost(1.0, 'default', three)} points, and three who send their first update again "
        f"{lost(1.0, 'default', ('replayed', 3))}. A turned update is as long as an honest one, and no bound "
        "sees it.",
        '**`trust="server"` helps.** A reply is rejected if its update does not go the way of the update '
        "that `server_step` would make (if its cosine is not above 0). This is the rule of FLTrust without "
        "its weights, so that any client strategy still does the averaging; `events.parquet` holds the "
        f"`cosine` of every reply. Three who turn their updates then cost {lost(0.7, 'trust', three)} points "
        f"with q = 0.7 and {lost(1.0, 'trust', three)} with q = 1, and three who stay just below the bound "
        f"{lost(0.7, 'trust', below)} and {lost(1.0, 'trust', below)}. Without attackers it costs "
        f"{lost(0.7, 'trust', none)} points with q = 0.7 and {lost(1.0, 'trust', none)} with q = 1.",
        "**MultiKrum helps more with server rounds**, if you know how many attackers there can be. "
        "`clients=MultiKrum(num_malicious_nodes=3, num_nodes_to_select=7)` averages the seven replies that "
        f"are closest to the others. Three who turn their updates cost {lost(0.7, 'MultiKrum', three)} "
        f"points with q = 0.7 and {lost(1.0, 'MultiKrum', three)} with q = 1, three just below the bound "
        f"{lost(0.7, 'MultiKrum', below)} and {lost(1.0, 'MultiKrum', below)}. We tried it against these "
        "attacks alone, and not with fewer attackers than it was told; that it stands out was seen on these "
        "seeds. **On MNIST no setting that we tried keeps three of ten who turn their updates within 2 "
        "points of the run without them.**",
        "**Very different clients.** On digits with Dirichlet(0.2) and q = 0.7 the defaults lose "
        f"{other(0.7, 'default', *seen)} points at most to attacks that they can see, but "
        f"{other(0.7, 'default', three)} to three who turn their updates; with trust it is "
        f"{other(0.7, 'trust', *seen, one, three, below)} at most, whatever they do. With q = 1, three "
        f"clients that only send NaN cost {other(1.0, 'default', ('nan', 3))} points, since their data are "
        f"missing. Three that turn their updates cost {other(1.0, 'default', three)}, with trust "
        f"{other(1.0, 'trust', three)}, with MultiKrum {other(1.0, 'MultiKrum', three)}. Trimmed mean, "
        f"median and Krum lose {without:.1f} points and more there without any attacker, because they leave "
        "out honest clients that differ. No rule brings back the attackers' data; server rounds do.",
    ]


def test_the_docs_say_what_attackers_do():
    mnist, digits = under_attack("mnist"), under_attack("digits")
    for attack in WORDS:
        for attackers in (0,) if attack == "none" else (1, 3):
            assert attack_line(mnist, attack, attackers) in PAGE
    for paragraph in attack_sentences(mnist, digits):
        assert paragraph in " ".join(PAGE.split())
    turned = {q: [name for p, name, *cell in mnist if p == q and cell == ["flipped", 3]] for q in (0.7, 1.0)}
    assert all(
        float(losses(mnist)(q, name, ("flipped", 3))) > 2 for q, names in turned.items() for name in names
    )
