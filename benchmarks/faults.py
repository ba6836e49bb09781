"""What a fault costs a fleet of real processes: python benchmarks/faults.py (as root, with a C compiler)

A SuperLink and two SuperNodes on loopback (tests/fleet/naughty: a client pulls the model to its number, the
server to 9). After round 3 of 6 a fault strikes while round 4 is under way; then what died is started again
by the command that it was started with, and the run, where it died, by `flwr run`. Every fault has a fleet of
its own. Each row holds

saved      the last round that was in the checkpoint when the fault struck
resumed    the rounds after which it went on, one for each `flwr run` that was needed
lost       saved rounds that had to be done again
short      client rounds without all nodes; replaced: those without any, in which the server trained
seconds    from the fault, repairs included, until the next round was over
equal      whether the model after the last round is that of the undisturbed run, bit for bit
follows    whether it is what the log says: the average of those who answered, round by round
said       what the log says of the fault
"""

import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "fleet"))

import numpy as np  # noqa: E402
import polars as pl  # noqa: E402
from fleet_processes import BIN, NAUGHTY, Fleet, Started, deployed, environment, wait_for  # noqa: E402
from safetensors.numpy import load_file  # noqa: E402

from safari.experiment.versions import provenance  # noqa: E402

ROUNDS, STRUCK = 6, 3
NODES = ("7", "8")
CONFIG = {"q": 0.7, "goal": 9.0, "deadline": 120.0}
RESULT = ROOT / "benchmarks" / "results" / "faults.json"
CLOCK = ROOT / "benchmarks" / "step_clock.c"
HOUR, SOON = 3600, 20
LINK, NODE, SERVER = "flower-superlink", "flower-supernode", "flwr-serverapp"


@dataclass
class Trial:
    """A run of the fleet into which a fault strikes."""

    fleet: Fleet
    state: Path
    run: subprocess.Popen | None = None
    logs: list[Path] = field(default_factory=list)
    found: list[int] = field(default_factory=list)

    def start(self) -> None:
        self.run = self.fleet.start(NAUGHTY, rounds=ROUNDS, checkpoint=str(self.state), **CONFIG)
        self.logs.append(self.fleet.log)

    def stop_following(self) -> None:
        """End the `flwr run` that follows a run which is no more."""
        assert self.run is not None
        self.run.kill()
        self.run.wait()

    def again(self) -> None:
        """`flwr run` once more, as an operator does, once the SuperLink answers."""
        self.stop_following()
        wait_for(self.answering, self.fleet.said)
        self.found.append(self.saved)
        self.start()

    def answering(self) -> bool:
        """On a busy machine a SuperLink listens before it answers."""
        home = {"FLWR_HOME": str(self.fleet.work / "flwr"), "FLWR_TELEMETRY_ENABLED": "0"}
        done = subprocess.run([BIN / "flwr", "list", "deploy"], env=environment(**home), capture_output=True)
        return done.returncode == 0

    def resumed(self) -> list[int]:
        """The rounds after which the runs went on that were started again; 0 if one began anew."""
        found = [re.search(r"going on after round (\d+)", log.read_text()) for log in self.logs[1:]]
        return [int(one.group(1)) if one else 0 for one in found]

    @property
    def saved(self) -> int:
        """The last round that is in the checkpoint, or in its journal."""
        return max(int(place.name[6:]) for place in (self.state / "checkpoint").glob("round-*"))


def start_again(trial: Trial, started: list[Started]) -> None:
    for number, one in enumerate(started):
        one.again(trial.fleet.work / "log" / f"again-{number}.log")


def none(trial: Trial) -> None:
    """No fault."""


def node(trial: Trial) -> None:
    start_again(trial, trial.fleet.kill(NODE, "partition-id=7 "))


def server_app(trial: Trial) -> None:
    trial.fleet.kill(SERVER)
    trial.again()


def superlink(trial: Trial) -> None:
    start_again(trial, trial.fleet.kill(LINK))
    trial.again()


def everything(trial: Trial) -> None:
    down = [*trial.fleet.kill(LINK), *trial.fleet.kill(NODE)]
    start_again(trial, down)
    trial.again()


def one_after_another(trial: Trial) -> None:
    """The node, then, a round later each, the ServerApp and the SuperLink."""
    node(trial)
    for fault in (server_app, superlink):
        wait_for_round(trial, trial.saved + 1)
        fault(trial)


def full_disk(trial: Trial) -> None:
    """The file system of the checkpoint fills up, and has room again once the run has ended."""
    ballast = trial.state / "ballast"
    with ballast.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            pass
    trial.fleet.wait_until("checkpoint = ")
    ballast.unlink()
    trial.again()


def truncated(trial: Trial) -> None:
    """The newest generation loses its end while the server is down."""
    trial.fleet.kill(SERVER)
    newest = max((trial.state / "checkpoint").glob("round-*")) / "state.safetensors"
    newest.write_bytes(newest.read_bytes()[:-9])
    trial.again()


def set_clock(trial: Trial, seconds: int) -> None:
    """Where the SuperLink ends the run over it, the operator starts the run again."""
    before = trial.saved
    assert trial.run is not None
    (trial.fleet.work.parent / "clock").write_text(str(seconds))
    wait_for(lambda: trial.saved > before or trial.run.poll() is not None, trial.fleet.said)
    if trial.saved == before:
        trial.again()


def clock_forward(trial: Trial) -> None:
    set_clock(trial, HOUR)


