"""Where a step of the CIFAR-10 network goes on a GPU: python benchmarks/gpu_profile.py (needs a GPU)

The network on random images, bfloat16, as benchmarks/gpu.py trains it: the kernels of one round by
kind, in microseconds a step (a kernel may run beside another, so they need not add up to the step);
then the rate with its layers done in other ways. Writes benchmarks/results/gpu-profile.json.
"""

import gzip
import json
import re
import tempfile
from collections import Counter
from pathlib import Path

import jax
from gpu import CIFAR_ROUNDS, check_for_a_gpu, cifar_run, random_images, rate, timed

from safari.engine import start
from safari.engine.program import Program
from safari.experiment.versions import provenance
from safari.models import cnn
from safari.models.cnn import pooled_layer
from safari.models.convolution import by_blocks, by_library, halve, on_gpu

RESULT = Path(__file__).parent / "results" / "gpu-profile.json"
STEPS = 5 * 10
KINDS = {
    "layers by safari's kernels": "^(forward|backward|kernel)[12]$",
    "the library's convolutions": "fprop|dgrad|wgrad|convolution|cudnn",
    "dense products": "gemm|nvjet|cublas|cutlass",
    "copies": "memcpy|memset",
}


def rectified(way):
    """A layer whose convolution and pooling go that way."""
    return lambda x, kernel, bias: jax.nn.relu(way(x, kernel) + bias)


def in_the_first(x, kernel):
    return on_gpu(x, kernel) if x.shape[3] == 3 else halve(by_library(x, kernel))


WAYS = {
    "as safari does it": pooled_layer,
    "the library's, over blocks": rectified(on_gpu),
    "the library's, then pooling": rectified(lambda *both: halve(by_library(*both))),
    "blocks in the first layer alone": rectified(in_the_first),
    "blocks in both, no empty channel": rectified(lambda *both: by_blocks(*both, by_library)),
}


def compiled(run, carry, way):
    cnn.pooled_layer = way
    try:
        return Program(run, carry, False)
    finally:
        cnn.pooled_layer = pooled_layer


def kernels(program, run, carry):
    """Microseconds of every kernel in one round, by name."""
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            program(run, carry, 1, 1)
        (path,) = Path(folder).rglob("*.trace.json.gz")
        events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    names = {event["pid"]: event["args"]["name"] for event in events if event.get("name") == "process_name"}
    found = Counter()
    for event in events:
        if event.get("ph") == "X" and "GPU" in names.get(event["pid"], ""):
            found[event["name"]] += event["dur"]
    return found


def kind(name):
    return next((kind for kind, words in KINDS.items() if re.search(words, name.lower())), "everything else")


def main():
    check_for_a_gpu()
    run = cifar_run(random_images(), "bfloat16")
    carry, rates, by_kind = start(run), {}, Counter()
    for name, way in WAYS.items():
        program = compiled(run, carry, way)
        seconds, _ = timed(program, run, carry, CIFAR_ROUNDS)
        rates[name] = rate(CIFAR_ROUNDS, seconds)
        print(f"{name}: {rates[name]:.0f} TFLOP/s", flush=True)
        if way is pooled_layer:
            step = seconds / CIFAR_ROUNDS / STEPS * 1e6
            found = kernels(program, run, carry)
    for name, took in found.items():
        by_kind[kind(name)] += took / STEPS
    longest = {name[:100]: took / STEPS for name, took in found.most_common(30)}
    for name, took in [*by_kind.most_common(), *longest.items()]:
        print(f"{took:8.1f} microseconds a step: {name}")
    made = {**provenance(), "command": "python benchmarks/gpu_profile.py"}
    result = {"microseconds_a_step": step, "by_kind": by_kind, "longest": longest, "tera_operations": rates}
    RESULT.write_text(json.dumps({**result, "made": made}, indent=1) + "\n")


if __name__ == "__main__":
    main()
