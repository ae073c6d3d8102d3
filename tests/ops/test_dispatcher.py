"""The dispatcher: which kernel a call reaches, in which order, and what it says when there is none."""

from __future__ import annotations

import copy
import pickle
import threading

import pytest

import rushlight as rl
from rushlight.core.dispatch_key import DispatchKey, bit
from rushlight.core.thread_state import ExcludeKeys, IncludeKeys, state
from rushlight.ops.dispatcher import FALLTHROUGH, Kernel, find_operator, register_fallback, unregister_fallback
from rushlight.ops.library import Library
from rushlight.ops.packet import namespaces

KEYS = [DispatchKey.Tracer, DispatchKey.Autograd, DispatchKey.CPU]


@pytest.fixture
def library():
    made = Library("test_dispatch", "DEF")
    yield made
    made._destroy()


@pytest.fixture
def operator(library):
    library.define("f(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor")
    return namespaces.test_dispatch.f.default


def kernel_named(calls: list, name: str):
    """A kernel that notes its name."""

    def kernel(self, other, *, alpha=1):
        calls.append((name, alpha))
        return self

    return kernel


def redispatching(calls: list, name: str) -> Kernel:
    """A linked kernel that notes its name and goes on with the keys below its own."""

    def link(op, below):
        lower = op.resolve(below)

        def kernel(*args, **kwargs):
            calls.append(name)
            return lower(*args, **kwargs)

        return kernel

    return Kernel(link, linked=True)


def test_the_highest_key_runs_first(operator):
    calls = []
    operator.register(DispatchKey.CPU, Kernel(lambda self, other, *, alpha=1: calls.append("CPU") or self))
    for key in (DispatchKey.Autograd, DispatchKey.Tracer):
        operator.register(key, redispatching(calls, key.name))
    x = rl.ones(2)
    assert operator(x, x) is x and calls == ["Autograd", "CPU"]
    calls.clear()
    with IncludeKeys(bit(DispatchKey.Tracer)):
        operator(x, x)
    assert calls == ["Tracer", "Autograd", "CPU"]
    calls.clear()
    with IncludeKeys(bit(DispatchKey.Tracer)), ExcludeKeys(bit(DispatchKey.Autograd)):
        operator(x, x)
    assert calls == ["Tracer", "CPU"]


def test_included_and_excluded_keys_are_put_back_after_errors():
    before = (state.include, state.exclude)
    with pytest.raises(ZeroDivisionError), IncludeKeys(bit(DispatchKey.Tracer)), ExcludeKeys(bit(DispatchKey.CPU)):
        raise ZeroDivisionError
    assert (state.include, state.exclude) == before


def test_keys_come_from_every_tensor_argument(library):
    calls = []
    library.define("g(Tensor? a, Tensor[] many, *, Tensor? b=None) -> int")
    op = namespaces.test_dispatch.g.default
    op.register(DispatchKey.CPU, Kernel(lambda a, many, *, b=None: calls.append("CPU") or 1))
    op.register(DispatchKey.Meta, Kernel(lambda a, many, *, b=None: calls.append("Meta") or 2))
    here, nowhere = rl.ones(1), rl.ones(1, device="meta")
    assert op(here, []) == op(None, [here]) == op(None, [], b=here) == op(None, []) == 1
    assert op(nowhere, []) == op(None, [here, nowhere]) == op(None, [], b=nowhere) == op(here, [nowhere]) == 2


def test_factories_follow_the_device():
    empty = rl.ops.aten.empty.memory_format
    assert empty((2,)).device.type == "cpu"
    assert empty((2,), device="meta").device.type == empty((2,), device=rl.device("meta")).device.type == "meta"


def test_kernels_get_the_arguments_unboxed(operator):
    calls = []
    operator.register(DispatchKey.CPU, Kernel(kernel_named(calls, "plain")))
    x = rl.ones(2)
    operator(x, x, alpha=3)
    operator(x, other=x)
    assert calls == [("plain", 3), ("plain", 1)]


