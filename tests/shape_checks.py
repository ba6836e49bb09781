"""The run-time type checker of the tests: beartype, with whole numbers fit for floats."""

from beartype import BeartypeConf, beartype

check = beartype(conf=BeartypeConf(is_pep484_tower=True))
