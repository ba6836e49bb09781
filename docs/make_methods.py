"""Writes docs/methods.md from what the methods state about themselves: python docs/make_methods.py"""

from pathlib import Path

from safari.experiment.methods import all_methods, method
from safari.report.methods import HEAD, LEGEND, published, row, title

PAGE = Path(__file__).with_name("methods.md")
START = """# Methods

Written by `python docs/make_methods.py` from the code. `safari algorithms` prints the list,
`safari algorithms NAME` one method with its parameters; with `--json` both are JSON. A name stands for the
method in specs and in `safari compare --algorithms`. Parameters and defaults: [spec reference](spec.md).
Methods of your own: [Extending safari](extending.md).

"""


def methods() -> str:
    groups = list(all_methods())
    parts = [START, "\n".join(LEGEND), "\n"]
    for idea, found in groups:
        parts += [f"\n**{title(idea)}**\n\n", table(found)]
    parts.append("\n## Each method\n")
    for _, found in groups:
        parts += [section(facts["name"]) for facts in found]
    return "".join(parts)


def table(found: list[dict]) -> str:
    lines = [HEAD, ["---"] * len(HEAD)]
    for facts in found:
        name, *rest = row(facts)
        lines.append([f"[`{name}`](#{name})", *rest])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def section(name: str) -> str:
    facts = method(name)
    paper = published(facts, whole=True)
    source = f"{paper}. " if paper else ""
    return f"\n### {name}\n\n{facts['text']}\n\n*{source}Rests on: {facts['rests_on']}.*\n"


if __name__ == "__main__":
    PAGE.write_text(methods(), encoding="utf-8")
