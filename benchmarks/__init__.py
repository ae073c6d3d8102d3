"""Rushlight beside its peers: same weights, same inputs, one process per measurement, in one run.

`python -m benchmarks` prints a table and writes results.md and results.png; `python -m benchmarks --help` lists the
workloads and the contenders. The way through: `workloads` says what is computed, `contenders` who computes it,
`runner` measures one pair in a process of its own, `rounds` starts those processes in turns, `report` and `chart`
show the outcome.
"""
