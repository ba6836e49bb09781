"""Trackers are told every round once, read back by their own libraries; also over a stop and a resume."""

import json
import struct
import warnings

import polars as pl
import pytest

from refusals import assert_refused
from safari.experiment import Interrupted, load_spec, new_run, resume_run
from safari.experiment.sweep import SweepSpec, new_sweep
from safari.experiment.tracking import TRACKERS, TrackedRun, TrackedSweep, settings_of

SPEC = """
[data]
server.samples = 50
partition.samples_per_client = 120
[train]
rounds = 6
"""
COMPARED = ("accuracy", "accuracy_round", "loss_round", "bytes_up", "recall/3")


def ignored(_):
    pass


def tracked(folder, name, stop_after=None):
    """A run that tells a tracker; stopped once, and resumed, if asked to."""
    (folder / "spec.toml").write_text(SPEC)
    spec, out = load_spec(folder / "spec.toml"), folder / "run"

    def watch(tell):
        def watching(training):
            tell(training)
            if stop_after is not None and stop_after <= training.done < 6:
                raise Interrupted

        return watching

    tell = TrackedRun(out, name, settings_of(spec.plain()))
    try:
        new_run(spec, out, watch(tell))
    except Interrupted:
        tell.close()
        tell = TrackedRun(out, name, settings_of(spec.plain()))
        resume_run(out, tell, ignored)
    tell.close()
    return out, pl.read_parquet(out / "metrics.parquet")


def expected(history, name):
    if name.startswith("recall/"):
        return [row[int(name[-1])] for row in history["recall"]]
    return history[name].to_list()


def from_tensorboard(folder, name):
    reader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    events = reader.EventAccumulator(str(folder))
    events.Reload()
    return [(event.step, event.value) for event in events.Scalars(name)]


def test_tensorboard_reads_back_what_the_history_holds(tmp_path):
    pytest.importorskip("tensorboardX")
    pytest.importorskip("tensorboard")
    out, history = tracked(tmp_path, "tensorboard", stop_after=1)
    for name in COMPARED:
        found = from_tensorboard(out / "tensorboard" / "run", name)
        assert [step for step, _ in found] == history["round"].to_list()
        assert [value for _, value in found] == pytest.approx(expected(history, name), rel=1e-6)
    summary = json.loads((out / "summary.json").read_text())
    [(step, value)] = from_tensorboard(out / "tensorboard" / "run", "summary/accuracy")
    assert (step, value) == (6, pytest.approx(summary["accuracy"]))


def test_mlflow_reads_back_what_the_history_holds(tmp_path, monkeypatch):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mlflow = pytest.importorskip("mlflow")
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    _, history = tracked(tmp_path, "mlflow", stop_after=1)
    client = mlflow.MlflowClient(tracking_uri=(tmp_path / "mlruns").as_uri())
    [run] = client.search_runs([client.get_experiment_by_name("safari").experiment_id])
    assert run.data.params["algorithm.clients.name"] == "fedavg"
    assert run.info.status == "FINISHED"
    for name in COMPARED:
        found = sorted(client.get_metric_history(run.info.run_id, name), key=lambda metric: metric.step)
        assert [metric.step for metric in found] == history["round"].to_list()
        assert [metric.value for metric in found] == pytest.approx(expected(history, name))


def logged(content):
    """The records of a file in the log format of LevelDB, behind a header of seven bytes."""
    place, block, whole = 7, 1 << 15, b""
    while place + 7 <= len(content):
        if block - place % block < 7:
            place += block - place % block
            continue
        _, length, kind = struct.unpack("<IHB", content[place : place + 7])
        whole += content[place + 7 : place + 7 + length]
        place += 7 + length
        if kind in (1, 4):  # whole, or its last part
            yield whole
            whole = b""


def test_wandb_reads_back_what_the_history_holds(tmp_path, monkeypatch):
    pytest.importorskip("wandb")
    from wandb.proto import wandb_internal_pb2

    monkeypatch.setenv("WANDB_MODE", "offline")
    _, history = tracked(tmp_path, "wandb")
    [file] = tmp_path.glob("wandb/offline-run-*/*.wandb")
    found = {}
    for content in logged(file.read_bytes()):
        record = wandb_internal_pb2.Record()
        record.ParseFromString(content)
        if record.WhichOneof("record_type") == "history":
            row = {item.key or "/".join(item.nested_key): item.value_json for item in record.history.item}
            found[int(row["_step"])] = json.loads(row["accuracy"])
    assert list(found) == history["round"].to_list()
    assert list(found.values()) == pytest.approx(history["accuracy"].to_list())


def test_a_sweep_tells_of_each_of_its_runs_once(tmp_path):
    pytest.importorskip("tensorboardX")
    (tmp_path / "spec.toml").write_text(SPEC)
    base = {"train": {"rounds": 3}}
    spec = SweepSpec(base, tuple({"algorithm.q": q, "train.seed": 0} for q in (0.2, 0.8)))
    results = new_sweep(spec, tmp_path / "sweep", ignored, {})
    tell = TrackedSweep(tmp_path / "sweep", "tensorboard")
    tell()
    folders = sorted((tmp_path / "sweep" / "tensorboard").iterdir())
    files = [file for folder in folders for file in folder.iterdir()]
    assert [folder.name.rpartition("-")[0] for folder in folders] == ["q=0.2,seed=0", "q=0.8,seed=0"]
    tell()
    assert [file for folder in folders for file in folder.iterdir()] == files
    pytest.importorskip("tensorboard")
    for folder, curve in zip(folders, results["curve_accuracy"].to_list(), strict=True):
        assert [value for _, value in from_tensorboard(folder, "accuracy")] == pytest.approx(curve)


def test_an_unknown_tracker_is_refused_and_so_is_one_whose_library_is_missing(tmp_path, monkeypatch):
    assert_refused(lambda: TrackedRun(tmp_path, "paper", {}), "--track = paper", "must be one of tensorboard")
    monkeypatch.setattr(TRACKERS["mlflow"], "library", "no_such_library")
    assert_refused(lambda: TrackedRun(tmp_path, "mlflow", {}), "--track = mlflow", "safari-fl[mlflow]")
