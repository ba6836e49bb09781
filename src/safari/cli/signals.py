"""One SIGINT (Ctrl-C), SIGTERM or SIGHUP stops any command, wherever it is.

Python hands a signal to the main thread between two of its steps. While that thread waits for a compiler this
takes as long as the compiler does, and an exception raised inside a library's callback is printed and lost.
Therefore a thread of its own is woken by signals. It asks a training to stop, so that what it has reached is
saved, and ends the process if that takes too long. No file is left half written.

This module imports next to nothing, so that it is in place before anything heavy is loaded.
"""

import os
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

FIRST = 128
"""A process that signal n stopped exits with 128 + n, as shells have it."""
INTERRUPT = int(signal.SIGINT)
SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
PATIENCE = 1.3
"""Seconds that a training has to stop by itself."""
WRITING_PATIENCE = 0.3
SHOW_CURSOR = "\x1b[?25h"


class _Stop:
    """What was asked for, who listens, and what a user is told in the end."""

    number: int | None = None
    listeners = 0
    directory: "os.PathLike[str] | None" = None
    how = ""
    said = False


_STOP = _Stop()


def end_at_once() -> None:
    """From now on a signal ends the process. Those that the shell told us to ignore stay ignored."""
    _call(lambda number, frame: _end(number, hurry=True))


def look_after() -> None:
    """From now on a signal wakes a thread, which asks a training to stop before it ends the process."""
    import threading

    ours, theirs = os.pipe()
    os.set_blocking(theirs, False)
    threading.Thread(target=_wait, args=(ours,), name="signals", daemon=True).start()
    by_itself = os.name == "posix"
    if by_itself:
        signal.set_wakeup_fd(theirs, warn_on_full_buffer=False)

    def passed_on(number: int, frame: object) -> None:
        if not by_itself:
            os.write(theirs, bytes([number]))

    _call(passed_on)


def _call(handler: "Callable[[int, object], None]") -> None:
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)


def asked() -> bool:
    """Whether a signal has asked this process to stop."""
    return _STOP.number is not None


class listening:  # noqa: N801 - used as a word in a `with`
    """Inside, the command looks at `asked` about twice a second, and stops by itself."""

    def __enter__(self) -> None:
        _STOP.listeners += 1

    def __exit__(self, *_: object) -> None:
        _STOP.listeners -= 1


def tell(directory: "os.PathLike[str]", how: str, new: bool) -> None:
    """How to go on after the command was stopped: said if `directory` is there, unless another made it."""
    if not (new and os.path.exists(directory)):
        _STOP.directory, _STOP.how = directory, how


def how_to_go_on() -> str:
    """What `tell` was told, if the directory is there."""
    return _STOP.how if _STOP.directory is not None and os.path.isdir(_STOP.directory) else ""


def say_the_end() -> None:
    """Say, once, that the command was stopped, and how to go on with it."""
    if not _STOP.said:
        _STOP.said = True
        how = how_to_go_on()
        _say(f"stopped; {how}" if how else "stopped")


def leave_if_asked() -> None:
    """End the process with a signal's exit code, if there was one; nothing more is to be written."""
    if _STOP.number is not None:
        from contextlib import suppress

        if not _STOP.said:
            _STOP.said = True
            _say("it was done before it could be stopped")
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(FIRST + _STOP.number)


def _wait(pipe: int) -> None:
    import threading

    while True:
        number = os.read(pipe, 1)[0]
        if number not in SIGNALS:
            continue
        if _STOP.number is not None:
            _end(number, hurry=True)
        _STOP.number = number
        if _STOP.listeners:
            _say("stopping; press Ctrl-C again to stop at once")
        patience = threading.Timer(PATIENCE if _STOP.listeners else 0.0, _end, (number,))
        patience.daemon = True
        patience.start()


def _end(number: int, hurry: bool = False) -> None:
    """End the process from outside of whatever it does, but not in the middle of a file."""
    writing = sys.modules.get("safari.experiment.writing")
    if writing is not None and not hurry and not writing.close(WRITING_PATIENCE):
        _say("waiting for a file that is being written; press Ctrl-C again to stop at once")
        writing.close(None)
    say_the_end()
    os._exit(FIRST + number)


def _say(line: str) -> None:
    """Straight to the terminal: the main thread may hold the lock of `sys.stderr`."""
    try:  # noqa: SIM105 - contextlib is not loaded yet
        os.write(2, f"{SHOW_CURSOR if os.isatty(2) else ''}{line}\n".encode())
    except OSError:
        pass
