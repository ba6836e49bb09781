"""Damage files of directories that safari made, then use them: `make fuzz`, or python tests/fuzz --seed 1

Each trial damages one file of a run, sweep, comparison, league, advice or fleet's state (cut, bits flipped,
zeros, garbage, missing), then resumes, reports, compares, merges, certifies, evaluates or predicts. A use may
do what it would have done, or refuse in one line. A traceback, another result, or a refusal that does not say
where is a failure; the exit code is their number, 100 at the most. Writes benchmarks/results/fuzz.json,
a part each kind, unless --most says that it is only a sample.
"""
