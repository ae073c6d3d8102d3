"""`out=` beside PyTorch: which dtypes a target may have, in which dtype sums run, and the strides of empty targets."""

import pytest

import rushlight

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle

CALLS = {
    "abs": (lambda t, x, out: t.abs(x, out=out)),
    "add": (lambda t, x, out: t.add(x, x, out=out)),
    "sum": (lambda t, x, out: t.sum(x, 1, out=out)),
    "prod": (lambda t, x, out: t.prod(x, 1, out=out)),
    "cumsum": (lambda t, x, out: t.cumsum(x, 1, out=out)),
    "cumprod": (lambda t, x, out: t.cumprod(x, 1, out=out)),
    "maximum": (lambda t, x, out: t.max(x, x + 1, out=out)),
    "argmax": (lambda t, x, out: t.argmax(x, 1, out=out)),
    "all": (lambda t, x, out: t.all(x, 1, out=out)),
    "isposinf": (lambda t, x, out: t.isposinf(x, out=out)),
    "matmul": (lambda t, x, out: t.matmul(x, x.mT, out=out)),
    "inv": (lambda t, x, out: t.linalg.inv(x[:, :2] + 3 * t.eye(2), out=out)),
    "softmax": (lambda t, x, out: t.softmax(x, 1, out=out)),
    "triu": (lambda t, x, out: t.triu(x, out=out)),
    "transposed": (lambda t, x, out: t.add(x.t(), 1, out=out)),
    "rfft": (lambda t, x, out: t.fft.rfft(x.t(), dim=0, out=out)),
    "gelu": (lambda t, x, out: t.nn.functional.gelu(x, out=out)),
    "softplus": (lambda t, x, out: t.nn.functional.softplus(x, out=out)),
    "logsigmoid": (lambda t, x, out: t.nn.functional.logsigmoid(x, out=out)),
    "hardshrink": (lambda t, x, out: t.nn.functional.hardshrink(x, out=out)),
    "softshrink": (lambda t, x, out: t.nn.functional.softshrink(x, out=out)),
    "linear": (lambda t, x, out: t.nn.functional.linear(x, x, out=out)),
    "avg_pool2d": (lambda t, x, out: t.nn.functional.avg_pool2d(x[None, None], 2, out=out)),
    "normalize": (lambda t, x, out: t.nn.functional.normalize(x, out=out)),
}


def outcome(library, call, kind):
    """The target's values, dtype and strides after a call; None if it was refused."""
    x = library.tensor([[0.6, -0.6, 0.8], [1.5, 2.5, 0.25]])
    out = library.empty(0, dtype=getattr(library, kind))
    try:
        result = call(library, x, out)
    except RuntimeError:
        return None
    assert result is out
    return out.to(library.complex128).tolist(), str(out.dtype).split(".")[1], out.stride()


@pytest.mark.parametrize("kind", ["float32", "float64", "int32", "bool", "complex64"])
@pytest.mark.parametrize("name", CALLS)
def test_targets_of_each_dtype(name, kind):
    expected, given = outcome(torch, CALLS[name], kind), outcome(rushlight, CALLS[name], kind)
    assert (given is None) == (expected is None)
    if expected is not None:
        torch.testing.assert_close(torch.tensor(given[0]), torch.tensor(expected[0]))
        assert given[1:] == expected[1:]
