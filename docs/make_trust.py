"""Writes docs/trust.md from benchmarks/results: python docs/make_trust.py"""

import json
from collections import Counter
from pathlib import Path
from typing import Any

PAGE = Path(__file__).with_name("trust.md")
RESULTS = PAGE.parents[1] / "benchmarks" / "results"
START = """# What was tried on purpose

The suite (`make test`) holds what safari promises. Attacks that take longer have a command of their own,
and their results are kept as data in `benchmarks/results`. `python docs/make_trust.py` writes this page
from that data.
"""
FUZZ = """
## Damaged directories

`make fuzz` makes runs, sweeps, comparisons, leagues, an advice and the state of a fleet's server, some of
them interrupted. In every trial it damages one file (cut, bits flipped, zeros, garbage, missing) and then
uses the directory. A command may do what it would have done, refuse in one line that names the place, or
name the damaged file beside what is left. A traceback or another result is a failure.

"""
MACHINE = """
## The machine says no

`make machine` carries out the commands where there is no room, no right, or no terminal. Each must end in
one line that names the path, with exit code 1 or 2, and leave no file half written. Once there is room, the
result must be the same.

"""
COMMANDS = """
Commands that were tried: {commands}.
"""
SIZES = """
{count} sizes that cannot be were refused before the start: {refused} of them in one line, within 5 s of the
processor and 1 GB. The slowest refusal took {processor seconds:.1f} s of the processor
({wall seconds:.1f} s by the clock on this machine, most of it imports), the largest {megabytes:.0f} MB.
"""
SIGNALS = """
## Signals

`make signals` starts every command and sends it one signal, from 0.05 to 7 seconds later. Promised are an
end within two seconds, the exit code of the signal (130, 143, 129; what the system ends before Python runs
says the same in a shell), no traceback, and no file half written.

"""
STARTING = """
Of the {not_as_promised} that ended otherwise, {of_these_while_python_started} were a Ctrl-C while Python
itself started. It then prints a `KeyboardInterrupt`, and a shell says 130, or 1 if Python was just
importing `site`. safari cannot change this: a command looks after signals once {whole:.0f} ms of the
processor are over: {python:.0f} ms for Python, {site:.0f} ms for the packages beside it, {script:.0f} ms
for the script that pip writes, {ours:.0f} ms for safari. By the clock it can be 0.1 s where the machine is
busy.
"""
MUTANTS = """
## Tests that notice

`make mutants` makes the code wrong in one place at a time, and carries out the tests that must then fail.

"""


def trust() -> str:
    """The page; what has no results yet is left out."""
    parts = {"fuzz": fuzz, "machine": machine, "signals": signals, "mutants": mutants}
    there = [part() for name, part in parts.items() if (RESULTS / f"{name}.json").is_file()]
    return "".join([START, *there])


def read(name: str) -> dict[str, Any]:
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def table(*rows: tuple[object, ...]) -> str:
    head, *rest = ["| " + " | ".join(map(str, row)) + " |\n" for row in rows]
    return "".join([head, "|---" * len(rows[0]) + "|\n", *rest])


def source(made: dict[str, str], load: list[float]) -> str:
    """Where figures come from, in a line."""
    busy = f", load {load[0]:.1f}" if load else ""
    return f"\n(`{made['command']}`, commit {made['commit']}, {made['date'][:10]}, {made['machine']}{busy})\n"


def fuzz() -> str:
    parts = read("fuzz")
    kinds = ["same", "refused", "said to be missing", "said to be damaged", "FAILED"]
    head = (
        "directory", "what was done then", "the same result", "refused in one line",
        "a run said to be missing", "a file said to be damaged", "failed",
    )  # fmt: skip
    rows = []
    for place, found in parts.items():
        counts: dict[str, Counter[str]] = {}
        for name, count in found["outcomes"].items():
            use, outcome = name.partition(": ")[::2]
            counts.setdefault(use, Counter())["FAILED" if "FAILED" in outcome else outcome] += count
        rows += [
            (place, f"`{use}`", *(of_use[kind] for kind in kinds)) for use, of_use in sorted(counts.items())
        ]
    trials = sum(found["trials"] for found in parts.values())
    totals = Counter()
    for found in parts.values():
        totals.update(found["totals"])
    said = (
        f"\n{trials:,} trials: {totals['traceback']} tracebacks, "
        f"{totals['another result']} different results.\n"
    )
    return FUZZ + table(head, *rows) + said + "".join(dict.fromkeys(made_of(one) for one in parts.values()))


def made_of(found: dict[str, Any]) -> str:
    """Where a part's figures come from; how busy the machine was changes nothing."""
    return source(found["made"], [])


def machine() -> str:
    parts = read("machine")
    rows, notes = [("what was in the way", "ended well", "failed")], []
    for found in parts.values():
        counts: dict[str, Counter[str]] = {}
        for name, count in found["counts"].items():
            what, _, how = name.rpartition(": ")
            counts.setdefault(what, Counter())[how] += count
        rows += [(what, of_what["well"], of_what["failed"]) for what, of_what in counts.items()]
        notes.append(source(found["made"], found["load"]))
    words = {word for found in parts.values() for word in found.get("commands", ())}
    tried = COMMANDS.format(commands=", ".join(f"`{word}`" for word in sorted(words)))
    sizes = parts["sizes"]
    count, most = sizes["trials"], sizes["the most that one took"]
    took = SIZES.format(count=count, refused=count - sizes["failed"], **most)
    return MACHINE + table(*rows) + tried + took + "".join(notes)


def signals() -> str:
    found = read("signals")
    about, trials = found["about"], found["trials"]
    rows = []
    for command in dict.fromkeys(one["command"] for one in trials):
        mine = [one for one in trials if one["command"] == command]
        promised = sum(one["as_promised"] for one in mine)
        longest = max(one["seconds"] for one in mine if not one["done_before"])
        rows.append((f"`{command}`", len(mine), promised, f"{longest:.2f}"))
    head = ("command", "trials", "as promised", "longest, in seconds")
    python, site, script, whole = about["milliseconds_of_the_processor_until"].values()
    parts = {"python": python, "site": site - python, "script": script - site, "ours": whole - script}
    said = STARTING.format(**about, **parts, whole=whole) if about["not_as_promised"] else ""
    return SIGNALS + table(head, *rows) + said + source(found["made"], about.get("load", []))


def mutants() -> str:
    found = read("mutants")
    rooms: dict[str, Counter[str]] = {}
    for one in found["mutants"]:
        room = one["file"].removeprefix("src/safari/").partition("/")[0]
        rooms.setdefault(room, Counter())[one["verdict"]] += 1
    rows = [(f"`{room}`", of_room.total(), of_room["killed"]) for room, of_room in sorted(rooms.items())]
    about = found["about"]
    commits = sorted({one["commit"] for one in found["mutants"]})
    dates = sorted({one["date"] for one in found["mutants"] if "date" in one})
    tried = about["tried"]
    rest = f"; {about['mutants'] - tried} were not tried" if tried < about["mutants"] else ""
    said = f"\n{about['killed']} of {tried} that were tried are noticed{rest}. "
    survivors = [f"`{name}` is not: {reason}. " for name, reason in found["survivors"].items()]
    made = f"(`{about['command']}`, commits {', '.join(commits)}, to {dates[-1]}, {about['machine']})\n"
    return MUTANTS + table(("room", "mutants", "noticed"), *rows) + said + "".join(survivors) + made


if __name__ == "__main__":
    PAGE.write_text(trust(), encoding="utf-8")
