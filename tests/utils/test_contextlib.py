"""Contexts that decorate functions and generators."""

from __future__ import annotations

import pytest

from rushlight.utils._contextlib import _DecoratorContextManager, _NoParamDecoratorContextManager, context_decorator


class Noting(_DecoratorContextManager):
    def __init__(self, seen):
        self.seen = seen

    def __enter__(self):
        self.seen.append("in")

    def __exit__(self, *error):
        self.seen.append("out")

    def clone(self):
        return type(self)(self.seen)


def test_functions_and_generators_run_in_a_context():
    seen = []

    @Noting(seen)
    def function(x):
        seen.append(x)
        return x + 1

    @Noting(seen)
    def generator():
        got = yield 1
        seen.append(got)
        return "end"

    assert function(1) == 2 and seen == ["in", 1, "out"]
    seen.clear()
    made = generator()
    assert next(made) == 1 and seen == ["in", "out"]
    with pytest.raises(StopIteration) as end:
        made.send("sent")
    assert end.value.value == "end" and seen == ["in", "out", "in", "sent", "out"]
    assert context_decorator(lambda: Noting(seen), lambda: 5)() == 5


def test_contexts_without_arguments_decorate_as_classes():
    seen = []

    class Plain(_NoParamDecoratorContextManager):
        def __enter__(self):
            seen.append("in")

        def __exit__(self, *error):
            seen.append("out")

    @Plain
    def function():
        return 1

    assert function() == 1 and seen == ["in", "out"]
    with Plain():
        assert seen[-1] == "in"
