"""Native calls of compiled graphs whose sizes are open, whose results are views, and which are cut: what they take and give."""

from __future__ import annotations

import threading

import pytest

import rushlight as torch
from rushlight._C import GraphLaunch
from rushlight.core.storage import StorageImpl
from rushlight.core.symbolic import ShapeEnv
from rushlight.dynamo.frames import debug_cache_entries
from rushlight.fx.proxy_tensor import capture
from rushlight.inductor.compile_fx import compile_fx
from rushlight.inductor.compiled import CompiledGraph
from rushlight.inductor.glue import Glue
from rushlight.inductor.launch import launch_text
from rushlight.inductor.options import Options
from rushlight.inductor.symbolic_graph import SymbolicGraph
from tests.inductor.open_graphs import compile_open

ROWS, BOTH = (0,), (0, 1)


def compile_fixed(function, *inputs):
    """Native code for these sizes."""
    with torch.no_grad():
        module = capture(function, inputs).module
    return compile_fx(module, Options(2), lambda stage, text, *more: None)


@pytest.fixture
def natively(monkeypatch):
    """From its call on, calls that go the general way fail."""

    def refuse(*inputs):
        raise AssertionError("the general way was gone")

    def watch():
        monkeypatch.setattr(SymbolicGraph, "__call__", refuse)
        monkeypatch.setattr(CompiledGraph, "__call__", refuse)

    return watch


def test_what_is_launched_prints():
    def function(x, n):
        y = x[:n] * 2
        return y.t(), x[1:], n * 3, x

    environment = ShapeEnv()
    compiled = compile_open(function, (torch.randn(8, 3), 5), (ROWS, True), environment=environment)
    graph = compiled.general
    assert launch_text(graph.plan, graph.sizes()) == """\
input 0: torch.float32[s0, 3] by [3, 1]
input 1: int s1
s0 = i0.sizes[0]
s1 = a1
s0 >= s1
s0 >= 2
s1 >= 2
i0.sizes[1] == 3
i0.strides[0] == 3
i0.strides[1] == 1
12*s1 <= 1152921504606846976
3*s1 <= 1152921504606846976
long: 3*s1 > 20000
memory 0: 12*s1 bytes
result 0: torch.float32[3, s1] by [1, 3] at 0 of memory 0
result 1: [s0 - 1, 3] by [3, 1] at 3 of input 0
result 2: 3*s1
result 3: input 0
"""


def test_a_launch_of_fixed_sizes_prints():
    compiled = compile_fixed(lambda x: (x.t() * 2, x[1], x), torch.randn(2, 3))
    graph = compiled.general
    assert launch_text(graph.plan, graph.sizes()) == """\
input 0: torch.float32[2, 3] by [3, 1]
memory 0: 24 bytes
result 0: torch.float32[3, 2] by [1, 3] at 0 of memory 0
result 1: [3] by [1] at 3 of input 0
result 2: input 0
"""


def test_calls_with_open_sizes_are_native(natively):
    weight = torch.randn(3, 4)
    compiled = compile_open(lambda x, n: ((x @ weight)[:n].relu(), x.sum(0), n + x.shape[0]), (torch.randn(8, 3), 5), (ROWS, True))
    compiled(torch.randn(8, 3), 5)
    compiled(torch.randn(8, 3), 5)  # packs the weight
    natively()
    for size, count in ((8, 5), (2, 2), (300, 7), (300, 300), (8, 5)):
        x = torch.randn(size, 3)
        product, total, number = compiled(x, count)
        torch.testing.assert_close(product, (x @ weight)[:count].relu())
        torch.testing.assert_close(total, x.sum(0))
        assert type(number) is int and number == count + size
        assert product.numel() == 4 * count and product.is_contiguous() and product.untyped_storage().nbytes() == 16 * count


def backwards(x):
    """`x` with a negative stride."""
    x._impl = x._impl.alias((3, 4), (-4, 1), 8)
    return x


def short(x):
    """`x` after its storage became too small."""
    storage = x._impl.storage
    storage.buffer, storage.nbytes = bytearray(8), 8
    return x


def freed(x):
    """`x` after its memory was taken away."""
    x._impl.storage = StorageImpl(None, 0, torch.device("cpu"))
    return x


