"""A spec's tables, read off the nouns' own signatures: names, types and defaults live there."""

import inspect
import types
import typing
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from typing import Any, Literal, Union

from pydantic import TypeAdapter, ValidationError

from safari.errors import InputError

REQUIRED: Any = inspect.Parameter.empty
_WORDS: dict[Any, tuple[str, str]] = {
    int: ("a whole number", "whole numbers"),
    float: ("a number", "numbers"),
    str: ("a text", "texts"),
    bool: ("true or false", "true or false"),
    dict: ("a table", "tables"),
}


@dataclass(frozen=True)
class Key:
    """One key of a table: what it may hold, and its default."""

    hint: Any
    default: Any

    def read(self, path: str, value: Any) -> Any:
        """`value` as the noun wants it, or an error that names `path`."""
        value = tuple(value) if isinstance(value, list) else value
        try:
            return _adapter(self.hint).validate_python(value, strict=True)
        except ValidationError:
            raise InputError(path, value, f"must be {describe(self.hint)}") from None


@lru_cache(maxsize=256)
def _adapter(hint: Any) -> TypeAdapter:
    """Building one takes longer than using it; a sweep reads hundreds of specs."""
    return TypeAdapter(hint)


@lru_cache(maxsize=256)
def _all_keys(noun: Callable[..., Any]) -> dict[str, Key]:
    hints = typing.get_type_hints(noun)
    return {
        name: Key(_without_nouns(hints.get(name, Any)), parameter.default)
        for name, parameter in inspect.signature(noun).parameters.items()
    }


def keys_of(noun: Callable[..., Any], leave_out: Iterable[str] = ()) -> dict[str, Key]:
    """The keys that a noun (a class or function) takes."""
    return {name: key for name, key in _all_keys(noun).items() if name not in leave_out}


def read_table(path: str, given: Any, keys: dict[str, Key]) -> dict[str, Any]:
    """The whole table: what was given, checked, and defaults for the rest."""
    if not isinstance(given, dict):
        raise InputError(path, given, "must be a table")
    for name in given:
        if name not in keys:
            raise InputError(f"{path}.{name}", given[name], unknown(name, keys))
    table = {}
    for name, key in keys.items():
        if name in given:
            table[name] = key.read(f"{path}.{name}", given[name])
        elif key.default is REQUIRED:
            raise InputError(f"{path}.{name}", "(nothing)", f"must be given: {describe(key.hint)}")
        else:
            table[name] = key.default
    return table


def unknown(name: str, known: Iterable[str]) -> str:
    """What to say of a name that nobody knows."""
    known = list(known)
    near = get_close_matches(name.lower(), known, n=1)
    hint = f"did you mean {near[0]}? " if near else ""
    return f"unknown key; {hint}known are {', '.join(known)}"


def describe(hint: Any) -> str:
    """A type in plain words."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        return " or ".join(repr(choice) for choice in arguments)
    if origin in (Union, types.UnionType):
        return " or ".join(describe(part) for part in arguments if part is not type(None))
    if origin is tuple:
        return f"a list of {_WORDS.get(arguments[0], ('', 'values'))[1]}"
    return _WORDS.get(hint, ("a value", ""))[0]


def _without_nouns(hint: Any) -> Any:
    """`str | Dataset` is `str` in a file: leave out what TOML cannot hold."""
    if typing.get_origin(hint) not in (Union, types.UnionType):
        return hint
    plain = [
        part
        for part in typing.get_args(hint)
        if part in _WORDS or typing.get_origin(part) or part is type(None)
    ]
    return Union[tuple(plain)]  # noqa: UP007 - built at run time
