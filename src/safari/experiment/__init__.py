"""Experiments: the spec (TOML), the run directory, single runs, sweeps; a comparison is a sweep."""

from safari.experiment.run import Interrupted, new_run, resume_run
from safari.experiment.spec import Spec, load_spec

__all__ = ["Interrupted", "Spec", "load_spec", "new_run", "resume_run"]
