"""Inputs that compiled code writes to hold afterwards what they hold in eager, in memory of their own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import warnings

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn
from tests.inductor.native_nodes import writer_of


def program(function, *inputs):
    writer = writer_of(function, *inputs)
    return writer.write(), writer.in_place


def check(function, *inputs, calls=2, **options):
    """Two compiled calls do to copies of the inputs what two eager ones do."""
    compiled = torch.compile(function, fullgraph=True, **options)
    ours, theirs = ([torch.empty_strided(x.shape, x.stride(), dtype=x.dtype).copy_(x) for x in inputs] for _ in range(2))
    for _ in range(calls):
        before = [[x._version for x in each] for each in (ours, theirs)]
        torch.testing.assert_close(compiled(*ours), function(*theirs))
        torch.testing.assert_close(ours, theirs)
        mine, wanted = (
            [x._version > old for x, old in zip(each, versions, strict=True)]
            for each, versions in zip((ours, theirs), before, strict=True)
        )  # fmt: skip
        assert mine == wanted


def test_in_place_where_nothing_reads_the_old_value_later():
    def function(x, y):
        x.mul_(2).add_(y)
        y.sin_()
        return x + 1

    x, y = torch.randn(40, 30), torch.randn(30)
    made, in_place = program(function, x, y)
    assert sorted(in_place.values()) == ["arg0_1", "arg1_1"] and "copy_shared" not in made.source
    check(function, x, y)


def test_an_update_of_many_tensors_is_one_native_call_in_place():
    def function(*tensors):
        third = len(tensors) // 3
        for parameter, gradient, mean in zip(tensors[:third], tensors[third : 2 * third], tensors[2 * third :], strict=True):
            parameter.mul_(0.99)
            parameter.add_(torch.sign(mean * 0.9 + gradient * 0.1), alpha=-0.01)
            mean.lerp_(gradient, 0.01)

    tensors = [torch.randn(shape) for _ in range(3) for shape in ((40, 30), (30,), (2, 3, 4, 5), (1,))]
    made, in_place = program(function, *tensors)
    assert len(in_place) == 8 and "copy_shared" not in made.source
    check(function, *tensors)


@pytest.mark.parametrize("function", [
    lambda x, y: x.copy_(x.flip(0)).sum(), lambda x, y: x.copy_(x.cumsum(0)) + 1, lambda x, y: x.copy_(x @ x),
    lambda x, y: x.sub_(x.mean(1, keepdim=True)).sum(), lambda x, y: x.copy_(x.t().contiguous()).sum(),
    lambda x, y: (x.softmax(1), x.div_(x.sum(1, keepdim=True)))[0], lambda x, y: y.copy_(x.sum(0) + y).sum(),
    lambda x, y: (x.copy_(y.expand(24, 24)), y.copy_(x[0] + y), x * 2)[2], lambda x, y: x[3:5].zero_().sum(),
    lambda x, y: (x.add_(1), y.add_(x[1]), x.add_(y))[1].sum(), lambda x, y: x.relu_().exp(),
    lambda x, y: y.copy_(y * 0.9 + x.var(0) * 0.1 + y.mean()), lambda x, y: x.scatter_add_(0, (y > 0).long()[None], x + 1),
])  # fmt: skip
def test_old_and_new_values_are_told_apart(function):
    check(function, torch.randn(24, 24), torch.randn(24))


def test_other_layouts():
    check(lambda x, y: x.mul_(y).sum(), torch.randn(6, 20).t(), torch.randn(20, 6))
    check(lambda x, y: x.add_(y).sum(), torch.randn(2, 16, 5, 4).to(memory_format=torch.channels_last), torch.randn(16, 1, 1))
    check(lambda x, y: x.add_(y).sum(), torch.randn(8, 20)[:, ::2], torch.randn(10))
    check(lambda x, y: x.add_(y).sum(), torch.randn(7, 1), torch.randn(()))
    check(lambda x: x.logical_not_().any(), torch.randn(33) > 0)
    check(lambda x: x.add_(1).float().sum(), torch.randn(40).to(torch.bfloat16))


# Writes to a part of a cache, as steps of generation have them.


def by_places(cache, new, places):
    cache[:, places] = new
    return cache.sum(1)


def by_copy(cache, new, places):
    return cache.index_copy_(1, places, new) * 2


def by_scatter(cache, new, places):
    return cache.scatter_(1, places[None, :, None].expand(new.shape), new).cos()


def by_slice(cache, new, places):
    cache[:, 5:7] = new
    return cache[:, :7].sum(1)


def by_steps(cache, new, places):
    cache[:, 1:5:2, :].copy_(new * 2)
    return cache + 1


def by_selection(cache, new, places):
    cache[1][-3] = new[1, 0]
    return cache[0]


def by_broadcast(cache, new, places):
    cache[:1, 2:, :3] = 5
    return cache[:, 1]


PARTIAL = [by_places, by_copy, by_scatter, by_slice, by_steps, by_selection, by_broadcast]


@pytest.mark.parametrize("function", PARTIAL, ids=lambda function: function.__name__)
def test_a_part_of_an_input_is_stored_and_nothing_else_touched(function):
    inputs = torch.randn(2, 11, 24), torch.randn(2, 2, 24), torch.tensor([7, 2])
    made, in_place = program(function, *inputs)
    ((stored, target),) = in_place.items()
    scatter = next(kernel for _, _, kernel in made.calls if stored in kernel.arguments)
    assert target not in scatter.arguments and "copy_shared" not in made.source
    check(function, *inputs, calls=1)
    check(function, *inputs, calls=3, dynamic=True)


def test_a_part_of_what_is_shown_of_a_longer_cache():
    inputs = torch.randn(1, 30, 24)[:, :11], torch.randn(1, 2, 24), torch.tensor([7, 2])
    made, in_place = program(by_copy, *inputs)
    assert list(in_place.values()) == ["arg0_1"] and "copy_shared" not in made.source
    check(by_copy, *inputs, calls=3, dynamic=True)


@pytest.mark.parametrize("function", [
    lambda x, y: x[1:3].copy_(x[:2] * 2).sum(), lambda x, y: (x * 2, x[3].copy_(y))[0], lambda x, y: x[2:4].add_(1).sum() + x[0],
    lambda x, y: x[1:3, 2:].copy_(x[3:5, 2:]), lambda x, y: x.index_copy_(0, torch.tensor([1, 3]), x[:2] + y),
    lambda x, y: (x[1:3].zero_(), x[2:4].fill_(1))[0].sum(), lambda x, y: x.index_add_(0, torch.tensor([1, 1]), x[:2] * 2),
    lambda x, y: x.t()[1:3].copy_(y), lambda x, y: (y[3:].copy_(x[0, 3:]), x[1].copy_(y)), lambda x, y: x[2:2].copy_(x[:0]),
    lambda x, y: x.view(-1)[5:9].copy_(y[:4]).exp(), lambda x, y: x[:, 3].copy_(y).sum(), lambda x, y: x[-30:30].copy_(y),
])  # fmt: skip
def test_parts_are_told_from_what_is_read(function):
    check(function, torch.randn(24, 24), torch.randn(24))


def test_caches_that_belong_to_a_module():
    class Step(nn.Module):
        def __init__(self):
            super().__init__()
            for name in ("keys", "values"):
                self.register_buffer(name, torch.zeros(2, 3, 16, 8))

        def forward(self, x, place: int, places):
            self.keys[:, :, places] = x
            self.values[:, :, place : place + 1] = x + 1
            return self.keys[:, :, : place + 1] @ self.values.transpose(2, 3)

    ours, theirs = Step(), Step()
    compiled = torch.compile(ours, fullgraph=True)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error")
        for place in (3, 4, 5, 9, 15, 4):
            x = torch.randn(2, 3, 1, 8)
            places = torch.tensor([place])
            torch.testing.assert_close(compiled(x, place, places), theirs(x, place, places))
            torch.testing.assert_close(ours.state_dict(), theirs.state_dict())
        version, ours.keys = ours.keys._version, ours.keys.clone()
        assert version >= 6
        torch.testing.assert_close(compiled(x, 7, places), theirs(x, 7, places))
        torch.testing.assert_close(ours.state_dict(), theirs.state_dict())


def test_places_that_do_not_exist():
    compiled = torch.compile(by_places)
    ours, theirs = torch.zeros(2, 11, 24), torch.zeros(2, 11, 24)
    new = torch.randn(2, 2, 24)
    compiled(ours, new, torch.tensor([1, 2]))
    by_places(theirs, new, torch.tensor([1, 2]))
    for function, cache in ((compiled, ours), (by_places, theirs)):
        with pytest.raises(IndexError, match="11"):
            function(cache, new * 2, torch.tensor([3, 11]))
    torch.testing.assert_close(ours[:, [0, 1, 2, *range(4, 11)]], theirs[:, [0, 1, 2, *range(4, 11)]])


def test_inputs_that_share_memory():
    def function(x, y):
        x.add_(1)
        return y * 2

    compiled = torch.compile(function)
    ours, theirs = torch.arange(12.0), torch.arange(12.0)
    for first, second in ((slice(0, 8), slice(4, 12)), (slice(0, 12), slice(0, 12)), (slice(0, 4), slice(8, 12))):
        torch.testing.assert_close(compiled(ours[first], ours[second]), function(theirs[first], theirs[second]))
        torch.testing.assert_close(ours, theirs)


def test_open_sizes():
    def function(x, y):
        y.add_(x.sum(0))
        return x.mul_(2).flip(0)

    compiled = torch.compile(function, fullgraph=True, dynamic=True)
    for rows, columns in ((3, 5), (7, 40), (20, 16)):
        ours = [torch.randn(rows, columns), torch.randn(columns)]
        theirs = [x.clone() for x in ours]
        torch.testing.assert_close(compiled(*ours), function(*theirs))
        torch.testing.assert_close(ours, theirs)


def test_an_index_error_leaves_inputs_as_they_are():
    def function(x, index):
        x.add_(1)
        return x[index]

    x = torch.zeros(5)
    compiled = torch.compile(function)
    assert compiled(x, torch.tensor([1, 4])).tolist() == [1.0, 1.0]
    with pytest.raises(IndexError):
        compiled(x, torch.tensor([1, 5]))
    assert x.tolist() in ([1.0] * 5, [2.0] * 5)  # eager has added before it looks at the index


def test_inputs_that_may_not_be_written_to():
    with torch.inference_mode():
        frozen = torch.ones(3)
    array = np.ones(3, np.float32)
    array.flags.writeable = False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        read_only = torch.from_numpy(array)
    compiled = torch.compile(lambda x: x.add_(1))
    compiled(torch.ones(3))
    with pytest.raises(RuntimeError, match="inference tensor"):
        compiled(frozen)
    with pytest.raises(ValueError, match="read-only"):
        compiled(read_only)
    with pytest.raises(RuntimeError, match="leaf Variable"):
        compiled(torch.ones(3, requires_grad=True))
    assert array.tolist() == [1.0] * 3


def test_what_was_saved_for_a_backward_is_protected():
    x, w = torch.randn(4), torch.randn(4, requires_grad=True)
    loss = (w * x).sum()
    torch.compile(lambda x: x.add_(1))(x)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


@pytest.mark.parametrize("call, eager", [
    ("model(x).sum().backward()", set()),
    ("torch.no_grad()(model)(x)", set()),
    ("torch.no_grad()(lambda: F.instance_norm(x, weight=torch.ones(3)))()", set()),
    ("torch.no_grad()(lambda: F.cross_entropy(x.flatten(1), torch.tensor([5, 1])))()", set()),
])  # fmt: skip
def test_statistics_are_part_of_the_native_call(call, eager):
    code = (
        "import rushlight as torch\nfrom rushlight import nn\nfrom rushlight.nn import functional as F\n"
        "model = nn.Sequential(nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.Flatten(), nn.Linear(64, 4))\n"
        f"x = torch.randn(2, 3, 4, 4)\ntorch.compile(lambda x: {call})(x)\n"
    )
    environment = {**os.environ, "RUSHLIGHT_LOGS": "graph_breaks"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert set(re.findall(r"target=torch\.ops\.aten\.(\w+)", done.stderr)) == eager


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last], ids=["first", "last"])
def test_statistics_without_gradients(layout):
    torch.manual_seed(0)
    models = [nn.Sequential(nn.Conv2d(3, 8, 3), nn.InstanceNorm2d(8, affine=True), nn.BatchNorm2d(8), nn.ReLU()) for _ in range(2)]
    models[1].load_state_dict(models[0].state_dict())
    compiled = torch.compile(models[1], fullgraph=True)
    for _ in range(2):
        x = torch.randn(4, 3, 8, 8).to(memory_format=layout)
        with torch.no_grad():
            torch.testing.assert_close(compiled(x), models[0](x), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(models[1].state_dict(), models[0].state_dict())


@pytest.mark.parametrize("momentum", [0.1, None])
def test_training_of_a_model_with_statistics(momentum):
    torch.manual_seed(0)
    models = [nn.Sequential(nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16, momentum=momentum), nn.ReLU()) for _ in range(2)]
    models[1].load_state_dict(models[0].state_dict())
    compiled = torch.compile(models[1])
    for _ in range(3):
        x = torch.randn(4, 3, 8, 8)
        for model in (models[0], compiled):
            model(x).square().mean().backward()
    torch.testing.assert_close(models[1].state_dict(), models[0].state_dict())
    for ours, theirs in zip(models[1].parameters(), models[0].parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-3, atol=1e-4)
