"""Compiles a function for a test: all of it must become native code and match eager."""

from __future__ import annotations

import re
import warnings

import rushlight as torch
from rushlight.aot.functionalize import functionalize
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.proxy_tensor import capture
from rushlight.inductor.codegen.cpp.program import ProgramWriter
from rushlight.inductor.graph import GraphLowering
from rushlight.inductor.support import is_supported


def functional_graph(function, *inputs) -> GraphModule:
    """A function's graph without mutation."""
    with torch.no_grad():
        module = capture(function, inputs).module
    functionalize(module)
    return module


def writer_of(function, *inputs, threads: int = 2) -> ProgramWriter:
    """The writer of a function's program."""
    return ProgramWriter(GraphLowering(functional_graph(function, *inputs)).run(), threads)


def source_of(function, *inputs) -> str:
    """The C++ text of a function's program, without the comments that quote the test file."""
    return re.sub("//.*", "", writer_of(function, *inputs).write().source)


def eager_nodes(function, *inputs) -> list[str]:
    """The calls in a function's graph that have no native code."""
    nodes = functional_graph(function, *inputs).graph.nodes
    return [str(node.target) for node in nodes if node.op == "call_function" and not is_supported(node)]


def check(function, *inputs, native: bool = True, **options):
    """Asserts that compiled results have eager's values, dtypes and layouts. `options` are those of `compile`."""
    if native:
        assert eager_nodes(function, *inputs) == []
    wanted = function(*inputs)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="compile")
        found = torch.compile(function, fullgraph=True, **options)(*inputs)
    pairs = zip(found, wanted, strict=True) if isinstance(wanted, tuple) else [(found, wanted)]
    for ours, theirs in pairs:
        assert ours.dtype is theirs.dtype and ours.shape == theirs.shape and ours.stride() == theirs.stride()
        torch.testing.assert_close(ours, theirs, equal_nan=True)


def check_gradients(functions, x) -> None:
    """Asserts that gradients of compiled functions of one tensor match eager's."""
    for function in functions:
        gradients = []
        for run in (torch.compile(function, fullgraph=True), function):
            leaf = x.clone().requires_grad_()
            found = run(leaf)
            (found * torch.arange(found.numel()).view(found.shape)).sum().backward()
            gradients.append(leaf.grad)
        torch.testing.assert_close(*gradients)
