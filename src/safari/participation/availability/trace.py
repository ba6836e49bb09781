"""A trace file: who was there, as measured in a real fleet."""

import csv
from collections.abc import Sequence
from pathlib import Path

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from safari.errors import MOST_INT, InputError, check, unknown_name
from safari.participation.availability.base import Availability, State


class Trace(Availability):
    """A CSV file with the columns `round,client`, one row for each client that was there.

    Rounds count from 1, clients from 0; where the data names its clients, the file holds their names. After
    its last round the trace starts again.

    Args:
        file: the path of the file.

    Examples:
        >>> import pathlib, tempfile, safari
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "trace.csv"
        >>> _ = path.write_text("round,client\\n1,0\\n1,2\\n2,1\\n")
        >>> trace = safari.Trace(path)
        >>> trace.step(trace.init(None, 3), None, 0, 3)[1].tolist()
        [True, False, True]
    """

    file: str
    rounds: int
    rows: Int[Array, "rows 2"]
    names: tuple[str, ...]

    def __init__(self, file: str | Path):
        self.file = str(file)
        rows, self.names = _read(Path(file))
        self.rows, self.rounds = jnp.asarray(rows, jnp.int32), int(rows[:, 0].max())

    def called(self, names: Sequence[str] | None) -> "Trace":
        rows = np.asarray(self.rows)
        if names is None or not (self.names or set(map(str, rows[:, 1])) <= set(names)):
            return self
        place = {name: number for number, name in enumerate(names)}
        for name in self.names:
            known = f"names client {name}: {unknown_name(name, place, 'client')}"
            check(name in place, "file", self.file, known)
        texts = [self.names[-1 - client] if client < 0 else str(client) for client in rows[:, 1].tolist()]
        numbers = [place.get(text, len(place)) for text in texts]
        changed = jnp.asarray(np.stack([rows[:, 0], np.array(numbers)], axis=1), jnp.int32)
        return eqx.tree_at(lambda one: one.rows, self, changed)

    def check(self, clients: int) -> None:
        rows = np.asarray(self.rows)
        wrong = rows[(rows[:, 1] < 0) | (rows[:, 1] >= clients)]
        if len(wrong):
            round, client = wrong[0]
            client = self.names[-1 - client] if client < 0 else client
            allowed = f"round {round} names client {client}; clients are 0 to {clients - 1}"
            raise InputError("file", self.file, allowed)

    def init(self, key: Key[Array, ""], clients: int) -> State:
        nobody = jnp.zeros((self.rounds, clients), bool)
        return nobody.at[self.rows[:, 0] - 1, self.rows[:, 1]].set(True)

    def can_come(self, key: Key[Array, ""], clients: int, rounds: int) -> np.ndarray:
        rows = np.asarray(self.rows)
        mask = np.zeros(clients, bool)
        mask[rows[rows[:, 0] <= rounds, 1]] = True
        return mask

    def step(
        self, state: State, key: Key[Array, ""], round: Int[Array, ""], clients: int
    ) -> tuple[State, Bool[Array, " clients"]]:
        return state, state[round % self.rounds]

    def rates(self, state: State, round: Int[Array, ""], clients: int) -> Float[Array, " clients"]:
        return state.mean(axis=0)


def _read(path: Path) -> tuple[np.ndarray, tuple[str, ...]]:
    """Rounds and clients; a client that is called by a name is -1 less the place of the name."""
    names: dict[str, int] = {}
    check(path.is_file(), "file", str(path), "no such file")
    rows = []
    try:
        with path.open(newline="") as file:
            reader = csv.DictReader(file)
            check(
                reader.fieldnames == ["round", "client"],
                "file",
                str(path),
                f"the first line must be round,client, not {','.join(reader.fieldnames or [])}",
            )
            for line, row in enumerate(reader, start=2):
                try:
                    rows.append((int(row["round"]), _client(row["client"], names)))
                except (TypeError, ValueError, AttributeError):
                    raise InputError("file", str(path), f"line {line} is not a round and a client") from None
                check(rows[-1][0] >= 1, "file", str(path), f"line {line}: rounds count from 1")
                check(max(rows[-1]) <= MOST_INT, "file", str(path), f"line {line}: {MOST_INT} is the largest")
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError("file", str(path), f"cannot be read ({error})") from None
    check(bool(rows), "file", str(path), "names no client in any round")
    return np.array(rows), tuple(names)


def _client(text: str, names: dict[str, int]) -> int:
    text = text.strip()
    if text.isdigit():
        return int(text)
    if not text:
        raise ValueError
    return -1 - names.setdefault(text, len(names))