class Number(int):
    """An int of another type."""


WRONG = {
    "too few": (lambda x: (x,), "takes 2 inputs, got 1"),
    "too many": (lambda x: (x, 2, 2), "takes 2 inputs, got 3"),
    "no tensor": (lambda x: (2, 2), "input 0 .* must be a torch.float32 CPU tensor .* got 2"),
    "None": (lambda x: (None, 2), "input 0 .* got None"),
    "a tensor for a number": (lambda x: (x, x), "input 1 .* must be the integer s2"),
    "a float for a number": (lambda x: (x, 2.0), "input 1 .* must be the integer s2, got 2.0"),
    "a bool for a number": (lambda x: (x, True), "input 1 .* must be the integer s2, got True"),
    "a subclass of int": (lambda x: (x, Number(2)), "input 1 .* must be the integer s2, got 2"),
    "a number that is too small": (lambda x: (x, -1), "sizes with s2 >= 2, got s0 = 3, s1 = 4, s2 = -1"),
    "a number that is too large": (lambda x: (x, 1 << 59), "bytes or steps in the graph, more than"),
    "a number beyond 64 bits": (lambda x: (x, 1 << 80), "bytes or steps in the graph, more than"),
    "another rank": (lambda x: (x[0], 2), "input 0"),
    "a size of 1": (lambda x: (x[:1], 2), "sizes with s0 >= 2, got s0 = 1"),
    "a size of 0": (lambda x: (x[:0], 2), "sizes with s0 >= 2, got s0 = 0"),
    "an expanded size": (lambda x: (x[:1].expand(3, 4), 2), r"stride \[s1, 1\] with s0 = 3, s1 = 4, s2 = 2, got .* stride \[0, 1\]"),
    "other strides": (lambda x: (x.t(), 2), r"got torch.float32 of size \[4, 3\] and stride \[1, 4\]"),
    "negative strides": (lambda x: (backwards(x), 2), r"and stride \[-4, 1\]"),
    "another dtype": (lambda x: (x.double(), 2), "got torch.float64"),
    "the meta device": (lambda x: (x.to("meta"), 2), "input 0 .* CPU tensor"),
    "a sparse tensor": (lambda x: (x.to_sparse(), 2), "input 0"),
    "a storage that is too small": (lambda x: (short(x), 2), "input 0 of the compiled graph needs a storage of 48 bytes, got 8"),
    "no memory": (lambda x: (freed(x), 2), "input 0 of the compiled graph"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_inputs_that_do_not_fit_are_refused(name):
    compiled = compile_open(lambda x, n: (x * n, torch.arange(n)), (torch.randn(8, 12), 5), (BOTH, True))
    make, message = WRONG[name]
    with pytest.raises(RuntimeError, match=message):
        compiled(*make(torch.randn(3, 4)))
    product, steps = compiled(torch.ones(3, 4), 3)
    assert product.tolist() == [[3.0] * 4] * 3 and steps.tolist() == [0, 1, 2]


def test_strides_of_a_size_of_one_do_not_matter(natively):
    compiled = compile_open(lambda x, y: x + y, (torch.randn(5, 3), torch.randn(1, 3)), (ROWS, ()))
    x, y = torch.randn(4, 3), torch.randn(3, 1).t()
    assert y.stride() == (1, 1)
    natively()
    torch.testing.assert_close(compiled(x, y)[0], x + y)


def test_inputs_that_begin_within_their_memory_and_memory_of_numpy(natively):
    compiled = compile_open(lambda x: x * 2, (torch.randn(5, 3),), (ROWS,))
    rows = torch.randn(9, 3)
    natively()
    assert torch.equal(compiled(rows[4:7])[0], rows[4:7] * 2)
    assert torch.equal(compiled(torch.from_numpy(rows.numpy().copy())[2:])[0], rows[2:] * 2)


def test_changed_constants_are_seen_at_all_sizes():
    weight = torch.randn(3, 4)
    compiled = compile_open(lambda x: x @ weight, (torch.randn(8, 3),), (ROWS,))
    for change in (lambda: None, lambda: weight.mul_(2), lambda: setattr(weight, "data", torch.randn(3, 4))):
        change()
        for size in (2, 2, 5, 2):
            x = torch.randn(size, 3)
            torch.testing.assert_close(compiled(x)[0], x @ weight)


def test_views_of_inputs_and_constants_are_made_natively():
    table = torch.randn(6, 3)

    def function(x):
        return x.t(), x[1], x + 1, table[1:3], table

    for compiled in (compile_fixed(function, torch.randn(4, 3)), compile_open(function, (torch.randn(5, 3),), (ROWS,))):
        base = torch.randn(6, 3)
        x = base[2:]
        compiled(x)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(type(compiled.general), "__call__", None)
            turned, row, _, part, same = compiled(x)
        assert turned.shape == (3, 4) and turned.stride() == (1, 3) and turned.storage_offset() == 6
        assert same is table and part.storage_offset() == 3
        version = x._version
        row.fill_(7.0)
        assert base[3].tolist() == [7.0] * 3 and x._version == turned._version == version + 1
        part.zero_()
        assert table[1:3].sum().item() == 0


def test_graphs_of_views_alone_need_no_library():
    for compiled, size in (
        (compile_fixed(lambda x: (x.t(), x[1]), torch.randn(4, 3)), 4),
        (compile_open(lambda x: (x.t(), x[1]), (torch.randn(5, 3),), (ROWS,)), 7),
    ):
        assert type(compiled) is GraphLaunch
        x = torch.randn(size, 3)
        turned, row = compiled(x)
        turned[0, 1] = 9.0
        assert row[0].item() == 9.0 and turned.shape == (3, size) and turned._is_view() and turned._base is x
    with pytest.raises(RuntimeError, match="input 0 of the compiled graph"):
        compiled(torch.randn(3, 3, 3))


def test_views_alone_that_are_written_back():
    compiled = compile_open(lambda x, y: x.copy_(y), (torch.randn(5, 3), torch.randn(5, 3)), (ROWS, ROWS))
    x, y = torch.zeros(4, 3), torch.ones(4, 3)
    compiled(x, y)
    assert x.tolist() == y.tolist() and x._version == 1


def test_writes_to_inputs_count(natively):
    compiled = compile_open(lambda n, x: (x.mul_(2), None)[1] or x * n, (5, torch.randn(6, 3)), (True, ROWS))
    x = torch.ones(4, 3)
    compiled(3, x)
    natively()
    (tripled,) = compiled(3, x)
    assert x._version == 2 and x.tolist() == [[4.0] * 3] * 4 and tripled.tolist() == [[12.0] * 3] * 4


def test_inputs_that_may_not_be_written_to_raise_eagers_errors():
    compiled = compile_fixed(lambda x: (x.mul_(2), x + 1)[1], torch.randn(4))
    with torch.inference_mode():
        x = torch.ones(4)
        compiled(x)
    with pytest.raises(RuntimeError, match="[Ii]nference"):
        compiled(x)
    array = torch.ones(4).numpy().copy()
    array.flags.writeable = False
    with pytest.warns(UserWarning, match="not writable"):
        locked = torch.from_numpy(array)
    with pytest.raises((RuntimeError, ValueError)):
        compiled(locked)
    assert array.tolist() == [1.0] * 4


def test_an_index_out_of_range_is_eagers_error(natively):
    compiled = compile_open(lambda table, rows: table[rows] * 2, (torch.randn(6, 3), torch.tensor([1, 2, 0, 3])), (ROWS, ROWS))
    table = torch.randn(5, 3)
    natively()
    assert torch.equal(compiled(table, torch.tensor([-5, 4, 0]))[0], table[torch.tensor([-5, 4, 0])] * 2)
    with pytest.raises(IndexError, match="out of (bounds|range)"):
        compiled(table, torch.tensor([0, 5]))


def test_a_profile_counts_calls_with_open_sizes():
    compiled = compile_open(lambda x: x.sin() * 2, (torch.randn(8, 3),), (ROWS,))
    compiled(torch.randn(4, 3))
    with torch.compiler.profile() as profile:
        compiled(torch.randn(5, 3))
        compiled(torch.randn(10, 3))
    (kernel,) = profile.kernels
    assert kernel.calls == 2 and kernel.bytes == 15 * 3 * 4 * 2


def test_threads_with_sizes_of_their_own(natively):
    weight = torch.randn(3, 3)
    compiled = compile_open(lambda x, n: ((x @ weight).tanh(), torch.arange(n)), (torch.randn(8, 3), 4), (ROWS, True))
    compiled(torch.randn(8, 3), 4)
    compiled(torch.randn(8, 3), 4)
    natively()
    wrong = []

    def call(size):
        x = torch.randn(size, 3)
        expected = (x @ weight).tanh()
        for turn in range(300):
            count = 2 + (size + turn) % 5
            found, steps = compiled(x, count)
            if found.shape != (size, 3) or not torch.allclose(found, expected, atol=1e-6) or steps.shape != (count,):
                wrong.append(size)

    threads = [threading.Thread(target=call, args=(size,)) for size in (2, 3, 50, 51)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_memory_of_calls_with_open_sizes_goes_back():
    compiled = compile_open(lambda x: (x.softmax(0) + x, x[1:]), (torch.randn(8, 64),), (BOTH,))
    compiled(torch.randn(8, 64))
    before = torch.allocator_statistics()["allocated_bytes"]
    for size in range(2, 200):
        compiled(torch.randn(size, 64))
    assert torch.allocator_statistics()["allocated_bytes"] <= before


def test_gradients_may_flow_through_views_of_inputs():
    compiled = torch.compile(lambda x: (x.t(), x * 2), dynamic=True)
    x = torch.randn(3, 4, requires_grad=True)
    turned, double = compiled(x)
    (turned.sum() + double.sum()).backward()
    assert x.grad.tolist() == [[3.0] * 4] * 3


# Cut graphs

LARGE = 65  # rows and columns from which on LAPACK takes less time than native code


def determinant(x):
    return torch.linalg.det(x * 2) + x.sum()


def test_a_cut_graph_is_one_function():
    compiled = compile_fixed(determinant, torch.randn(LARGE, LARGE))
    assert type(compiled) is Glue
    assert str(compiled) == """\
def run(arg0_1):
    compiled_0 = run_compiled_0(arg0_1); arg0_1 = None
    mul = compiled_0[0]
    sum_1 = compiled_0[1]; compiled_0 = None
    linalg_det = linalg_det_default(mul); mul = None
    compiled_1, = run_compiled_1(linalg_det, sum_1); linalg_det = sum_1 = None
    return (compiled_1, )
"""
    x = torch.randn(LARGE, LARGE) / 16
    torch.testing.assert_close(compiled(x)[0], determinant(x))


def test_an_error_in_a_cut_graph_names_the_node():
    compiled = compile_fixed(lambda x: torch.linalg.inv(x * 2), torch.eye(LARGE))
    with pytest.raises(RuntimeError, match="singular") as caught:
        compiled(torch.zeros(LARGE, LARGE))
    assert "While executing %" in "\n".join(caught.value.__notes__)
    torch.testing.assert_close(compiled(torch.eye(LARGE))[0], torch.eye(LARGE) / 2)


# Seeds


def test_seeds_are_drawn_natively():
    compiled = torch.compile(lambda x: torch.nn.functional.dropout(x, 0.5), fullgraph=True)
    x = torch.ones(64)
    compiled(x)
    (entry,) = debug_cache_entries(compiled)
    launch = entry.guarded_code.globals[entry.guarded_code.graph_name]
    assert type(launch) is GraphLaunch
    torch.manual_seed(3)
    first, second = compiled(x), compiled(x)
    torch.manual_seed(3)
    assert torch.equal(compiled(x), first) and torch.equal(compiled(x), second) and not torch.equal(first, second)
    torch.manual_seed(3)
    seed = torch.ops.aten._philox_seed()
    assert torch.equal(launch.general(x, seed)[0], first)
    with pytest.raises(RuntimeError, match="takes 2 tensors, got 3"):
        launch(x, x)


def test_the_backward_of_a_cut_graph_is_not_captured_in_turn(capsys):
    """It runs below a function's frame, where frames that are not the library's are captured."""
    a = torch.eye(LARGE, requires_grad=True)

    def step(a):
        torch.linalg.qr(a)[1].sum().backward()

    torch.compile(step, options={"logs": frozenset({"bytecode", "graph_breaks"})})(a)
    text = "".join(capsys.readouterr())
    assert "run as eager kernels" in text and "run ---" not in text
