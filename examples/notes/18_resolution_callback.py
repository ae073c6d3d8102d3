"""Note 4, "createResolutionCallback()": the program of its documentation, which prints 2."""

from torch._jit_internal import createResolutionCallback


def bar():
    cb = createResolutionCallback(1)
    print(cb("foo"))

def baz():
    foo = 2
    bar()

baz()
