"""The API pages: one page per room, with every public name of the package.

Public are the names in `safari.__all__`, and those in the `__all__` of `ROOMS`, which users import directly.
The rooms are read and not imported: the site can be built without Flower.
"""

import ast
import sys
from collections import defaultdict
from pathlib import Path

import safari

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
    paths = {name: path_of(name) for name in safari.__all__}
    for name, path in sorted(paths.items(), key=lambda pair: pair[0].lower()):
        found[room_of(path)][name] = path
    for room in ROOMS:
        found[room] |= names_of_room(room)
    return {room: found[room] for room in sorted(found, key=lambda room: (room != TOP, room))}


def room_of(path: str) -> str:
    room = path.split(".")[1]
    return room if (SOURCE / "safari" / room).is_dir() else TOP


def path_of(name: str) -> str:
    """Where a public name is defined; a constant does not know, so the modules are asked."""
    value = getattr(safari, name)
    module = getattr(value, "__module__", None) or ""
    if not module.startswith("safari"):
        holders = [one for one in sorted(sys.modules) if one.startswith("safari.")]
        module = next(one for one in holders if vars(sys.modules[one]).get(name) is value)
    return f"{module}.{name}"


def names_of_room(room: str) -> dict[str, str]:
    """The `__all__` of a room; where each name is defined stands in its imports for type checkers."""
    tree = ast.parse((SOURCE / "safari" / room / "__init__.py").read_text(encoding="utf-8"))
    imports = [one for one in ast.walk(tree) if isinstance(one, ast.ImportFrom)]
    homes = {alias.name: str(one.module) for one in imports for alias in one.names}
    exported = next(
        one.value
        for one in tree.body
        if isinstance(one, ast.Assign) and ast.unparse(one.targets[0]) == "__all__"
    )
    return {name: f"{homes[name]}.{name}" for name in ast.literal_eval(exported)}
