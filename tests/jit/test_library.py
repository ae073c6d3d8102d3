"""The library's own modules and functions, scripted: what they give in eager."""

from __future__ import annotations

import warnings

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.nn import functional as F

IMAGE = torch.arange(96).reshape(1, 2, 8, 6).float() / 50 - 1
LINE = IMAGE.reshape(1, 2, 48)
VOLUME = IMAGE.reshape(1, 2, 4, 4, 3)
ROWS = IMAGE.reshape(24, 4)[:6]
SEQUENCE = IMAGE.reshape(8, 3, 4)

MODULES = [
    (lambda: nn.Linear(4, 3), (ROWS,)),
    (lambda: nn.Bilinear(4, 4, 3), (ROWS, ROWS)),
    (lambda: nn.Conv1d(2, 3, 3, padding="same"), (LINE,)),
    (lambda: nn.Conv2d(2, 4, 3, stride=2, padding=1, groups=2), (IMAGE,)),
    (lambda: nn.Conv2d(2, 4, 3, padding=1, padding_mode="reflect"), (IMAGE,)),
    (lambda: nn.Conv2d(2, 4, 3, padding="same", padding_mode="circular"), (IMAGE,)),
    (lambda: nn.Conv3d(2, 3, 2, padding="valid"), (VOLUME,)),
    (lambda: nn.ConvTranspose1d(2, 3, 3, 2), (LINE,)),
    (lambda: nn.ConvTranspose2d(2, 3, 3, stride=2, output_padding=1), (IMAGE,)),
    (lambda: nn.ConvTranspose2d(2, 3, 3, stride=2), (IMAGE, [18, 14])),
    (lambda: nn.ConvTranspose3d(2, 3, 2), (VOLUME,)),
    (lambda: nn.MaxPool1d(2), (LINE,)),
    (lambda: nn.MaxPool2d(2, return_indices=True), (IMAGE,)),
    (lambda: nn.MaxPool3d((2, 2, 1)), (VOLUME,)),
    (lambda: nn.AvgPool1d(3, 2), (LINE,)),
    (lambda: nn.AvgPool2d((2, 3), divisor_override=4), (IMAGE,)),
    (lambda: nn.AvgPool3d(2), (VOLUME,)),
    (lambda: nn.LPPool1d(2, 3), (LINE,)),
    (lambda: nn.LPPool2d(2.0, (2, 3)), (IMAGE,)),
    (lambda: nn.AdaptiveAvgPool2d((3, None)), (IMAGE,)),
    (lambda: nn.AdaptiveMaxPool2d(2), (IMAGE,)),
    (lambda: nn.AdaptiveAvgPool1d(5), (LINE,)),
    (lambda: nn.BatchNorm2d(2), (IMAGE,)),
    (lambda: nn.BatchNorm1d(4, affine=False, track_running_stats=False), (ROWS,)),
    (lambda: nn.InstanceNorm2d(2, affine=True), (IMAGE,)),
    (lambda: nn.LayerNorm(4), (ROWS,)),
    (lambda: nn.GroupNorm(2, 2), (IMAGE,)),
    (lambda: nn.RMSNorm(4), (ROWS,)),
    (lambda: nn.LocalResponseNorm(2), (IMAGE,)),
    (lambda: nn.Embedding(9, 4, padding_idx=1), (torch.arange(6),)),
    (lambda: nn.EmbeddingBag(9, 4), (torch.arange(6), torch.tensor([0, 2]))),
    (lambda: nn.RNN(4, 5, 2, nonlinearity="relu"), (SEQUENCE,)),
    (lambda: nn.GRU(4, 5, bidirectional=True, batch_first=True), (SEQUENCE,)),
    (lambda: nn.LSTM(4, 5, 2, proj_size=2), (SEQUENCE,)),
    (lambda: nn.LSTM(4, 5), (SEQUENCE[0],)),
    (lambda: nn.RNNCell(4, 5), (ROWS,)),
    (lambda: nn.GRUCell(4, 5), (ROWS, torch.ones(6, 5))),
    (lambda: nn.LSTMCell(4, 5), (ROWS,)),
    (lambda: nn.MultiheadAttention(4, 2), (SEQUENCE, SEQUENCE, SEQUENCE)),
    (lambda: nn.MultiheadAttention(4, 2, batch_first=True, add_bias_kv=True, add_zero_attn=True, kdim=4, vdim=4),
     (SEQUENCE, SEQUENCE, SEQUENCE)),
    (lambda: nn.TransformerEncoderLayer(4, 2, 8, 0.0), (SEQUENCE,)),
    (lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, 0.0, norm_first=True), 2), (SEQUENCE,)),
    (lambda: nn.Transformer(4, 2, 1, 1, 8, 0.0), (SEQUENCE, SEQUENCE)),
    (lambda: nn.Upsample(scale_factor=2.0), (IMAGE,)),
    (lambda: nn.Upsample((4, 4), mode="bilinear"), (IMAGE,)),
    (lambda: nn.PixelShuffle(1), (IMAGE,)),
    (lambda: nn.Fold((3, 2), 2), (torch.ones(1, 8, 2),)),
    (lambda: nn.Unfold(2), (IMAGE,)),
    (lambda: nn.ReflectionPad2d(1), (IMAGE,)),
    (lambda: nn.Flatten(), (IMAGE,)),
    (lambda: nn.Unflatten(1, (2, 2)), (ROWS,)),
    (lambda: nn.Sequential(nn.Linear(4, 4), nn.GELU(), nn.Dropout(0.0), nn.Softmax(-1)), (ROWS,)),
    (lambda: nn.PReLU(), (ROWS,)),
    (lambda: nn.Softplus(2), (ROWS,)),
    (lambda: nn.Hardtanh(-0.5, 0.5), (ROWS,)),
    (lambda: nn.CrossEntropyLoss(label_smoothing=0.1), (ROWS, torch.arange(6) % 4)),
    (lambda: nn.NLLLoss(), (ROWS, torch.arange(6) % 4)),
    (lambda: nn.MSELoss(reduction="sum"), (ROWS, ROWS * 2)),
    (lambda: nn.BCEWithLogitsLoss(), (ROWS, torch.ones(6, 4))),
    (lambda: nn.HuberLoss(), (ROWS, ROWS * 3)),
    (lambda: nn.TripletMarginLoss(), (ROWS, ROWS + 1, ROWS * 2)),
    (lambda: nn.CosineSimilarity(), (ROWS, ROWS * 2 + 1)),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(MODULES)))
