"""Operators of training written with others: no eager kernel is left, and values, gradients and layouts are eager's."""

from __future__ import annotations

import copy

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.nn import functional as F
from tests.compiler.test_training import leaf, run, same

KINDS = {torch.float32: 1e-5, torch.bfloat16: 5e-2, torch.float16: 1e-2}
LABELS = torch.tensor([0, 3, 1, 1, 2])
WEIGHTS = torch.tensor([0.5, 2.0, 1.0, 0.25])


def statistics(channels):
    return torch.linspace(-0.5, 0.5, channels), torch.linspace(0.5, 2.0, channels)


def normalised_by_group(x, scale, shift):
    return F.group_norm(x, 2, scale, shift)


def normalised_by_frozen_statistics(x, scale, shift):
    return F.batch_norm(x, *(value.to(scale.dtype) for value in statistics(4)), scale, shift, training=False)


def normalised_by_statistics_alone(x, scale, shift):
    return F.batch_norm(x, *(value.to(x.dtype) for value in statistics(4)), training=False) * scale.sum() + shift.sum()


def normalised_by_batch(x, scale, shift):
    return F.batch_norm(x, None, None, scale, shift, training=True)


def softmax_of_rows(x, scale, shift):
    return x.softmax(-1) + F.log_softmax(x, 1)


PROGRAMS = [
    lambda x, scale, shift: F.layer_norm(x.movedim(1, -1), (4,), scale, shift), normalised_by_group, normalised_by_batch,
    normalised_by_frozen_statistics, normalised_by_statistics_alone, softmax_of_rows,
]  # fmt: skip


def checked(function, inputs, tolerance, capsys):
    fast = torch.compile(function, options={"logs": frozenset({"graph_breaks"})})
    theirs, ours = run(function, inputs), run(fast, inputs)
    for mine, other in zip(ours, theirs, strict=True):
        same(mine, other, tolerance)
    assert "eager" not in "".join(capsys.readouterr())


@pytest.mark.parametrize("kind, parameters", [
    (torch.float32, torch.float32), (torch.bfloat16, torch.bfloat16), (torch.bfloat16, torch.float32),
    (torch.float16, torch.float16),
])  # fmt: skip
@pytest.mark.parametrize("program", PROGRAMS)
def test_normalisation(program, kind, parameters, capsys):
    torch.manual_seed(0)
    values = [leaf(3, 4, 5), leaf(4), leaf(4)]
    kinds = (kind, parameters, parameters)
    values = [value.detach().to(kind).requires_grad_() for value, kind in zip(values, kinds, strict=True)]
    checked(program, values, KINDS[kind], capsys)


@pytest.mark.parametrize("options", [{}, {"weight": WEIGHTS}, {"ignore_index": 1, "weight": WEIGHTS}])
@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_likelihood_of_labels(reduction, options, capsys):
    torch.manual_seed(0)
    checked(lambda x, y: F.cross_entropy(x, y, reduction=reduction, **options), [leaf(5, 4), LABELS], 1e-5, capsys)


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16])
def test_likelihood_of_labels_in_bytes(kind, capsys):
    values, weight = [torch.randn(5, 4).to(kind).requires_grad_(), LABELS.to(torch.uint8)], WEIGHTS.to(kind)
    checked(lambda x, y: F.cross_entropy(x, y, weight, ignore_index=1), values, KINDS[kind], capsys)


def test_labels_of_places(capsys):
    """The gradient of a loss over the second of four dimensions lies otherwise than the operator's result."""
    values = [leaf(2, 4, 3, 3), torch.randint(0, 4, (2, 3, 3))]
    checked(lambda x, y: F.cross_entropy(x, y, label_smoothing=0.1), values, 1e-5, capsys)


def test_running_statistics_of_a_model_in_bfloat16():
    eager = nn.Sequential(nn.Conv1d(3, 4, 3), nn.BatchNorm1d(4), nn.ReLU()).to(torch.bfloat16)
    ours = copy.deepcopy(eager)
    fast = torch.compile(ours)
    for training in (True, True, False):
        eager.train(training), ours.train(training)
        x = torch.randn(5, 3, 8).to(torch.bfloat16)
        same(fast(x).detach(), eager(x).detach(), 5e-2)
    for mine, other in zip(ours.buffers(), eager.buffers(), strict=True):
        same(mine, other, 2e-2)
