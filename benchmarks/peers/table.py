"""From measurements to medians, ratios, what does not agree, and a table."""

import statistics
from dataclasses import asdict

from jobs import Job

START_TOLERANCE = 1e-4
NUMBERS = ("seconds", "seconds_with_compilation", "peak_megabytes", "accuracy")
HEAD = ("contestant", "version", "seconds", "with compilation", "times safari", "peak MB", "accuracy")


def brief(one: dict) -> str:
    if "failed" in one:
        return f"failed: {one['failed']}"
    return f"{one['seconds']:.2f} s of {one['process_seconds']:.0f} s ({one['setting']})"


def entry(job: Job, found: dict[str, list[dict]], missing: dict[str, str]) -> dict:
    """All that is kept of a job: settings, medians, every single measurement, problems."""
    contestants = {}
    for name, runs in found.items():
        done = [per_run(job, one) for one in runs if "failed" not in one]
        contestants[name] = {"runs": runs}
        if done:
            settings = sorted({one["setting"] for one in done})
            contestants[name] |= {"version": done[0]["version"], "settings": settings}
            contestants[name]["medians"] = {
                key: statistics.median(one[key] for one in done) for key in NUMBERS
            }
            contestants[name]["times_safari"] = ratio(runs, found.get("safari", []))
    return {
        "job": asdict(job),
        "unit": "seconds a run" if job.runs > 1 else "seconds",
        "contestants": contestants,
        "missing": missing,
        "problems": problems(job, found, contestants),
    }


def floor(runs: list[dict], ours: list[dict]) -> dict:
    """What the job cannot take less than, and safari's seconds in units of it."""
    over = ratio(ours, runs)
    if over is None:
        return {}
    seconds = statistics.median(one["seconds"] for one in runs if "failed" not in one)
    return {"floor": {"seconds": seconds, "safari_over_floor": over, "runs": runs}}


def per_run(job: Job, one: dict) -> dict:
    """Seconds for one run; what compiling took is shared by all runs that the job asks for."""
    each = one["seconds"] / one["runs"]
    compiling = (one["seconds_with_compilation"] - one["seconds"]) / job.runs
    return {**one, "seconds": each, "seconds_with_compilation": each + compiling}


def ratio(runs: list[dict], ours: list[dict]) -> float | None:
    """The median over repetitions of `runs`' seconds a run, in units of those of `ours`."""
    pairs = [
        their["seconds"] / their["runs"] / (our["seconds"] / our["runs"])
        for their, our in zip(runs, ours, strict=False)
        if "failed" not in their and "failed" not in our
    ]
    return statistics.median(pairs) if pairs else None


def problems(job: Job, found: dict[str, list[dict]], contestants: dict[str, dict]) -> list[str]:
    """Contestants that failed, another start than the first one's, accuracies too far apart."""
    said = [
        f"{name} failed: {one['failed']}" for name, runs in found.items() for one in runs if "failed" in one
    ]
    done = {name: one for name, runs in found.items() for one in runs if "failed" not in one}
    for name, one in done.items():
        first = next(iter(done.values()))
        pairs = zip(
            [one["start_loss"], *one["start_logits"]],
            [first["start_loss"], *first["start_logits"]],
            strict=True,
        )
        off = max(abs(a - b) for a, b in pairs)
        if not off <= START_TOLERANCE:
            said.append(f"{name} starts elsewhere: logits or loss are {off:.2g} off")
    accuracies = {name: one["medians"]["accuracy"] for name, one in contestants.items() if "medians" in one}
    if accuracies and not max(accuracies.values()) - min(accuracies.values()) <= job.accuracy_tolerance:
        listed = ", ".join(f"{name} {value:.4f}" for name, value in accuracies.items())
        said.append(f"accuracies are more than {job.accuracy_tolerance} apart: {listed}")
    return said


def text(job: Job, entry: dict) -> str:
    rows = [HEAD]
    for name, one in entry["contestants"].items():
        if "medians" not in one:
            rows.append((name, "", "failed", "", "", "", ""))
            continue
        seconds, compiled, peak, accuracy = (one["medians"][key] for key in NUMBERS)
        times = "" if one["times_safari"] is None else f"{one['times_safari']:.2f}"
        shown = f"{seconds:.2f}", f"{compiled:.2f}", times, f"{peak:.0f}", f"{accuracy:.4f}"
        rows.append((name, one["version"], *shown))
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEAD))]
    lines = [
        "  ".join(cell.ljust(width) if place < 2 else cell.rjust(width) for place, (cell, width) in cells)
        for cells in (enumerate(zip(row, widths, strict=True)) for row in rows)
    ]
    a_round = f"{job.per_round} a round, batches of {job.batch}, {job.rounds} rounds"
    title = f"\njob {job.letter}: {job.title}, {a_round}; {entry['unit']}"
    if "floor" in entry:
        floor = entry["floor"]
        setting = floor["runs"][0]["setting"]
        lines.append(
            f"floor, products by BLAS and one copy of the batches: {floor['seconds']:.2f} s ({setting}); "
            f"safari takes {floor['safari_over_floor']:.2f} times that"
        )
    absent = [f"{name}: {why}" for name, why in entry["missing"].items()]
    return "\n".join([title, *lines, *absent, *(f"PROBLEM {one}" for one in entry["problems"]), ""])
