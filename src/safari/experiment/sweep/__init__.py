"""Sweeps: many runs, planned into few compiled programs, in one resumable directory."""

from safari.experiment.sweep.cells import Cell, SweepSpec, flat, load_sweep, make_cell
from safari.experiment.sweep.merge import merge
from safari.experiment.sweep.planner import Plan, Unit, make_plan
from safari.experiment.sweep.sweep import Progress, new_sweep, plan_sweep, read_sweep, resume_sweep

__all__ = [
    "Cell",
    "Plan",
    "Progress",
    "SweepSpec",
    "Unit",
    "flat",
    "load_sweep",
    "make_cell",
    "make_plan",
    "merge",
    "new_sweep",
    "plan_sweep",
    "read_sweep",
    "resume_sweep",
]
