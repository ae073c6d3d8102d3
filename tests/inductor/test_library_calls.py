"""Calls of functions over whole buffers, and complex numbers, in compiled graphs: the results and errors of eager."""

from __future__ import annotations

import pytest

import rushlight as torch
from rushlight.compiler import compile
from rushlight.fx.proxy_tensor import capture
from rushlight.inductor.support import is_better_in_eager
from tests.inductor.native_nodes import check

CASES = {
    "cholesky": (lambda a: torch.linalg.cholesky(a @ a.mT + torch.eye(4)) * 2, (torch.rand(2, 4, 4),)),
    "solve": (lambda a, b: torch.linalg.solve(a, b) + 1, (torch.rand(3, 4, 4) + 3 * torch.eye(4), torch.rand(4, 2))),
    "qr": (lambda a: torch.linalg.qr(a)[1].abs(), (torch.rand(5, 3, dtype=torch.float64),)),
    "values_only": (lambda a: torch.linalg.svdvals(a), (torch.rand(5, 3),)),
    "mode": (lambda a: torch.mode((4 * a).int(), 0), (torch.rand(9, 5),)),
    "places_of_mode": (lambda a: torch.mode(a)[1], (torch.rand(9, 5),)),
    "spectrum": (lambda x: torch.fft.rfft(x * 2).abs().log(), (torch.rand(3, 12),)),
    "filtered": (lambda x: torch.fft.ifft(torch.fft.fft(x) * 1j).real, (torch.rand(3, 11),)),
    "complex": (lambda z: (z * z.conj()).real + z.angle(), (torch.rand(4, dtype=torch.complex64),)),
    "complex_result": (lambda z: z.T * 2, (torch.rand(4, 3, dtype=torch.complex128),)),
    "double_products": (lambda a: a @ a.T, (torch.rand(4, 5, dtype=torch.float64),)),
}


@pytest.mark.parametrize("name", CASES)
def test_agrees_with_eager(name):
    function, arguments = CASES[name]
    check(function, *arguments)


def test_open_sizes():
    compiled = compile(lambda a: torch.linalg.inv(a) @ torch.fft.fft(a).real, dynamic=True)
    for size in (3, 5, 6):
        a = torch.rand(2, size, size) + torch.eye(size)
        torch.testing.assert_close(compiled(a), torch.linalg.inv(a) @ torch.fft.fft(a).real, rtol=1e-3, atol=1e-4)


def test_singular_matrices_raise_as_in_eager():
    compiled = compile(torch.linalg.inv)
    with pytest.raises(torch.linalg.LinAlgError, match="singular"):
        compiled(torch.zeros(3, 3))
    torch.testing.assert_close(compiled(torch.eye(3)), torch.eye(3))


def test_large_matrices_stay_with_lapack():
    with torch.no_grad():
        small, large = (capture(torch.linalg.inv, (torch.rand(size, size),)).module for size in (8, 100))
    chosen = [
        [is_better_in_eager(node) for node in module.graph.nodes if node.op == "call_function"] for module in (small, large)
    ]
    assert not any(chosen[0])
    assert chosen[1][0]


def test_vectors_are_those_of_eager():
    a = torch.randn(5, 4)
    for function in (torch.linalg.svd, lambda a: torch.linalg.eigh(a.T @ a), torch.linalg.pinv):
        for found, expected in zip(compile(function)(a), function(a), strict=True):
            torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
