"""What scoring the test set class by class costs: python benchmarks/evaluation.py BEFORE

BEFORE is a checkout of safari from before recall, precision and F1 were known in every round, for example
`git worktree add before 71896e3`. Both versions train job (a) of the peers (MNIST, softmax, ten clients of
6000, five a round, batches of 64), scored after every round and after the last alone. A process each stays
alive; they train in turn, so that whatever else the machine does meets both. Seconds are of training
without compilation. Those of the processor are of the whole call, and hardly know what else runs. Says
whether the parameters are equal bit for bit. Needs MNIST (SAFARI_DATA).
Writes benchmarks/results/evaluation.json.
"""

import hashlib
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
RESULT = ROOT / "benchmarks" / "results" / "evaluation.json"
ROUNDS, TRIALS = 60, 15
CASES = {"every round": 1, "last round alone": ROUNDS}


def worker() -> None:
    """Train on every line that comes in, which says how often to score."""
    import jax
    import numpy as np

    import safari

    federation = safari.federate("mnist", safari.IID(clients=10), safari.ServerSet(0))
    for line in sys.stdin:
        began = time.process_time()
        result = safari.train(
            federation,
            safari.FedAvg(local_rate=0.1, batch_size=64),
            participation=safari.Participation(per_round=5),
            rounds=ROUNDS,
            evaluate_every=int(line),
        )
        words = b"".join(np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(result.params))
        found = {
            "seconds": result.train_seconds,
            "cpu_seconds": time.process_time() - began,
            "parameters": hashlib.sha256(words).hexdigest(),
            "accuracy": result.accuracy,
        }
        print(json.dumps(found), flush=True)


def started(checkout: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(checkout / "src")}
    command = [sys.executable, __file__, "--worker"]
    return subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=checkout
    )


def asked(process: subprocess.Popen[str], every: int) -> dict[str, float | str]:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{every}\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline())


def main(before: Path) -> None:
    from safari.experiment.versions import provenance

    versions = {"before": started(before.resolve()), "after": started(ROOT)}
    found: dict[str, dict[str, list[dict]]] = {case: {name: [] for name in versions} for case in CASES}
    for trial in range(TRIALS + 1):
        for case, every in CASES.items():
            order = list(versions) if trial % 2 else list(reversed(versions))
            for name in order:
                one = asked(versions[name], every)
                if trial:  # the first compiles
                    found[case][name].append(one)
    for process in versions.values():
        process.communicate()
    about = {"command": "python benchmarks/evaluation.py BEFORE", "rounds": ROUNDS, "trials": TRIALS}
    cases = {case: _compared(both) for case, both in found.items()}
    RESULT.write_text(json.dumps({"about": provenance() | about, "cases": cases}, indent=1) + "\n")
    print(RESULT.read_text())


def _compared(both: dict[str, list[dict]]) -> dict[str, object]:
    seconds = {name: [one["seconds"] for one in runs] for name, runs in both.items()}
    cpu = {name: [one["cpu_seconds"] for one in runs] for name, runs in both.items()}
    everything = [one for runs in both.values() for one in runs]
    return {
        **{f"median_seconds_{name}": round(statistics.median(values), 4) for name, values in seconds.items()},
        **{f"least_seconds_{name}": round(min(values), 4) for name, values in seconds.items()},
        "median_ratio_after_to_before": _ratio(seconds),
        "median_ratio_of_cpu_seconds": _ratio(cpu),
        "parameters_equal": len({one["parameters"] for one in everything}) == 1,
        "accuracy_equal": len({one["accuracy"] for one in everything}) == 1,
    }


def _ratio(seconds: dict[str, list[float]]) -> float:
    pairs = zip(seconds["after"], seconds["before"], strict=True)
    return round(statistics.median(one / two for one, two in pairs), 4)


if __name__ == "__main__":
    worker() if sys.argv[1:] == ["--worker"] else main(Path(sys.argv[1]))
