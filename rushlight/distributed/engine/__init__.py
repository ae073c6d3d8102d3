"""What collectives are made of: MPI, tensors as its buffers, process groups, works, and the watch for ranks that are missing.

From the bottom up: `mpi` (the only module that imports mpi4py), `buffers`, `reductions`, `operation`, `progress`, `notes`,
`faults`, `work`, `process_group`, `comparison`.
"""