@pytest.mark.parametrize("training", [False, True])
def test_a_scripted_module_gives_what_it_gives_in_eager(case, training):
    make, args = MODULES[case]
    torch.manual_seed(0)
    module = make().train(training)
    reference = make().train(training)
    reference.load_state_dict(module.state_dict())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scripted = torch.jit.script(module)
        torch.testing.assert_close(scripted(*args), reference(*args), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(dict(scripted.state_dict()), dict(reference.state_dict()))


FUNCTIONS = [
    (F.interpolate, (IMAGE, [4, 3])),
    (F.grid_sample, (IMAGE, torch.zeros(1, 2, 2, 2), "bilinear", "zeros", False)),
    (F.affine_grid, (torch.ones(1, 2, 3), [1, 1, 2, 2], False)),
    (F.scaled_dot_product_attention, (SEQUENCE, SEQUENCE, SEQUENCE)),
    (F.softmax, (ROWS, 1)),
    (F.max_pool2d, (IMAGE, [2, 2])),
    (F.conv2d, (IMAGE, torch.ones(3, 2, 2, 2))),
    (F.embedding, (torch.arange(3), ROWS)),
    (F.one_hot, (torch.arange(3), 4)),
    (F.gaussian_nll_loss, (ROWS, ROWS + 1, ROWS.abs() + 1)),
    (F.unfold, (IMAGE, [2, 2])),
]


@pytest.mark.parametrize(("function", "args"), FUNCTIONS)
def test_a_scripted_function_gives_what_it_gives_in_eager(function, args):
    scripted = torch.jit.script(function)
    torch.testing.assert_close(scripted(*args), function(*args))


def pooled(x):
    values, places = F.max_pool2d(x, 2, return_indices=True)
    return values, places, F.max_pool2d(x, 2, return_indices=False), F.adaptive_max_pool1d(x[0], 3, True)


def test_indices_of_a_pool_are_returned_where_they_are_asked_for():
    torch.testing.assert_close(torch.jit.script(pooled)(IMAGE), pooled(IMAGE))


def counted(x):
    return torch.unique(x, return_counts=True)


def counted_perhaps(x, flag: bool):
    return torch.unique(x, return_counts=flag)


def test_flags_say_how_many_results_there_are():
    for want, have in zip(counted(ROWS), torch.jit.script(counted)(ROWS), strict=True):
        assert torch.equal(want, have)
    with pytest.raises(RuntimeError, match="return_counts must be a constant"):
        torch.jit.script(counted_perhaps)(ROWS, True)


def test_normalize_with_a_target():
    @torch.jit.script
    def normalized(x: torch.Tensor, target: torch.Tensor):
        return F.normalize(x, out=target), F.normalize(x, 1.0, 0)

    x, target = torch.arange(6.0).reshape(2, 3) + 1, torch.empty(2, 3)
    found = normalized(x, target)
    assert torch.equal(target, F.normalize(x)) and torch.equal(found[1], F.normalize(x, 1.0, 0))
