"""`torch.overrides.TorchFunctionMode`: who sees which call, in which order, and that nothing is left behind."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

import rushlight as rl
from rushlight._C import DisableTorchFunction, DisableTorchFunctionSubclass, _len_torch_function_stack
from rushlight.nn import functional as F
from rushlight.overrides import (
    BaseTorchFunctionMode,
    TorchFunctionMode,
    _get_current_function_mode,
    _pop_mode_temporarily,
    get_overridable_functions,
    handle_torch_function,
    has_torch_function,
    resolve_name,
    wrap_torch_function,
)


class Watching(TorchFunctionMode):
    """Notes every call, and lets it run."""

    def __init__(self, seen=None):
        super().__init__()
        self.seen = [] if seen is None else seen

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.seen.append(func)
        return func(*args, **(kwargs or {}))


CALLS = {
    "add": (lambda x: rl.add(x, x), rl.add),
    "method": (lambda x: x.mul(2), rl.Tensor.mul),
    "operator": (lambda x: x + 1, rl.Tensor.add),
    "reflected sum": (lambda x: 1 + x, rl.Tensor.add),
    "quotient": (lambda x: x / 2, rl.Tensor.div),
    "whole quotient": (lambda x: x // 2, rl.Tensor.__floordiv__),
    "comparison": (lambda x: x < 2, rl.Tensor.lt),
    "reflected quotient": (lambda x: 2 / x, rl.Tensor.__rtruediv__),
    "reflected": (lambda x: 1 - x, rl.Tensor.__rsub__),
    "in place": (lambda x: x.detach().clone().add_(1), rl.Tensor.add_),
    "keywords": (lambda x: rl.add(x, x, alpha=2), rl.add),
    "out": (lambda x: rl.add(x, x, out=rl.empty(2, 3)), rl.add),
    "sizes": (lambda x: x.view(3, 2), rl.Tensor.view),
    "named results": (lambda x: rl.sort(x), rl.sort),
    "factory": (lambda x: rl.zeros(2, requires_grad=True), rl.zeros),
    "tensor": (lambda x: rl.tensor([1.0]), rl.tensor),
    "as_tensor": (lambda x: rl.as_tensor([1.0]), rl.as_tensor),
    "index": (lambda x: x[0], rl.Tensor.__getitem__),
    "write": (lambda x: x.__setitem__(0, 1), rl.Tensor.__setitem__),
    "size": (lambda x: x.size(0), rl.Tensor.size),
    "shape": (lambda x: x.shape, rl.Tensor.shape.__get__),
    "set": (lambda x: setattr(x, "requires_grad", False), rl.Tensor.requires_grad.__set__),
    "item": (lambda x: x[0, 0].item(), rl.Tensor.item),
    "to": (lambda x: x.to(rl.float64), rl.Tensor.to),
    "len": (lambda x: len(x), rl.Tensor.__len__),
    "functional": (lambda x: F.relu(x), F.relu),
    "python function": (lambda x: rl.einsum("ij->i", x), rl.einsum),
    "package": (lambda x: rl.linalg.norm(x), rl.linalg.norm),
    "fill": (lambda x: rl.nn.init.constant_(x, 1.0), rl.nn.init.constant_),
    "module": (lambda x: rl.nn.Linear(3, 2), rl.empty),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_mode_sees_the_call_and_the_value_stays(name):
    call, func = CALLS[name]
    mode = Watching()
    with mode:
        call(rl.ones(2, 3))
    assert func in mode.seen
    calls = len(mode.seen)
    call(rl.ones(2, 3))
    assert len(mode.seen) == calls


def test_dicts_of_handlers_find_what_is_passed():
    handlers = {rl.Tensor.size: "size", rl.Tensor.shape.__get__: "shape", rl.Tensor.add: "add", rl.Tensor.__getitem__: "item"}
    mode, x = Watching(), rl.ones(2, 3)
    with mode:
        x.size(), x.shape, x + x, x.add(x), x[0]
        assert mode.seen[0] == rl.Tensor.size and rl.Tensor.size in handlers
    assert [handlers.get(func) for func in mode.seen] == ["size", "shape", "add", "add", "item"]


def test_properties_stay_the_same_objects_when_vmap_is_loaded():
    program = """
