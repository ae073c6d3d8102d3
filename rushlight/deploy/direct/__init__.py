"""The direct form of a scripted method: its program statement by statement, over values that a run knows.

In: a jit graph and an example of its arguments. Out: a C++ function. Straight-line pieces of operators on tensors are graphs,
with sizes open wherever a run may find others; numbers are numbers of C++; strings, lists, dicts, tuples and objects are
values of `include/rushlight/deployed_language.h`, and views of tensors are those of `deployed_tensors.h`. It is the last form
that is tried.
"""
