"""Traces against PyTorch's: graphs up to numbering, methods of submodules, and results on the examples and on other inputs."""

from __future__ import annotations

import warnings

import pytest

import rushlight
from rushlight.jit.tracing.trace import trace
from tests.jit.tracing.comparison import normalised
from tests.jit.tracing.programs import CASES

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle
# Where the graphs differ, though what they compute does not: functions of `nn` that call another operator.
KNOWN = {"pooling", "interpolation", "module_recurrent", "writes_by_mask"}
# A complex constant's text, and how a number becomes a first operand.
KNOWN |= {"size_and_complex", "integers_times_complex", "a_float_first"}
# PyTorch warns of its own checks, and that `tensor(size)` is a constant, which it is not.
OTHER_WARNINGS = {"module_batch_norm_training", "size_as_a_tensor"}


def _traced(library, tracer, name):
    case = CASES[name]
    program = case.make(library)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made = tracer(program, case.inputs(library), **case.options)
    kinds = sorted({str(each.message).split(".")[0][:60] for each in caught if each.category.__name__ == "TracerWarning"})
    return made, kinds


def _values(result):
    if isinstance(result, list | tuple):
        return [_values(item) for item in result]
    if isinstance(result, dict):
        return {key: _values(item) for key, item in result.items()}
    return (str(result.dtype).rpartition(".")[2], tuple(result.shape), result.detach().double().flatten().tolist())


@pytest.mark.parametrize("name", CASES)
def test_results(name):
    ours, _ = _traced(rushlight, trace, name)
    theirs, _ = _traced(torch, torch.jit.trace, name)
    case = CASES[name]
    for inputs in (case.inputs, case.others):
        expected, got = _values(theirs(*inputs(torch))), _values(ours(*inputs(rushlight)))
        assert _close(got, expected), f"{got}\n{expected}"


def _close(a, b):
    if isinstance(a, float) or isinstance(b, float):
        return a == pytest.approx(b, rel=1e-4, abs=1e-5, nan_ok=True)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(_close, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_close(a[key], b[key]) for key in a)
    return a == b


@pytest.mark.parametrize("name", CASES)
def test_graphs(name):
    ours, our_warnings = _traced(rushlight, trace, name)
    theirs, their_warnings = _traced(torch, torch.jit.trace, name)
    if name not in KNOWN:
        grads = "convolution" not in name and "batch_norm" not in name
        assert normalised(ours.graph, grads) == normalised(theirs.graph, grads)
        others = dict(theirs.named_modules()) if hasattr(theirs, "named_modules") else {}
        for path, one in ours.named_modules() if others else ():
            if path and _has_forward(others[path]):
                assert normalised(one.graph, grads) == normalised(others[path].graph, grads), path
    if name not in OTHER_WARNINGS:
        assert our_warnings == their_warnings


def _has_forward(module):
    try:
        return module.graph is not None
    except (RuntimeError, AttributeError):
        return False
