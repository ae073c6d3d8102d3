"""`torch._check` and its like, and the functions on open sizes: alone, compiled, and against PyTorch."""

from __future__ import annotations

import pytest

import rushlight as torch
from rushlight._dynamo.testing import CompileCounter

CALLS = {
    "max": lambda t: (t.sym_max(3, 4), t.sym_max(3, 4.5), t.sym_max(5, 4.5)),
    "min": lambda t: (t.sym_min(3, 4), t.sym_min(3, 4.5), t.sym_min(5, 4.5)),
    "conversions": lambda t: (t.sym_int(3.7), t.sym_int(-3.7), t.sym_float(3), t.sym_not(True), t.sym_sqrt(4)),
    "choice": lambda t: (t.sym_ite(True, 1, 2), t.sym_ite(False, 1, 2), t.sym_sum([1, 2, 3])),
    "kinds": lambda t: (isinstance(3, t.SymInt), isinstance(True, t.SymBool)),
    "holds": lambda t: (t._check(True), t._check_index(True), t._check_tensor_all(t.ones(2) > 0)),
    "message": lambda t: t._check(False, lambda: "n is too large"),
    "index": lambda t: t._check_index(False, lambda: "out of range"),
    "value": lambda t: t._check_value(False, lambda: "no such value"),
    "type": lambda t: t._check_type(False, lambda: "not an int"),
    "missing": lambda t: t._check_not_implemented(False, lambda: "later"),
    "elements": lambda t: t._check_tensor_all(t.tensor([True, False]), lambda: "some are false"),
    "no truth value": lambda t: t._check(1),
    "a tensor": lambda t: t._check(t.ones(1) > 0),
    "no function": lambda t: t._check(False, "text"),
}  # fmt: skip


def outcome(call, library) -> tuple:
    try:
        return "returned", call(library)
    except Exception as error:
        return type(error), str(error)


@pytest.mark.oracle
@pytest.mark.parametrize("name", CALLS)
def test_calls_do_what_pytorch_does(name):
    peer = pytest.importorskip("torch")
    assert outcome(CALLS[name], torch) == outcome(CALLS[name], peer)


def test_a_failed_check_without_a_message():
    with pytest.raises(RuntimeError, match=r"^Expected cond to be True, but got False\."):
        torch._check(False)
    for wrong in (-1, 5):
        with pytest.raises(RuntimeError):
            torch._check_is_size(wrong, max=4)
    torch._check_is_size(4, max=4)


def test_compiled_functions_follow_them_and_sizes_stay_open():
    def program(x):
        n = x.shape[0]
        torch._check(n <= 12, lambda: f"{n} is too long")
        torch._check_is_size(n)
        half = torch.sym_max(n // 2, 3)
        return x[:half] * torch.sym_float(n), x[: torch.sym_int(n / 2)], torch.sym_sum([n, half]), torch.sym_ite(n > 4, n, half)

    counter = CompileCounter()
    compiled = torch.compile(program, backend=counter, fullgraph=True, dynamic=True)
    for size in (8, 10, 12):
        found, expected = compiled(torch.ones(size)), program(torch.ones(size))
        assert all(torch.equal(one, other) for one, other in zip(found[:2], expected[:2], strict=True)) and found[2:] == expected[2:]
    assert counter.frame_count == 1
    with pytest.raises(RuntimeError, match="13 is too long"):
        compiled(torch.ones(13))
