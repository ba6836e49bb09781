"""Sweeps: many runs, planned into few compiled programs, in one resumable directory."""

from safari.experiment.sweep.cells import Cell, SweepSpec, flat, load_sweep, make_cell, read_share
from safari.experiment.sweep.merge import about_parts, merge
from safari.experiment.sweep.planner import Plan, Unit, make_plan
from safari.experiment.sweep.sweep import new_sweep, plan_sweep, read_sweep, resume_sweep
from safari.experiment.sweep.work import Progress

__all__ = [
    "Cell",
    "Plan",
    "Progress",
    "SweepSpec",
    "Unit",
    "about_parts",
    "flat",
    "load_sweep",
    "make_cell",
    "make_plan",
    "merge",
    "new_sweep",
    "plan_sweep",
    "read_share",
    "read_sweep",
    "resume_sweep",
]
