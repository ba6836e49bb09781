"""The engine: `train`, a run and its rounds, the compiled program, training in progress, what it leaves."""

from safari.engine.client_metrics import ClientMetrics
from safari.engine.metrics import Metrics
from safari.engine.model_file import load
from safari.engine.program import MOST_ROUNDS, program_for, shape_key
from safari.engine.result import HISTORY_SCHEMA, Log, Result
from safari.engine.run import Carry, Record, Run, check_train, draw_turn, initial_params, prepare, start
from safari.engine.train import train
from safari.engine.trained_model import TrainedModel
from safari.engine.training import Diverged, Training

__all__ = [
    "HISTORY_SCHEMA",
    "MOST_ROUNDS",
    "Carry",
    "ClientMetrics",
    "Diverged",
    "Log",
    "Metrics",
    "Record",
    "Result",
    "Run",
    "TrainedModel",
    "Training",
    "check_train",
    "draw_turn",
    "initial_params",
    "load",
    "prepare",
    "program_for",
    "shape_key",
    "start",
    "train",
]
