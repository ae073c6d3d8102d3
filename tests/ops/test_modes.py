"""Dispatch modes: who sees a call, in which order, and that nothing is left behind."""

from __future__ import annotations

import threading

import pytest

import rushlight as rl
from rushlight.core.thread_state import state
from rushlight.ops.modes import DispatchMode, SuspendModes


class Log(DispatchMode):
    """Notes each operator and passes it on."""

    def __init__(self, calls: list, name: str = ""):
        self.calls = calls
        self.name = name

    def __torch_dispatch__(self, op, types, args, kwargs):
        self.calls.append(self.name + op._schema.name)
        return op(*args, **kwargs)


def test_a_mode_sees_primitives_below_autograd():
    calls = []
    x = rl.ones(2, 3, requires_grad=True)
    with Log(calls):
        y = (x @ rl.ones(3, 2)).mean()
    assert calls == ["full", "mm", "sum", "div"]
    assert y.grad_fn.name() == "DivBackward0"
    y.backward()
    assert calls[4:] == [] and x.grad is not None


def test_modes_nest_innermost_first():
    calls = []
    with Log(calls, "outer "), Log(calls, "inner "):
        rl.ones(2).exp()
    assert calls == ["inner full", "outer full", "inner exp", "outer exp"]


def test_a_mode_is_inactive_in_its_own_handler():
    class Doubling(DispatchMode):
        def __torch_dispatch__(self, op, types, args, kwargs):
            result = op(*args, **kwargs)
            return result * 2 if op._schema.name == "exp" else result

    with Doubling():
        assert rl.zeros(1).exp().item() == 2


def test_state_is_put_back_after_errors():
    class Failing(DispatchMode):
        def __torch_dispatch__(self, op, types, args, kwargs):
            raise ZeroDivisionError

    before = (list(state.modes), state.include)
    with pytest.raises(ZeroDivisionError), Failing():
        rl.ones(1)
    assert (state.modes, state.include) == before
    assert rl.ones(1).item() == 1


def test_suspended_modes_see_nothing():
    calls = []
    with Log(calls):
        with SuspendModes():
            rl.ones(1)
        rl.zeros(1).neg()
    assert calls == ["full", "neg"]


def test_modes_belong_to_their_thread():
    calls = []
    with Log(calls):
        thread = threading.Thread(target=lambda: rl.ones(1).exp())
        thread.start()
        thread.join()
    assert calls == []


def test_modes_see_in_place_writes_and_views():
    calls = []
    x = rl.zeros(2, 2)
    with Log(calls):
        x[0].add_(1)
        x[:, 1] = 5
    assert calls == ["select", "add_", "slice", "select", "fill_"] or calls == ["select", "add_", "select", "fill_"]
    assert x.tolist() == [[1, 5], [0, 5]]


def test_a_mode_must_say_what_it_does():
    with pytest.raises(NotImplementedError), DispatchMode():
        rl.ones(1)
