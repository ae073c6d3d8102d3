"""Functions of NumPy in compiled functions: one graph, whose results have NumPy's values and dtypes."""

import numpy as np
import pytest

import rushlight as torch
from rushlight._dynamo import config
from rushlight._dynamo.testing import CompileCounter

FLOATS = np.array([[0.5, -1.25, 2.0], [3.5, 0.0, -0.75]])
ARRAYS = {
    "float64": FLOATS, "float32": FLOATS.astype(np.float32), "int64": np.array([[3, -1, 2], [0, 5, -4]]),
    "int32": np.array([[3, -1, 2], [0, 5, -4]], np.int32), "bool": np.array([[True, False, True], [False, False, True]]),
    "uint8": np.array([[3, 1, 2], [0, 5, 4]], np.uint8), "complex128": FLOATS + 1j * FLOATS[::-1],
}  # fmt: skip

OF_ANY = {
    "add": lambda a: a + 1, "weak float": lambda a: a * 2.5, "divide": lambda a: a / 2, "itself": lambda a: a + a.T.T,
    "dtypes": lambda a: a + np.ones(3, np.float32), "exp": lambda a: np.exp(a), "sin": lambda a: np.sin(a) + np.cos(a),
    "sum": lambda a: a.sum(), "sum axis": lambda a: np.sum(a, axis=0), "sum keep": lambda a: a.sum(1, keepdims=True),
    "prod": lambda a: a.prod(axis=1), "mean": lambda a: a.mean(), "std": lambda a: np.std(a, axis=1, ddof=1),
    "any": lambda a: (a.any(), np.all(a, axis=0)), "cumsum": lambda a: (np.cumsum(a), a.cumsum(1)),
    "where": lambda a: np.where(a == 0, a, 7), "where two": lambda a: np.where(a != 0, 1.5, 2), "reshape": lambda a: a.reshape(3, 2),
    "reshape tuple": lambda a: a.reshape((-1,)) * 2, "transpose": lambda a: a.transpose() + np.transpose(a, (1, 0)),
    "concatenate": lambda a: np.concatenate([a, a * 2], axis=1), "mixed": lambda a: np.concatenate([a, np.zeros((1, 3))]),
    "stack": lambda a: np.stack([a[0], a[1]], axis=-1), "vstack": lambda a: np.vstack((a, a[:1])), "ravel": lambda a: a.ravel(),
    "index": lambda a: (a[0], a[:, 1], a[1, 2], a[..., ::2], a[None, 0]), "backwards": lambda a: (a[::-1], a[:, ::-2], a[0, ::-1]),
    "lists": lambda a: a[[0, 1], [2, 0]], "zeros": lambda a: np.zeros_like(a) + np.ones(3), "full": lambda a: np.full((2, 2), 3) + a[0, 0],
    "astype": lambda a: a.astype(np.float32) * 2, "astype text": lambda a: a.astype("complex64"), "copy": lambda a: a.copy() + 1,
    "T": lambda a: a.T @ a, "dot": lambda a: (np.dot(a, a.T), a[0].dot(a[1])), "outer": lambda a: np.outer(a[0], a[1]),
    "einsum": lambda a: np.einsum("ij,kj->ik", a, a), "tensordot": lambda a: np.tensordot(a, a, axes=([1], [1])),
    "roll": lambda a: np.roll(a, 1, axis=1) + np.flip(a, 0), "tile": lambda a: np.tile(a, 2), "repeat": lambda a: np.repeat(a, 2, 0),
    "attributes": lambda a: a * a.shape[1] + a.ndim + a.size, "dtype": lambda a: np.ones(2, dtype=a.dtype),
    "iteration": lambda a: sum(row for row in a), "len": lambda a: a * len(a), "squeeze": lambda a: np.expand_dims(a, 0).squeeze(0),
    "eye": lambda a: a @ np.eye(3), "tril": lambda a: np.tril(a) + np.triu(a, 1), "diag": lambda a: np.diag(a[0]) + 1,
    "take": lambda a: np.take(a, [0, 2], axis=1), "isclose": lambda a: np.isclose(a, 2), "power": lambda a: a**2,
    "diff": lambda a: np.diff(a.astype(float)), "norm": lambda a: np.linalg.norm(a, axis=1), "trace": lambda a: np.trace(a),
    "real": lambda a: (a.real, np.imag(a)), "conj": lambda a: a.conj() * 1, "abs": lambda a: abs(a), "neg": lambda a: -(a * 1),
    "count": lambda a: np.count_nonzero(a), "nan": lambda a: np.nan_to_num(a / 2), "split": lambda a: np.split(a, 3, axis=1)[1],
    "broadcast": lambda a: np.broadcast_to(a[0], (2, 3)) + a, "moveaxis": lambda a: np.moveaxis(a, 0, 1) + a.swapaxes(0, 1),
    "meshgrid": lambda a: np.meshgrid(a[0], a[1]), "square": lambda a: np.square(a) - np.multiply(a, a),
}  # fmt: skip
OF_REALS = {
    "max": lambda a: (a.max(), a.min(axis=1), np.max(a, 0)), "argmax": lambda a: (a.argmax(), np.argmin(a, axis=1)),
    "compare": lambda a: (a > 1, a <= a[0], a == 2), "maximum": lambda a: np.maximum(a, 1) + np.minimum(a, 0.5),
    "clip": lambda a: np.clip(a, 0, 2), "clip method": lambda a: a.clip(1, 3), "sort": lambda a: np.sort(a, axis=0),
    "argsort": lambda a: np.argsort(a[0]), "median": lambda a: np.median(a), "round": lambda a: np.round(a * 1.5, 1),
    "ptp": lambda a: np.ptp(a + 1), "floor": lambda a: np.floor(a / 2), "arctan2": lambda a: np.arctan2(a, 2),
    "remainder": lambda a: a % 3, "floor_divide": lambda a: a // 2, "hypot": lambda a: np.hypot(a, 1.0),
    "arange": lambda a: np.arange(3) * a, "linspace": lambda a: np.linspace(0, 1, 3) * a, "logical": lambda a: np.logical_and(a > 0, a < 3),
    "isnan": lambda a: np.isnan(a) | np.isfinite(a), "log": lambda a: np.log1p(np.abs(a)), "sqrt": lambda a: np.sqrt(a * a),
}  # fmt: skip
_NOT_OF_TRUTH = {"power", "conj", "neg", "square", "diff", "ptp", "dtype", "remainder", "floor_divide"}
_NOT_SUMMED = {"sum", "sum axis", "sum keep", "prod", "cumsum", "trace"}


