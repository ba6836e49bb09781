"""The examples in the docstrings of the data room run and print what they say."""

import doctest
import importlib
import pkgutil

import pytest

import safari.data

MODULES = sorted(found.name for found in pkgutil.walk_packages(safari.data.__path__, "safari.data."))
WITH_EXAMPLES = ("Partition", "Classes", "Dirichlet", "IID", "ByColumn", "ServerSet", "Source", "federate")


@pytest.mark.parametrize("module", MODULES)
def test_examples_print_what_they_say(module):
    assert doctest.testmod(importlib.import_module(module)).failed == 0


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_public_names_have_an_example(name):
    assert doctest.DocTestParser().get_examples(getattr(safari, name).__doc__)
