"""Kernels that differ in numbers only become calls of one function."""

from __future__ import annotations

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.inductor import costs
from rushlight.inductor.codegen.cpp.families import share
from tests.inductor.native_nodes import writer_of

ROWS = """\
static void @(const float* in0, float* out0) {
  for (const long x : rl::shared(%(rows)sL)) {
    rl::for_each(%(columns)sL, [&](auto lane, long r) {
      const auto tmp0 = lane.load(in0 + r + %(columns)sL*x);
      const auto tmp1 = lane.broadcast(%(columns)s.0f);
      lane.store(out0 + r + %(columns)sL*x, rl::div(tmp0, tmp1));
    });
  }
}"""


def test_a_family_takes_the_numbers_that_differ():
    first, second = ROWS % {"rows": 64, "columns": 384}, ROWS % {"rows": 64, "columns": 768}
    functions, members = share([first, second, first])
    assert functions == [
        """\
static void @(const float* in0, float* out0, long size0, float count0) {
  for (const long x : rl::shared(64L)) {
    rl::for_each(size0, [&](auto lane, long r) {
      const auto tmp0 = lane.load(in0 + r + size0*x);
      const auto tmp1 = lane.broadcast(count0);
      lane.store(out0 + r + size0*x, rl::div(tmp0, tmp1));
    });
  }
}"""
    ]
    assert [members[text].passed for text in (first, second)] == [("384L", "384.0f"), ("768L", "768.0f")]


def test_kernels_that_are_alone_keep_their_numbers():
    text = ROWS % {"rows": 64, "columns": 384}
    other = text.replace("rl::div(tmp0, tmp1)", "tmp0 * tmp1")
    functions, members = share([text, other])
    assert functions == [text, other]
    assert [(members[each].number, members[each].passed) for each in (text, other)] == [(0, ()), (1, ())]


@pytest.mark.parametrize(
    "one, other",
    [
        ("for (long r = 0; r < 3L; ++r) {", "for (long r = 0; r < 5L; ++r) {"),  # may be unrolled
        ("in0 + r / 49L", "in0 + r / 64L"),
        ("in0 + (x / 4L) % 49L", "in0 + (x / 4L) % 64L"),
        ("alignas(64) float row0[384L];", "alignas(64) float row0[768L];"),
        ("lane.broadcast(0.125f)", "lane.broadcast(0.25f)"),
        ("lane.broadcast(1e-05f)", "lane.broadcast(1e-06f)"),
        ("turned[4096]", "turned[2048]"),
        ("rl::attention<64>(", "rl::attention<32>("),
    ],
)
def test_numbers_that_code_depends_on_stay(one, other):
    texts = [f"static void @(const float* in0) {{\n  {line}\n}}" for line in (one, other)]
    assert share(texts)[0] == texts


@pytest.mark.parametrize("line", ["in0 + x / %dL", "in0 + x %% %dL*r", "block / %dL", "o %% %dL"])
def test_divisors_of_what_stays_the_same_along_a_row_are_passed(line):
    texts = [f"static void @(const float* in0) {{\n  {line % size}\n}}" for size in (49, 64)]
    functions, members = share(texts)
    assert len(functions) == 1 and [members[text].passed for text in texts] == [("49L",), ("64L",)]


class Funnel(nn.Module):
    """Blocks of one form and many sizes, with means, divisions of rows by channels, and cut rows."""

    def __init__(self, widths=(40, 48, 56, 72)):
        super().__init__()
        pairs = list(zip(widths, widths[1:], strict=False))
        self.layers = nn.ModuleList(nn.Linear(before, after) for before, after in pairs)
        self.norms = nn.ModuleList(nn.LayerNorm(after) for _, after in pairs)
        self.scales = nn.ParameterList(torch.randn(after, 1) for _, after in pairs)

    def forward(self, x):
        for layer, norm, scale in zip(self.layers, self.norms, self.scales, strict=True):
            x = norm(layer(x))
            x = torch.relu((x.transpose(1, 2) * scale).softmax(-1)).transpose(1, 2) + x.mean(1, keepdim=True)
        return torch.cat([x, x.flip(1) * 2.0], 1)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("training", [False, True])
def test_results_are_those_of_eager(dynamic, training):
    torch.manual_seed(0)
    model = Funnel()
    compiled = torch.compile(model, dynamic=dynamic, fullgraph=True)
    for rows in (20, 33, 20):
        x = torch.randn(3, rows, 40, requires_grad=training)
        with torch.set_grad_enabled(training):
            got, want = compiled(x), model(x)
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)
        if training:
            leaves = [x, *model.parameters()]
            for one, other in zip(
                torch.autograd.grad(got.cos().sum(), leaves), torch.autograd.grad(want.cos().sum(), leaves), strict=True
            ):
                torch.testing.assert_close(one, other, rtol=1e-3, atol=max(1e-5, 2e-6 * other.abs().max().item()))


def test_layers_of_one_form_share_their_functions(monkeypatch):
    monkeypatch.setattr(costs, "core", lambda: costs.AVX2)
    program = writer_of(Funnel().eval(), torch.randn(3, 20, 40)).write()
    assert (program.source.count("\nstatic void kernel_"), len(program.calls)) == (8, 17)
    assert any(kernel.numbers for _, _, kernel in program.calls)