import rushlight as torch
from rushlight.overrides import TorchFunctionMode
handlers = {torch.Tensor.requires_grad.__set__: 1, torch.Tensor.grad.__get__: 2, torch.Tensor.data.__get__: 3}
class Watching(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        print(handlers.get(func))
        return func(*args, **(kwargs or {}))
x = torch.ones(2)
torch.vmap(torch.sin)(x)
with Watching():
    x.requires_grad = True
    x.grad, x.data
"""
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "1\n2\n3\n"


def test_calls_go_from_the_innermost_mode_outwards():
    seen = []

    class Named(BaseTorchFunctionMode):
        def __init__(self, name):
            self.name = name

        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append((self.name, func.__name__, _len_torch_function_stack()))
            return super().__torch_function__(func, types, args, kwargs)

    x = rl.ones(2, 3)
    with Named("outer"), Named("inner"):
        x.size(0)
        F.relu(x)
    assert seen == [("inner", "size", 1), ("outer", "size", 0), ("inner", "relu", 1), ("outer", "relu", 0)]


def test_a_mode_may_answer_itself_and_calls_nothing():
    class Constant(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return 7

    with Constant():
        assert rl.add(1, 2) == rl.ones(3) == rl.zeros(2, device="banana") == 7


def test_modes_come_before_the_types_of_arguments():
    seen = []

    class Sub(rl.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append("type")
            return super().__torch_function__(func, types, args, kwargs or {})

    class Mode(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(("mode", types))
            return func(*args, **(kwargs or {}))

    x = rl.ones(3).as_subclass(Sub)
    seen.clear()
    with Mode():
        assert type(rl.add(x, x)) is Sub
    assert seen == [("mode", (Sub,)), "type"]


def test_declining_leaves_it_to_the_types_and_fails_without_them():
    class Declines(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return NotImplemented

    with Declines(), pytest.raises(TypeError, match="no implementation found for 'torch.add'.*currently active mode"):
        rl.add(1, 2)
    with TorchFunctionMode(), pytest.raises(NotImplementedError):
        rl.zeros(2)
    assert _len_torch_function_stack() == 0 and rl.ones(2).shape == (2,)


def test_nothing_is_left_on_the_class():
    before = dict(vars(rl.Tensor))
    with Watching(), Watching():
        assert vars(rl.Tensor)["size"] is not before["size"]
    assert dict(vars(rl.Tensor)) == before
    with pytest.raises(ZeroDivisionError), Watching():
        raise ZeroDivisionError
    assert dict(vars(rl.Tensor)) == before


def test_other_threads_are_not_asked():
    mode, results = Watching(), []
    with mode:
        thread = threading.Thread(target=lambda: results.append(rl.ones(2, 3).size(0)))
        thread.start()
        thread.join()
    assert results == [2] and mode.seen == []


def test_disabling():
    mode, x = Watching(), rl.ones(2)
    with mode, DisableTorchFunction():
        rl.add(x, x), x.size()
        assert not has_torch_function((x,))
    assert mode.seen == []
    with mode, DisableTorchFunctionSubclass():
        rl.add(x, x)
        assert has_torch_function((x,))
        with _pop_mode_temporarily() as popped:
            assert popped is mode and _get_current_function_mode() is None
    assert mode.seen == [rl.add]


def test_backward_is_one_call():
    mode, x = Watching(), rl.ones(2, requires_grad=True)
    loss = (x * 2).sum()
    with mode:
        loss.backward()
    assert mode.seen == [rl.Tensor.backward] and x.grad.tolist() == [2.0, 2.0]


def test_compiled_functions_run_as_they_are_under_a_mode():
    compiled = rl.compile(lambda x: rl.relu(x) + 1, backend="eager")
    x, mode = rl.ones(2), Watching()
    expected = compiled(x)
    with mode:
        assert rl.relu not in mode.seen
        assert rl.equal(compiled(x), expected)
    assert rl.relu in mode.seen


def test_functions_of_programs_take_part():
    @wrap_torch_function(lambda a, b: (a, b))
    def both(a, b):
        return a + b

    def own(a):
        return handle_torch_function(own, (a,), a) if has_torch_function((a,)) else a

    mode = Watching()
    with mode:
        assert both(1, 2) == 3 and own(5) == 5
    assert mode.seen == [both, own]


def test_names_of_functions():
    assert resolve_name(rl.add) == "torch.add" and resolve_name(F.relu) == "torch.nn.functional.relu"
    assert resolve_name(rl.Tensor.size) == "torch.Tensor.size" and resolve_name(len) is None
    assert resolve_name(rl.Tensor.shape.__get__) == "torch.Tensor.shape.__get__"
    found = get_overridable_functions()
    assert rl.add in found[rl] and rl.tensor in found[rl] and F.relu in found[rl.nn.functional] and rl.Tensor.size in found[rl.Tensor]
