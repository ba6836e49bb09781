"""How every command ends when one signal is sent at many moments: python benchmarks/signals.py

A process each: the command is started, a signal is sent after so many seconds, and the exit code, the
seconds until it had ended and what it said last are noted; hidden files that it left are counted. A
command that was done before its moment is noted with its own exit code. Before Python has started, the
system ends it by the signal itself (-15 for SIGTERM; a shell says 143), and while it starts (20 ms on a quiet
machine, 0.1 s on a busy one) a SIGINT ends in Python's own KeyboardInterrupt: such a trial counts as not as
promised. Needs MNIST for `reproduce`.
Writes benchmarks/results/signals.json; exits with an error if anything ended otherwise than promised.
"""

import json
import os
import signal
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
        "longest_seconds": max(stopped),
        "load": os.getloadavg(),
    }
    made = {**provenance(), "command": "python benchmarks/signals.py"}
    RESULT.write_text(json.dumps({"about": about, "trials": found, "made": made}, indent=1) + "\n")
    print(about)
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
