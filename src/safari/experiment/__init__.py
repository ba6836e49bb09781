"""Experiments: the spec (TOML), the run directory, single runs and comparisons."""

from safari.experiment.compare import Comparison, compare, resume_comparison
from safari.experiment.run import Interrupted, new_run, resume_run
from safari.experiment.spec import Spec, load_spec

__all__ = [
    "Comparison",
    "Interrupted",
    "Spec",
    "compare",
    "load_spec",
    "new_run",
    "resume_comparison",
    "resume_run",
]
