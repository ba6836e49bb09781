"""A spec's tables, read off the nouns' own signatures: names, types and defaults live there.

A field that holds another noun is a table of its own. Where nouns of that kind have names, its key
`name` says which one; a name alone may stand for the whole table.
"""

import dataclasses
import inspect
import os
import re
import types
import typing
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, Union

from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError

from safari.errors import InputError, naming, unknown_name
from safari.registry import Noun, is_own, reason, registry_of

REQUIRED: Any = inspect.Parameter.empty
NAME = "name"
_WORDS: dict[Any, tuple[str, str]] = {
    int: ("a whole number", "whole numbers"),
    float: ("a number", "numbers"),
    str: ("a text", "texts"),
    bool: ("true or false", "true or false"),
    dict: ("a table", "tables"),
    Path: ("a path", "paths"),
}


@dataclass(frozen=True)
class Key:
    """One key of a table: what it may hold, its default, what it means.

    `noun` is the class of nouns that it may hold instead of plain values, or nothing else beside.
    """

    hint: Any
    default: Any
    meaning: str = ""
    noun: type[Noun] | None = None

    def read(self, path: str, value: Any) -> Any:
        """`value` as the spec keeps it, complete, or an error that names `path`."""
        if self.noun is not None and (self.hint is None or isinstance(value, dict) or self._names(value)):
            return read_noun(path, value, self.noun, self.default)
        value = tuple(value) if isinstance(value, list) else value
        try:
            found = _adapter(self.hint).validate_python(value, strict=not _holds_path(self.hint))
        except (ValidationError, PydanticUserError):  # the latter: a type that no file can hold
            raise InputError(path, value, f"must be {describe(self)}{_example(self.hint, value)}") from None
        return os.path.abspath(found) if isinstance(found, Path) else found

    def _names(self, value: Any) -> bool:
        """Whether a value is the name of a noun."""
        registry = None if self.noun is None else registry_of(self.noun)
        return isinstance(value, str) and registry is not None and (value in registry or is_own(value))

    def plain_default(self) -> Any:
        """The default as a spec keeps it: nouns are tables."""
        if isinstance(self.default, Noun):
            assert self.noun is not None
            return read_noun("", {}, self.noun, self.default)
        return os.path.abspath(self.default) if isinstance(self.default, Path) else self.default


@lru_cache(maxsize=512)
def _adapter(hint: Any) -> TypeAdapter:
    """Building one takes longer than using it; a sweep reads hundreds of specs."""
    return TypeAdapter(hint)


@lru_cache(maxsize=256)
def _all_keys(noun: Callable[..., Any]) -> dict[str, Key]:
    hints, meanings = _hints(noun), meanings_of(noun)
    keys = {}
    for name, parameter in inspect.signature(noun).parameters.items():
        default = _default(noun, parameter)
        if parameter.kind not in _BY_NAME or not _in_a_file(default):
            continue  # an activation function, say: what no file can hold stays as it is
        hint, held = _split(hints.get(name, Any))
        keys[name] = Key(hint, default, meanings.get(name, ""), held)
    return keys


_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def _hints(noun: Callable[..., Any]) -> dict[str, Any]:
    """The types of the arguments: of a class those of its fields, unless it has an `__init__` of its own."""
    hints = typing.get_type_hints(noun)
    dataclass_of = getattr(noun, "__dataclass_params__", None)
    if dataclass_of is not None and not dataclass_of.init:
        hints |= typing.get_type_hints(noun.__init__)
    return hints


def _default(noun: Callable[..., Any], parameter: inspect.Parameter) -> Any:
    field = getattr(noun, "__dataclass_fields__", {}).get(parameter.name)
    if field is None or field.default_factory is dataclasses.MISSING:
        return parameter.default
    return field.default_factory()


def _in_a_file(default: Any) -> bool:
    """Whether a file can hold the default of a key; what is not set, or must be given, is left out of it."""
    if isinstance(default, tuple | list):
        return all(_in_a_file(part) for part in default)
    return default is None or default is REQUIRED or isinstance(default, (*_WORDS, Noun))


def keys_of(noun: Callable[..., Any], leave_out: Iterable[str] = ()) -> dict[str, Key]:
    """The keys that a noun (a class or function) takes."""
    return {name: key for name, key in _all_keys(noun).items() if name not in leave_out}


