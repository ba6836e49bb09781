"""The terminal says no: a stream that is closed, full, or cannot show every letter."""

import errno
import os
import sys
from contextlib import suppress
from typing import Any

FAILED = 1
REFUSALS = (errno.EPIPE, errno.EBADF, errno.ENOSPC, errno.EFBIG, errno.EIO)
"""What a stream may say. Files say their name with it."""


def look_after() -> None:
    """Replace streams that the shell closed; show `?` for letters that a terminal lacks.

    Else the next file that is opened takes the stream's number, and what is printed goes into it. Writing
    to a closed stdout still fails, as it should: a result would be lost.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            given = os.open(os.devnull, os.O_WRONLY if name == "stderr" else os.O_RDONLY)
            if given != number:
                os.dup2(given, number)
                os.close(given)
            setattr(sys, name, os.fdopen(number, "r" if name == "stdin" else "w"))
    stdout: Any = sys.stdout
    stdout.reconfigure(errors="replace")


def refusal(error: OSError) -> str:
    """What stdout said, if `error` is its: then nothing more is written to it."""
    if error.filename is not None or error.errno not in REFUSALS:
        return ""
    _silence()
    return f"stdout: {error.strerror}"


def flushed() -> int:
    """Whether all is written that was printed: 0, or the exit code, once it was said why not."""
    try:
        # Click's word for a reader that left, said to nobody. Newer typers bring a click of their own along.
        if type(sys.stdout).__name__ == "PacifyFlushWrapper":
            raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
        sys.stdout.flush()
    except OSError as error:
        with suppress(OSError):
            print(f"safari: {refusal(error) or error}", file=sys.stderr)
        return FAILED
    return 0


def _silence() -> None:
    """Let what stdout still holds go nowhere: Python would try again in the end, and complain."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
