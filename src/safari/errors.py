"""The one error that a user's input raises: which key, its value, what is allowed."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any


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

    def under(self, prefix: str) -> "InputError":
        return InputError(f"{prefix}.{self.key}", self.value, self.allowed)


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


def check_not_negative(key: str, value: float) -> None:
    check(0.0 <= value < float("inf"), key, value, "must be 0 or more")


def check_count(key: str, value: int, least: int = 1) -> None:
    check(value >= least, key, value, f"must be a whole number of at least {least}")


def check_seed(key: str, value: int) -> None:
    check(0 <= value < 2**31, key, value, "must be a whole number from 0 to 2147483647")


def check_choice(key: str, value: Any, choices: tuple[str, ...]) -> None:
    check(value in choices, key, value, "must be one of " + ", ".join(choices))


def unknown_name(name: str, known: Iterable[str], what: str = "key") -> str:
    """What to say of a name that nobody knows: which may be meant, and which there are."""
    known = list(known)
    near = get_close_matches(name.lower(), known, n=1)
    hint = f"did you mean {near[0]}? " if near else ""
    return f"unknown {what}; {hint}known are {', '.join(known)}"