def read_table(path: str, given: Any, keys: dict[str, Key]) -> dict[str, Any]:
    """The whole table: what was given, checked, and defaults for the rest."""
    if not isinstance(given, dict):
        raise InputError(path, given, "must be a table")
    for name in given:
        if name not in keys:
            raise InputError(f"{path}.{name}", given[name], unknown_name(name, keys))
    table = {}
    for name, key in keys.items():
        if name in given:
            table[name] = key.read(f"{path}.{name}", given[name])
        elif key.default is REQUIRED:
            raise InputError(f"{path}.{name}", "(nothing)", f"must be given: {describe(key)}")
        else:
            table[name] = key.plain_default()
    return table


def read_noun(path: str, given: Any, base: type[Noun], default: Any) -> dict[str, Any]:
    """The table of a noun: its name, where its kind has names, and all its keys.

    `default` is the noun that is meant where nothing is given; of the same class, the defaults of
    its keys are those that it has.
    """
    registry = registry_of(base)
    if isinstance(given, str) and registry is not None:
        given = {NAME: given}
    if not isinstance(given, dict):
        wanted = "a table" if registry is None else f"a table, or the name of {_article(registry.noun)}"
        raise InputError(path, given, f"must be {wanted}")
    like = default if isinstance(default, base) else None
    if registry is None:
        return read_table(path, given, _defaults_from(like, keys_of(base)))
    name = given.get(NAME) or registry.name_of(type(like) if like is not None else base)
    if not isinstance(name, str):
        raise InputError(f"{path}.{NAME}", name, "must be a text")
    cls = registry.find(name, f"{path}.{NAME}", base)
    keys = _defaults_from(like if type(like) is cls else None, keys_of_class(cls, f"{path}.{NAME}", name))
    for key in given:
        if key not in keys and _has_no_type(cls, key):
            kind = type(getattr(cls, key)).__name__
            raise InputError(f"{path}.{key}", given[key], f"needs a type to be a key: write `{key}: {kind}`")
    return read_table(path, {**given, NAME: name}, {NAME: Key(str, name), **keys})


def keys_of_class(
    cls: type, path: str, name: str, leave_out: Iterable[str] = (), taken: Iterable[str] = (NAME,)
) -> dict[str, Key]:
    """The keys of a class that may be a user's own: whatever is wrong with it is bad input.

    Args:
        cls: the class.
        path: the key that names it.
        name: its name there.
        leave_out: arguments that are given otherwise.
        taken: keys that its table has in any case, so that a field cannot be called so.
    """
    if not is_own(name):
        return keys_of(cls, leave_out)
    try:
        keys = keys_of(cls, leave_out)
    except Exception as error:
        raise InputError(path, name, f"has fields that cannot be read ({reason(error)})") from None
    for field in taken:
        if field in keys:
            hint = f"has a field `{field}`, which is a key of the table itself; call it something else"
            raise InputError(path, name, hint)
    for field, key in keys.items():
        if key.default is not REQUIRED and key.default is not None and not isinstance(key.default, Noun):
            key.read(f"{path.rpartition('.')[0]}.{field}", key.default)
    return keys


def _has_no_type(cls: type, name: str) -> bool:
    """Whether a class sets a plain value that would be a field if it had a type."""
    plain = isinstance(vars(cls).get(name), int | float | str | tuple)
    return plain and name not in vars(cls).get("__annotations__", {})


def _defaults_from(like: Noun | None, keys: dict[str, Key]) -> dict[str, Key]:
    if like is None:
        return keys
    return {
        name: Key(key.hint, getattr(like, name, key.default), key.meaning, key.noun)
        for name, key in keys.items()
    }


def build(path: str, table: dict[str, Any], base: type[Noun] | Callable[..., Any]) -> Any:
    """The noun that a complete table describes."""
    table = dict(table)
    registry = registry_of(base) if isinstance(base, type) else None
    name = table.pop(NAME) if registry is not None else ""
    cls = base if registry is None else registry.find(name, f"{path}.{NAME}")
    keys = keys_of(cls)
    given = {
        key: build(f"{path}.{key}", value, held) if held is not None and isinstance(value, dict) else value
        for key, value in table.items()
        for held in [keys[key].noun]
    }
    with naming(path), making(NAME, name):
        return cls(**given)


