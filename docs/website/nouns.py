"""A griffe extension: what the docstrings and classes of safari mean to a reader of the API pages.

Equinox modules are dataclasses, so their fields are the arguments of `__init__`. Lines that begin with `>>>`
are code; Markdown would take them for quotations.
"""

import re

import griffe

DOCTEST = re.compile(r"^>>> .*(?:\n.+)*", re.MULTILINE)
MODULE = "equinox.Module"
FIELD = ("equinox.field", "dataclasses.field")


class Nouns(griffe.Extension):
    """Fences doctests, and gives equinox modules the `__init__` that equinox makes."""

    def on_object(self, *, obj: griffe.Object, **_: object) -> None:
        if obj.docstring is not None:
            obj.docstring.value = DOCTEST.sub(r"```pycon\n\g<0>\n```", obj.docstring.value)

    def on_package(self, *, pkg: griffe.Module, **_: object) -> None:
        for one in _classes(pkg):
            if "__init__" not in one.members and _is_noun(one):
                one.set_member("__init__", _init(one))


def _classes(module: griffe.Module):
    for member in module.members.values():
        if not member.is_alias:
            if member.is_class:
                yield member
            elif member.is_module:
                yield from _classes(member)


def _line(one: griffe.Class) -> list[griffe.Class]:
    """The ancestors within the package, nearest first."""
    try:
        return one.mro()
    except ValueError:
        return []


def _is_noun(one: griffe.Class) -> bool:
    bases = [base for parent in (one, *_line(one)) for base in parent.bases]
    return any(getattr(base, "canonical_path", base) == MODULE for base in bases)


def _fields(one: griffe.Class):
    for name, member in one.members.items():
        if not member.is_alias and member.is_attribute and member.annotation is not None:
            shared = "class-attribute" in member.labels and "instance-attribute" not in member.labels
            if "property" not in member.labels and not shared:
                yield name, member


def _init(one: griffe.Class) -> griffe.Function:
    line = (*reversed(_line(one)), one)
    fields = {name: field for parent in line for name, field in _fields(parent)}
    kind = griffe.ParameterKind.positional_or_keyword
    parameters = [
        griffe.Parameter(name, annotation=field.annotation, kind=kind, default=_default(field.value))
        for name, field in fields.items()
    ]
    every = griffe.Parameters(griffe.Parameter("self", kind=kind), *parameters)
    return griffe.Function("__init__", parent=one, parameters=every, returns="None")


def _default(value):
    """The default of a field, also where it stands inside `eqx.field(default=...)`."""
    if isinstance(value, griffe.ExprCall) and value.canonical_path in FIELD:
        given = {argument.name: argument.value for argument in value.arguments}
        return given.get("default")
    return value
