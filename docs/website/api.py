"""The API pages: one page per room, with every public name of the package.

Public are the names in `safari.__all__`, and those in the `__all__` of `ROOMS`, which users import directly.
The code is parsed and not imported, so the site can be built without a device and without Flower.
"""

import ast
from collections import defaultdict
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src"
ROOMS = ("flower",)
TOP = "safari"
TITLES = {TOP: "Top level", "flower": "Flower"}


def pages() -> dict[str, str]:
    """The Markdown of every API page by its path in the docs."""
    rooms = rooms_of_names()
    index = ["# API", "", "Every public name. Each page says where to import its names from.", ""]
    found = {}
    for room, names in rooms.items():
        link = f"{room}.md"
        found[f"api/{link}"] = page(room, names)
        listed = ", ".join(f"[`{name}`]({link}#{path})" for name, path in names.items())
        index += [f"- **[{title(room)}]({link})**: {listed}"]
    return {"api/index.md": "\n".join(index) + "\n"} | found


def title(room: str) -> str:
    return TITLES.get(room, room.capitalize())


def page(room: str, names: dict[str, str]) -> str:
    about = f"Import from `safari.{room}`." if room in ROOMS else "Import from `safari`."
    parts = [f"# {title(room)}", about, *(f"::: {path}" for path in names.values())]
    return "\n\n".join(parts) + "\n"


def rooms_of_names() -> dict[str, dict[str, str]]:
    """Room -> public name -> where it is defined, as in `safari.algorithms.fedavg.FedAvg`."""
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for package in ("safari", *(f"safari.{room}" for room in ROOMS)):
        for name in public_names(package):
            path = definition(package, name)
            found[room_of(path)][name] = path
    return {room: found[room] for room in sorted(found, key=lambda room: (room != TOP, room))}


def room_of(path: str) -> str:
    room = path.split(".")[1]
    return room if (SOURCE / "safari" / room).is_dir() else TOP


def public_names(package: str) -> list[str]:
    """The `__all__` of a package."""
    for statement in _tree(package).body:
        if isinstance(statement, ast.Assign) and _named(statement.targets[0], "__all__"):
            return ast.literal_eval(statement.value)
    raise ValueError(f"{package} has no __all__")


def definition(module: str, name: str) -> str:
    """Where `name` is defined: the imports of `module` are followed, those for type checkers too."""
    for statement in ast.walk(_tree(module)):
        if isinstance(statement, ast.ImportFrom) and (statement.module or "").startswith("safari"):
            for one in statement.names:
                if name == (one.asname or one.name):
                    return definition(str(statement.module), one.name)
    return f"{module}.{name}"


def _tree(module: str) -> ast.Module:
    path = SOURCE.joinpath(*module.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ast.parse(file.read_text(encoding="utf-8"))


def _named(target: ast.expr, name: str) -> bool:
    return isinstance(target, ast.Name) and target.id == name
