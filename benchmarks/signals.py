"""How every command ends when one signal is sent at many moments: python benchmarks/signals.py

A process each: the command is started, a signal is sent after so many seconds, and the exit code, the
seconds until it had ended and what it said last are noted; hidden files that it left are counted. A
command that was done before its moment is noted with its own exit code. Before Python has started, the
system ends it by the signal itself (-15 for SIGTERM; a shell says 143). While Python starts, a SIGINT ends in
Python's own KeyboardInterrupt, before safari can look after signals: a shell says 130, or 1 if Python was
just importing `site`, and there is a traceback. Such a trial counts as not as promised, and apart. How long
that is, is measured in the processor's time: on a busy machine it takes longer by the clock; `--start-up`
measures this alone, and keeps the trials.
Needs MNIST for `reproduce`.
Writes benchmarks/results/signals.json; exits with an error if any other ended otherwise than promised.
"""

import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from safari.experiment.versions import provenance

ROOT = Path(__file__).parents[1]
RESULT = ROOT / "benchmarks" / "results" / "signals.json"
SPEC = ROOT / "examples" / "digits.toml"
MOMENTS = (0.05, 0.1, 0.2, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0)
FEW = (0.1, 1.0, 3.0, 6.0)
PROMISED = 2.0
COMMANDS = {
    "run": ["run", "spec.toml", "train.rounds=1000000", "--out", "out"],
    "run, a network": ["run", "spec.toml", "model={name='cnn'}", "train.rounds=1000000", "--out", "out"],
    "sweep": ["sweep", "spec.toml", "sweep.seeds=4", "train.rounds=1000000", "--out", "out"],
    "compare": ["compare", "spec.toml", "train.rounds=1000000", "--out", "out"],
    "advise": ["advise", "spec.toml", "--out", "out"],
    "reproduce": ["reproduce", "mnist", "--out", "out"],
    "report": ["report", "done"],
}
SENT = {
    signal.SIGINT: MOMENTS,
    **{getattr(signal, name): FEW for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)},
}


STARTS = 25
STARTED = "import time; print(time.process_time())"
UNTIL = {
    "Python itself, without `site`": ["-S", "-E", "-c", STARTED],
    "Python, and the packages that are installed": ["-c", STARTED],
    "and what pip writes into a console script": ["-c", f"import re, sys; {STARTED}"],
    "and safari, until signals are looked after": [
        "-c",
        "import re, sys; from safari.cli import main, signals; signals.end_at_once(); " + STARTED,
    ],
}
"""What has run by when."""


def start_up() -> dict[str, float]:
    """Milliseconds of the processor until each point of a command's start, medians; interleaved."""
    took: dict[str, list[float]] = {name: [] for name in UNTIL}
    for _ in range(STARTS):
        for name, words in UNTIL.items():
            done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=True)
            took[name].append(1000 * float(done.stdout))
    return {name: round(statistics.median(each), 1) for name, each in took.items()}


def safari(*words: str) -> list[str]:
    return [str(Path(sys.executable).with_name("safari")), *words]


def tried(words: list[str], number: signal.Signals, moment: float, folder: Path) -> dict:
    """One process, one signal."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache")}
    process = subprocess.Popen(
        safari(*words), cwd=folder, env=environment, text=True, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )  # fmt: skip
    time.sleep(moment)
    done = process.poll() is not None
    began = time.perf_counter()
    process.send_signal(number)
    said = process.communicate()[1].splitlines()
    took = time.perf_counter() - began
    hidden = [str(path.relative_to(folder)) for path in folder.rglob(".*") if "cache" not in path.parts]
    fair = process.returncode in (128 + number, -number) and took < PROMISED
    kept = not hidden and "Traceback" not in " ".join(said)
    return {
        "moment": moment,
        "done_before": done,
        "exit_code": process.returncode,
        "seconds": round(took, 2),
        "said": said[-1] if said else "",
        "hidden_files": hidden,
        "as_promised": kept and (fair or (done and process.returncode == 0)),
    }


def while_python_started(one: dict) -> bool:
    """Whether it was Python that ended at a Ctrl-C: by the signal, or with 1 while it imported `site`."""
    return one["said"] == "KeyboardInterrupt" and one["exit_code"] in (-signal.SIGINT, 1)


def measure_the_start() -> None:
    """What the trials found stays; how long the start takes is measured anew."""
    kept = json.loads(RESULT.read_text(encoding="utf-8"))
    broken = [one for one in kept["trials"] if not one["as_promised"]]
    kept["about"] |= {
        "of_these_while_python_started": sum(map(while_python_started, broken)),
        "milliseconds_of_the_processor_until": start_up(),
    }
    RESULT.write_text(json.dumps(kept, indent=1) + "\n")
    print(kept["about"])


def prepare(folder: Path, done: Path) -> None:
    (folder / "spec.toml").write_bytes(SPEC.read_bytes())
    (folder / "done").symlink_to(done)


def main() -> None:
    found = []
    with tempfile.TemporaryDirectory() as top:
        finished = Path(top) / "finished"
        subprocess.run(safari("run", str(SPEC), "--out", str(finished), "--quiet"), check=True)
        for name, words in COMMANDS.items():
            for number, moments in SENT.items():
                for moment in moments:
                    with tempfile.TemporaryDirectory(dir=top) as folder:
                        prepare(Path(folder), finished)
                        one = tried(words, number, moment, Path(folder))
                    found.append({"command": name, "signal": number.name, **one})
                    print("ok" if one["as_promised"] else "NO", name, number.name, one, flush=True)
    broken = [one for one in found if not one["as_promised"]]
    stopped = [one["seconds"] for one in found if not one["done_before"]]
    about = {
        "trials": len(found),
        "not_as_promised": len(broken),
        "of_these_while_python_started": sum(while_python_started(one) for one in broken),
        "milliseconds_of_the_processor_until": start_up(),
        "longest_seconds": max(stopped),
        "load": os.getloadavg(),
    }
    made = {**provenance(), "command": "python benchmarks/signals.py"}
    RESULT.write_text(json.dumps({"about": about, "trials": found, "made": made}, indent=1) + "\n")
    print(about)
    sys.exit(0 if all(while_python_started(one) for one in broken) else 1)


if __name__ == "__main__":
    measure_the_start() if sys.argv[1:] == ["--start-up"] else main()
