"""Runs a function's Triton kernels in Triton's interpreter and compares with eager."""

from __future__ import annotations

import rushlight as torch
from rushlight.aot.functionalize import functionalize
from rushlight.fx.proxy_tensor import capture, make_fx
from rushlight.inductor.codegen.triton.templates import Precision
from rushlight.inductor.triton.pieces import TritonCompiler, TritonPieces


def pieces_of(function, *inputs, launcher=None, precision: str = "ieee", dynamic: bool = False) -> tuple:
    """The callable (None without a launcher) and the pieces of a function's graph."""
    with torch.no_grad():
        module = make_fx(function, tracing_mode="symbolic")(*inputs) if dynamic else capture(function, inputs).module
    functionalize(module)
    return TritonCompiler(launcher, Precision(precision)).compile(module)


def check(function, *inputs, eager: bool = False, **tolerances) -> TritonPieces:
    """Assert that the kernels give eager's values, and that all of the graph has kernels, unless `eager`."""
    from rushlight.inductor.triton.interpreter import InterpreterLauncher

    run, pieces = pieces_of(function, *inputs, launcher=InterpreterLauncher)
    assert bool(pieces.eager) is eager, pieces.eager
    wanted = function(*inputs)
    for ours, theirs in zip(run(*inputs), wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
        assert ours.dtype is theirs.dtype and ours.shape == theirs.shape and ours.stride() == theirs.stride()
        torch.testing.assert_close(ours, theirs, equal_nan=True, **tolerances)
    return pieces