def test_boxed_kernels_get_a_stack_in_schema_order(operator):
    seen = {}

    def boxed(op, key_set, stack):
        seen.update(op=op, keys=key_set, stack=list(stack))
        stack[:] = [stack[0] + stack[1]]

    operator.register(DispatchKey.CPU, Kernel(boxed, boxed=True))
    x, y = rl.ones(2), rl.ones(2)
    assert operator(x, other=y).tolist() == [2, 2]
    assert seen["op"] is operator and seen["stack"][2] == 1 and seen["stack"][0] is x
    assert not seen["keys"] & bit(DispatchKey.CPU), "only the keys below the kernel's own are left"


def test_boxed_kernels_of_several_results(library):
    library.define("pair(Tensor self) -> (Tensor, Tensor)")
    library.impl("pair", lambda op, keys, stack: stack.__setitem__(slice(None), [stack[0], stack[0]]), "CPU", boxed=True)
    x = rl.ones(1)
    assert namespaces.test_dispatch.pair(x) == (x, x)
    stack = [x]
    namespaces.test_dispatch.pair.default.call_boxed(stack)
    assert stack[0] is x and stack[1] is x


def test_call_boxed_replaces_arguments_by_results():
    x = rl.ones(2)
    stack = [x, x, 2]
    rl.ops.aten.add.Tensor.call_boxed(stack)
    assert len(stack) == 1 and stack[0].tolist() == [3, 3]


def test_redispatch_ignores_the_threads_state(operator):
    calls = []
    operator.register(DispatchKey.CPU, Kernel(kernel_named(calls, "CPU")))
    operator.register(DispatchKey.Tracer, Kernel(kernel_named(calls, "Tracer")))
    x = rl.ones(1)
    with IncludeKeys(bit(DispatchKey.Tracer)):
        operator.redispatch(bit(DispatchKey.CPU), x, x)
    assert calls == [("CPU", 1)]


def test_fallthrough_leaves_a_key_out(operator):
    calls = []
    operator.register(DispatchKey.CPU, Kernel(kernel_named(calls, "CPU")))
    operator.register(DispatchKey.Autograd, FALLTHROUGH)
    x = rl.ones(1, requires_grad=True)
    assert operator(x, x) is x and calls == [("CPU", 1)], "no node is recorded, the kernel's result is untouched"


def test_fallbacks_serve_operators_without_a_kernel_of_their_own(operator):
    calls = []
    operator.register(DispatchKey.CPU, Kernel(kernel_named(calls, "CPU")))

    def note(op, key_set, stack):
        calls.append(str(op))
        stack[:] = [op.redispatch(key_set, stack[0], stack[1])]

    fallback = Kernel(note, boxed=True)
    register_fallback(DispatchKey.Tracer, fallback)
    try:
        x = rl.ones(1)
        with IncludeKeys(bit(DispatchKey.Tracer)):
            operator(x, x)
            rl.ops.aten.mul.Tensor(x, x)
        assert calls == ["test_dispatch.f.default", ("CPU", 1), "aten.mul.Tensor"]
    finally:
        unregister_fallback(DispatchKey.Tracer, fallback)
    calls.clear()
    with IncludeKeys(bit(DispatchKey.Tracer)):
        operator(x, x)
    assert calls == [("CPU", 1)], "a removed fallback is gone from the chains already resolved"


def test_composites_are_replaced_unless_the_backend_has_a_kernel(library):
    library.define("double(Tensor self) -> Tensor")
    op = namespaces.test_dispatch.double.default
    library.impl("double", lambda self: self + self, "CompositeImplicitAutograd")
    x = rl.ones(1, requires_grad=True)
    assert op.is_composite and op(x).grad_fn.name() == "AddBackward0"
    library.impl("double", lambda self: self * 2, "CPU")
    with rl.no_grad():
        assert op(x).tolist() == [2]
    with pytest.raises(RuntimeError, match="derivative for test_dispatch::double is not implemented"):
        op(x).sum().backward()