def clock_a_little_forward(trial: Trial) -> None:
    set_clock(trial, SOON)


def clock_back(trial: Trial) -> None:
    set_clock(trial, -HOUR)


def wait_for_round(trial: Trial, number: int) -> None:
    trial.fleet.wait_until(f"round {number} of {ROUNDS}")


def follows_its_log(state: Path, model: np.ndarray) -> bool:
    """Whether `model` is what those who answered, and the server, make of it round by round."""
    events = pl.read_parquet(state / "events.parquet").filter(pl.col("event") == "answered")
    w = np.zeros(3, np.float32)
    for row in pl.read_parquet(state / "metrics.parquet").iter_rows(named=True):
        answered = events.filter(pl.col("round") == row["round"])["name"].to_list()
        if row["kind"] == "client":
            w = np.mean([w + (np.float32(name) - w) / 2 for name in answered], axis=0, dtype=np.float32)
        elif row["kind"] == "server":
            w = w + np.float32(CONFIG["goal"] - w) / 2
    return bool(np.allclose(w, model, atol=1e-4))


def measured(trial: Trial, name: str, fault: Callable[[Trial], None]) -> tuple[dict, np.ndarray]:
    """The row of a fault, and the model after the last round."""
    trial.start()
    wait_for_round(trial, STRUCK)
    saved, began = trial.saved, time.monotonic()
    fault(trial)
    if fault is not none:
        wait_for(lambda: trial.saved > saved, trial.fleet.said)
    seconds = time.monotonic() - began
    assert trial.run is not None
    trial.fleet.finish(trial.run, trial.state)
    resumed = trial.resumed()
    log = "".join(file.read_text() for file in trial.logs)
    history = pl.read_parquet(trial.state / "metrics.parquet")
    assert history["round"].to_list() == list(range(1, ROUNDS + 1))
    last = trial.state / "checkpoint" / f"round-{ROUNDS:08d}"
    model = load_file(last / "state.safetensors")["model:w"]
    replaced = pl.read_parquet(trial.state / "events.parquet").filter(pl.col("event") == "replaced")
    short = history.filter((pl.col("kind") == "client") & (pl.col("reported").list.len() < len(NODES)))
    said = re.findall(r"(?:safari: round \d+: client .*|safari: \S*checkpoint.*|checkpoint = .*)", log)
    row = {
        "fault": name,
        "saved": saved,
        "resumed": resumed,
        "lost": sum(max(was - now, 0) for was, now in zip(trial.found, resumed, strict=True)),
        "short": len(short) + len(replaced),
        "replaced": len(replaced),
        "seconds": round(seconds, 1),
        "follows": follows_its_log(trial.state, model),
        "said": list(dict.fromkeys(line.replace(str(trial.state), "STATE") for line in said))[:4],
    }
    return row, model


FAULTS = {
    "none": none,
    "kill -9 of the ServerApp": server_app,
    "kill -9 of the SuperLink": superlink,
    "full disk": full_disk,
    "truncated checkpoint": truncated,
    "clock 20 seconds forward": clock_a_little_forward,
    "clock an hour forward": clock_forward,
    "clock an hour back": clock_back,
    "kill -9 of a node": node,
    "kill -9 of everything": everything,
    "one after another": one_after_another,
}


@contextlib.contextmanager
def small_disk(place: Path) -> Iterator[None]:
    """A file system of one megabyte at `place`."""
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", place], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", place], check=True)


def rows(names: Iterable[str], work: Path) -> Iterator[dict]:
    """A row for each fault, each on a fleet of its own whose wall clock can be set."""
    library, undisturbed = work / "clock.so", None
    subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", library, CLOCK, "-ldl"], check=True)
    for number, name in enumerate(names):
        place = work / str(number)
        state, clock = place / "state", place / "clock"
        place.mkdir()
        clock.write_text("0")
        faked = {"LD_PRELOAD": str(library), "STEP_CLOCK": str(clock)}
        disk = small_disk(state) if FAULTS[name] is full_disk else contextlib.nullcontext()
        with (
            deployed(NAUGHTY, place / "fleet", "--nodes", "10", "--only", " ".join(NODES), **faked) as fleet,
            disk,
        ):
            trial = Trial(fleet, state)
            try:
                row, model = measured(trial, name, FAULTS[name])
            except AssertionError as error:  # what was promised did not happen: that is a result
                trial.stop_following()
                yield {"fault": name, "failed": str(error)[-2000:]}
                continue
        undisturbed = model if undisturbed is None else undisturbed
        yield {**row, "equal": bool((model == undisturbed).all())}


def keep(row: dict) -> None:
    """Put a row in the place of what was measured of its fault before."""
    before = json.loads(RESULT.read_text())["rows"] if RESULT.exists() else []
    found = {one["fault"]: one for one in [*before, row]}
    kept = [found[fault] for fault in FAULTS if fault in found]
    RESULT.write_text(json.dumps({"rounds": ROUNDS, "rows": kept}, indent=1) + "\n")


def main(names: list[str]) -> None:
    with tempfile.TemporaryDirectory() as work:
        for row in rows(["none", *names] if names else FAULTS, Path(work)):
            made = provenance() | {"command": "python benchmarks/faults.py"}
            row |= {"load": round(os.getloadavg()[0], 1), "made": made}
            print(json.dumps(row), flush=True)
            keep(row)


if __name__ == "__main__":
    main(sys.argv[1:])