@contextmanager
def making(key: str, name: str) -> Iterator[None]:
    """Whatever goes wrong while an object of a user's own class is made is bad input, under this key."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        if not is_own(name):
            raise
        raise InputError(key, name, f"cannot be made ({reason(error)})") from None


def describe(key: Key | Any) -> str:
    """What a key may hold, in plain words."""
    hint, noun = (key.hint, key.noun) if isinstance(key, Key) else (key, None)
    if noun is not None:
        registry = registry_of(noun)
        table = "a table" if registry is None else f"a table, or the name of {_article(registry.noun)}"
        return table if hint in (None, type(None)) else f"{describe(hint)}, or {table}"
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        return " or ".join(repr(choice) for choice in arguments)
    if origin in (Union, types.UnionType):
        return " or ".join(describe(part) for part in arguments if part is not type(None))
    if origin is dict:
        return _WORDS[dict][0]
    if origin is tuple:
        parts = typing.get_args(arguments[0]) or arguments[:1]
        return f"a list of {' or '.join(_WORDS.get(part, ('', 'values'))[1] for part in parts)}"
    return _WORDS.get(hint, ("a value", ""))[0]


def _example(hint: Any, value: Any) -> str:
    """How a text would be written where a list of texts is wanted."""
    if (
        typing.get_origin(hint) is not tuple
        or typing.get_args(hint)[0] is not str
        or not isinstance(value, str)
    ):
        return ""
    parts = ", ".join(f'"{part.strip()}"' for part in value.split(","))
    return f", such as [{parts}]"


def _article(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def shown_default(key: Key) -> str:
    """The default of a key, in plain words."""
    default = key.default
    if default is REQUIRED:
        return "must be given"
    if default is None:
        return "not set"
    if isinstance(default, Noun):
        registry = registry_of(type(default))
        return "its defaults" if registry is None else registry.name_of(type(default))
    value = list(default) if isinstance(default, tuple) else default
    return str(value).lower() if isinstance(value, bool) else str(value)


def _split(hint: Any) -> tuple[Any, type[Noun] | None]:
    """A type as what TOML can hold and the class of nouns in it: `float | AdaptiveQ` has both.

    What is neither (`str | Dataset`) is left out: a file cannot hold it.
    """
    parts = typing.get_args(hint) if typing.get_origin(hint) in (Union, types.UnionType) else (hint,)
    nouns = [part for part in parts if isinstance(part, type) and issubclass(part, Noun)]
    if len(parts) == 1:
        return (None, nouns[0]) if nouns else (_as_tuple(hint), None)
    plain = [part for part in parts if part in _WORDS or typing.get_origin(part) or part is type(None)]
    known = Union[tuple(plain)] if plain else None  # noqa: UP007 - built at run time
    return known, nouns[0] if nouns else None


def _as_tuple(hint: Any) -> Any:
    """Lists are read as tuples, which can be static."""
    return tuple[typing.get_args(hint)[0], ...] if typing.get_origin(hint) is list else hint  # type: ignore[misc]


def _holds_path(hint: Any) -> bool:
    return hint is Path or Path in typing.get_args(hint)


_ARGUMENT = re.compile(r"^(\w+): (.*)$")


def meanings_of(noun: Callable[..., Any]) -> dict[str, str]:
    """What each argument means, from the section `Args` of the docstrings of a class and its bases."""
    found: dict[str, str] = {}
    for one in reversed(inspect.getmro(noun) if isinstance(noun, type) else (noun,)):
        found |= (
            _arguments(inspect.cleandoc(one.__doc__ or "")) if "__doc__" in vars(one) or one is noun else {}
        )
    return found


def _arguments(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    inside, last = False, ""
    for line in text.splitlines():
        if not line.startswith(" "):
            inside = line.strip() == "Args:" or (inside and not line.strip())
        elif inside and (match := _ARGUMENT.match(line[4:])):
            last = match[1]
            found[last] = match[2].strip()
        elif inside and last:
            found[last] += f" {line.strip()}"
    return found
