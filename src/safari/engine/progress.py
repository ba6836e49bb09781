"""A bar that shows how far a training is; by itself in notebooks, elsewhere if asked for."""

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from safari.engine.training import Training


def in_notebook() -> bool:
    """Whether this program runs in a notebook."""
    shell = sys.modules.get("IPython")
    return shell is not None and type(shell.get_ipython()).__name__ == "ZMQInteractiveShell"


@contextmanager
def bar(wanted: bool | None) -> Iterator[Callable[[Training], None]]:
    """Shows the trainings that it is called with; None: only in a notebook."""
    if not (in_notebook() if wanted is None else wanted):
        yield lambda training: None
        return
    from tqdm import TqdmWarning

    with warnings.catch_warnings():
        # Without ipywidgets a notebook shows the bar as text.
        warnings.simplefilter("ignore", TqdmWarning)
        from tqdm.auto import tqdm

    with tqdm(unit="round") as shown:

        def show(training: Training) -> None:
            shown.total = training.rounds
            known = training.history["accuracy"].drop_nulls()
            if len(known):
                shown.set_postfix_str(f"accuracy {known[-1]:.1%}", refresh=False)
            shown.update(training.done - shown.n)

        yield show
