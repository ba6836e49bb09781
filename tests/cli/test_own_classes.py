"""Wrong classes of the user's own: one line that names the key, exit code 2, nothing written."""

import re
from dataclasses import dataclass
from textwrap import dedent

import pytest

from commands import run_all

SPEC = """
[data.partition]
samples_per_client = 40
[data.server]
samples = 20
[participation]
excluded = 4
per_round = 5
[algorithm.clients]
local_steps = 2
[train]
rounds = 2
"""
IMPORTS = """import dataclasses, math, sys
import equinox as eqx, jax, jax.numpy as jnp, numpy as np
import safari
"""
NOWHERE = "nowhere"
"""Stands for a file that is not there."""

KEYS = {
    "method": "algorithm.clients.name",
    "algorithm": "algorithm.name",
    "availability": "participation.availability.name",
    "partition": "data.partition.name",
    "source": "data.source",
    "model": "model.name",
    "module": "model.name",
}
BASES = {
    "method": "safari.ClientAlgorithm",
    "algorithm": "safari.Algorithm",
    "availability": "safari.Availability",
    "partition": "safari.Partition",
    "source": "safari.Source",
    "model": "safari.Model",
    "module": "eqx.Module",
}


def body(text: str) -> str:
    """The body of a class."""
    return "".join(f"    {line}\n" for line in dedent(text).strip().splitlines())


MODEL = body("""
    def init(self, key, shape, classes):
        return {"weight": jnp.zeros((math.prod(shape), classes))}
    def apply(self, params, x):
        return x.reshape(len(x), -1) @ params["weight"]
""")
STEP = body("""
    def step(self, state, key, round, clients):
        return state, jax.random.uniform(key, (clients,)) < 0.5
""")
SPLIT = body("def split(self, dataset, pool, rng):\n    return np.array_split(pool, 10)")
LOAD = body("""
    def load(self):
        x, y = np.ones((500, 4), np.float32), np.arange(500) % 5
        return safari.Dataset(x, y, x, y)
""")
SOUND = {"method": "", "availability": STEP, "partition": SPLIT, "source": LOAD, "model": MODEL}


@dataclass(frozen=True)
class Wrong:
    """A file with one class `Mine`, and what safari says of it.

    `noun` is what the class should be, `setting` one more key=value of the command, and `key` the key that
    is named, where it is not the one that names the class. `file` is the whole file, or `NOWHERE`.
    """

    noun: str
    said: str
    body: str = "    pass\n"
    setting: str = ""
    key: str = ""
    file: str = ""

    @property
    def text(self) -> str:
        return self.file or f"{IMPORTS}class Mine({BASES[self.noun]}):\n{self.body}"

    def command(self, name: str) -> list[str]:
        # A name for a whole table: what the spec sets for another partition goes with it.
        key = "data.partition" if self.noun == "partition" else KEYS[self.noun]
        settings = [self.setting.format(this=name)] if self.setting else []
        return ["run", "spec.toml", f"{key}={name}", *settings, "--out", name.partition(":")[0]]


RAISE = "raise ValueError('no good\\nat all')"
ABSTRACT = {
    "algorithm": "def init(self, params, task):\n    return None",
    "availability": "rate: float = 0.5",
    "partition": "clients: int = 5",
    "source": "samples: int = 500",
    "model": "def init(self, key, shape, classes):\n    return {}",
}
SIGNATURES = {
    "method": "def direction(self, gradient, params):\n    return gradient",
    "algorithm": "def init(self, params):\n    return None\nround = init",
    "availability": "def step(self, state, key):\n    return state, key",
    "partition": "def split(self, dataset):\n    return []",
    "source": "def load(self, folder):\n    return None",
    "model": "def init(self, key):\n    return {}\napply = init",
}
RAISING = {
    "method": f"def absorb(self, state, reports, task, turn):\n    {RAISE}",
    "algorithm": f"def init(self, params, task):\n    {RAISE}\nround = init",
    "availability": f"def step(self, state, key, round, clients):\n    {RAISE}",
    "partition": f"def split(self, dataset, pool, rng):\n    {RAISE}",
    "source": f"def load(self):\n    {RAISE}",
    "model": f"def init(self, key, shape, classes):\n    {RAISE}\napply = init",
}
SETTINGS = {
    "unknown field": ("strenght=0.2", "unknown key; did you mean strength?"),
    "text for a number": ("strength=high", "must be a number"),
    "fraction for a whole number": ("count=2.5", "must be a whole number"),
    "number for a boolean": ("flag=1", "must be true or false"),
}
FIELDS = body("strength: float = 0.1\ncount: int = 3\nflag: bool = False")
TEXT_AS_DEFAULT = body("strength: float = 'high'")
REFUSES = body("def __check_init__(self):\n    raise ValueError('negative')")
REFUSES_A_FIELD = body("""
    strength: float = -1.0
    def __check_init__(self):
        raise safari.InputError("strength", self.strength, "must be above 0")
""")


