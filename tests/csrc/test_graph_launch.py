"""Calls of compiled graphs in one native step, and what they leave to the general way."""

from __future__ import annotations

import gc
import threading
import weakref

import pytest

import rushlight as torch
from rushlight._C import GraphLaunch
from rushlight.dynamo.frames import debug_cache_entries
from rushlight.inductor.planning import LONG_WORK, work_of
from tests.csrc.test_launch import address_of, library  # noqa: F401

pytestmark = pytest.mark.usefixtures("small_heap")


@pytest.fixture(scope="module")
def two():
    """sin(x) + y, on 2 x 3 elements."""

    def function(x, y):
        return torch.sin(x) + y

    compiled = torch.compile(function, fullgraph=True)
    compiled(torch.ones(2, 3), torch.ones(2, 3))
    (entry,) = debug_cache_entries(compiled)
    yield entry.guarded_code.globals[entry.guarded_code.graph_name]
    del compiled


def test_results_are_as_in_eager(two):
    x, y = torch.randn(2, 3), torch.randn(2, 3)
    (result,) = two(x, y)
    torch.testing.assert_close(result, torch.sin(x) + y)
    assert result.stride() == (3, 1) and result._version == 0 and not result.requires_grad
    assert result.numel() == 6 and result.is_contiguous() and result.untyped_storage().nbytes() == 24


WRONG = {
    "no tensors": lambda: (),
    "one tensor too few": lambda: (torch.ones(2, 3),),
    "one too many": lambda: (torch.ones(2, 3),) * 3,
    "a number": lambda: (torch.ones(2, 3), 1.0),
    "None": lambda: (None, torch.ones(2, 3)),
    "other sizes": lambda: (torch.ones(3, 2), torch.ones(2, 3)),
    "another rank": lambda: (torch.ones(6), torch.ones(2, 3)),
    "other strides": lambda: (torch.ones(3, 2).t(), torch.ones(2, 3)),
    "expanded": lambda: (torch.ones(1, 3).expand(2, 3), torch.ones(2, 3)),
    "another dtype": lambda: (torch.ones(2, 3, dtype=torch.float64), torch.ones(2, 3)),
    "integers": lambda: (torch.ones(2, 3), torch.ones(2, 3, dtype=torch.int32)),
    "the meta device": lambda: (torch.ones(2, 3, device="meta"), torch.ones(2, 3)),
    "a sparse tensor": lambda: (torch.ones(2, 3).to_sparse(), torch.ones(2, 3)),
    "memory that was given back": lambda: (emptied(torch.ones(2, 3)), torch.ones(2, 3)),
    "a view beyond its memory": lambda: (emptied(torch.ones(4, 3))[2:], torch.ones(2, 3)),
}


def emptied(tensor):
    """`tensor` after its memory was taken away."""
    storage = tensor._impl.storage
    storage.buffer, storage.nbytes = bytearray(0), 0
    return tensor


@pytest.mark.parametrize("make", WRONG.values(), ids=WRONG)
def test_other_arguments_are_refused(two, make):
    with pytest.raises(RuntimeError, match="compiled graph"):
        two(*make())
    two(torch.ones(2, 3), torch.ones(2, 3))


def test_keywords_are_refused(two):
    with pytest.raises(TypeError):
        two(torch.ones(2, 3), y=torch.ones(2, 3))


def test_an_offset_into_memory_and_memory_of_numpy_are_taken(two):
    rows = torch.randn(4, 3)
    borrowed = torch.from_numpy(rows.numpy().copy())
    (result,) = two(rows[1:3], borrowed[2:])
    torch.testing.assert_close(result, torch.sin(rows[1:3]) + rows[2:])


def test_inference_mode_marks_results(two):
    x = torch.ones(2, 3)
    with torch.inference_mode():
        assert two(x, x)[0].is_inference()
    assert not two(x, x)[0].is_inference()


def test_an_input_that_is_a_result_stays_itself():
    compiled = torch.compile(lambda x: (x, x * 2, 3), fullgraph=True)
    x = torch.ones(4)
    for _ in range(2):
        same, double, number = compiled(x)
        assert same is x and double.tolist() == [2.0] * 4 and number == 3


def test_results_that_are_views_of_one_memory():
    compiled = torch.compile(lambda x: (lambda y: (y, y.t(), y[1]))(x + 1), fullgraph=True)
    for _ in range(2):
        whole, turned, row = compiled(torch.zeros(2, 3))
        assert turned.stride() == (1, 3) and row.storage_offset() == 3
        row.fill_(5)
        assert whole.tolist() == [[1.0] * 3, [5.0] * 3] and turned[:, 1].tolist() == [5.0] * 3


