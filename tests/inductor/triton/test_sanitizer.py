"""The sanitizer finds accesses that devices punish, and passes kernels that are right."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

import rushlight as torch
from tests.inductor.triton.interpreted import pieces_of

F = torch.nn.functional
SOURCE = """
import triton
import triton.language as tl

@triton.jit
def shared_word(x, n, BLOCK: tl.constexpr):
    tl.store(x, tl.program_id(0))

@triton.jit
def neighbour(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i + 1, mask=i < n - 1, other=0), mask=i < n - 1)

@triton.jit
def past_the_end(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, i)

@triton.jit
def before_the_start(x, n, BLOCK: tl.constexpr):
    tl.store(x + 1, tl.load(x - 1))

@triton.jit
def turned(x, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    values = tl.load(x + i)
    tl.store(x + BLOCK - 1 - i, values)

@triton.jit
def turned_after_a_barrier(x, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    values = tl.load(x + i)
    tl.debug_barrier()
    tl.store(x + BLOCK - 1 - i, values)

@triton.jit
def doubled(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)

@triton.jit
def counted(x, n, BLOCK: tl.constexpr):
    tl.atomic_add(x + tl.arange(0, BLOCK) // 2, 1)

@triton.jit
def exchanged(x, n, BLOCK: tl.constexpr):
    places = x + tl.arange(0, BLOCK) // BLOCK
    seen = tl.load(places)
    tl.atomic_cas(places, seen, seen + 7)

@triton.jit
def counted_and_read(x, n, BLOCK: tl.constexpr):
    tl.atomic_add(x, 1)
    tl.store(x + 1 + tl.program_id(0), tl.load(x))
"""


def launch(kernel: str, elements: int, programs: int, block: int) -> list[int]:
    """What a kernel makes of 0, 1, 2, ..."""
    from rushlight.inductor.triton.sanitizer import SanitizingLauncher

    parameters = [("x", "*i32"), ("n", "i64")]
    program = SimpleNamespace(kernel_source=SOURCE, kernels={kernel: SimpleNamespace(parameters=parameters)})
    launcher = SanitizingLauncher(program, f"<{kernel}>")
    x = torch.arange(elements, dtype=torch.int32)
    launcher.launch(kernel, (programs,), (launcher.address(x), elements), {"BLOCK": block}, warps=4, stages=1)
    return x.tolist()


@pytest.mark.parametrize(("kernel", "elements", "programs", "block", "words"), [
    ("shared_word", 8, 2, 4, "stores 4 bytes at x \\+0 .* and stores .* different programs"),
    ("neighbour", 8, 8, 1, "x \\+4 .* different programs"),
    ("neighbour", 4, 1, 4, "different lanes, without a barrier"),
    ("past_the_end", 6, 2, 4, "stores 4 bytes at x \\+24 \\(program 1, lane 2\\), outside of its arguments' memory"),
    ("before_the_start", 6, 1, 4, "loads 4 bytes at x -4 .* outside"),
    ("turned", 4, 1, 4, "different lanes, without a barrier"),
    ("counted_and_read", 8, 2, 4, "different programs"),
])  # fmt: skip
def test_faults_are_named(kernel, elements, programs, block, words):
    from rushlight.inductor.triton.sanitizer import KernelFault

    with pytest.raises(KernelFault, match=f"kernel {kernel} .*{words}"):
        launch(kernel, elements, programs, block)


def test_right_kernels_pass():
    assert launch("turned_after_a_barrier", 4, 1, 4) == [3, 2, 1, 0]
    assert launch("doubled", 6, 2, 4) == [0, 2, 4, 6, 8, 10]
    assert launch("counted", 4, 2, 4) == [4, 5, 2, 3]
    assert launch("exchanged", 2, 2, 4) == [14, 1]


def turned_in_place(x):
    x.copy_(x.flip(0))
    return x


@pytest.mark.parametrize("function", [
    lambda x: torch.softmax(x, -1).sum(0), lambda x: x.cumsum(0), lambda x: torch.zeros(5, 30).index_add(0, x.argmax(1) % 5, x),
    lambda x: F.conv1d(x[None], x[None, :, :3]), lambda x: (x @ x.t()).relu().t().contiguous(),
    lambda x: turned_in_place(x.clone()),
])  # fmt: skip
def test_compiled_kernels_pass(function):
    x = torch.randn(40, 30)
    run = torch.compile(function, options={"target": "triton-sanitizer"})
    torch.testing.assert_close(run(x), function(x), rtol=1e-4, atol=1e-4)


def test_memory_outside_of_a_view_may_be_read_but_not_outside_of_its_storage():
    from rushlight.inductor.triton.sanitizer import SanitizingLauncher

    run, _ = pieces_of(lambda x: x.t() + 1, torch.randn(6, 5)[1:, 1:], launcher=SanitizingLauncher)
    x = torch.randn(6, 5)[1:, 1:]
    torch.testing.assert_close(run(x)[0], x.t() + 1)