def wrong_for(noun: str) -> dict[str, Wrong]:
    """What can be wrong with every kind of class."""
    base = {"method": "safari.Algorithm", "model": "safari.Model or equinox.Module"}.get(noun, BASES[noun])
    missing = "cannot be imported (ModuleNotFoundError: No module named '{}')"
    return {
        "wrong signature": Wrong(noun, "(TypeError: Mine.", body(SIGNATURES[noun])),
        "raises": Wrong(noun, "(ValueError: no good)", body(RAISING[noun])),
        "not a subclass": Wrong(noun, f"is not a subclass of {base}", file="class Mine:\n    pass\n"),
        "import error": Wrong(noun, missing.format("absent"), file="import absent\n"),
        "module not found": Wrong(noun, missing.format(NOWHERE), file=NOWHERE),
    }


def wrong_fields(noun: str) -> dict[str, Wrong]:
    """What can be wrong with the fields of a class that works otherwise."""
    table, sound = KEYS[noun].rpartition(".")[0], SOUND[noun]
    field = f"{table}.strength"
    found = {
        case: Wrong(noun, said, FIELDS + sound, f"{table}.{setting}", f"{table}.{setting.partition('=')[0]}")
        for case, (setting, said) in SETTINGS.items()
    }
    return found | {
        "text as a default": Wrong(noun, "must be a number", TEXT_AS_DEFAULT + sound, key=field),
        "refuses its values": Wrong(noun, "cannot be made (ValueError: negative)", REFUSES + sound),
        "refuses a field": Wrong(noun, "must be above 0", REFUSES_A_FIELD + sound, key=field),
    }


