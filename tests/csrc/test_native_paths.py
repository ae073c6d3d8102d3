"""The short ways through C: operators, packets, elementwise and view kernels, gradients taken over, optimizer steps."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import rushlight as rl
from rushlight import _C
from rushlight.core.dispatch_key import DispatchKey
from rushlight.ops.modes import DispatchMode
from rushlight.ops.registry import aten

native = pytest.mark.skipif(rl.ops.cpu.native.kernels is None, reason="the native kernels are switched off")
WHOLE, PART = rl.arange(12.0).view(3, 4), rl.arange(24.0).view(3, 8)[:, ::2]
OPERANDS = {
    "same shape": (WHOLE, WHOLE + 1), "number": (WHOLE, 2.5), "integer": (WHOLE, 3), "zero-dim": (WHOLE, rl.tensor(2.0)),
    "reversed": (rl.tensor(2.0), WHOLE), "one element": (WHOLE, rl.tensor([2.0])), "expanded": (WHOLE, rl.ones(1).expand(3, 4)),
    "both expanded": (rl.ones(1).expand(3, 4), rl.ones(1).expand(3, 4)), "row": (WHOLE, rl.arange(4.0)), "strided": (PART, WHOLE),
    "higher rank": (rl.ones(1), rl.ones(1, 1, 1)), "empty": (rl.ones(0, 3), rl.ones(1)), "other dtype": (WHOLE, rl.ones(3, 4).double()),
    "integers": (rl.arange(6), rl.arange(6) + 1), "large integer": (rl.arange(6, dtype=rl.int32), 1 << 20), "bool": (WHOLE > 3, True),
    "double": (WHOLE.double(), 0.1), "half": (WHOLE.half(), WHOLE.half()), "transposed": (WHOLE.t(), WHOLE.t()),
    "part of rows": (rl.arange(24.0).view(3, 8)[:, 1:5], WHOLE), "parts of rows": (WHOLE[:, :3], rl.arange(24.0).view(3, 8)[:, 5:]),
    "part and row": (rl.arange(24.0).view(3, 8)[:, 1:5], rl.arange(4.0)), "part and number": (WHOLE[:, 1:], 2.0),
    "part of planes": (rl.arange(24.0).view(2, 4, 3)[:, 1:3], rl.ones(2, 2, 3)), "expanded part": (WHOLE[:1, 1:].expand(3, 3), WHOLE[:, 1:]),
    "parts of other runs": (rl.arange(24.0).view(2, 4, 3)[:, 1:3], rl.arange(24.0).view(2, 2, 6)[:, :, :3]),
    "turned part": (rl.arange(24.0).view(3, 8)[:, 1:5].t(), WHOLE.t()), "one row": (rl.arange(24.0).view(3, 8)[1:2, 1:5], rl.ones(1, 4)),
}  # fmt: skip


def kernel_of(name: str, key: DispatchKey = DispatchKey.CPU):
    return aten(name).kernels[key].function


@pytest.mark.parametrize("operands", OPERANDS)
@pytest.mark.parametrize("name", ["add.Tensor", "mul.Tensor", "div.Tensor", "maximum", "lt.Tensor", "eq.Tensor"])
def test_elementwise_kernels_give_what_the_general_ones_give(name, operands):
    a, b = OPERANDS[operands]
    if name == "maximum" and not isinstance(b, rl.Tensor):
        pytest.skip("takes tensors only")
    kernel = kernel_of(name)
    found, expected = kernel(a, b), kernel.general(a, b)
    assert found.dtype is expected.dtype and found.shape == expected.shape and found.stride() == expected.stride()
    np.testing.assert_array_equal(found.float().numpy(), expected.float().numpy())


def test_arguments_beyond_the_schema_are_refused():
    with pytest.raises(TypeError):
        rl.ops.aten.add.Tensor(WHOLE, WHOLE, 2)
    with pytest.raises(TypeError):
        rl.ops.aten.mul.Tensor(WHOLE)
    with pytest.raises(TypeError):
        WHOLE.__add__()


def test_writes_in_place_that_overlap_are_left_to_the_general_kernel():
    x = rl.arange(8.0)
    for other in (x[:-1], x[3]):
        with pytest.raises(RuntimeError, match="single memory location"):
            x[1:].add_(other)
    assert x.tolist() == list(range(8))
    y = rl.arange(4.0)
    y.add_(y)
    y.mul_(y[1].clone())
    assert y.tolist() == [0, 4, 8, 12]


def test_writes_to_a_read_only_array_fail():
    array = np.ones(3, np.float32)
    array.flags.writeable = False
    with pytest.warns(UserWarning, match="not writable"):
        x = rl.from_numpy(array)
    with pytest.raises(ValueError, match="read-only"):
        x.add_(1)
    assert array.tolist() == [1, 1, 1]


def test_unknown_kernels_are_refused():
    for kind in (_C.ElementwiseKernel, _C.ViewKernel):
        with pytest.raises(ValueError, match="there is no native kernel nothing"):
            kind("nothing", print)
    for arguments in ((object(), {}), (object(),)):
        with pytest.raises((TypeError, ValueError)):
            _C.use_kernels(*arguments)


VIEWS = [
    ("permute", ((1, 0),)), ("permute", ((-1, 0),)), ("permute", ((0, 0),)), ("permute", ((0,),)), ("permute", ((0, 2),)),
    ("view", ((12,),)), ("view", ((2, -1),)), ("view", ((-1, 1, 4),)), ("view", ((5, -1),)), ("view", ((-1, -1),)), ("view", ((7,),)),
    ("expand", ((2, 3, 4),)), ("expand", ((1, 3, 4),)), ("expand", ((2, 1, -1, 4),)), ("expand", ((4,),)), ("expand", ((3, 5),)),
    ("expand", ((-1, 3, 4),)), ("select.int", (0, 1)), ("select.int", (-1, -1)), ("select.int", (2, 0)), ("select.int", (0, 3)),
    ("slice.Tensor", (1, 1, 3)), ("slice.Tensor", (0, -2, None)), ("slice.Tensor", (1, None, None, 2)), ("slice.Tensor", (0, 2, 1)),
    ("slice.Tensor", (0, 0, 9, 1)), ("slice.Tensor", (0, 0, 2, 0)), ("slice.Tensor", (5, 0, 1)), ("unsqueeze", (0,)),
    ("unsqueeze", (-1,)), ("unsqueeze", (1,)), ("unsqueeze", (4,)), ("alias", ()), ("detach", ()),
    ("as_strided", ((2, 2), (1, 3))), ("as_strided", ((2, 2), (1, 3), 4)), ("as_strided", ([3], [0], None)),
    ("as_strided", ((), (), 1)), ("as_strided", ((0, 9), (9, 1), 0)), ("as_strided", ((2, 2), (1,))),
    ("as_strided", ((2, 2), (1, -1), 4)), ("as_strided", ((2, -2), (1, 1))), ("as_strided", ((2,), (1,), -1)),
    ("as_strided", ((9,), (9,), 0)), ("as_strided", ((1 << 40, 2), (1 << 40, 1), 0)), ("as_strided", ((1,), (1,), 1 << 62)),
]  # fmt: skip


@pytest.mark.parametrize("source", [WHOLE, PART, WHOLE.t(), rl.arange(12.0).view(1, 12)[:, 2:6].expand(3, 4)], ids=range(4))
@pytest.mark.parametrize(("name", "arguments"), VIEWS)
def test_view_kernels_give_what_the_general_ones_give(name, arguments, source):
    kernel = kernel_of(name, DispatchKey.CompositeExplicitAutograd)
    try:
        expected = kernel.general(source, *arguments)
    except (RuntimeError, IndexError) as error:
        with pytest.raises(type(error)) as found:
            kernel(source, *arguments)
        assert str(found.value) == str(error)
        return
    made = kernel(source, *arguments)
    assert (made.shape, made.stride(), made.storage_offset()) == (expected.shape, expected.stride(), expected.storage_offset())
    assert made._impl.storage is source._impl.storage and made._impl.version is source._impl.version


LISTS = [
    ([WHOLE, WHOLE], 0), ([WHOLE, WHOLE + 1, WHOLE], 1), ((WHOLE, WHOLE), -1), ([WHOLE, WHOLE[:1]], 0), ([WHOLE, WHOLE[:, :1].clone()], 1),
    ([rl.arange(3), rl.arange(4)], 0), ([WHOLE > 3, WHOLE > 5], 1), ([WHOLE], 0), ([WHOLE, WHOLE.double()], 0), ([WHOLE, PART], 0),
    ([WHOLE.t(), WHOLE.t()], 0), ([WHOLE, rl.ones(0)], 0), ([rl.ones(0, 3), rl.ones(2, 3)], 0), ([WHOLE, WHOLE], 2),
    ([WHOLE, rl.ones(3, 5)], 0), ([], 0), ([WHOLE, 1], 0), ([rl.tensor(1.0)], 0), ([WHOLE.half(), WHOLE.half()], 1),
    ([rl.ones(2, 1, 3, 3), rl.ones(2, 1, 3, 3)], 0), ([rl.ones(2, 3, 4, 5)] * 2, 1), ([rl.ones(2, 3, 400, 50)] * 2, -2),
]  # fmt: skip


@pytest.mark.parametrize(("tensors", "dim"), LISTS, ids=range(len(LISTS)))
def test_the_concatenating_kernel_gives_what_the_general_one_gives(tensors, dim):
    kernel = kernel_of("cat")
    try:
        expected = kernel.general(tensors, dim)
    except (RuntimeError, IndexError, ValueError, TypeError) as error:
        with pytest.raises(type(error)) as found:
            kernel(tensors, dim)
        assert str(found.value) == str(error)
        return
    made = kernel(tensors, dim)
    assert (made.shape, made.stride(), made.dtype) == (expected.shape, expected.stride(), expected.dtype)
    np.testing.assert_array_equal(made.float().numpy(), expected.float().numpy())


def test_packets_tell_lists_by_their_elements():
    assert _C.argument_types((1, [2, 3], (), (1.0,))) == (int, (int,), (), (float,))
    assert _C.argument_types(([1, 2.0],)) is None
    with pytest.raises(TypeError):
        _C.argument_types([1])
    x = rl.ones(2, 3)
    for dims in ([0], [0, 1], (1,), []):
        assert x.sum(dims).numel() == x.numpy().sum(tuple(dims) or None).size
    assert rl.cat([x, x]).shape == (4, 3) == rl.cat((x, x)).shape


class Watch(DispatchMode):
    """Notes the operators that run."""

    def __init__(self):
        self.seen = []

    def __torch_dispatch__(self, op, types, args, kwargs):
        self.seen.append(str(op))
        return op(*args, **kwargs)


def test_modes_see_calls_that_record():
    x = rl.ones(3, requires_grad=True)
    with Watch() as mode:
        y = (x * 2).exp()
        y.sum().backward()
    assert mode.seen[:2] == ["aten.mul.Tensor", "aten.exp.default"] and x.grad is not None


def test_a_gradient_is_taken_over_or_copied():
    x = rl.ones(3, requires_grad=True)
    kept = []
    y = x * 2
    y.register_hook(lambda grad: kept.append(grad))
    (y * 3).sum().backward()
    assert x.grad.tolist() == [6] * 3 and x.grad.data_ptr() != kept[0].data_ptr()
    a, b = rl.ones(3, requires_grad=True), rl.ones(3, requires_grad=True)
    given = rl.ones(3)
    (a + b).backward(given)
    addresses = {a.grad.data_ptr(), b.grad.data_ptr(), given.data_ptr()}
    assert len(addresses) == 3 and a.grad.tolist() == [1] * 3


def test_the_gradient_of_a_view_is_no_view():
    x = rl.ones(2, 3, requires_grad=True)
    x.view(6).mul(2).backward(rl.ones(6))
    x.grad.add_(1)
    assert x.grad.tolist() == [[3] * 3] * 2 and not x.grad._is_view()


def test_threads_accumulate_into_one_leaf():
    x = rl.zeros(64, requires_grad=True)

    def work():
        for _ in range(50):
            (x * 1.0).sum().backward()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert x.grad.tolist() == [200.0] * 64


def test_errors_in_backward_nodes_pass_through_the_engine():
    class Wrong(rl.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            raise ZeroDivisionError("here")

    x = rl.ones(2, requires_grad=True)
    with pytest.raises(ZeroDivisionError, match="here"):
        (Wrong.apply(x) * 2).sum().backward()
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2, 2]


@pytest.mark.parametrize("arguments", [(), (1, 2, 3, 4, 5, 6), ((1,), {}, {}, False, None, None), (([],), {}, {}, False, None, None)])
def test_the_engine_refuses_what_are_no_nodes(arguments):
    with pytest.raises(TypeError):
        _C.run_tape(*arguments)
    with pytest.raises(TypeError):
        _C.count_edges([1])
    with pytest.raises(TypeError):
        _C.accumulator_of(3)


@native
def test_optimizer_steps_take_plain_rows_only():
    p, g, m, v, step = rl.ones(4), rl.ones(4), rl.zeros(4), rl.zeros(4), rl.tensor(0.0)
    options = (0.1, 0.9, 0.99, 1e-8, 0.0, False, False)
    odd = [(p, g), (p, 1, m, v, None, step), (p, g, m, rl.zeros(3), None, step), (p, rl.ones(4).double(), m, v, None, step),
           (p, rl.ones(1).expand(4), m, v, None, step), (p, g, m, v, None, "x"), (p, g, m, v, 3, step),
           (p, g, m, v, None, rl.zeros(2)), (rl.ones(8)[::2], g, m, v, None, step), 3]  # fmt: skip
    assert _C.optimizer_step("adam", odd, options) == list(range(len(odd)))
    assert p.tolist() == [1] * 4 and step.item() == 0 and p._version == 0
    assert _C.optimizer_step("adam", [odd[0], (p, g, m, v, None, step)], options) == [0]
    assert p.tolist() == pytest.approx([0.9] * 4) and step.item() == 1 and (p._version, m._version) == (1, 1)
    plain = (0.5, 0.0, 0.0, 0.0, False, False)
    assert _C.optimizer_step("sgd", [(p, g, None, 1.0)], plain) == []
    assert p.tolist() == pytest.approx([0.4] * 4)
    with Watch():
        assert _C.optimizer_step("sgd", [(p, g, None, 1.0)], plain) == [0]
    for wrong in (("adam", 3, options), ("adam", [], (1.0,)), ("adam", [], ("a",) * 7), ("adam",)):
        with pytest.raises(TypeError):
            _C.optimizer_step(*wrong)
    with pytest.raises(ValueError, match="no native optimizer of the name 'momentum'"):
        _C.optimizer_step("momentum", [], ())


@native
def test_optimizer_steps_leave_rows_that_share_memory_to_others():
    p, g, options = rl.ones(4), rl.ones(4), (0.5, 0.0, 0.0, 0.0, False, False)
    for other in (p, p[2:], p.view(2, 2)):
        assert _C.optimizer_step("sgd", [(p, g, None, 1.0), (other, rl.ones(other.shape), None, 1.0)], options) == [0, 1]
    assert _C.optimizer_step("sgd", [(p, g, None, 1.0), (rl.ones(4), p, None, 1.0)], options) == [0, 1]
    assert p.tolist() == [1] * 4
    assert _C.optimizer_step("sgd", [(p, g, None, 1.0), (rl.ones(4), g, None, 1.0)], options) == []
    assert p.tolist() == [0.5] * 4
