"""Order of launches and lifetimes of memory, as a launcher sees them that stands in for a device's."""

from __future__ import annotations

import pytest

import rushlight as torch
from tests.inductor.triton.interpreted import pieces_of

F = torch.nn.functional


class Recorder:
    """A launcher over Triton's interpreter that keeps what is allocated, freed and launched."""

    made: list[Recorder] = []

    def __init__(self, program, name):
        from rushlight.inductor.triton.interpreter import InterpreterLauncher

        self.inner = InterpreterLauncher(program, name)
        self.signatures = {kernel: launch.parameters for kernel, launch in program.kernels.items()}
        self.live: dict[int, tuple[int, object]] = {}
        self.launched: list[str] = []
        self.copied = self.freed = 0
        Recorder.made.append(self)

    def allocate(self, nbytes):
        memory = self.inner.allocate(nbytes)
        self.live[memory.data_ptr] = nbytes, memory
        return memory

    def free(self, memory):
        assert self.live.pop(memory.data_ptr)[1] is memory
        self.freed += 1

    def copy(self, target, source, nbytes):
        self.copied += 1
        self.inner.copy(target, source, nbytes)

    def address(self, tensor):
        return self.inner.address(tensor)

    def clear_status(self):
        return self.inner.clear_status()

    def has_failed(self, status):
        return self.inner.has_failed(status)

    def launch(self, kernel, grid, arguments, constants, *, warps, stages):
        assert all(size > 0 for size in grid) and warps in (1, 2, 4, 8, 16) and stages > 0
        assert len(arguments) == len(self.signatures[kernel])
        self.launched.append(kernel)
        self.inner.launch(kernel, grid, arguments, constants, warps=warps, stages=stages)

    def tensor(self, memory, size, stride, offset, kind):
        return self.inner.tensor(memory, size, stride, offset, kind)


def run(function, *inputs):
    """The results, and the recorder of a function of one program."""
    Recorder.made.clear()
    compiled, _ = pieces_of(function, *inputs, launcher=Recorder)
    results = compiled(*inputs)
    (recorder,) = Recorder.made
    return results, recorder


def test_only_results_stay_allocated():
    results, recorder = run(lambda x: torch.softmax(torch.relu(x @ x) @ x, -1).sum(0), torch.randn(20, 20))
    assert list(recorder.live) == [results[0].data_ptr()]
    assert recorder.freed == 1 and len(recorder.launched) >= 3


def test_kernels_run_in_the_order_of_the_graph():
    _, recorder = run(lambda x, w: F.gelu(F.gelu(x @ w) @ w), torch.randn(20, 20), torch.randn(20, 20))
    assert recorder.launched == ["product_mm_gelu_0", "product_mm_gelu_0"]


def test_values_computed_in_place_are_not_copied():
    def step(x, y):
        x.add_(y)
        return x * 2

    x = torch.ones(5)
    results, recorder = run(step, x, torch.ones(5))
    assert recorder.copied == 0
    torch.testing.assert_close(x, torch.full((5,), 2.0))


def test_a_program_that_fails_changes_no_input_and_frees_its_memory():
    def step(x, y, i):
        x.add_(y[i])
        return (x @ x).relu().sum(0)

    x, y = torch.ones(4, 4), torch.ones(4, 4)
    with pytest.raises(IndexError):
        run(step, x, y, torch.tensor([0, 1, 2, 9]))
    (recorder,) = Recorder.made
    torch.testing.assert_close(x, torch.ones(4, 4))
    assert recorder.copied == 0 and len(recorder.live) <= 1