def test_changed_parameters_are_seen():
    layer = torch.nn.Linear(4, 4)
    compiled = torch.compile(layer)
    x = torch.randn(2, 4)
    with torch.no_grad():
        for change in (
            lambda: None,
            lambda: layer.weight.mul_(2),
            lambda: setattr(layer.weight, "data", torch.randn(4, 4)),
            lambda: layer.load_state_dict({"weight": torch.randn(4, 4), "bias": torch.randn(4)}),
            lambda: torch.nn.init.zeros_(layer.bias),
        ):
            change()
            for _ in range(2):
                torch.testing.assert_close(compiled(x), layer(x))


def test_a_parameter_whose_memory_was_taken_away_is_an_error():
    layer = torch.nn.Linear(64, 64)
    compiled = torch.compile(layer)
    x = torch.randn(2, 64)
    with torch.no_grad():
        compiled(x)
        emptied(layer.weight)
        with pytest.raises(RuntimeError, match="storage of 0 bytes"):
            compiled(x)
        layer.weight.data = torch.ones(64, 64)
        torch.testing.assert_close(compiled(x), layer(x))


def test_a_parameter_whose_memory_moves_is_followed():
    layer = torch.nn.Linear(4, 4, bias=False)
    base = torch.randn(16)
    layer.weight.data = base.view(4, 4)
    compiled = torch.compile(layer)
    x = torch.randn(2, 4)
    with torch.no_grad():
        compiled(x)
        base.resize_(100_000)
        base[:16] = 1.0
        torch.testing.assert_close(compiled(x), x.sum(1, keepdim=True).expand(2, 4))


def test_an_index_out_of_range_raises_as_eager_does():
    compiled = torch.compile(lambda table, rows: table[rows] + 1, fullgraph=True)
    table = torch.randn(4, 3)
    compiled(table, torch.tensor([0, 3]))
    with pytest.raises(IndexError, match="out of (bounds|range)"):
        compiled(table, torch.tensor([0, 4]))
    torch.testing.assert_close(compiled(table, torch.tensor([1, 2])), table[1:3] + 1)


def test_subclasses_of_tensor_and_parameters_are_inputs(two):
    parameter = torch.nn.Parameter(torch.ones(2, 3), requires_grad=False)
    assert torch.equal(two(parameter, parameter)[0], torch.sin(parameter) + parameter)


def test_gradients_are_not_lost():
    compiled = torch.compile(lambda x, y: (torch.sin(x) + y).sum(), fullgraph=True)
    x, y = torch.randn(3), torch.randn(3)
    compiled(x, y)
    x.requires_grad_()
    compiled(x, y).backward()
    torch.testing.assert_close(x.grad, torch.cos(x.detach()))
    with torch.no_grad():
        assert not compiled(x, y).requires_grad
    assert compiled(x, y).requires_grad


def test_many_inputs_and_results():
    count = 100
    compiled = torch.compile(lambda values: [value + index for index, value in enumerate(values)], fullgraph=True)
    for _ in range(2):
        found = compiled([torch.zeros(2) for _ in range(count)])
        assert [value[1].item() for value in found] == list(range(count))


def test_threads_share_a_graph_whose_parameters_change():
    layer = torch.nn.Linear(8, 8, bias=False)
    compiled = torch.compile(layer)
    x = torch.eye(8)
    wrong, done = [], threading.Event()
    with torch.no_grad():
        layer.weight.fill_(1.0)
        compiled(x)

    def call():
        with torch.no_grad():
            while not done.is_set():
                found = compiled(x)
                if found.min().item() != found.max().item() and not torch.isfinite(found).all():
                    wrong.append(found)

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    with torch.no_grad():
        for number in range(200):
            layer.weight.data = torch.full((8, 8), float(number))
    done.set()
    for thread in threads:
        thread.join()
    assert not wrong
    with torch.no_grad():
        assert compiled(x)[0, 0].item() == 199.0


