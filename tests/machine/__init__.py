"""The machine says no: `make machine`, or python tests/machine [rooms] [rights] [sizes] [streams]

A full disk, a limit on files, directories that may not be read or written, streams that are closed, full, or
know ASCII only: every command must end in one line that names the path, with exit code 1 or 2, without a
traceback, and without files half written. Once there is room again, it must give the same result.

Sizes that cannot be are refused before the start, within seconds.

Run it as root for all of it: a full disk is a small tmpfs, and root may read everything but for a while.
Writes benchmarks/results/machine.json; exits with the number of failures, 100 at the most.
"""
