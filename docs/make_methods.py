"""Writes docs/methods.md from what the methods state about themselves: python docs/make_methods.py"""

import json
from pathlib import Path

from safari.experiment.methods import all_methods, method
from safari.report.methods import HEAD, LEGEND, published, row, title

PAGE = Path(__file__).with_name("methods.md")
TIMES = PAGE.parents[1] / "benchmarks" / "results" / "methods.json"
START = """# Methods

Written by `python docs/make_methods.py` from the code. `safari algorithms` prints the list,
`safari algorithms NAME` one method with its parameters; with `--json` both are JSON. A name stands for the
method in specs and in `safari compare --algorithms`. Parameters and defaults: [spec reference](spec.md).
Methods of your own: [Extending safari](extending.md).

"""


def methods() -> str:
    groups, measured = list(all_methods()), json.loads(TIMES.read_text())
    ratios = {row["method"]: row["ratio"] for row in measured["rows"]}
    work = {facts["name"]: facts["extra"] for _, found in groups for facts in found}
    parts = [START, "\n".join(LEGEND), "\n", times(measured, work)]
    for idea, found in groups:
        parts += [f"\n**{title(idea)}**\n\n", table(found, ratios)]
    parts.append("\n## Each method\n")
    for _, found in groups:
        parts += [section(facts["name"]) for facts in found]
    return "".join(parts)


def times(measured: dict, work: dict[str, str]) -> str:
    """What the column `time` is, and which methods take long."""
    made, limit = measured["made"], measured["limit"]
    slow = [row["method"] for row in measured["rows"] if row["ratio"] > limit]
    above = f"Above {limit:g}: {', '.join(f'`{name}` ({work[name]})' for name in slow)}." if slow else ""
    return (
        "time: processor seconds of a round, as a ratio to FedAvg's in the same run "
        f"(`{made['command']}`, commit {made['commit']}, {made['date'][:10]}, {made['machine']}). {above}\n"
    )


def table(found: list[dict], ratios: dict[str, float]) -> str:
    head = [*HEAD, "time"]
    lines = [head, ["---"] * len(head)]
    for facts in found:
        name, *rest = row(facts)
        time = f"{ratios[name]:.2f}" if name in ratios else ""
        lines.append([f"[`{name}`](#{name})", *rest, time])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def section(name: str) -> str:
    facts = method(name)
    paper = published(facts, whole=True)
    source = f"{paper}. " if paper else ""
    return f"\n### {name}\n\n{facts['text']}\n\n*{source}Rests on: {facts['rests_on']}.*\n"


if __name__ == "__main__":
    PAGE.write_text(methods(), encoding="utf-8")
