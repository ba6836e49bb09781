"""A single run in a run directory: started, checkpointed, resumed, finished."""

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import tomli_w

from safari.engine.model_file import pack_model
from safari.engine.result import Result
from safari.engine.size import check_fits
from safari.engine.training import Diverged, Training
from safari.errors import InputError, check
from safari.experiment.checkpoint import pack, pack_table, unpack
from safari.experiment.checksums import SPEC, check_files, read_json, read_spec
from safari.experiment.directory import (
    CHECKPOINT,
    CURVES,
    DIAGNOSTICS,
    METRICS,
    MODEL,
    SUMMARY,
    Directory,
    refuse_existing,
)
from safari.experiment.spec import Spec, complete, set_key
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


def resume_run(
    path: Path, watch: Watcher, warn: Callable[[str], None], overrides: Sequence[str] = ()
) -> Result | None:
    """Go on with the run in `path`; None if it is finished already.

    Args:
        path: the run directory.
        watch: called about twice a second.
        warn: told what the user should know.
        overrides: `train.rounds=N` lets the run go on, finished or not, to N rounds in all.
    """
    rounds = _asked_rounds(overrides)
    with Directory.open(path, warn) as directory:
        if directory.finished() and rounds is None:
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
        asked = given if rounds is None else set_key(given, ["train", "rounds"], rounds)
        if rounds is not None and not _goes_on(directory, complete(given), rounds, warn):
            return None
        training = _training(complete(asked))
        if saved is not None:
            unpack(saved, training, path / CHECKPOINT)
        if asked != given:
            # In this order a kill in between leaves an unfinished run, of the old length or the new.
            directory.remove(SUMMARY)
            directory.write(SPEC, tomli_w.dumps(asked).encode())
        return _train(training, directory, watch)


def _asked_rounds(overrides: Sequence[str]) -> int | None:
    """How many rounds a run is to have in all; nothing else of it can be changed."""
    rounds = None
    for override in overrides:
        key, _, text = (part.strip() for part in override.partition("="))
        hint = "cannot be changed in a run that has begun; with --resume only train.rounds can"
        check(key == "train.rounds", key, text, hint)
        check(text.isdigit() and int(text) > 0, key, text, "must be a whole number of at least 1")
        rounds = int(text)
    return rounds


def _goes_on(directory: Directory, spec: Spec, rounds: int, warn: Callable[[str], None]) -> bool:
    """Whether a run has less than so many rounds; refuses what cannot have more, and says what differs."""
    train, finished = spec.tables["train"], directory.finished()
    before, every = train["rounds"], train["evaluate_every"]
    hint = f"the run has {before} rounds; it can go on to more, not to fewer"
    check(rounds >= before, "train.rounds", rounds, hint)
    if rounds == before:
        return not finished
    hint = f"the run has a schedule over {before} rounds; start another one"
    check(train["schedule"] is None, "train.rounds", rounds, hint)
    if finished:
        diverged = read_summary(directory.path)["diverged_at"]
        check(diverged is None, "train.rounds", rounds, f"the run diverged in round {diverged}")
        stopped = stopped_early(directory.path)
        check(stopped is None, "train.rounds", rounds, f"{stopped}, and would do so in more rounds as well")
    if finished and before % every:
        warn(f"round {before} was evaluated because the run ended there; one of {rounds} would not do so")
    if finished and train["diagnostics"]:
        warn(f"its diagnostics looked at curvatures in other rounds than in a run of {rounds}")
    return True


def stopped_early(path: Path) -> str | None:
    """After which round the finished run in `path` stopped early, in words; None if it did not."""
    at = read_summary(path).get("stopped_at")
    patience = complete(read_spec(path)).tables["train"]["patience"]
    return None if at is None else f"the run stopped early after round {at} (train.patience = {patience})"


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
    directory.write(CURVES, draw_run(result, directory.read_spec()["algorithm"]["name"]))
    directory.write_json(SUMMARY, result.summary())
    if result.diverged_at is not None:
        raise Diverged(result)
    return result
