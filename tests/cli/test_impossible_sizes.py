"""What no machine can hold, and what no program can count to, is refused in one line, before the start."""

import time

import pytest

import safari
from machine.sizes import COMMANDS, RUN, words, write_specs
from refusals import assert_command_refused
from safari.algorithms.fedopt import FedOpt
from safari.models import MLP

SECONDS = 20.0
"""Five are promised, which `make machine` checks; the machine that tests may be busy."""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_specs(tmp_path)


def assert_refused(arguments: list[str], key: str, allowed: str) -> None:
    began = time.monotonic()
    assert_command_refused(arguments, f"{key} = ", allowed)
    assert time.monotonic() - began < SECONDS


@pytest.mark.parametrize("case", [*RUN, *COMMANDS])
def test_what_cannot_be_is_refused(case):
    _, key, allowed = RUN[case] if case in RUN else COMMANDS[case]
    assert_refused(words(case), key, allowed)


def test_from_python_too(digits):
    with pytest.raises(safari.InputError, match="GB of memory are free"):
        safari.train(digits, model=MLP(hidden=(10**9,)))


@pytest.mark.parametrize("name", ["sgd", "adam", "yogi", "adagrad", "lion", "rmsprop", "adafactor", "lamb"])
def test_optimisers_that_need_gradients_alone_can_be_used(name):
    assert FedOpt(optimizer=name).optimizer == name
