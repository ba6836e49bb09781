"""A single run in a run directory: started, checkpointed, resumed, finished."""

import os
import time
from collections.abc import Callable
from pathlib import Path

from safari.engine.model_file import pack_model
from safari.engine.result import Result
from safari.engine.size import check_fits
from safari.engine.training import Diverged, Training
from safari.errors import InputError
from safari.experiment.checkpoint import pack, pack_table, unpack
from safari.experiment.checksums import check_files, read_json
from safari.experiment.directory import (
    CURVES,
    DIAGNOSTICS,
    METRICS,
    MODEL,
    SUMMARY,
    Directory,
    refuse_existing,
)
from safari.experiment.spec import Spec, complete
from safari.experiment.versions import versions
from safari.report.curves import draw_run

CHECKPOINT_SECONDS = float(os.environ.get("SAFARI_CHECKPOINT_SECONDS", "5"))
Watcher = Callable[[Training], None]
"""Called about twice a second; raises `Interrupted` to stop at this point."""


class Interrupted(Exception):
    """The user asked to stop; the directory can be resumed."""


def new_run(spec: Spec, out: Path, watch: Watcher) -> Result:
    """Train what `spec` describes into the new directory `out`.

    Nothing is written unless the whole spec is sound.
    """
    refuse_existing(out)
    training = _training(spec)
    with Directory.create(out, spec.to_toml()) as directory:
        return _train(training, directory, watch)


def resume_run(path: Path, watch: Watcher, warn: Callable[[str], None]) -> Result | None:
    """Go on with the run in `path`; None if it is finished already."""
    with Directory.open(path, warn) as directory:
        if directory.finished():
            check_files(path)
            return None
        directory.sweep()
        saved = directory.load_checkpoint()
        if saved is not None and "about.json" in saved:
            raise InputError("--resume", str(path), "is a federation of Flower; start its app again to go on")
        given = directory.read_spec()
        if "compare" in given:
            raise InputError("--resume", str(path), "is a comparison; use `safari compare --resume`")
        if "made" in given:
            raise InputError("--resume", str(path), "is a sweep; use `safari sweep --resume`")
        changed = [name for name, value in versions().items() if given.get("versions", {}).get(name) != value]
        if changed:
            warn(f"changed since this run began, so its last digits may differ: {', '.join(changed)}")
        training = _training(complete(given))
        if saved is not None:
            unpack(saved, training)
        return _train(training, directory, watch)


def _training(spec: Spec) -> Training:
    run = spec.prepare()
    check_fits(run)
    return Training(run, diagnostics=spec.tables["train"]["diagnostics"])


def read_summary(path: Path) -> dict:
    return read_json(path / SUMMARY)


def _train(training: Training, directory: Directory, watch: Watcher) -> Result:
    saved = time.monotonic()
    try:
        while not training.finished:
            training.advance()
            watch(training)
            if time.monotonic() - saved > CHECKPOINT_SECONDS:
                directory.save_checkpoint(training.done, pack(training))
                saved = time.monotonic()
    except Interrupted:
        directory.save_checkpoint(training.done, pack(training))
        raise
    except KeyboardInterrupt:
        raise Interrupted from None
    if training.diverged[0] is None:
        directory.save_checkpoint(training.done, pack(training))
    return _finish(training.result(), directory)


def _finish(result: Result, directory: Directory) -> Result:
    """Write what a finished run leaves; the summary last."""
    directory.write(METRICS, pack_table(result.history))
    if result.diagnostics is not None:
        directory.write(DIAGNOSTICS, pack_table(result.diagnostics))
    if result.diverged_at is None:
        directory.write(MODEL, pack_model(result.model))
    directory.write(CURVES, draw_run(result))
    directory.write_json(SUMMARY, result.summary())
    if result.diverged_at is not None:
        raise Diverged(result)
    return result
