"""The sizes part of `make machine`: what cannot be is refused in one line, in 5 seconds and 1 GB.

A process each, as a user would start it; the suite goes through the same cases in one process.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from machine.trials import Trials

SECONDS, MEGABYTES = 5.0, 1000
SPEC = """
[data.partition]
samples_per_client = 100
[participation]
excluded = 4
per_round = 5
[train]
rounds = 3
[sweep]
seeds = 2
"""
BILLION, BEYOND = "1000000000", "1000000000000000000000000"
FREE = "GB of memory are free"
MOST = "must be 2147483647 at the most"
IN_FLOAT32 = "must be from 1.2e-38 to 3.4e+38"
OPTAX = "must be an optimiser of optax that"

RUN = {
    "a layer": (f"model={{name='mlp',hidden=[{BILLION}]}}", "model", FREE),
    "a layer that cannot be counted": (f"model={{name='mlp',hidden=[{BEYOND}]}}", "model.hidden", MOST),
    "several layers": (
        "model={name='mlp',hidden=[2000000000,2000000000,2000000000]}",
        "model",
        FREE,
    ),
    "layers upon layers": (f"model={{name='mlp',hidden={[1] * 2000}}}", "model.hidden", "1000 layers"),
    "channels": (f"model={{name='cnn',channels=[{BILLION}]}}", "model", FREE),
    "channels of the second layer": (f"model={{name='cnn',channels=[8,{BILLION}]}}", "model", FREE),
    "the dense layer of a network": (f"model={{name='cnn',hidden={BILLION}}}", "model", FREE),
    "a kernel": (f"model={{name='cnn',kernel={BEYOND}}}", "model.kernel", MOST),
    "clients": (f"data.partition.clients={BILLION}", "data.partition.clients", "there are only"),
    "clients that cannot be counted": (f"data.partition.clients={BEYOND}", "data.partition.clients", MOST),
    "clients of a mixture each": (
        f"data.partition={{name='dirichlet',clients={BILLION}}}",
        "data.partition.clients",
        "there are only",
    ),
    "clients alike": (
        f"data.partition={{name='iid',clients={BILLION}}}",
        "data.partition.clients",
        "there are only",
    ),
    "samples": (f"data.partition.samples_per_client={BEYOND}", "data.partition.samples_per_client", MOST),
    "classes": (f"data.partition.classes_per_client={BEYOND}", "data.partition.classes_per_client", MOST),
    "server samples": (f"data.server.samples={BEYOND}", "data.server.samples", "has only"),
    "a batch": (f"algorithm.clients.batch_size={BEYOND}", "algorithm.clients.batch_size", MOST),
    "a server's batch": (f"algorithm.server.batch_size={BEYOND}", "algorithm.server.batch_size", MOST),
    "an adaptive q's batch": (
        f"algorithm.q={{name='adaptive',batch_size={BEYOND}}}",
        "algorithm.q.batch_size",
        MOST,
    ),
    "local epochs": (f"algorithm.clients.local_epochs={BILLION}", "algorithm.clients.local_epochs", FREE),
    "local steps": (f"algorithm.clients.local_steps={BILLION}", "algorithm.clients.local_steps", FREE),
    "local steps that cannot be counted": (
        f"algorithm.clients.local_steps={BEYOND}",
        "algorithm.clients.local_steps",
        MOST,
    ),
    "server steps": (f"algorithm.server.steps={BILLION}", "algorithm.server.steps", FREE),
    "rounds": ("train.rounds=2147483647", "train.rounds", FREE),
    "rounds that cannot be counted": (f"train.rounds={BEYOND}", "train.rounds", MOST),
    "rounds between scores": (f"train.evaluate_every={BEYOND}", "train.evaluate_every", MOST),
    "rounds of a group": (
        f"participation.availability={{name='cyclic',length={BEYOND}}}",
        "participation.availability.length",
        MOST,
    ),
    "groups": (
        f"participation.availability={{name='cyclic',groups={BILLION}}}",
        "participation.availability.groups",
        "there are only 10 clients",
    ),
    "a cohort": (f"participation.per_round={BEYOND}", "participation.per_round", MOST),
    "the excluded": (f"participation.excluded={BEYOND}", "participation.excluded", "leaves none"),
    "a day": (
        "participation.availability={name='diurnal',period=1e-300}",
        "participation.availability.period",
        IN_FLOAT32,
    ),
    "a rate that is 0": ("algorithm.clients.local_rate=1e-300", "algorithm.clients.local_rate", IN_FLOAT32),
    "a rate that is infinite": ("algorithm.server.rate=1e300", "algorithm.server.rate", IN_FLOAT32),
    "a global rate that is 0": (
        "algorithm.clients.global_rate=1e-300",
        "algorithm.clients.global_rate",
        IN_FLOAT32,
    ),
    "an infinite pull": (
        "algorithm.clients={name='fedprox',proximal=1e300}",
        "algorithm.clients.proximal",
        "at the most",
    ),
}
WANTS_MORE = {
    "lbfgs": "needs gradients alone",
    "polyak_sgd": "needs no more than a learning rate",
    "noisy_sgd": "draws nothing at random",
    "clip": "needs no more than a learning rate",
    "scale_by_adam": "needs no more than a learning rate",
    "GradientTransformation": "needs no more than a learning rate",
}
for optimiser, wanted in WANTS_MORE.items():
    given = f"algorithm.clients={{name='fedopt',optimizer='{optimiser}'}}"
    RUN[f"the optimiser {optimiser}"] = (given, "algorithm.clients.optimizer", f"{OPTAX} {wanted}")
ABSTRACT = {
    "model": ("model.name", "apply, init"),
    "algorithm.name": ("algorithm.name", "init, round"),
    "participation.availability": ("participation.availability.name", "step"),
    "data.partition": ("data.partition.name", "split"),
    "data.source": ("data.source", "load"),
}
for key, (named, missing) in ABSTRACT.items():
    noun = key.removesuffix(".name").rpartition(".")[2].capitalize()
    RUN[f"the base of all {noun}s"] = (f"{key}=safari:{noun}", named, f"leaves {missing} open")

COMMANDS = {
    "sweep, a layer in one cell": (
        ["sweep", "spec.toml", "model.name=mlp", f"sweep.grid.model.hidden=[[8],[{BILLION}]]"],
        "model",
        "(in the cell model.hidden",
    ),
    "sweep, seeds": (["sweep", "spec.toml", f"sweep.seeds={BILLION}"], "sweep.seeds", "at the most"),
    "sweep, the whole grid": (
        ["sweep", "spec.toml", "sweep.seeds=99999", "sweep.grid.algorithm.q=[0.1,0.2]"],
        "sweep",
        "100000 runs at the most",
    ),
    "compare, rounds": (["compare", "plain.toml", "train.rounds=2147483647"], "train.rounds", FREE),
    "compare, seeds": (["compare", "plain.toml", "--seeds", BILLION], "--seeds", "at the most"),
    "reproduce, seeds": (["reproduce", "mnist", "--seeds", BILLION], "--seeds", "at the most"),
    "advise, a layer": (["advise", "plain.toml", f"model={{name='mlp',hidden=[{BILLION}]}}"], "model", FREE),
}


def words(case: str) -> list[str]:
    """The command of a case."""
    return (
        ["run", "plain.toml", RUN[case][0], "--out", "made"]
        if case in RUN
        else [*COMMANDS[case][0], "--out", "made"]
    )


def write_specs(folder: Path) -> None:
    (folder / "spec.toml").write_text(SPEC)
    (folder / "plain.toml").write_text(SPEC.partition("[sweep]")[0])


def sizes(trials: Trials, ready: Path) -> None:
    """Carry out every case, and note what each took, and the most."""
    each = {}
    for case in (*RUN, *COMMANDS):
        key, allowed = (RUN[case] if case in RUN else COMMANDS[case])[1:]
        with tempfile.TemporaryDirectory() as folder:
            write_specs(Path(folder))
            before = sorted(os.listdir(folder))
            code, stderr, took = measured(words(case), Path(folder))
            left = sorted(set(os.listdir(folder)) - set(before))
        lines = stderr.splitlines()
        refused = len(lines) == 1 and lines[0].startswith(f"safari: {key} = ") and allowed in lines[0]
        problem = "" if code == 2 and refused and not left else f"exit code {code}, {lines[-3:]}, {left}"
        if took["processor seconds"] > SECONDS or took["megabytes"] > MEGABYTES:
            problem = f"took {took}"
        each[case] = took
        trials.note("a size that cannot be", case, problem)
    figures = ("wall seconds", "processor seconds", "megabytes")
    most = {name: max(took[name] for took in each.values()) for name in figures}
    trials.facts["the most that one took"] = most
    trials.facts["each"] = each


MEASURE = """
import json, os, subprocess, sys, time
began = time.monotonic()
child = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, used = os.wait4(child.pid, 0)
took = {
    "wall seconds": round(time.monotonic() - began, 2),
    "processor seconds": round(used.ru_utime + used.ru_stime, 2),
    "megabytes": round(used.ru_maxrss / 1024, 1),
}
print(json.dumps([os.waitstatus_to_exitcode(status), took]))
"""
"""A process counts the memory that its parent had when it began: this parent is small."""


def measured(arguments: list[str], folder: Path) -> tuple[int, str, dict[str, float]]:
    """The exit code of a command, what it said on stderr, and its seconds and memory."""
    command = [sys.executable, "-c", MEASURE, sys.executable, "-m", "safari", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    code, took = json.loads(done.stdout)
    return code, done.stderr, took
