"""Arrows point down only: which room may import which."""

import ast
import re
import sys
import tomllib
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "safari"
FLOORS = (
    ("errors", "names", "version", "devices", "randomness", "registry"),
    ("data", "participation", "models"),
    ("algorithms",),
    ("engine", "theory"),
    ("report",),
    ("experiment",),
    ("paper", "league", "advise", "flower"),
    ("cli",),
)
"""The lowest floor first. On the ground floor a module may also use those named before it."""
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}
ONE_SYSTEM_ONLY = {"fcntl", "grp", "msvcrt", "posix", "pwd", "resource", "termios", "winreg"}
ROOMS = {path.stem for path in SOURCE.iterdir() if not path.name.startswith("_") and path.name != "py.typed"}


def imports(path: Path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("safari."):
            yield node.module.split(".")[1]
        elif isinstance(node, ast.Import):
            yield from (name.name.split(".")[1] for name in node.names if name.name.startswith("safari."))


def below(target: str, room: str) -> bool:
    ground = FLOORS[0]
    if target in ground and room in ground:
        return ground.index(target) < ground.index(room)
    return FLOOR[target] < FLOOR[room]


def test_the_house_is_small_enough_to_remember():
    assert len(FLOORS) <= 8
    assert len(list(SOURCE.glob("*.py"))) <= 8


def test_every_room_has_a_floor():
    assert set(FLOOR) == ROOMS


def test_nothing_imports_anything_above_it():
    upwards = [
        f"{path.relative_to(SOURCE)} imports {target}"
        for path in SOURCE.rglob("*.py")
        if (room := path.relative_to(SOURCE).parts[0].removesuffix(".py")) in FLOOR
        for target in imports(path)
        if target != room and not below(target, room)
    ]
    assert not upwards


def test_no_file_is_a_drawer_for_everything():
    long = {
        path.name: count
        for path in SOURCE.rglob("*.py")
        if (count := len(path.read_text().splitlines())) > 400
    }
    assert not long


def test_what_is_cached_by_its_arguments_has_a_bound():
    boundless = [
        f"{path.relative_to(SOURCE)}: {node.name}"
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef) and node.args.args
        for decorator in map(ast.unparse, node.decorator_list)
        if decorator in ("cache", "functools.cache") or "maxsize=None" in decorator
    ]
    assert not boundless


def test_no_module_is_imported_that_only_one_system_has():
    found = [
        f"{path.relative_to(SOURCE)} imports {name}"
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in [getattr(node, "module", None), *(each.name for each in node.names)]
        if name in ONE_SYSTEM_ONLY
    ]
    assert not found


DECLARED_AS = {
    "PIL": "pillow", "dp_accounting": "dp-accounting", "markupsafe": "jinja2", "mlflow": "mlflow-skinny",
    "prometheus_client": "prometheus-client", "sklearn": "scikit-learn", "tensorboardX": "tensorboardx",
    "tomli_w": "tomli-w",
}  # fmt: skip
"""Distributions that are called otherwise than what is imported, or that need it themselves."""
BROUGHT = {"torch"}
"""What a user brings along: their model is of it."""
FOR_FLEETS, NOT_FOR_USERS = "flower", {"flower", "dev", "test", "docs"}


def test_every_import_is_of_a_package_that_is_declared():
    """What other packages bring along by chance is not there for who installs safari alone."""
    project = tomllib.loads((SOURCE.parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"]]
    wanted += [one for extra, some in extras.items() if extra not in NOT_FOR_USERS for one in some]
    for path in SOURCE.rglob("*.py"):
        there = wanted + (extras[FOR_FLEETS] if FOR_FLEETS in str(path.relative_to(SOURCE)) else [])
        declared = {re.match(r"[\w.-]+", one)[0].lower() for one in there}
        for name in set(foreign(path)) - BROUGHT:
            assert DECLARED_AS.get(name, name) in declared, f"{path.name} imports {name}"


def foreign(path: Path):
    """The packages of others that a module imports."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module or ""]
        for name in (name.partition(".")[0] for name in names):
            if name != "safari" and name not in sys.stdlib_module_names:
                yield name
