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
    ("torch.no_grad()(model)(x)", {"copy_"}),  # to buffers, which are constants where nothing is differentiated
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
