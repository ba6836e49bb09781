"""The one error that a user's input raises: which key, its value, what is allowed; and the one warning."""

import copyreg
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any

MOST_INT = 2**31 - 1
LEAST_FLOAT, MOST_FLOAT = 1.2e-38, 3.4e38
"""Of the numbers that programs compute with: what is smaller is 0 there, and what is larger infinite."""
MOST_KNOWN = 40


class InputError(ValueError):
    """Something the user wrote cannot be used.

    The message is one line: the key, the value it had and what to write instead.
    Rooms raise it with their own key (`q`); whoever knows the wider name (`algorithm.q`)
    re-raises it `under` that prefix.

    Examples:
        >>> import safari
        >>> try:
        ...     safari.Safari(q=1.5)
        ... except safari.InputError as error:
        ...     print(error)
        q = 1.5: must be between 0 and 1
    """

    def __init__(self, key: str, value: Any, allowed: str):
        self.key, self.value, self.allowed = key, value, allowed
        super().__init__(f"{key} = {_short(value)}: {allowed}")

    def __reduce__(self) -> tuple[Any, ...]:
        """Exceptions are copied by their message alone; this one goes to other processes as it is."""
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]

    def under(self, prefix: str) -> "InputError":
        return InputError(f"{prefix}.{self.key}", self.value, self.allowed)


class InputWarning(UserWarning):
    """What a user gave can be used, but may not be what was meant."""


def warn(line: str) -> None:
    """Warn of what a user gave; a command prints the line once."""
    warnings.warn(line, InputWarning, stacklevel=2)


@contextmanager
def naming(prefix: str) -> Iterator[None]:
    """Errors raised inside are about keys under `prefix`."""
    try:
        yield
    except InputError as error:
        raise error.under(prefix) from None


def _short(value: Any) -> str:
    text = " ".join((value if isinstance(value, str) else repr(value)).split())
    return text if len(text) <= 80 else text[:77] + "..."


def check(condition: Any, key: str, value: Any, allowed: str) -> None:
    """Raise `InputError` unless `condition` holds."""
    if not condition:
        raise InputError(key, value, allowed)


def check_fraction(key: str, value: float) -> None:
    check(0.0 <= value <= 1.0, key, value, "must be between 0 and 1")


def check_positive(key: str, value: float) -> None:
    check(0.0 < value < float("inf"), key, value, "must be above 0")
    check(LEAST_FLOAT <= value <= MOST_FLOAT, key, value, f"must be from {LEAST_FLOAT} to {MOST_FLOAT}")


def check_not_negative(key: str, value: float) -> None:
    check(0.0 <= value < float("inf"), key, value, "must be 0 or more")
    check(value <= MOST_FLOAT, key, value, f"must be {MOST_FLOAT} at the most")


def check_count(key: str, value: int, least: int = 1, most: int = MOST_INT) -> None:
    check(value >= least, key, value, f"must be a whole number of at least {least}")
    check(value <= most, key, value, f"must be {most} at the most")


def check_seed(key: str, value: int) -> None:
    check(0 <= value <= MOST_INT, key, value, "must be a whole number from 0 to 2147483647")


def check_choice(key: str, value: Any, choices: tuple[str, ...]) -> None:
    check(value in choices, key, value, "must be one of " + ", ".join(choices))


def unknown_name(name: str, known: Iterable[str], what: str = "key") -> str:
    """What to say of a name that nobody knows: which may be meant, and which there are."""
    known = list(known)
    near = get_close_matches(name, known, n=1) or get_close_matches(name.lower(), known, n=1)
    hint = f"did you mean {near[0]}? " if near else ""
    more = ", ..." if len(known) > MOST_KNOWN else ""
    return f"unknown {what}; {hint}known are {', '.join(known[:MOST_KNOWN])}{more}"
