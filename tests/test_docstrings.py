"""Public docstrings: arguments explained, examples that run, methods with their paper."""

import doctest
import inspect

import pytest

import safari
from safari.experiment.schema import meanings_of
from safari.registry import ALGORITHMS, SOURCES, Noun

PUBLIC = [name for name in safari.__all__ if name != "__version__"]
METHODS = {ALGORITHMS[name].__name__ for name in ALGORITHMS}
DOWNLOADED = {SOURCES[name].__name__ for name in SOURCES if name not in ("digits", "file", "nodes")}
HANDED_OVER = {"Client", "ClientState", "Diverged", "Note", "Reports", "Task", "Training", "Turn"}
"""What users are given and never make themselves."""

OURS = {"AdaptiveQ", "Beside", "FedAvg", "Safari", "ServerOnly", "ServerSGD", "Stages", "Then"}
WITH_EXAMPLE = sorted(set(PUBLIC) - (METHODS - OURS) - DOWNLOADED - HANDED_OVER)


@pytest.mark.parametrize("name", PUBLIC)
def test_it_explains_its_arguments(name):
    public = getattr(safari, name)
    assert inspect.getdoc(public)
    explained = set(meanings_of(public))
    if inspect.isfunction(public) or (inspect.isclass(public) and issubclass(public, Noun)):
        assert set(inspect.signature(public).parameters) <= explained


@pytest.mark.parametrize("name", WITH_EXAMPLE)
def test_its_example_runs(name):
    found = doctest.DocTestFinder(recurse=False).find(getattr(safari, name), name, globs={})
    assert [one for test in found for one in test.examples], "has no example"
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    for test in found:
        assert runner.run(test).failed == 0