def test_explicit_composites_serve_all_backends_below_autograd(library):
    library.define("same(Tensor self) -> Tensor")
    library.impl("same", lambda self: self, "CompositeExplicitAutograd")
    op = namespaces.test_dispatch.same
    for x in (rl.ones(1), rl.ones(1, device="meta")):
        assert op(x) is x


def test_a_missing_kernel_is_named(operator):
    operator.register(DispatchKey.Meta, Kernel(lambda self, other, *, alpha=1: self))
    message = r"Could not run 'test_dispatch::f' with arguments from the 'CPU' backend. Kernels are registered for: Meta"
    with pytest.raises(NotImplementedError, match=message):
        operator(rl.ones(1), rl.ones(1))


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((), {}, "missing value for argument 'self'"),
        ((1, 2, 3, 4), {}, "takes at most 3 arguments, got 4"),
        ((1,), {"self": 2}, "missing value for argument 'other'"),
        ((1, 2), {"self": 2}, "unexpected or repeated argument 'self'"),
        ((1, 2), {"beta": 2}, "unexpected or repeated argument 'beta'"),
    ],
)
def test_normalize_checks_arguments(operator, args, kwargs, message):
    with pytest.raises(TypeError, match=message):
        operator.normalize(args, kwargs)


def test_normalize_fills_in_defaults_and_lists_of_fixed_length():
    assert rl.ops.aten.add.Tensor.normalize((1,), {"other": 2}) == [1, 2, 1]
    assert rl.ops.aten.max_pool2d_with_indices.default.normalize((0, 3), {})[1:4] == [[3, 3], (), (0, 0)]


def test_operators_are_singletons_with_readable_names():
    op = rl.ops.aten.add.Tensor
    assert str(op) == "aten.add.Tensor" and op.name == "aten::add.Tensor"
    assert repr(op) == "<OpOverload(op='aten.add', overload='Tensor')>"
    assert copy.deepcopy(op) is copy.copy(op) is pickle.loads(pickle.dumps(op)) is op
    assert pickle.loads(pickle.dumps(rl.ops.aten.add)) is rl.ops.aten.add
    assert find_operator("aten::relu") is rl.ops.aten.relu.default is find_operator("aten::relu", "default")
    with pytest.raises(RuntimeError, match="No such operator aten::nothing.Tensor"):
        find_operator("aten::nothing", "Tensor")
    with pytest.raises(AttributeError, match="no operator namespace or module 'nothing'"):
        rl.ops.nothing  # noqa: B018
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        rl.ops.aten.nothing  # noqa: B018


def test_threads_have_states_of_their_own():
    seen, entered, leave = {}, threading.Event(), threading.Event()

    def other():
        with IncludeKeys(bit(DispatchKey.Tracer)), rl.no_grad():
            entered.set()
            leave.wait(10)
            seen["other"] = (state.include, rl.is_grad_enabled())

    thread = threading.Thread(target=other)
    thread.start()
    entered.wait(10)
    seen["main"] = (state.include & bit(DispatchKey.Tracer), rl.is_grad_enabled())
    leave.set()
    thread.join()
    assert seen["main"] == (0, True)
    assert seen["other"][0] & bit(DispatchKey.Tracer) and not seen["other"][1]


def test_calls_from_many_threads_resolve_once_and_agree(operator):
    operator.register(DispatchKey.CPU, Kernel(lambda self, other, *, alpha=1: self + other))
    results, start = [], threading.Barrier(8)

    def work():
        start.wait()
        x = rl.ones(4)
        for _ in range(50):
            x = operator(x, rl.ones(4))
        results.append(x.tolist())

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [[51.0] * 4] * 8
