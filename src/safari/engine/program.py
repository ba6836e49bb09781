"""The compiled program: a stretch of rounds, of one run or of several side by side.

How many rounds is an argument of the program, so the numbers do not depend on where a run was
cut. Runs of equal shape share a program; stacked, they advance together.
"""

import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from threading import Lock
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from safari.devices import dividing_clients, on_each_device, on_gpu
from safari.engine.run import Carry, Record, Run, blank_record, one_round, start

MOST_ROUNDS = 64
"""The most rounds that one call of the compiled program can take."""

MOST_PROGRAMS = 64
"""How many compiled programs a process keeps; those used longest ago go first."""


def several_rounds(run: Run, carry: Carry, first: Array, count: Array) -> tuple[Carry, Record]:
    """Rounds `first` to `first + count - 1`; records beyond `count` are blank."""
    blank = jax.tree.map(lambda leaf: jnp.zeros((MOST_ROUNDS, *leaf.shape), leaf.dtype), blank_record(run))

    def body(offset: Array, now: tuple[Carry, Record]) -> tuple[Carry, Record]:
        carry, record = one_round(run, now[0], first + offset)
        return carry, jax.tree.map(lambda all_, one: all_.at[offset].set(one), now[1], record)

    return jax.lax.fori_loop(0, count, body, (carry, blank))


class Program:
    """The compiled `several_rounds` for runs of one shape."""

    def __init__(self, run: Run, carry: Carry, stacked: bool):
        began = time.perf_counter()
        where = _sharding(carry)
        dynamic, static = eqx.partition(run, eqx.is_array)
        axes = stacked_axes(dynamic)

        def single(dynamic: Run, carry: Carry, first: Array, count: Array) -> tuple[Carry, Record]:
            run = eqx.combine(dynamic, static)
            task = replace(run.task, stacked=stacked, devices=dividing_clients(where))
            return several_rounds(replace(run, task=task), carry, first, count)

        rounds = jax.vmap(single, in_axes=(axes, 0, None, None)) if stacked else single
        zero = jnp.int32(0)
        lowered = jax.jit(on_each_device(rounds, where)).lower(dynamic, carry, zero, zero)
        self.compiled = lowered.compile(compiler_options=_compiler_options(stacked))
        self.compile_seconds = time.perf_counter() - began

    def __call__(self, run: Run, carry: Carry, first: int, count: int) -> tuple[Carry, Record]:
        dynamic = eqx.filter(run, eqx.is_array)
        return jax.block_until_ready(self.compiled(dynamic, carry, np.int32(first), np.int32(count)))


def _compiler_options(stacked: bool) -> dict[str, Any]:
    """On a GPU, trying kernels out takes longer than stacked small models ever win back."""
    return {"xla_gpu_autotune_level": 0} if stacked and on_gpu() else {}


class Programs:
    """Compiled programs by the shape of their runs; threads that want the same one wait for it."""

    def __init__(self, most: int):
        self._most = most
        self._programs: OrderedDict[Any, Program] = OrderedDict()
        self._compiling: dict[Any, Lock] = {}
        self._lock = Lock()

    def get(self, run: Run, carry: Carry, stacked: bool) -> tuple[Program, float]:
        """The program for runs of this shape, and the seconds it took to compile just now."""
        key = (shape_key((run, carry)), stacked, _sharding(carry))
        with self._lock:
            compiling = self._compiling.setdefault(key, Lock())
        with compiling:
            with self._lock:
                if key in self._programs:
                    self._programs.move_to_end(key)
                    return self._programs[key], 0.0
            program = Program(run, carry, stacked)
            with self._lock:
                self._programs[key] = program
                while len(self._programs) > self._most:
                    gone, _ = self._programs.popitem(last=False)
                    self._compiling.pop(gone, None)
            return program, program.compile_seconds


_KEPT = Programs(MOST_PROGRAMS)


def program_for(run: Run, carry: Carry, stacked: bool = False) -> tuple[Program, float]:
    """The program for runs of this shape, and the seconds it took to compile just now."""
    return _KEPT.get(run, carry, stacked)


def shape_key(tree: PyTree[Any]) -> Any:
    """Equal for trees that one compiled program serves."""
    leaves, structure = jax.tree.flatten(tree)
    return structure, tuple((leaf.shape, leaf.dtype) if eqx.is_array(leaf) else leaf for leaf in leaves)


def _sharding(carry: Carry) -> Any:
    return jax.tree.leaves(carry)[0].sharding


def stack(runs: Sequence[Run]) -> Run:
    """One run with a leading axis over `runs`, which share the data set and all shapes."""
    axes = stacked_axes(runs[0])
    return jax.tree.map(
        lambda axis, *leaves: leaves[0] if axis is None else _stack_leaves(leaves),
        axes, *runs, is_leaf=lambda axis: axis is None,
    )  # fmt: skip


def _stack_leaves(leaves: Sequence[Any]) -> Any:
    """Stacked on the host: one operation on hundreds of device arrays would be compiled anew."""
    if not eqx.is_array(leaves[0]):
        return leaves[0]  # a function inside a user's module: the same in all runs of one shape
    if jnp.issubdtype(leaves[0].dtype, jax.dtypes.prng_key):
        words = np.stack([np.asarray(jax.random.key_data(leaf)) for leaf in leaves])
        return jax.random.wrap_key_data(jnp.asarray(words), impl=jax.random.key_impl(leaves[0]))
    return jnp.asarray(np.stack([np.asarray(leaf) for leaf in leaves]))


def stacked_axes(run: Run) -> Run:
    """Which leaves of stacked runs have the leading axis: all but the data set's."""
    axes = jax.tree.map(lambda _: 0, run)
    return eqx.tree_at(lambda run: run.task.federation.dataset, axes, replace=None)


def start_stacked(run: Run) -> Carry:
    """The carries of stacked runs before the first round."""
    return eqx.filter_vmap(start, in_axes=(stacked_axes(run),))(run)