def _same(found, expected):
    if isinstance(expected, tuple | list):
        assert type(found) is type(expected) and len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            _same(one, other)
        return
    assert type(found) is type(expected)
    assert found.dtype == expected.dtype and found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=2e-6, atol=1e-6)


def _cases():
    for name, program in {**OF_ANY, **OF_REALS}.items():
        for kind in ARRAYS:
            if name in OF_REALS and kind == "complex128" or kind == "bool" and name in _NOT_OF_TRUTH:
                continue
            if kind == "uint8" and name in _NOT_SUMMED or kind in ("bool", "uint8") and name == "neg":
                continue
            yield pytest.param(name, program, kind, id=f"{name}-{kind}")


@pytest.mark.parametrize(("name", "program", "kind"), _cases())
@np.errstate(all="ignore")
def test_one_graph_gives_what_numpy_does(name, program, kind):
    array = ARRAYS[kind].copy()
    expected = program(array.copy())
    torch._dynamo.reset()
    _same(torch.compile(program, fullgraph=True, backend="eager")(array), expected)


def test_tensors_and_arrays_change_into_each_other():
    def program(a, b):
        halves = np.sin(a.numpy()) * 2
        return torch.from_numpy(halves + b) * 3, torch.as_tensor(b), torch.tensor(b) + 1

    a, b = torch.ones(3), np.arange(3.0)
    found, expected = torch.compile(program, fullgraph=True)(a, b), program(a, b)
    for one, other in zip(found, expected, strict=True):
        assert one.dtype is other.dtype
        torch.testing.assert_close(one, other)


def test_it_is_one_graph_for_all_arrays_that_look_alike():
    counter = CompileCounter()
    compiled = torch.compile(lambda a: np.tanh(a) * 2, backend=counter)
    for array in (np.ones(3), np.zeros(3), np.arange(3.0)):
        _same(compiled(array), np.tanh(array) * 2)
    assert counter.frame_count == 1
    _same(compiled(np.arange(4.0)), np.tanh(np.arange(4.0)) * 2)
    _same(compiled(np.ones(3, np.float32)), np.tanh(np.ones(3, np.float32)) * 2)


def test_writes_reach_the_array():
    def program(a):
        a += 1
        a[0] = 7
        b = a * 2
        b *= 0.5
        return b

    one, other = np.arange(3.0), np.arange(3.0)
    _same(torch.compile(program, fullgraph=True)(one), program(other))
    _same(one, other)


def test_an_array_that_is_returned_stays_the_same_object():
    array = np.arange(3.0)
    same, _ = torch.compile(lambda a: (a, a + 1), fullgraph=True, backend="eager")(array)
    assert same is array


def test_gradients_are_refused_as_eager_refuses_them():
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="requires grad"):
        torch.compile(lambda x: np.sin(x.numpy()))(x)
    _same(torch.compile(lambda x: np.sin(x.detach().numpy()), fullgraph=True)(x), np.sin(np.ones(2, np.float32)))


@pytest.mark.parametrize("program", [
    lambda a: np.interp(a[0], [0, 1], [2, 3]), lambda a: np.sum(a, where=a > 0), lambda a: a.tolist(), lambda a: np.array2string(a),
    lambda a: np.add(a, 1, out=a.copy()), lambda a: np.unique(a), lambda a: a.reshape(5, 5) if a.size == 25 else np.cov(a),
])  # fmt: skip
def test_what_is_not_known_runs_in_numpy(program):
    found, expected = torch.compile(program, backend="eager")(FLOATS.copy()), program(FLOATS.copy())
    np.testing.assert_array_equal(found, expected)


def test_errors_are_those_of_numpy():
    compiled = torch.compile(lambda a: a + np.ones(5), backend="eager")
    with pytest.raises(ValueError, match="could not be broadcast"):
        compiled(FLOATS.copy())


def test_arrays_that_nothing_lies_over_run_in_numpy():
    frozen = FLOATS.copy()
    frozen.flags.writeable = False
    for array in (frozen, FLOATS[:, ::-1], np.array(["a", "b"]), np.array([1, None])):
        compiled = torch.compile(lambda a: (a.shape, a[:1]), backend="eager")
        shape, first = compiled(array)
        assert shape == array.shape and (first == array[:1]).all()


def test_the_setting_trace_numpy():
    with config.patch(trace_numpy=False), pytest.raises(torch._dynamo.exc.Unsupported):
        torch.compile(lambda a: np.sin(a), fullgraph=True, backend="eager")(FLOATS.copy())
