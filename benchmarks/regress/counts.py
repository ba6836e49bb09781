"""What a program asks for, counted without running it: the same on every machine.

Two numbers: operations of products (two for a multiplication and its addition), and elements that
everything else writes. They see steps, gathers, draws and copies, not how well a compiler does them:
that is what the ratios are for.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import jax

Counts = Counter[str]


def counted(function: Callable[..., Any], *arguments: Any) -> Counts:
    """Of a loop every turn counts, if it says how many; of branches the CPU's, else the costliest."""
    return _of(jax.make_jaxpr(function)(*arguments).jaxpr)


def _of(program: Any) -> Counts:
    total: Counts = Counter()
    for equation in program.eqns:
        kind, inner = equation.primitive.name, [_of(each) for each in _programs(equation.params)]
        if kind == "cond":
            total += _taken(inner, equation.params.get("branches_platforms"))
        elif inner:
            turns = equation.params["length"] if kind == "scan" else 1
            for each in inner:
                total.update({name: turns * count for name, count in each.items()})
        elif kind == "dot_general":
            total["products"] += 2 * _size(equation) * _summed(equation)
        else:
            total["elements"] += _size(equation)
    return total


def _programs(params: dict[str, Any]) -> Iterator[Any]:
    for value in params.values():
        for each in value if isinstance(value, tuple) else (value,):
            program = getattr(each, "jaxpr", each)
            if hasattr(program, "eqns"):
                yield program


def _taken(branches: list[Counts], platforms: Any) -> Counts:
    if platforms is not None:
        return next(one for one, names in zip(branches, platforms, strict=True) if names and "cpu" in names)
    return max(branches, key=lambda one: one.total())


def _size(equation: Any) -> int:
    return sum(math.prod(result.aval.shape) for result in equation.outvars)


def _summed(equation: Any) -> int:
    (axes, _), _ = equation.params["dimension_numbers"]
    return math.prod(equation.invars[0].aval.shape[axis] for axis in axes)
