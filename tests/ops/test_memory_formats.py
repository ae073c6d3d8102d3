"""Memory formats: what lies in which, what conversions give, and what torch says of the same tensors."""

import pytest

import rushlight as torch
from rushlight.nn import functional as F

SHAPES = [(3,), (2, 3), (2, 3, 4), (2, 3, 4, 5), (1, 1, 4, 4), (2, 1, 4, 4), (2, 3, 1, 1), (0, 3, 4, 5), (2, 3, 4, 5, 6),
          (1, 1, 2, 2, 2), (2, 3, 1, 1, 1)]  # fmt: skip
FORMATS = ("contiguous_format", "channels_last", "channels_last_3d")


def in_order(library, shape, channels_last):
    if not channels_last or len(shape) < 4:
        return library.zeros(shape)
    return library.zeros(shape[0], *shape[2:], shape[1]).movedim(-1, 1)


def every_other(library, shape):
    return library.zeros(*shape[:-1], 2 * shape[-1])[..., ::2]


def outcome(call):
    try:
        return call()
    except RuntimeError as error:
        return str(error).partition(", got")[0]


@pytest.mark.parametrize(("name", "shape"), [("channels_last", (2, 3, 4, 5)), ("channels_last_3d", (2, 3, 4, 5, 6))])
def test_channels_lie_innermost(name, shape):
    order, usual = getattr(torch, name), torch.zeros(shape)
    made = usual.to(memory_format=order)
    assert made.stride(1) == 1 and made.is_contiguous(memory_format=order) and not made.is_contiguous()
    assert not usual.is_contiguous(memory_format=order)
    assert made.to(memory_format=order) is made and made.contiguous(memory_format=order) is made
    assert torch.zeros_like(usual, memory_format=order).stride() == torch.ones_like(made).stride() == made.stride()
    assert repr(order) == f"torch.{name}"


def test_a_format_is_for_one_number_of_dimensions():
    matrix = torch.zeros(2, 3)
    assert not matrix.is_contiguous(memory_format=torch.channels_last)
    for convert in (matrix.contiguous, matrix.to, matrix.clone):
        with pytest.raises(RuntimeError, match="required rank 4 tensor to use channels_last format, got rank 2"):
            convert(memory_format=torch.channels_last)
    with pytest.raises(RuntimeError, match="required rank 5 tensor to use channels_last_3d format, got rank 4"):
        torch.empty(1, 2, 3, 4, memory_format=torch.channels_last_3d)
    with pytest.raises(RuntimeError, match="expected a format that orders the dimensions"):
        matrix.is_contiguous(memory_format=torch.preserve_format)


def test_volumes_keep_channels_innermost():
    layers = torch.nn.Sequential(torch.nn.Conv3d(3, 8, 3, padding=1), torch.nn.BatchNorm3d(8), torch.nn.ReLU())
    volume = torch.randn(2, 3, 4, 6, 6)
    with torch.no_grad():
        expected = F.max_pool3d(layers(volume), 2)
        layers[1].reset_running_stats()
        layers.to(memory_format=torch.channels_last_3d)
        assert layers[0].weight.stride() == (81, 1, 27, 9, 3)
        found = F.max_pool3d(layers(volume.to(memory_format=torch.channels_last_3d)), 2)
    assert found.is_contiguous(memory_format=torch.channels_last_3d)
    torch.testing.assert_close(found.contiguous(), expected)


def test_compiled_graphs_keep_the_format():
    def function(x):
        return x.to(memory_format=torch.channels_last_3d) + 1, x.is_contiguous(memory_format=torch.channels_last_3d)

    x = torch.randn(2, 3, 4, 5, 6)
    found, answer = torch.compile(function, fullgraph=True)(x)
    assert found.stride() == function(x)[0].stride() and answer is False
    assert torch.equal(found, x + 1)


@pytest.mark.oracle
@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("make", [
    lambda library, shape: in_order(library, shape, False),
    lambda library, shape: in_order(library, shape, True),
    every_other,
], ids=["row-major", "channels-last", "strided"])  # fmt: skip
def test_as_in_torch(make, shape, name):
    oracle = pytest.importorskip("torch")

    def answers(library):
        tensor, order = make(library, shape), getattr(library, name)
        calls = [
            lambda: tensor.is_contiguous(memory_format=order),
            lambda: library.empty(shape, memory_format=order).stride(),
            lambda: tensor.contiguous(memory_format=order).stride(),
            lambda: tensor.clone(memory_format=order).stride(),
            lambda: library.empty_like(tensor, memory_format=order).stride(),
            lambda: library.zeros_like(tensor, memory_format=order).stride(),
            lambda: library.full_like(tensor, 2.0).stride(),
            lambda: tensor.to(library.float64, memory_format=order).stride(),
            lambda: (tensor + 1).stride(),
        ]
        if make is not every_other:  # torch's `to` leaves strided tensors as they are where contiguous ones are asked for
            calls.append(lambda: tensor.to(memory_format=order).stride())
        return [outcome(call) for call in calls]

    assert answers(torch) == answers(oracle)


@pytest.mark.oracle
def test_flips_lie_as_in_torch_and_classes_are_row_major():
    oracle = pytest.importorskip("torch")

    def answers(library):
        image, matrix = in_order(library, (2, 3, 4, 5), True), library.zeros(3, 4).t()
        calls = [
            lambda: image.flip(3), lambda: image[:, :, ::2].flip(2, 0), lambda: matrix.flip(0), lambda: matrix.rot90(),
            lambda: matrix.expand(2, 4, 3).flip(0), lambda: library.nn.functional.one_hot(matrix.long(), 7),
        ]  # fmt: skip
        return [call().stride() for call in calls]

    assert answers(torch) == answers(oracle)
    image = torch.arange(120.0).view(2, 4, 5, 3).movedim(-1, 1)
    for dynamic in (False, True):
        flipped = torch.compile(lambda x: x.flip(3, 1), fullgraph=True, dynamic=dynamic)(image)
        assert flipped.stride() == image.stride() and flipped.tolist() == image.contiguous().flip(3).flip(1).tolist()
