"""Which model to deliver: the one that the last server round left, the last, the best, or an average.

    python benchmarks/deliver.py                    # needs MNIST (SAFARI_DATA); also writes docs/delivery.md
    python benchmarks/deliver.py --only hospitals   # measures these settings again, and keeps the others
    python benchmarks/deliver.py --page             # the page alone, from results/deliver.json

Every seed draws partition, server set, excluded clients and training. Under one seed all choices are made
on the same rounds, with one exception: the best is chosen on a fifth of the server's samples, on which the
server then does not train. What that alone costs is shown too. Nothing is chosen on the test set.
"""

import argparse
import dataclasses
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from datetime import date
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parent
EXAMPLES = FOLDER.parent / "examples"
RESULTS = FOLDER / "results" / "deliver.json"
PAGE = FOLDER.parent / "docs" / "delivery.md"
SEEDS = range(5)
HELD_OUT = 0.2
CHOICES = {
    "synced": "the model that the last server round left",
    "last": "the model after the last round",
    "average": "the average of the models that server rounds left",
    "best": "the best on held-out samples",
    "synced, held out": "as synced, but with the samples held out that the best needs",
}


def hospitals(folder):
    """The spec of examples/hospitals, its files written into `folder`."""
    from safari.experiment.spec import read_toml

    for name in ("make_data.py", "hospitals.toml"):
        shutil.copy(EXAMPLES / "hospitals" / name, folder)
    subprocess.run([sys.executable, folder / "make_data.py"], check=True)
    return read_toml(folder / "hospitals.toml")


def settings(folder):
    """What is measured: a label, a spec, and what it sets."""
    from safari.experiment.spec import read_toml

    yield "digits", read_toml(EXAMPLES / "digits.toml"), {}
    for samples in (50, 100, 500, 1000):
        spec = read_toml(EXAMPLES / "mnist.toml")
        yield f"MNIST, {samples} server samples", spec, {"data.server.samples": samples}
    for rounds in (30, 60, 100, 200):
        yield f"hospitals, {rounds} rounds", hospitals(folder), {"train.rounds": rounds}


def trained(base, given, seed):
    """A finished run."""
    from safari.engine import Training
    from safari.experiment.spec import complete, set_key

    spec = base
    seeds = dict.fromkeys(("train.seed", "data.seed"), seed)
    if not isinstance(base["participation"]["excluded"], list):
        seeds["participation.seed"] = seed
    for key, value in {**given, **seeds}.items():
        spec = set_key(spec, key.split("."), value)
    training = Training(complete(spec).prepare())
    while not training.finished:
        training.advance()
    return training.run.task.federation.dataset, training.result()


def scores(dataset, result, params):
    """Accuracy and balanced accuracy on the test set, in percent."""
    model = dataclasses.replace(result.model, params=params)
    y = np.asarray(dataset.y_test)
    x = np.asarray(dataset.x_test).reshape(len(y), *dataset.shape)
    right = np.argmax(model.predict_proba(x), axis=1) == y
    recall = [right[y == label].mean() for label in np.unique(y)]
    return {"accuracy": 100 * float(right.mean()), "balanced_accuracy": 100 * float(np.mean(recall))}


def measured(base, given, seed):
    """The scores of every choice under one seed. Only the best is looked for in every round."""
    held_out = {"data.validation": HELD_OUT}
    rounds = given.get("train.rounds", base["train"]["rounds"])
    given = {**given, "train.evaluate_every": rounds}
    data, synced = trained(base, given, seed)
    found = {"synced": scores(data, synced, synced.params), "last": scores(data, synced, synced.params_last)}
    data, average = trained(base, {**given, "train.deliver": "average"}, seed)
    found["average"] = scores(data, average, average.params)
    data, best = trained(
        base, {**given, **held_out, "train.deliver": "best", "train.evaluate_every": 1}, seed
    )
    found["best"] = scores(data, best, best.params)
    data, plain = trained(base, {**given, **held_out}, seed)
    found["synced, held out"] = scores(data, plain, plain.params)
    return found


def measure(only):
    known = json.loads(RESULTS.read_text())["rows"] if only else []
    rows = [row for row in known if not row["setting"].startswith(only)]
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=FOLDER
    ).stdout.strip()
    made = {
        "command": "python benchmarks/deliver.py",
        "date": date.today().isoformat(),
        "machine": f"{platform.machine()}, {platform.system()}, {len(os.sched_getaffinity(0))} cores",
        "held_out": HELD_OUT,
    }
    with tempfile.TemporaryDirectory() as folder:
        for label, base, given in settings(Path(folder)):
            for seed in SEEDS if label.startswith(only) else ():
                found = measured(base, given, seed)
                rows.append({"setting": label, "seed": seed, "commit": commit, "scores": found})
                shown = {name: round(one["accuracy"], 1) for name, one in found.items()}
                print(label, seed, shown, flush=True)
                RESULTS.write_text(json.dumps({"rows": rows, **made}, indent=1) + "\n")


def table(rows, metric):
    """A row a setting: the mean of `synced`, and of each other choice the paired difference to it."""
    from safari.report.statistics import estimate

    others = [name for name in CHOICES if name != "synced"]
    yield f"| setting | synced | {' | '.join(others)} |"
    yield "|---" * (len(CHOICES) + 1) + "|"
    for label in dict.fromkeys(row["setting"] for row in rows):
        mine = [row["scores"] for row in rows if row["setting"] == label]
        cells = [f"{np.mean([one['synced'][metric] for one in mine]):.1f}"]
        for name in others:
            found = estimate([one[name][metric] - one["synced"][metric] for one in mine])
            text = f"{found.mean:+.1f} ({found.low:+.1f} to {found.high:+.1f})"
            cells.append(text if found.low <= 0 <= found.high else f"**{text}**")
        yield f"| {label} | {' | '.join(cells)} |"


def page():
    made = json.loads(RESULTS.read_text())
    rows = made["rows"]
    commits = ", ".join(dict.fromkeys(row["commit"] for row in rows))
    lines = [
        "# Which model to deliver",
        "",
        f"`{made['command']}`, commit {commits}, {made['date']}, {made['machine']}.",
        "The numbers are in `benchmarks/results/deliver.json`.",
        "",
        *(f"- **{name}**: {meaning}" for name, meaning in CHOICES.items()),
        "",
        f"{len(SEEDS)} seeds; each draws the partition, the server's samples, the clients that never take "
        "part, and the training; of the hospitals, all but the training is as in the files. `synced` is in "
        "percent; all others are differences to it in points, paired over the seeds, with the 95 % interval "
        "(Student's t). Bold: the interval does not hold 0; of so many intervals, about one in twenty would "
        "be bold by chance. The best is chosen on "
        f"{made['held_out']:.0%} of the server's samples, on which the server then does not train.",
    ]
    for metric, title in (("balanced_accuracy", "Balanced accuracy"), ("accuracy", "Accuracy")):
        lines += ["", f"## {title}", "", *table(rows, metric)]
    PAGE.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--page", action="store_true")
    parser.add_argument("--only", default="", help="measure the settings whose labels begin like this")
    asked = parser.parse_args()
    if not asked.page:
        measure(asked.only)
    page()
