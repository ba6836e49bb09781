"""Works timed in turn, so that what disturbs a busy machine disturbs them all."""

import time
from collections.abc import Callable, Mapping
from typing import Any

import jax

Work = Callable[[], Any]


def seconds_in_turn(works: Mapping[str, Work], repeats: int) -> dict[str, list[float]]:
    """The seconds of each work, repetition by repetition; one more before them warms up."""
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for repeat in range(repeats + 1):
        for name, work in works.items():
            began = time.perf_counter()
            jax.block_until_ready(work())
            if repeat:
                seconds[name].append(time.perf_counter() - began)
    return seconds
