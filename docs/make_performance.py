"""Writes the measured tables into docs/performance.md: python docs/make_performance.py

Every `<!-- table: NAME -->` is followed by a table made of benchmarks/results; NAME says of what.
"""

import json
import re
import statistics
from functools import partial
from pathlib import Path

FOLDER = Path(__file__).parent
PAGE, RESULTS = FOLDER / "performance.md", FOLDER.parent / "benchmarks" / "results"
TABLE = re.compile(r"<!-- table: (?P<name>.+?) -->.*?<!-- end of table -->", re.DOTALL)


def result(name):
    return json.loads((RESULTS / f"{name}.json").read_text())


def table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def made(facts):
    return f"`{facts['command']}`, commit {facts['commit']}, {facts['date'][:10]}, {facts['machine']}."


def spread(one):
    """The smallest and the largest of a contestant's seconds a run."""
    seconds = [run["seconds"] / run["runs"] for run in one["runs"] if "failed" not in run]
    return f"{min(seconds):.2f} to {max(seconds):.2f}"


def peers(letter):
    entry = result("peers").get(letter)
    if entry is None:
        return "Not measured yet."
    rows = []
    for name, one in entry["contestants"].items():
        if "medians" not in one:
            rows.append([name, "", "failed", "", "", "", ""])
            continue
        median = one["medians"]
        rows.append(
            [
                f"{name} {one['version']}",
                " or ".join(setting.replace(", ", "; ") for setting in one["settings"]),
                f"{median['seconds']:.2f} ({spread(one)})",
                f"{median['seconds_with_compilation']:.2f}",
                "" if one["times_safari"] is None else f"{one['times_safari']:.1f}",
                f"{median['peak_megabytes']:.0f}",
                f"{100 * median['accuracy']:.1f}",
            ]
        )
    head = ["", "setting", entry["unit"], "with compilation", "times safari", "peak MB", "accuracy"]
    repetitions = max(len(one["runs"]) for one in entry["contestants"].values())
    machine = entry["machine"]
    facts = {**entry, "machine": f"{machine['cpu']}, {machine['cores']} cores"}
    said = [table(head, rows), "", f"Medians of {repetitions}. {made(facts)}"]
    for name, one in entry["contestants"].items():
        failed = sum("failed" in run for run in one["runs"])
        said += [f"{name} failed in {failed} of {repetitions} repetitions."] if failed else []
    said += [f"{name} is missing: {why}." for name, why in entry["missing"].items()]
    if "floor" in entry:
        floor = entry["floor"]
        said.append(
            f"The floor is {floor['seconds']:.2f} s ({floor['runs'][0]['setting']}); "
            f"safari takes {floor['safari_over_floor']:.2f} times that."
        )
    return "\n".join(said)


def gpu():
    found = result("gpu")
    mnist, network = found["mnist"], found["cifar10"]["bfloat16"]
    beside = found["side_by_side"]["tera_operations_a_second"]
    accuracy = {
        kind: f"{100 * statistics.mean(values):.2f} ± {100 * statistics.stdev(values):.2f}"
        for kind, values in found["cifar10_accuracy"].items()
        if kind != "rounds"
    }
    rows = [
        ["MNIST, one run of 150 rounds", f"{mnist['one_run_seconds']:.3f} s"],
        ["MNIST, 240 runs of 150 rounds", f"{mnist['240_runs_seconds']:.2f} s"],
        ["CIFAR-10 network, one run, bfloat16", f"{network['tera_operations_a_second']:.0f} TFLOP/s"],
        *(
            [f"the same, {count} processes", f"{rate:.0f} TFLOP/s"]
            for count, rate in beside.items()
            if count != "1"
        ),
        *([f"its accuracy after 200 rounds, {kind}", value] for kind, value in accuracy.items()),
    ]
    return table(["", "measured"], rows) + f"\n\n{made(found['made'])}"


def scale():
    found = result("scale")
    rows = [
        [f"{row['clients']:,}", f"{1000 * row['seconds_a_round']:.2f} ms", f"{row['peak_megabytes']:.0f} MB"]
        for row in found["rows"]
    ]
    return table(["clients", "a round", "peak memory"], rows) + f"\n\n{made(found['made'])}"


def step():
    found = result("step")
    rows = [[name, f"{value:.1f}"] for name, value in found["microseconds_a_step"].items()]
    return table(["", "microseconds a step"], rows) + f"\n\n{made(found['made'])}"


def startup():
    found = result("startup")
    rows = [
        [name, f"{one['first']:.2f}", f"{one['again']:.2f}"]
        for name, one in found["seconds_to_first_round"].items()
    ]
    head = ["`safari run`", "first start, seconds", "again, seconds (median)"]
    return table(head, rows) + f"\n\n{made(found['made'])}"


def alternatives(model):
    found = result("alternatives")
    rows = [
        [name, f"{one['microseconds_a_step']:,.0f}", f"{one['times']:.2f}"]
        for name, one in found["ways"][model].items()
    ]
    return table(["", "microseconds a step", "times safari's"], rows) + f"\n\n{made(found['made'])}"


def gpu_profile():
    found = result("gpu-profile")
    kinds = sorted(found["by_kind"].items(), key=lambda pair: -pair[1])
    rows = [["a step", f"{found['microseconds_a_step']:.0f} microseconds"]]
    rows += [[f"of that, {kind}", f"{value:.0f} microseconds"] for kind, value in kinds]
    rows += [[f"rate, {way}", f"{value:.0f} TFLOP/s"] for way, value in found["tera_operations"].items()]
    return table(["", "measured"], rows) + f"\n\n{made(found['made'])}"


def ray():
    found = result("ray_cluster")
    runs = found["runs"]

    def same(key):
        return "the same numbers" if found[key] else "OTHER NUMBERS"

    rows = [
        [f"{runs} runs on {found['nodes']} nodes", same("equal_to_local")],
        [f"one node killed after {found['node_killed_after']} runs", same("equal_after_node_killed")],
        [
            f"the command killed after {found['driver_killed_after']} runs, then resumed",
            same("equal_after_driver_resumed"),
        ],
        ["training of one run on the cluster", f"{found['training_milliseconds_per_run']:.0f} ms"],
        ["overhead of a run on the cluster", f"{found['overhead_milliseconds_per_run_cluster']:.0f} ms"],
        ["overhead of a run in one process", f"{found['overhead_milliseconds_per_run_local']:.0f} ms"],
        ["a task of Ray's that does nothing", f"{found['empty_ray_task_milliseconds']:.1f} ms"],
    ]
    load = f"Load of the machine: {found['load'][0]:.1f}."
    return table(["", "measured"], rows) + f"\n\n{made(found['made'])} {load}"


TABLES = {"gpu": gpu, "gpu profile": gpu_profile, "scale": scale, "step": step, "startup": startup}
TABLES |= {"ray": ray}
TABLES |= {
    f"alternatives, {model}": partial(alternatives, model)
    for model in ("softmax regression", "convolutional network")
}


def render(text):
    def filled(match):
        name = match["name"]
        body = peers(name.removeprefix("job ")) if name.startswith("job ") else TABLES[name]()
        return f"<!-- table: {name} -->\n\n{body}\n\n<!-- end of table -->"

    return TABLE.sub(filled, text)


if __name__ == "__main__":
    PAGE.write_text(render(PAGE.read_text()))
