"""Files are written whole or not begun: whoever ends the process waits for those that are being written."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

_CHANGED = threading.Condition()
_WRITERS: dict[int, int] = {}
"""How deep each thread is inside `writing`."""
_closed = False


@contextmanager
def writing() -> Iterator[None]:
    """Inside, files are written that belong together. Once the process ends, nobody gets in any more."""
    me = threading.get_ident()
    with _CHANGED:
        while _closed and me not in _WRITERS:
            _CHANGED.wait()
        _WRITERS[me] = _WRITERS.get(me, 0) + 1
    try:
        yield
    finally:
        with _CHANGED:
            _WRITERS[me] -= 1
            if not _WRITERS[me]:
                del _WRITERS[me]
            _CHANGED.notify_all()


def close(seconds: float | None) -> bool:
    """Let nobody begin to write any more, and wait so long for those who do (None: for ever).

    Returns:
        Whether nothing is being written now.
    """
    global _closed
    with _CHANGED:
        _closed = True
        return _CHANGED.wait_for(lambda: not _WRITERS, seconds)
