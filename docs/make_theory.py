"""Writes what commands print into docs/theory.md: python docs/make_theory.py [SWEEP]

Every `<!-- output: COMMAND -->` is followed by a block with what COMMAND printed; figures go
where the command puts them. SWEEP is a directory made by `safari sweep
examples/sweep-adaptive-q.toml`; with it, docs/theory/adaptive-q.csv is written anew.
"""

import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import polars as pl

FOLDER = Path(__file__).parent
PAGE = FOLDER / "theory.md"
STUDY = FOLDER / "theory" / "adaptive-q.csv"
OUTPUT = re.compile(r"<!-- output: (?P<command>.+?) -->\n(?:\n```text\n.*?\n```\n)?", re.DOTALL)
TABLE = re.compile(r"<!-- table: adaptive-q -->.*?<!-- end of table -->", re.DOTALL)
GROUP = ("data.partition.classes_per_client", "participation.excluded", "data.server.samples", "algorithm.q")
NAMES = {
    "0.2": "0.2",
    "0.5": "0.5",
    "0.8": "0.8",
    '{"rule": "B"}': "rule B",
    '{"rule": "C"}': "rule C",
    '{"rule": "C", "forget": 0.95}': "rule C, fading",
}


def printed(command):
    words = shlex.split(command)
    assert words[0] == "safari", command
    done = subprocess.run(
        [sys.executable, "-m", *words],
        cwd=FOLDER.parent,
        env={**os.environ, "COLUMNS": "150", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    lines = [line.rstrip() for line in done.stdout.splitlines()]
    return "\n".join(lines).strip("\n")


def study(sweep):
    """Accuracy delivered, after the last rounds, its swing there, and client rounds, by setting."""
    results = pl.read_parquet(sweep / "results.parquet")
    last = pl.col("curve_accuracy").list.tail(20)
    table = (
        results.group_by(*GROUP)
        .agg(
            runs=pl.len(),
            delivered=100 * pl.col("accuracy").mean(),
            last_ten=100 * pl.col("accuracy_round_last10").mean(),
            swing=100 * last.list.std().mean(),
            client_rounds=pl.col("client_rounds").mean(),
        )
        .sort(*GROUP)
    )
    made = tomllib.loads((sweep / "spec.toml").read_text())["made"]
    made["command"] = made["command"].split(" --out")[0]
    facts = "; ".join(f"{name} {made[name]}" for name in ("command", "date", "machine", "commit"))
    STUDY.write_text(f"# {facts}\n" + table.write_csv(float_precision=2), encoding="utf-8")


def study_table():
    facts = STUDY.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")
    rows = pl.read_csv(STUDY, comment_prefix="#", schema_overrides={"algorithm.q": pl.String})
    lines = [
        "| p | s | n_T | q | delivered | mean of the last ten | swing | client rounds |",
        "|---:" * 8 + "|",
    ]
    for row in rows.iter_rows(named=True):
        where = " | ".join(str(row[key]) for key in GROUP[:3])
        lines.append(
            f"| {where} | {NAMES[row['algorithm.q']]} | {row['delivered']:.1f} | {row['last_ten']:.1f} "
            f"| {row['swing']:.1f} | {row['client_rounds']:.0f} of 150 |"
        )
    return "\n".join([*lines, "", f"Made by {facts}; {rows['runs'][0]} seeds."])


def main():
    if len(sys.argv) > 1:
        study(Path(sys.argv[1]))
    page = PAGE.read_text(encoding="utf-8")
    page = OUTPUT.sub(
        lambda found: f"<!-- output: {found['command']} -->\n\n```text\n{printed(found['command'])}\n```\n",
        page,
    )
    table = f"<!-- table: adaptive-q -->\n\n{study_table()}\n\n<!-- end of table -->"
    page = TABLE.sub(lambda _: table, page)
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
