"""A trace file: who was there, as measured in a real fleet."""

import csv
from pathlib import Path

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, Key

from safari.errors import MOST_INT, InputError, check
from safari.participation.availability.base import Availability, State


class Trace(Availability):
    """A CSV file with the columns `round,client`, one row for each client that was there.

    Rounds count from 1, clients from 0. After its last round the trace starts again.

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

    def __init__(self, file: str | Path):
        self.file = str(file)
        rows = _read(Path(file))
        self.rows, self.rounds = jnp.asarray(rows, jnp.int32), int(rows[:, 0].max())

    def check(self, clients: int) -> None:
        rows = np.asarray(self.rows)
        wrong = rows[(rows[:, 1] < 0) | (rows[:, 1] >= clients)]
        if len(wrong):
            round, client = wrong[0]
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


def _read(path: Path) -> np.ndarray:
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
                    rows.append((int(row["round"]), int(row["client"])))
                except (TypeError, ValueError):
                    raise InputError("file", str(path), f"line {line} is not two whole numbers") from None
                check(rows[-1][0] >= 1, "file", str(path), f"line {line}: rounds count from 1")
                check(max(rows[-1]) <= MOST_INT, "file", str(path), f"line {line}: {MOST_INT} is the largest")
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError("file", str(path), f"cannot be read ({error})") from None
    check(bool(rows), "file", str(path), "names no client in any round")
    return np.array(rows)
