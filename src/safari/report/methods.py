"""The algorithms in words: what each needs and costs, as a list and one by one."""

import re
from collections.abc import Iterable
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.table import Table
from rich.text import Text

NEEDS = {
    "server_set": "server set",
    "label_counts": "label counts",
    "rates": "participation rates",
    "raw_samples": "raw samples leave",
}
MEMORY = {
    "server_memory": "on the server",
    "for_each_client": "on the server for every client",
    "client_memory": "on every client",
}
HEAD = ("name", "paper", "needs", "down", "up", "keeps", "further work", "passes the ceiling")
LEGEND = (
    "down, up, keeps: models sent to and from each client in a round, and kept between rounds.",
    "The ceiling is the share of the test set whose classes clients that take part hold.",
)


def needs(facts: dict[str, Any]) -> str:
    """What a method needs beside clients that report."""
    return ", ".join(words for key, words in NEEDS.items() if facts[key])


def keeps(facts: dict[str, Any]) -> str:
    """What is kept between rounds, in models."""
    return ", ".join(f"{facts[key]:g} {where}" for key, where in MEMORY.items() if facts[key])


def published(facts: dict[str, Any], whole: bool = False) -> str:
    """Authors and year, or all that is known of the paper."""
    paper = facts["paper"]
    if paper is None:
        return ""
    if not whole:
        return f"{paper['authors']} {paper['year']}"
    return f"{paper['authors']}: {paper['title']} ({paper['venue']}, {paper['year']})"


def row(facts: dict[str, Any]) -> tuple[str, ...]:
    """A method in the words of `HEAD`."""
    return (
        facts["name"], published(facts), needs(facts), f"{facts['down']:g}", f"{facts['up']:g}", keeps(facts),
        facts["extra"], "yes" if facts["passes_ceiling"] else "no",
    )  # fmt: skip


def title(idea: str) -> str:
    """An idea as a heading."""
    return f"{idea[:1].upper()}{idea[1:]}"


def methods_table(ideas: Iterable[tuple[str, list[dict[str, Any]]]]) -> Group:
    """All methods, grouped by idea."""
    ideas = list(ideas)
    table = Table(*HEAD, box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.columns[0].min_width = max(len(facts["name"]) for _, found in ideas for facts in found)
    table.columns[1].min_width = len("Karimireddy et al. 2020")
    for idea, found in ideas:
        table.add_section()
        table.add_row(Text(title(idea), style="bold"))
        for facts in found:
            name, *rest = row(facts)
            table.add_row(Text(name, no_wrap=True), *rest)
    return Group(table, *LEGEND, "One method in detail: safari algorithms NAME")


def method_page(facts: dict[str, Any]) -> Group:
    """One method: its mathematics, what it needs and costs, its parameters."""
    text = Text(plain(facts["text"]) or "It has no docstring.")
    keys = Table("parameter", "may hold", "default", "what it means")
    for key in facts["parameters"]:
        keys.add_row(key["name"], key["holds"], key["default"], plain(key["meaning"]))
    ours = "" if ":" in facts["name"] else f" (safari.{facts['class']})"
    return Group(Text(facts["name"] + ours, style="bold"), "", text, "", _facts(facts), keys)


def _facts(facts: dict[str, Any]) -> Table | str:
    if facts["idea"] is None:
        return "It states nothing about its paper, needs and costs: about = safari.About(...)\n"
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    for name, words in (
        ("idea", str(facts["idea"])),
        ("paper", published(facts, whole=True)),
        ("the rule rests on", facts["rests_on"]),
        ("needs", needs(facts)),
        ("models down and up", f"{facts['down']:g}, {facts['up']:g}"),
        ("models kept", keeps(facts)),
        ("further work", facts["extra"]),
        ("passes the ceiling", row(facts)[-1]),
    ):
        table.add_row(name, words or "none")
    return table


SIGNS = {
    "eta": "η", "gamma": "γ", "delta": "δ", "Delta": "Δ", "mu": "μ", "beta": "β", "alpha": "α", "tau": "τ",
    "xi": "ξ", "lambda": "λ", "epsilon": "ε", "varepsilon": "ε", "theta": "θ", "sigma": "σ", "phi": "φ",
    "rho": "ρ", "nabla": "∇", "sum": "Σ", "prod": "Π", "leftarrow": "←", "to": "→", "in": "∈", "notin": "∉",
    "cup": "∪", "cdot": "·", "times": "×", "le": "≤", "leq": "≤", "ge": "≥", "geq": "≥", "ne": "≠",
    "approx": "≈", "sqrt": "√", "infty": "∞", "ldots": "...", "dots": "...", "quad": "  ", "qquad": "   ",
    "left": "", "right": "", "mid": "|", "langle": "⟨", "rangle": "⟩", "odot": "⊙",
}  # fmt: skip
BRACED = re.compile(r"\\(?:mathrm|mathbf|text|operatorname|mathcal)\{([^{}]*)\}")
FRACTION = re.compile(r"\\[dt]?frac\{([^{}]*)\}\{([^{}]*)\}")
COMMAND = re.compile(r"\\([A-Za-z]+) ?")


def plain(text: str) -> str:
    """Formulas as a terminal can show them: TeX's commands as signs, without dollars."""
    text = BRACED.sub(r"\1", text)
    text = FRACTION.sub(r"(\1) / (\2)", text)
    text = text.replace("\\,", " ").replace("\\!", "").replace("\\|", "|").replace("$", "")
    text = COMMAND.sub(lambda found: SIGNS.get(found[1], f"{found[1]} "), text)
    return text.replace("\\{", "{").replace("\\}", "}").replace("\\", "")