CASES = {f"{noun}: {case}": wrong for noun in RAISING for case, wrong in wrong_for(noun).items()}
CASES |= {f"{noun}: {case}": wrong for noun in SOUND for case, wrong in wrong_fields(noun).items()}
CASES |= {
    f"{noun}: missing method": Wrong(noun, "open; name a class that has everything", body(text))
    for noun, text in ABSTRACT.items()
}
CASES |= {
    # Shapes.
    "method: absorb changes the shape": Wrong(
        "method",
        "absorb turns state.params['bias'] from float32[10] into float32[10,10]",
        body("""
            def absorb(self, state, reports, task, turn):
                params = {**state.params, "bias": jnp.zeros((10, 10))}
                return safari.ClientState(params, state.server_memory, state.client_memory)
        """),
    ),
    "method: absorb forgets the memory": Wrong(
        "method",
        "absorb turns state.server_memory['bias'] from float32[10] into nothing",
        body("""
            def memory(self, params, task):
                return params, None
            def absorb(self, state, reports, task, turn):
                return safari.ClientState(state.params, None, None)
        """),
    ),
    "method: weigh gives one weight": Wrong(
        "method",
        "weigh must return a weight for each of 5 slots, not float32[1]",
        body("def weigh(self, state, reports, task, turn):\n    return jnp.ones(1)"),
    ),
    "method: direction of another shape": Wrong(
        "method",
        "direction turns gradient['bias'] from float32[10] into float32[2,10]",
        body("""
            def direction(self, gradient, params, start, broadcast, own):
                return jax.tree.map(lambda g: jnp.stack([g, g]), gradient)
        """),
    ),
    "method: direction of another structure": Wrong(
        "method",
        "direction turns gradient['bias'] from float32[10] into nothing",
        body("def direction(self, gradient, params, start, broadcast, own):\n    return gradient['bias']"),
    ),
    "algorithm: no note": Wrong(
        "algorithm",
        "fails in the first round (TypeError: cannot unpack",
        body("""
            def init(self, params, task):
                return safari.ClientState(params, None, None)
            def round(self, state, task, turn):
                return state
        """),
    ),
    "algorithm: no params": Wrong(
        "algorithm",
        "fails in the first round (AttributeError: 'dict' object has no attribute 'params')",
        body("""
            def init(self, params, task):
                return {"model": params}
            def round(self, state, task, turn):
                return state, safari.note(server=True)
        """),
    ),
    "method: a column that is not announced": Wrong(
        "method",
        "its notes have the columns ['pull'], its `columns` names []",
        body("""
            def noted(self, state, task, turn):
                noted = super().noted(state, task, turn)
                return dataclasses.replace(noted, columns={"pull": jnp.float32(1)})
        """),
        "algorithm.name={this}",
        key="algorithm.name",
    ),
    "method: a column of every history": Wrong(
        "method",
        "every history has a column accuracy already",
        body("""
            columns = ("accuracy",)
            def noted(self, state, task, turn):
                noted = super().noted(state, task, turn)
                return dataclasses.replace(noted, columns={"accuracy": jnp.float32(1)})
        """),
    ),
    "availability: too few clients": Wrong(
        "availability",
        "step must return a boolean for each of the 10 clients, not bool[3]",
        body("def step(self, state, key, round, clients):\n    return state, jnp.ones(3, bool)"),
    ),
    "availability: one answer for all": Wrong(
        "availability",
        "step must return a boolean for each of the 10 clients, not bool[]",
        body("def step(self, state, key, round, clients):\n    return state, jnp.array(True)"),
    ),
    "availability: probabilities": Wrong(
        "availability",
        "step must return a boolean for each of the 10 clients, not float32[10]",
        body("def step(self, state, key, round, clients):\n    return state, jnp.full(clients, 0.5)"),
    ),
    "availability: no state": Wrong(
        "availability",
        "step must return two things",
        body("def step(self, state, key, round, clients):\n    return jnp.ones(clients, bool)"),
    ),
    "availability: a state that grows": Wrong(
        "availability",
        "step turns state from float32[2] into float32[4]",
        body("""
            def init(self, key, clients):
                return jnp.zeros(2)
            def step(self, state, key, round, clients):
                return jnp.concatenate([state, state]), jnp.ones(clients, bool)
        """),
    ),
    "availability: check raises": Wrong(
        "availability",
        "fails (ZeroDivisionError: division by zero)",
        body("def check(self, clients):\n    1 / 0") + STEP,
    ),
    "availability: check refuses": Wrong(
        "availability",
        "must be below 10",
        body("""
            most: int = 20
            def check(self, clients):
                raise safari.InputError("most", self.most, f"must be below {clients}")
        """)
        + STEP,
        key="participation.availability.most",
    ),
    "partition: tables of numbers": Wrong(
        "partition",
        "split must return a list of integer arrays",
        body("def split(self, dataset, pool, rng):\n    return [pool.reshape(-1, 1)]"),
    ),
    "partition: a number of samples": Wrong(
        "partition",
        "split must return a list of integer arrays",
        body("def split(self, dataset, pool, rng):\n    return 3"),
    ),
    "partition: a sample twice": Wrong(
        "partition",
        "twice",
        body("def split(self, dataset, pool, rng):\n    return [pool, pool[:1]]"),
    ),
    "partition: refuses a value": Wrong(
        "partition",
        "there are only",
        body("""
            most: int = 20
            def split(self, dataset, pool, rng):
                raise safari.InputError("most", self.most, f"there are only {len(pool)}")
        """),
        key="data.partition.most",
    ),
    "source: labels missing": Wrong(
        "source",
        "loads what cannot be used (y = array of shape (4,): must hold one label for each of the 5 samples)",
        body("""
            def load(self):
                x, y = np.ones((5, 4)), np.arange(4)
                return safari.Dataset(x, y, x, y)
        """),
    ),
    "source: no data set": Wrong(
        "source",
        "load must return a safari.Dataset, not tuple",
        body("def load(self):\n    return np.ones((5, 4)), np.arange(5)"),
    ),
    "source: refuses a value": Wrong(
        "source",
        "no such file",
        body("""
            place: str = "nowhere"
            def load(self):
                raise safari.InputError("place", self.place, "no such file")
        """),
        key="data.place",
    ),
    "model: one class too many": Wrong(
        "model",
        "apply must return logits of shape (2, 10) for two samples, not float32[2,11]",
        MODEL.replace("classes)", "classes + 1)").replace("classes + 1):", "classes):"),
    ),
    "model: one logit": Wrong(
        "model",
        "apply must return logits of shape (2, 10) for two samples, not float32[2,1]",
        MODEL.replace('params["weight"]\n', 'params["weight"][:, :1]\n'),
    ),
    "model: whole numbers as parameters": Wrong(
        "model",
        "init must return arrays of floats and nothing else",
        MODEL.replace("classes))", "classes), int)"),
    ),
    # Not a number.
    "method: NaN": Wrong(
        "method",
        "gives parameters that are not finite in the first round",
        body("""
            def direction(self, gradient, params, start, broadcast, own):
                return jax.tree.map(lambda g: g / 0, gradient)
        """),
        "algorithm.q=1.0",
    ),
    "model: NaN": Wrong(
        "model",
        "gives parameters that are not finite in the first round",
        MODEL.replace('@ params["weight"]', '@ params["weight"] * jnp.nan'),
    ),
    "source: NaN": Wrong(
        "source",
        "loads what cannot be used (x = nan in sample 0, feature 0: every feature must be finite",
        LOAD.replace("np.ones((500, 4), np.float32)", "np.full((500, 4), np.nan)"),
    ),
    # Fields.
    "method: a field without a type": Wrong(
        "method",
        "needs a type to be a key: write `strength: float`",
        body("strength = 0.1"),
        "algorithm.clients.strength=0.2",
        key="algorithm.clients.strength",
    ),
    "method: a field of an unknown type": Wrong(
        "method", "cannot be imported", body("strength: no_such_type = 0.1")
    ),
    "method: a type that does not exist": Wrong(
        "method", "has fields that cannot be read (NameError", body("strength: 'no_such_type' = 0.1")
    ),
    "model: a field that no file can hold": Wrong(
        "model",
        "must be a value",
        body("strength: jax.Array") + MODEL,
        "model.strength=0.2",
        key="model.strength",
    ),
    "model: a field must be given": Wrong(
        "model", "must be given: a number", body("strength: float") + MODEL, key="model.strength"
    ),
    "method: a field `name`": Wrong("method", "has a field `name`", body("name: str = 'x'")),
    "source: a field `seed`": Wrong("source", "has a field `seed`", body("seed: int = 0") + LOAD),
    "method: a mutable default": Wrong(
        "method", "cannot be imported (ValueError: mutable default", body("sizes: list = []")
    ),
    # Files.
    "method: syntax error": Wrong("method", "cannot be imported (SyntaxError", file="class Mine(\n"),
    "method: leaves the process": Wrong(
        "method", "cannot be imported (SystemExit: bye)", file="import sys\nsys.exit('bye')\n"
    ),
    "method: no such class": Wrong("method", " has no Mine", file="Yours = 1\n"),
    "method: a function": Wrong("method", "is not a subclass of safari.Algorithm", file="def Mine(): ...\n"),
    "method: overrides round": Wrong(
        "method",
        "cannot be imported (TypeError: Mine overrides `round` or `init`",
        body("def round(self, state, task, turn):\n    return state"),
    ),
    "method: bind raises": Wrong(
        "method",
        "fails in the first round (ZeroDivisionError: division by zero)",
        body("def bind(self, federation, seed):\n    1 / 0"),
    ),
    "method: asks the value of an array": Wrong(
        "method",
        "fails in the first round (TracerBoolConversionError",
        body("""
            strength: float = 0.1
            def direction(self, gradient, params, start, broadcast, own):
                return gradient if self.strength > 0 else params
        """),
    ),
    # Modules of equinox.
    "module: cannot be called": Wrong("module", "can be called", body("width: int = 3"), key="model"),
    "module: missing method": Wrong(
        "module",
        "open; name a class that has everything",
        body("import abc\n@abc.abstractmethod\ndef __call__(self, x):\n    ..."),
    ),
    "module: raises": Wrong(
        "module",
        "cannot be made (ValueError: no good)",
        body("width: int\ndef __init__(self, width: int = 3):\n    raise ValueError('no good\\nat all')"),
    ),
    "module: text for a whole number": Wrong(
        "module",
        "must be a whole number",
        body("""
            layer: eqx.nn.Linear
            def __init__(self, width: int = 3, *, key):
                self.layer = eqx.nn.Linear(64, width, key=key)
            def __call__(self, x):
                return self.layer(x.reshape(-1))
        """),
        "model.width=high",
        key="model.width",
    ),
    "module: wrong shapes": Wrong(
        "module",
        "apply must return logits of shape (2, 10) for two samples, not float32[2,3]",
        body("""
            layer: eqx.nn.Linear
            def __init__(self, width: int = 3, *, key):
                self.layer = eqx.nn.Linear(64, width, key=key)
            def __call__(self, x):
                return self.layer(x.reshape(-1))
        """),
    ),
}

