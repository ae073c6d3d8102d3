"""PyTorch's own test files, run against Rushlight and against PyTorch.

    python -m tools.torch_tests run --source pytorch-v2.6.0 --library rushlight test_indexing dynamo/test_misc
    python -m tools.torch_tests run --source pytorch-v2.6.0 --library torch test_indexing dynamo/test_misc
    python -m tools.torch_tests report

`--source` is an unpacked source package of PyTorch, of which nothing is kept here. Results lie in build/torch-tests: a file for
every test file and library, with a line of JSON for every test. `report` counts, of the tests that PyTorch passes, those that
Rushlight passes, and groups the others by their errors; tests that fail at an inner name of PyTorch's (one with an underscore,
or one of a package with an underscore) are counted apart.

Tests of several processes (`distributed/...`) fork their ranks, with gloo on three ranks where they don't say otherwise, one
thread each. Give them `-n 1`: ranks that share cores wait for each other.
"""