def test_threads_get_results_of_their_own(two):
    wrong = []

    def call(number):
        x, y = torch.full((2, 3), float(number)), torch.full((2, 3), float(-number))
        expected = torch.sin(x) + y
        for _ in range(500):
            if not torch.equal(two(x, y)[0], expected):
                wrong.append(number)

    threads = [threading.Thread(target=call, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_memory_goes_back():
    def run():
        compiled = torch.compile(lambda x: (x * 2).sum(0) + x, fullgraph=True)
        for _ in range(3):
            compiled(torch.ones(1000, 10))
        return weakref.ref(compiled)

    run()
    gc.collect()
    before = torch.allocator_statistics()["allocated_bytes"]
    for _ in range(3):
        reference = run()
    gc.collect()
    assert reference() is None
    assert torch.allocator_statistics()["allocated_bytes"] <= before


# Making one


def make(address=64, inputs=(), made=(), outputs=(), pointers=0, general=print, reference=print, work=0, symbols=None, **others):
    arguments = {"arena_bytes": 0, "arena_bytes_for": None, "written": ()} | others
    return GraphLaunch(
        address, inputs, made, outputs, general, reference, pointer_count=pointers, work=work, symbols=symbols, **arguments
    )


MADE, INPUT, OBJECT, NUMBER, ALIAS = range(5)
ROW = (torch.float32, (3,), (1,))
OPEN = (torch.float32, 1)
NUMBERS = (((0, 0, 0),), (), ())  # the size of the first input

BAD = {
    "a negative arena": dict(arena_bytes=-1),
    "an arena without a function": dict(arena_bytes_for=0),
    "nothing to call": dict(general=None),
    "an input that is no tuple": dict(inputs=(1,)),
    "an input without strides": dict(inputs=((torch.float32, (3,), ()),)),
    "an input without a dtype": dict(inputs=((3, (3,), (1,)),)),
    "an input of negative size": dict(inputs=((torch.float32, (-3,), (1,)),)),
    "an input of half a size": dict(inputs=((torch.float32, (1.5,), (1,)),)),
    "an input of huge size": dict(inputs=((torch.float32, (1 << 70,), (1,)),)),
    "an input of huge reach": dict(inputs=((torch.float32, (1 << 40, 2), (1 << 40, 1)),)),
    "an open input without symbols": dict(inputs=(OPEN,)),
    "an int without symbols": dict(inputs=(None,)),
    "a result of no memory": dict(outputs=((MADE, 0, (3,), (1,), 0, torch.float32),)),
    "a result beyond its memory": dict(made=(12,), outputs=((MADE, 0, (3,), (1,), 1, torch.float32),)),
    "a result before its memory": dict(made=(12,), outputs=((MADE, 0, (3,), (1,), -1, torch.float32),)),
    "a result with huge strides": dict(made=(12,), outputs=((MADE, 0, (3,), (1 << 62,), 0, torch.float32),)),
    "a result without strides": dict(made=(12,), outputs=((MADE, 0, (3,), (), 0, torch.float32),)),
    "a result of another kind": dict(outputs=((5, 0),)),
    "an input that there is not": dict(outputs=((INPUT, 0),)),
    "an input that is a tensor": dict(outputs=((INPUT, torch.ones(1)),)),
    "a view of a number": dict(outputs=((ALIAS, print, 1.5, (), (), 0),)),
    "memory of negative size": dict(made=(-1,)),
    "a result that is a string": dict(outputs=("x",)),
    "a symbol that there is not": dict(made=((1, 0),)),
    "a number of no input": dict(symbols=(((0, 0, 0),), (), ())),
    "a size that an input has not": dict(inputs=(OPEN,), symbols=(((0, 0, 1),), (), ())),
    "the value of a tensor": dict(inputs=(OPEN,), symbols=(((2, 0, 0),), (), ())),
    "a symbol that reads itself": dict(inputs=(OPEN,), symbols=(((0, 0, 0),), ((1, 1),), ())),
    "a condition of no kind": dict(inputs=(OPEN,), symbols=(((0, 0, 0),), (), ((3, (1, 0)),))),
    "a condition without code": dict(inputs=(OPEN,), symbols=(((0, 0, 0),), (), ((0,),))),
    "symbols that are a list": dict(symbols=[]),
    "a write to nothing": dict(written=(0,)),
    "a write to an int": dict(inputs=(None, OPEN), symbols=(((0, 1, 0),), (), ()), written=(0,)),
}


@pytest.mark.parametrize("arguments", BAD.values(), ids=BAD)
def test_nonsense_is_refused(arguments):
    with pytest.raises((TypeError, ValueError, AttributeError)):
        make(**arguments)


def test_constants_are_checked():
    launch = make(pointers=2)
    tensor = torch.ones(2)
    state = (tensor._version, tensor._impl.storage, 0)
    for arguments in (
        ((), (), (1,), None),
        ((tensor,), (), (1, 2), None),
        ((1,), (state,), (1, 2), None),
        ((tensor,), (("x", None, 0),), (1, 2), None),
        ((tensor,), (state,), ("a", 2), None),
        ((tensor,), (1,), (1, 2), None),
    ):
        with pytest.raises((TypeError, ValueError)):
            launch.use_constants(*arguments)
    launch.use_constants((tensor,), (state,), (1, 2), None)


def test_without_constants_the_general_way_is_gone():
    calls = []
    launch = make(pointers=1, general=lambda *inputs: calls.append(inputs))
    launch()
    launch(1)
    assert calls == [(), (1,)]


def test_the_last_input_may_be_supplied():
    calls = []
    launch = make(inputs=(ROW, ROW), pointers=1, general=lambda *inputs: calls.append(inputs))
    supplied = torch.zeros(3)
    launch.supply_last(lambda: supplied)
    launch()
    launch(1)
    launch(*range(100))
    assert [len(inputs) for inputs in calls] == [1, 2, 101] and all(inputs[-1] is supplied for inputs in calls)
    with pytest.raises(TypeError):
        launch.supply_last(supplied)
    launch.supply_last(lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        launch()


# Of open sizes: the first number is that of an input's only size. The function at the address is never called.

CONDITIONS = {
    "equal": (0, (1, 0, 0, -3, 2), {3}),  # the number minus 3 is 0
    "different": (1, (1, 0, 0, -3, 2), {2, 4, 5}),
    "at least": (2, (1, 0, 0, -4, 2), {4, 5}),
    "divisible": (0, (1, 0, 0, 2, 5), {2, 4}),
    "too large": (2, (1, 0, 0, 1 << 62, 3), set()),
    "divided by zero": (2, (1, 0, 0, 0, 4), set()),
}


@pytest.mark.parametrize("name", CONDITIONS)
def test_conditions_decide_about_the_way(name):
    kind, code, sizes = CONDITIONS[name]
    general = []
    launch = make(0, (OPEN,), (), ((3, (1, 0)),), general=lambda x: general.append(len(x)), symbols=(((0, 0, 0),), (), ((kind, code),)))
    results = {size: launch(torch.ones(size)) for size in (2, 3, 4, 5)}
    assert {size for size, result in results.items() if result == (size,)} == sizes
    assert set(general) == {2, 3, 4, 5} - sizes


def test_what_follows_from_numbers_and_symbols():
    symbols = (((2, 0, 0), (0, 1, 0), (1, 1, 0)), ((1, 0, 1, 1, 3), (1, 3, 0, 1, 2)), ())  # n * size, n * size + 1
    outputs = ((3, (1, 3)), (3, (1, 4)), (3, (1, 2)), (1, 1), (2, "text"))
    launch = make(0, (None, OPEN), (), outputs, symbols=symbols)
    for number, x in ((5, torch.ones(3)), (5, torch.ones(3)), (-2, torch.ones(7)), (0, torch.ones(8)[::2]), (5, torch.ones(0))):
        size = len(x)
        assert launch(number, x) == (number * size, number * size + 1, x.stride(0), x, "text")


def test_results_of_open_sizes_lie_in_their_memory():
    row = ((1, 0, 0, 4, 3),)  # 4 * size bytes
    fits = (0, 0, ((1, 0),), (1,), 0, torch.float32)
    beyond = (0, 0, ((1, 0),), (1,), 1, torch.float32)
    general = []
    for output, is_native in ((fits, True), (beyond, False)):
        launch = make(0, (OPEN,), row, (output,), general=general.append, symbols=NUMBERS)
        for size in (3, 4, 0):
            x = torch.ones(size)
            results = launch(x)
            assert (results is not None) is (is_native or size == 0)
            if results is not None:
                assert results[0].shape == (size,) and results[0].untyped_storage().nbytes() == 4 * size
    assert [len(x) for x in general] == [3, 4]


def test_ints_of_open_graphs_are_ints():
    general = []
    launch = make(0, (None,), (), ((3, (1, 0)),), general=general.append, symbols=(((2, 0, 0),), (), ()))
    assert launch(7) == (7,) and launch(-(1 << 60)) == (-(1 << 60),)
    for other in (1 << 64, True, 1.0, None, "7", torch.ones(1)):
        assert launch(other) is None
    assert len(general) == 6


def test_a_long_run_lets_other_threads_go_on(library):  # noqa: F811
    flag, results = torch.zeros(1, dtype=torch.int32), []
    inputs = ((torch.int32, (1,), (1,)),)
    wait = make(address_of(library.wait_for), inputs, work=1, reference=lambda *given: results.append(given))
    thread = threading.Thread(target=wait, args=(flag,))
    thread.start()
    flag[0] = 1
    thread.join()
    assert results == [(flag,)]


def test_what_is_long():
    def work(function, *inputs):
        compiled = torch.compile(function, fullgraph=True)
        compiled(*inputs)
        (entry,) = debug_cache_entries(compiled)
        return work_of(entry.guarded_code.globals[entry.guarded_code.graph_name].general.details()[1])

    assert work(lambda x: x.sin() + 1, torch.ones(100)) <= LONG_WORK
    assert work(lambda x: x.sin() + 1, torch.ones(100_000)) > LONG_WORK
    assert work(lambda x: (x[:, None] * x).sum(), torch.ones(1000)) > LONG_WORK
    assert work(lambda x: x @ x, torch.ones(8, 8)) is None
