"""What every command shares: errors in one line, compiled programs kept on disk."""

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from safari.cli import signals, streams
from safari.errors import InputError, InputWarning

if TYPE_CHECKING:
    from rich.console import RenderableType

METRIC_HELP = (
    "Columns, separated by commas or given several times: accuracy, balanced_accuracy, macro_f1, auc, loss, "
    "worst_recall, recall:CLASS, worst_client_accuracy, median_client_accuracy, client:NAME, or your own "
    "function of (y, probabilities), module:function or file.py:function."
)
METRIC_DEFAULT = "accuracy,balanced_accuracy,worst_recall"
BAD_INPUT, FAILED, STOPPED = 2, 1, 130
PIPED_WIDTH = 160
TRACK = "Also tell an experiment tracker: tensorboard, mlflow or wandb."


@contextmanager
def command() -> Iterator[None]:
    """Turn the errors that users cause into one line and an exit code, and warnings into one line each."""
    from safari.devices import use_cores
    from safari.engine import Diverged
    from safari.engine.compiled import keep_compiled_programs

    keep_compiled_programs()
    use_cores()
    try:
        with _warnings_in_one_line():
            yield
        sys.stdout.flush()
    except InputError as error:
        say(f"safari: {error}")
        raise typer.Exit(BAD_INPUT) from None
    except Diverged as error:
        say(f"safari: {error}")
        raise typer.Exit(FAILED) from None
    except OSError as error:
        say(f"safari: {streams.refusal(error) or _refusal(error)}")
        raise typer.Exit(FAILED) from None


@contextmanager
def _warnings_in_one_line() -> Iterator[None]:
    """Print a warning about what the user gave as one line, once; others are shown as they were."""
    said: set[str] = set()
    with warnings.catch_warnings():
        show = warnings.showwarning

        def shown(message: Warning | str, category: type[Warning], *rest: Any, **more: Any) -> None:
            if not issubclass(category, InputWarning):
                show(message, category, *rest, **more)
            elif str(message) not in said:
                said.add(str(message))
                say(f"safari: {message}")

        warnings.filterwarnings("always", category=InputWarning)
        warnings.showwarning = shown
        yield


def _refusal(error: OSError) -> str:
    """What the system refused, of which file, and how to go on once it no longer does."""
    where = f"{error.filename}: " if error.filename else ""
    how = signals.how_to_go_on()
    return f"{where}{error.strerror or error}{f'; {how}' if how else ''}"


def show(*tables: "RenderableType") -> None:
    """Print tables; wide where nobody's terminal is in the way."""
    from rich.console import Console

    class Told(Console):
        """A reader that left early is said like any other refusal of stdout; rich would end in silence."""

        def on_broken_pipe(self) -> None:
            raise

    narrow = sys.stdout.isatty() or "COLUMNS" in os.environ
    console = Told(width=None if narrow else PIPED_WIDTH)
    for table in tables:
        console.print(table)


def check_either(name: str, given: list[str] | None, resume: object, what: str = "a SPEC") -> None:
    """A command starts something new, or goes on with a directory: one of the two."""
    if (resume is None) == (not given):
        asked = " ".join(given or []) or "(nothing)"
        raise InputError(name, asked, f"needs {what}, or --resume DIRECTORY, not both")


def make_folder(path: Path) -> None:
    """A folder to write files into, made where it is missing; refused before work is done in vain."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError("--out", str(path), f"cannot be written ({error.strerror})") from None


def say(line: str) -> None:
    """A line for the user, apart from what a command prints as its result."""
    with suppress(OSError):
        print(line, file=sys.stderr, flush=True)