CHOOSY = f"""{IMPORTS}class Mine(safari.ClientAlgorithm):
    flag: bool = False
    def direction(self, gradient, params, start, broadcast, own):
        if self.flag:
            raise ValueError("no good")
        return gradient
"""
CHOOSY_MODEL = f"{IMPORTS}class Mine(safari.Model):\n    flag: bool = False\n" + MODEL.replace(
    "return x.", "return 1 / 0 if self.flag else x."
)
SWEEP = """
[algorithm.clients]
name = "choosy:Mine"
[sweep.grid]
algorithm.clients.flag = [false, true]
"""
CHOSEN = ["algorithm.clients=choosy:Mine", "algorithm.clients.flag=true"]
TWO = ["run", "spec.toml", "algorithm.clients.name=choosy:Mine", "model.name=choosy_model.py:Mine"]
FAILS = "choosy:Mine: fails in the first round (ValueError: no good)"
COMMANDS = {
    "compare": (
        ["compare", "spec.toml", *CHOSEN, "--algorithms", "fedavg,choosy:Mine"],
        f"algorithm.name = {FAILS} (in the cell algorithm.name = choosy:Mine)",
    ),
    "compare, not found": (
        ["compare", "spec.toml", "--algorithms", "fedavg,nowhere:Mine"],
        "--algorithms = nowhere:Mine: cannot be imported",
    ),
    "sweep, one value of two": (
        ["sweep", "sweep.toml"],
        f"algorithm.clients.name = {FAILS} (in the cell algorithm.clients.flag = True)",
    ),
    "sweep, its plan": (["sweep", "sweep.toml", "--dry-run"], f"algorithm.clients.name = {FAILS}"),
    "two classes, the first wrong": (
        [*TWO, "algorithm.clients.flag=true"],
        f"algorithm.clients.name = {FAILS}",
    ),
    "two classes, the second wrong": (
        [*TWO, "model.flag=true"],
        "model.name = choosy_model.py:Mine: fails (ZeroDivisionError: division by zero)",
    ),
}


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """What each command left."""
    folder = tmp_path_factory.mktemp("own")
    files = {"spec.toml": SPEC, "sweep.toml": SWEEP, "choosy.py": CHOOSY, "choosy_model.py": CHOOSY_MODEL}
    commands = {case: command for case, (command, _) in COMMANDS.items()}
    for number, (case, wrong) in enumerate(CASES.items()):
        module = NOWHERE if wrong.file == NOWHERE else f"own{number}"
        files |= {} if wrong.file == NOWHERE else {f"{module}.py": wrong.text}
        commands[case] = wrong.command(f"{module}:Mine")
    for name, text in files.items():
        (folder / name).write_text(text)
    return dict(zip(commands, run_all(folder, list(commands.values())), strict=True))


@pytest.mark.parametrize("case", CASES)
def test_a_wrong_class_is_refused_in_one_line(ran, case):
    wrong = CASES[case]
    line = refusal(ran[case])
    assert line.startswith(f"safari: {wrong.key or KEYS[wrong.noun]} = ")
    assert wrong.said in line


@pytest.mark.parametrize("case", COMMANDS)
def test_every_command_refuses_a_wrong_class_and_names_its_key(ran, case):
    assert refusal(ran[case]).startswith(f"safari: {COMMANDS[case][1]}")


def refusal(ran):
    """The line that a command was refused in; it must be the only trace."""
    assert ran.exit_code == 2, ran
    assert (ran.stdout, ran.written) == ("", [])
    (line,) = ran.stderr.splitlines()
    assert not re.search(r"Traceback|0x[0-9a-f]{6}", line), line
    return line
