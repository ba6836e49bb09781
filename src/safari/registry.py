"""Nouns, and how they are found by name: ours, or a user's own.

Ours are listed in `safari.names`. Wherever a name stands, `module:Class` (or `path/to/file.py:Class`)
may stand too.
"""

import dataclasses
import importlib
import importlib.util
import inspect
import os
import sys
import types
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, Union

import equinox as eqx

from safari import names
from safari.errors import InputError, unknown_name

STATIC_TYPES = (int, bool, str, Path, type(None))
FROM_A_FILE = "safari_own_"
"""How the names of modules begin that are imported from a file rather than by name."""


class Noun(eqx.Module):
    """The base of everything that a spec can name: a frozen dataclass that is a pytree.

    Floats are leaves, so that runs which differ in them share one compiled program. Whole numbers,
    booleans and texts (and tuples of them) decide what is compiled: they are static, without
    `eqx.field(static=True)`.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name, hint in _own_annotations(cls).items():
            if typing.get_origin(hint) is not typing.ClassVar and is_static(hint):
                setattr(cls, name, _static_field(cls.__dict__.get(name, dataclasses.MISSING)))


def is_static(hint: Any) -> bool:
    """Whether a field of this type can hold nothing but whole numbers, booleans and texts."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        return True
    if origin in (Union, types.UnionType):
        return all(is_static(part) for part in arguments)
    if origin in (tuple, list):
        return all(part is Ellipsis or is_static(part) for part in arguments)
    return hint in STATIC_TYPES


def _own_annotations(cls: type) -> dict[str, Any]:
    try:
        return inspect.get_annotations(cls, eval_str=True)
    except Exception:  # a name that exists for the type checker alone: the plain types still count
        plain = {"int": int, "bool": bool, "str": str}
        return {name: plain.get(str(hint), hint) for name, hint in inspect.get_annotations(cls).items()}


def _static_field(default: Any) -> Any:
    if isinstance(default, dataclasses.Field):
        default.metadata = types.MappingProxyType({**default.metadata, "static": True})
        return default
    return eqx.field(static=True, **({} if default is dataclasses.MISSING else {"default": default}))


class Registry:
    """The names of one kind of noun.

    Args:
        noun: what the classes are, in a message: "model".
        base: the class that all of them extend, as `module:Class`.
        classes: the name of each, and where it is, as `module:Class`.
    """

    def __init__(self, noun: str, base: str, classes: dict[str, str]):
        self.noun, self._base, self._classes = noun, base, classes

    def __iter__(self) -> Iterator[str]:
        return iter(self._classes)

    def __contains__(self, name: object) -> bool:
        return name in self._classes

    @property
    def base(self) -> type:
        """The class that all of them extend."""
        return _load(self._base)

    def __getitem__(self, name: str) -> type:
        """A class of ours by its name."""
        return _load(self._classes[name])

    def name_of(self, cls: type) -> str:
        """The name of a class: ours, or `module:Class`."""
        module = cls.__module__
        # The name that a file is imported under is of this process alone; specs are read by others.
        where = str(sys.modules[module].__file__) if module.startswith(FROM_A_FILE) else module
        place = f"{where}:{cls.__qualname__}"
        return next((name for name, ours in self._classes.items() if f"safari.{ours}" == place), place)

    def find(self, name: str, key: str, base: type | None = None) -> type:
        """The class that `name` names, one of ours or the user's own.

        Args:
            name: a name of this registry, `module:Class`, or `file.py:Class`.
            key: the key of the spec that holds the name, for messages.
            base: the class that it must extend (default: the registry's).

        Raises:
            InputError: if there is no such class, or it is not of this kind.
        """
        base = base or self.base
        if name in self._classes:
            found = self[name]
        elif is_own(name):
            found = own_class(name, key)
        else:
            ours = [known for known in self._classes if issubclass(self[known], base)]
            raise InputError(key, name, f"{unknown_name(name, ours, 'name')}, or module:Class")
        if not (isinstance(found, type) and issubclass(found, base)):
            raise InputError(key, name, f"is not a subclass of safari.{base.__name__}")
        refuse_abstract(found, name, key)
        return found


def is_own(name: str) -> bool:
    """Whether a name is that of a user's own class."""
    return ":" in name


def refuse_abstract(cls: type, name: str, key: str) -> None:
    """Raise `InputError` if a class leaves methods open, as the base of a family does."""
    if missing := sorted(getattr(cls, "__abstractmethods__", ())):
        raise InputError(key, name, f"leaves {', '.join(missing)} open; name a class that has everything")


def own_class(name: str, key: str) -> Any:
    """What `module:Class` or `file.py:Class` names; the current folder counts as a place for modules."""
    module, _, attribute = name.rpartition(":")
    try:
        found = _own_module(module)
        if not hasattr(found, attribute):
            raise InputError(key, name, _unknown_in(found, attribute, module))
        return getattr(found, attribute)
    except InputError:
        raise
    except (Exception, SystemExit) as error:  # a user's file may fail in any way: all of them are bad input
        raise InputError(key, name, f"cannot be imported ({reason(error)})") from None


def _unknown_in(found: types.ModuleType, attribute: str, module: str) -> str:
    """What to say of a name that a module lacks: which classes and functions it defines itself."""
    own = [one for one, value in vars(found).items() if getattr(value, "__module__", "") == found.__name__]
    return unknown_name(attribute, own, f"name in {module}") if own else f"{module} has no {attribute}"


def reason(error: BaseException) -> str:
    """An exception in one line: its kind and the first line of what it says."""
    text = " ".join((str(error).strip() or "no message").splitlines()[0].split())
    return f"{type(error).__name__}: {text[:160]}"


def _own_module(module: str) -> types.ModuleType:
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    if module.endswith(".py"):
        path = Path(module).resolve()
        return import_file(f"{FROM_A_FILE}{path.stem}_{abs(hash(path)):x}", path)
    return importlib.import_module(module)


def import_file(name: str, path: Path) -> types.ModuleType:
    """The module in a file of the user's, under the name that the process which asks for it uses."""
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python file")
    sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(sys.modules[name])
    except BaseException:
        del sys.modules[name]
        raise
    return sys.modules[name]


def imported_files() -> dict[str, str]:
    """The modules of the user's that were imported from a file: their names, and the files."""
    found = {name: module for name, module in sys.modules.items() if name.startswith(FROM_A_FILE)}
    return {name: str(module.__file__) for name, module in found.items()}


def _load(place: str) -> type:
    module, _, attribute = place.partition(":")
    return getattr(importlib.import_module(f"safari.{module}"), attribute)


ALGORITHMS = Registry("algorithm", names.BASES["algorithm"], names.ALGORITHMS)
Q_RULES = Registry("rule for q", names.BASES["q"], names.Q_RULES)
AVAILABILITIES = Registry("availability", names.BASES["availability"], names.AVAILABILITIES)
PARTITIONS = Registry("partition", names.BASES["partition"], names.PARTITIONS)
SOURCES = Registry("source", names.BASES["source"], names.SOURCES)
MODELS = Registry("model", names.BASES["model"], names.MODELS)
SCHEDULES = Registry("schedule", names.BASES["schedule"], names.SCHEDULES)


REGISTRIES = (ALGORITHMS, Q_RULES, PARTITIONS, SOURCES, AVAILABILITIES, MODELS, SCHEDULES)


def registry_of(cls: type) -> Registry | None:
    """The registry that lists the nouns of this class, if they have names."""
    return next((registry for registry in REGISTRIES if issubclass(cls, registry.base)), None)
