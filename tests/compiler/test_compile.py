"""`compile` from the outside: what it captures, when it compiles again, and what runs between graphs."""

from __future__ import annotations

import functools
import re
import threading
import types
import warnings
from collections import namedtuple

import pytest

import rushlight as torch
from rushlight import nn
from rushlight._dynamo.eval_frame import _debug_get_cache_entry_list


@pytest.fixture(autouse=True)
def without_gradients():
    with torch.no_grad():
        yield


@pytest.fixture
def quiet():
    """No warnings: the call is compiled."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def counting(function=None, **options):
    """`compile` with a backend that counts its compilations in `.graphs`."""
    graphs = []

    def backend(module, example_inputs):
        graphs.append(module)
        return module.forward

    compiled = torch.compile(function, backend=backend, **options)
    return compiled, graphs


def same(left, right) -> bool:
    return left.shape == right.shape and bool((left - right).abs().max() < 1e-5)


# Guards


@pytest.mark.parametrize("second, again", [
    (torch.ones(2, 3), False), (torch.ones(3, 2), True), (torch.ones(3, 2).t(), True), (torch.ones(2, 3).double(), True),
    (torch.ones(4, 3)[1:3], False),
], ids=["equal", "size", "strides", "dtype", "offset"])  # fmt: skip
def test_a_tensors_size_strides_and_dtype_are_guarded(second, again, quiet):
    compiled, graphs = counting(lambda x: x + 1)
    compiled(torch.zeros(2, 3))
    assert same(compiled(second), second + 1)
    assert len(graphs) == 1 + again


@pytest.mark.parametrize("first, second", [
    (1, 2), (1, True), (1, 1.0), (0.0, -0.0), ("sum", "mean"), (None, 1), ((1, 2), (2, 1)), ([1], (1,)),
    ({"a": 1}, {"b": 1}), (torch.float32, torch.float64), (slice(1), slice(2)),
])  # fmt: skip
def test_other_values_are_guarded(first, second, quiet):
    compiled, graphs = counting(lambda x, value: (x + 1, value))
    x = torch.zeros(2)
    for value in (first, second, first, second):
        assert repr(compiled(x, value)[1]) == repr(value)
    assert len(graphs) in (1, 2)  # one where the value is handed on without a look at it


def test_not_a_number_is_equal_to_itself(quiet):
    compiled, graphs = counting(lambda x, value: x + value)
    for _ in range(3):
        assert compiled(torch.zeros(2), float("nan")).isnan().all()
    assert len(graphs) == 1


def test_the_same_tensor_twice_is_not_two_equal_tensors(quiet):
    compiled, graphs = counting(lambda x, y: x + y if x is not y else x * 10)
    x = torch.ones(2)
    assert same(compiled(x, x), x * 10) and same(compiled(x, x.clone()), x * 2)
    assert len(graphs) == 2


def test_grad_mode_and_default_dtype_are_guarded(quiet):
    compiled, graphs = counting(lambda x: x / 2)
    x = torch.arange(3)
    assert compiled(x).dtype is torch.float32
    torch.set_default_dtype(torch.float64)
    try:
        assert compiled(x).dtype is torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
    with torch.enable_grad():
        compiled(x)
    assert len(graphs) == 3


def test_other_sizes_at_the_second_call(quiet):
    compiled = torch.compile(lambda x: x.softmax(-1))
    for size in (3, 5, 3, 8):
        x = torch.arange(2.0 * size).reshape(2, size)
        assert same(compiled(x), x.softmax(-1))
    assert len(_debug_get_cache_entry_list(compiled)) == 2  # one for the first size, one for all others


def test_beyond_the_limit_calls_run_in_eager_and_one_warning_names_the_guard():
    compiled, graphs = counting(lambda x, k: x + k, options={"recompile_limit": 2}, dynamic=False)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for k in (1, 2, 3, 4, 5, 1):
            assert same(compiled(torch.zeros(3), k), torch.full((3,), float(k)))
    assert len(graphs) == 2 and len(_debug_get_cache_entry_list(compiled)) == 2
    assert len(seen) == 1 and re.search(r"compiled 2 times.*k == 2 \(value\), found 3", str(seen[0].message))


# Structure of arguments and results

Pair = namedtuple("Pair", "left right")


def test_nested_arguments_and_results(quiet):
    def function(batch, *rest, scale=1.0, **named):
        return {"sum": batch["x"] + batch["more"][0], "all": [Pair(rest[0] * scale, named["bias"]), "text", 3]}

    x, y, z = torch.ones(2), torch.ones(2) * 2, torch.ones(2) * 3
    result = torch.compile(function)({"x": x, "more": (y,)}, z, scale=0.5, bias=x)
    assert same(result["sum"], x * 3) and isinstance(result["all"][0], Pair)
    assert same(result["all"][0].left, z * 0.5) and result["all"][0].right is x and result["all"][1:] == ["text", 3]


def test_a_result_without_tensors(quiet):
    compiled = torch.compile(lambda x: (x.shape, x.dim(), None))
    assert compiled(torch.ones(2, 3)) == (torch.Size([2, 3]), 2, None)
    assert isinstance(compiled(torch.ones(2, 3))[0], torch.Size)


def test_as_a_decorator(quiet):
    @torch.compile
    def double(x):
        """Twice x."""
        return x * 2

    @torch.compile(backend="aot_eager")
    def triple(x):
        return x * 3

    x = torch.ones(2)
    assert same(double(x), x * 2) and same(triple(x), x * 3)
    assert double.__name__ == "double" and double.__doc__ == "Twice x."


# What a function finds outside its arguments


def test_a_closed_over_tensor_that_is_replaced_or_written_to(quiet):
    weight = torch.ones(3)
    compiled = torch.compile(lambda x: x * weight)
    x = torch.ones(3)
    assert same(compiled(x), x)
    weight.mul_(5)
    assert same(compiled(x), x * 5)
    weight = torch.ones(3) * 7
    assert same(compiled(x), x * 7)


SCALE = 2.0


def test_a_global_that_changes(quiet):
    global SCALE
    compiled = torch.compile(lambda x: x * SCALE)
    x = torch.ones(3)
    assert same(compiled(x), x * 2)
    SCALE = 3.0
    assert same(compiled(x), x * 3)


class Model:
    def __init__(self):
        self.weight = torch.ones(3)
        self.power = 2

    def apply(self, x):
        return (x * self.weight) ** self.power

    __call__ = apply


@pytest.mark.parametrize("take", [lambda model: model.apply, lambda model: model], ids=["method", "callable"])
def test_methods_and_callable_objects(take, quiet):
    model = Model()
    compiled = torch.compile(take(model))
    x = torch.ones(3) * 2
    assert same(compiled(x), x**2)
    model.power, model.weight = 3, torch.ones(3) * 2
    assert same(compiled(x), (x * 2) ** 3)


def test_partial(quiet):
    compiled = torch.compile(functools.partial(lambda x, y, scale: (x + y) * scale, torch.ones(3), scale=4))
    assert same(compiled(torch.ones(3)), torch.ones(3) * 8)


def test_a_tensor_made_inside_is_new_at_every_call(quiet):
    compiled = torch.compile(lambda x: torch.tensor([1.0, 2.0]).add_(x))
    first = compiled(torch.ones(2))
    first.zero_()
    assert compiled(torch.ones(2)).tolist() == [2, 3]


def test_a_detached_input_is_another_tensor(quiet):
    x = torch.ones(2, requires_grad=True)
    same_tensor, detached, whole = torch.compile(lambda x: (x, x.detach(), x[:]))(x)
    assert same_tensor is x and not detached.requires_grad and whole is not x
    assert detached.data_ptr() == whole.data_ptr() == x.data_ptr()


# Modules


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 16)
        self.dropout = nn.Dropout(0.5)
        self.register_buffer("offset", torch.zeros(16))

    def forward(self, x):
        return self.dropout(self.linear(x)).relu() + self.offset


def test_a_module_and_its_mode(quiet):
    model = Net().eval()
    compiled = torch.compile(model)
    x = torch.randn(4, 8)
    assert same(compiled(x), model(x))
    model.train()
    assert (compiled(x) == 0).float().mean() > 0.2
    model.eval()
    assert same(compiled(x), model(x))


def test_parameters_that_are_written_to_replaced_or_given_new_memory(quiet):
    model = Net().eval()
    compiled = torch.compile(model)
    x = torch.randn(4, 8)
    changes = [
        lambda: None,
        lambda: model.linear.weight.mul_(2),
        lambda: model.offset.add_(1),
        lambda: setattr(model.linear, "weight", nn.Parameter(torch.randn(16, 8))),
        lambda: setattr(model.linear.bias, "data", torch.randn(16)),
        lambda: setattr(model, "linear", nn.Linear(8, 16)),
        lambda: setattr(model.linear.weight, "data", torch.randn(8, 16).t()),
        lambda: model.load_state_dict(Net().state_dict()),
    ]
    for change in changes:
        change()
        assert same(compiled(x), model(x))


def test_a_modules_method(quiet):
    model = Net().eval()
    compiled = torch.compile(model.forward)
    x = torch.randn(4, 8)
    assert same(compiled(x), model(x))
    model.linear.weight.mul_(2)
    assert same(compiled(x), model(x))


def test_the_compiled_module_is_the_module(quiet):
    model = Net()
    compiled = torch.compile(model)
    compiled.eval()
    assert not model.training and compiled.linear is model.linear
    assert isinstance(compiled, nn.Module)


def test_batch_norm_in_training_updates_its_statistics(quiet):
    eager, compiled = nn.BatchNorm1d(3), nn.BatchNorm1d(3)
    run = torch.compile(compiled)
    for _ in range(3):
        x = torch.randn(5, 3)
        assert same(run(x), eager(x))
    assert same(compiled.running_mean, eager.running_mean) and same(compiled.running_var, eager.running_var)
    assert compiled.num_batches_tracked == 3


# Gradients


def test_calls_that_need_gradients_run_as_captured(quiet):
    weight = torch.ones(3, requires_grad=True)
    cases = [(torch.compile(lambda x: x * 2), torch.ones(3, requires_grad=True)),
             (torch.compile(lambda x: x * weight), torch.ones(3)), (torch.compile(Net().eval()), torch.ones(4, 8))]  # fmt: skip
    for compiled, x in cases:
        with torch.enable_grad():
            result = compiled(x)
            assert result.requires_grad
            result.sum().backward()
        assert not compiled(x).requires_grad
    assert weight.grad.tolist() == [1, 1, 1] and cases[0][1].grad.tolist() == [2, 2, 2]


def test_a_model_trains_as_in_eager(quiet):
    def train(wrap):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
        run, optimizer = wrap(model), torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        x, y = torch.randn(16, 4), torch.randn(16, 1)
        losses = []
        for _ in range(5):
            optimizer.zero_grad()
            loss = ((run(x) - y) ** 2).mean()
            loss.backward()
            optimizer.step()
            with torch.no_grad():
                losses.append((loss.item(), run(x).sum().item()))
        return losses

    with torch.enable_grad():
        for one, other in zip(train(torch.compile), train(lambda model: model), strict=True):
            assert one == pytest.approx(other, rel=1e-4)


def test_gradients_through_a_called_module_are_not_lost(quiet):
    model = Net().eval()
    compiled = torch.compile(lambda x: model(x))
    with torch.enable_grad():
        compiled(torch.ones(4, 8)).sum().backward()
    assert model.linear.weight.grad is not None


def test_gradients_are_switched_on_inside(quiet):
    def half(x, weight):
        with torch.no_grad():
            a = x * weight
        with torch.enable_grad():
            b = a * weight
        return a, b

    weight = torch.ones(3, requires_grad=True)
    for enabled in (True, False):
        with torch.set_grad_enabled(enabled):
            a, b = torch.compile(half)(torch.ones(3), weight)
            assert not a.requires_grad and b.requires_grad and torch.is_grad_enabled() is enabled


# Graph breaks


@pytest.mark.parametrize("function", [
    lambda x: x * 2 if x.sum() > 0 else x, lambda x: x * x.max().item(), lambda x: x[x > 0], lambda x: torch.tensor(x.tolist()),
    lambda x: torch.from_numpy(x.numpy() + 1), lambda x: x.nonzero(),
], ids=["branch", "item", "mask", "tolist", "numpy", "nonzero"])  # fmt: skip
def test_what_depends_on_data_breaks_the_graph(function, quiet):
    compiled = torch.compile(function)
    x = torch.tensor([1.0, -2.0, 3.0])
    for value in (x, -x, x):
        assert same(compiled(value), function(value))


BOXES = torch.tensor([[0.0, 0.0, 2.0, 2.0], [0.0, 0.0, 2.0, 1.9], [5.0, 5.0, 6.0, 6.0]])


@pytest.mark.parametrize("operator", [
    lambda x: torch.unique(x), lambda x: x.unique(return_counts=True)[1], torch.unique_consecutive,
    lambda x: nn.functional.one_hot((x > 0).long()), lambda x: torch.ops.torchvision.nms(BOXES, x, 0.5),
], ids=["unique", "counts", "consecutive", "classes", "boxes"])  # fmt: skip
@pytest.mark.parametrize("dynamic", [None, True])
def test_sizes_that_depend_on_data_break_the_graph_and_raise_nothing(operator, dynamic, quiet):
    def program(x):
        try:
            return operator(x * 2) + 1
        except RuntimeError:
            return None

    compiled = torch.compile(program, dynamic=dynamic)
    x = torch.tensor([1.0, -2.0, 3.0])
    for value in (x, -x, x):
        assert same(compiled(value), program(value))
    assert len(_debug_get_cache_entry_list(compiled)) == 1
    with pytest.raises(torch._dynamo.exc.Unsupported, match="depends on the values"):
        torch.compile(program, fullgraph=True)(x)


def test_fullgraph_makes_a_break_an_error():
    with pytest.raises(torch._dynamo.exc.Unsupported, match=r"needs the tensor's value(.|\n)*test_compile.py:\d+(.|\n)*Hint: keep"):
        torch.compile(lambda x: x * x.max().item(), fullgraph=True)(torch.ones(2))


@pytest.mark.parametrize("argument", [
    [1, {2}], nn.Linear(2, 2), bytearray(b"x"), object(),
], ids=["set", "module", "bytes", "object"])  # fmt: skip
def test_arguments_that_are_not_used_are_no_obstacle(argument, quiet):
    compiled, graphs = counting(lambda x, other: x + 1)
    assert same(compiled(torch.ones(2), argument), torch.ones(2) + 1)
    assert len(graphs) == 1


class Trouble(Exception):
    pass


def fail(x):
    raise Trouble("no")


@pytest.mark.parametrize("function, error", [
    (fail, Trouble), (lambda x: x + torch.ones(5), RuntimeError), (lambda x: x[7], IndexError),
    (lambda x: x.nothing, AttributeError), (lambda x: {}["key"], KeyError), (lambda x: torch.cat([x, 1]), TypeError),
], ids=["user", "shape", "index", "attribute", "key", "type"])  # fmt: skip
def test_an_error_of_the_program_keeps_its_type_and_needs_no_warning(function, error, quiet):
    compiled = torch.compile(function)
    for _ in range(2):
        with pytest.raises(error):
            compiled(torch.ones(3))


def test_wrong_arguments_are_python_type_errors(quiet):
    compiled = torch.compile(lambda x, y: x + y)
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        compiled(torch.ones(2))
    with pytest.raises(TypeError, match="expects a function or an nn.Module, got int"):
        torch.compile(3)


# Threads


def test_threads_that_compile_and_call_the_same_function(quiet):
    compiled, graphs = counting(lambda x, k: (x * k).softmax(-1))
    native = torch.compile(lambda x, k: (x * k).softmax(-1))
    broken = torch.compile(lambda x, k: (x * 1 if x.sum() > k else x * 1) * k, backend="eager")
    wrong = []

    def work(k: int) -> None:
        x = torch.arange(12.0).reshape(3, 4) / 10
        own = torch.compile(lambda x: x + k, backend="aot_eager")
        for _ in range(20):
            with torch.no_grad():
                want = (x * k).softmax(-1)
                wrong.extend(1 for run in (compiled, native) if not same(run(x, k), want))
                wrong.extend(1 for found, wanted in ((broken(x, k), x * k), (own(x), x + k)) if not same(found, wanted))

    threads = [threading.Thread(target=work, args=(index % 3,)) for index in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and len(graphs) in (2, 3)  # k may have been left open at the second capture


def test_a_compiled_function_inside_another_is_part_of_it(quiet):
    inner, inner_graphs = counting(lambda x: x * 2)
    outer, graphs = counting(lambda x: inner(x) + 1)
    assert same(outer(torch.ones(2)), torch.ones(2) * 3)
    assert len(graphs) == 1 and not inner_graphs


def test_disable_gives_the_function_back():
    assert torch.compile(fail, disable=True) is fail


@pytest.mark.parametrize("others", [lambda x: (), lambda x: (x.sin(),)], ids=["views alone", "and more"])
def test_a_detached_input_asks_for_no_gradient_while_gradients_are_off(quiet, others):
    x = torch.ones(2, requires_grad=True)
    with torch.no_grad():
        same, detached, *_ = torch.compile(lambda x: (x, x.detach(), *others(x)))(x)
    assert same is x and not detached.requires_grad and detached.data_ptr() == x.data_ptr()


def test_inputs_whose_names_would_be_the_same():
    def function(box, box_item):
        return box.item - box_item

    box = types.SimpleNamespace(item=torch.tensor([5.0]))
    assert torch.compile(function, fullgraph=True)(box, torch.tensor([3.0])).tolist() == [2.0]


def test_the_length_of_a_compiled_module_is_the_original_s():
    layers, single = torch.compile(nn.Sequential(nn.Linear(3, 3), nn.ReLU())), torch.compile(nn.Linear(3, 3))
    assert len(layers) == 2 and layers and single and not torch.compile(nn.ModuleList())
    with pytest.raises(TypeError, match="len"):
        len(single)

    def called(x):
        return single(x) if single else x

    x = torch.randn(2, 3)
    torch.testing.assert_close(torch.compile(called)(x), single(x))


def test_functions_compile_as_a_module_did():
    seen = []

    def backend(graph, inputs):
        seen.append(graph)
        return graph.forward

    compiled = torch.compile(nn.Linear(2, 2), backend=backend)
    assert compiled.dynamo_ctx(lambda x: x + 1)(torch.ones(2)).tolist() == [2.0, 2.0]
    assert len(seen) == 1
