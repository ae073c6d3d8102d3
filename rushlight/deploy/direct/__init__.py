"""The direct form of a scripted method: its program is translated statement by statement, and values may vary between runs.

In: a jit graph and an example of its arguments. Out: a C++ function. Straight-line pieces of tensor operators become graphs,
with dynamic sizes wherever runs may differ. Numbers become C++ numbers. Strings, lists, dicts, tuples and objects become values
of `include/rushlight/deployed_language.h` and the headers that it includes, and views of tensors those of `deployed_tensors.h`.
This form is tried last.
"""
