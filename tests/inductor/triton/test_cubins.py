"""Triton kernels compiled to cubins for sm_80 and sm_90, in another process, without a GPU."""

from __future__ import annotations

import rushlight as torch
from rushlight.inductor.triton.compiler import compile_apart, work_of
from tests.inductor.triton.interpreted import pieces_of
from tests.inductor.triton.test_text import PROGRAMS

F = torch.nn.functional
SOME = {
    **{name: given for name, given in PROGRAMS.items() if name != "fused_chain"},
    "indices": (lambda x, i: (x[i], x.index_add(0, i, x[: len(i)])), torch.zeros(5, 7), torch.zeros(3, dtype=torch.int64)),
    "scatters": (
        lambda x, y, b, i: (x.scatter_reduce(0, i, x, "prod"), y.scatter_reduce(0, i, y, "prod"), b.scatter_reduce(0, i, b, "sum")),
        torch.zeros(50), torch.zeros(50, dtype=torch.int64), torch.zeros(50, dtype=torch.uint8), torch.zeros(9, dtype=torch.int64),
    ),
    "long sorts": (lambda x, y: (*torch.sort(x), *torch.topk(y, 7)), torch.zeros(2, 5000), torch.zeros(2, 5000, dtype=torch.int64)),
    "float64": (lambda x: (torch.atan(x), torch.acos(x), torch.erfc(x), torch.lgamma(x)), torch.zeros(50, dtype=torch.float64)),
    "deep product": (lambda a, b: F.relu(a @ b), torch.zeros(64, 8192).bfloat16(), torch.zeros(8192, 64).bfloat16()),
    "transpose": (lambda x, y: x.t() + y, torch.zeros(20, 33), torch.zeros(33, 20)),
    "rows": (lambda x: (x.argmax(-1), x.cumsum(-1), *torch.sort(x)), torch.zeros(5, 70)),
    "convolution": (lambda x, w: F.conv2d(x, w, padding=1), torch.zeros(1, 8, 9, 9), torch.zeros(16, 8, 3, 3)),
}


def test_kernels_compile_for_two_generations_of_gpus():
    programs = [program for given in SOME.values() for _, program in pieces_of(*given)[1].programs]
    results = compile_apart(map(work_of, programs), (80, 90))
    assert [result for result in results if "error" in result] == []
    assert len(results) == 2 * sum(len(program.kernels) for program in programs)
    assert all(result["bytes"] > 1000 and result["shared"] <= 160 * 1024 for result in results)
