"""Loss functionals against PyTorch: values and gradients, in float64."""

from __future__ import annotations

import numpy as np
import pytest

from tests.nn.oracle import agree, arrays

pytestmark = pytest.mark.oracle

REDUCTIONS = ["none", "mean", "sum"]
SIGNS = np.array([[1.0, -1.0, 1.0, -1.0], [-1.0, -1.0, 1.0, 1.0], [1.0, 1.0, 1.0, -1.0]])
INPUT, TARGET = arrays((3, 4), (3, 4))
PROBABILITIES = 1 / (1 + np.exp(-INPUT))

ELEMENTWISE = {
    "mse": (lambda F, x, y, r: F.mse_loss(x, y, reduction=r), INPUT, TARGET),
    "l1": (lambda F, x, y, r: F.l1_loss(x, y, reduction=r), INPUT, TARGET),
    "smooth_l1": (lambda F, x, y, r: F.smooth_l1_loss(x, y, reduction=r, beta=0.7), INPUT, TARGET),
    "smooth_l1_zero": (lambda F, x, y, r: F.smooth_l1_loss(x, y, reduction=r, beta=0.0), INPUT, TARGET),
    "huber": (lambda F, x, y, r: F.huber_loss(x, y, reduction=r, delta=0.7), INPUT, TARGET),
    "bce": (lambda F, x, y, r: F.binary_cross_entropy(x, y, reduction=r), PROBABILITIES, PROBABILITIES[::-1]),
    "bce_logits": (lambda F, x, y, r: F.binary_cross_entropy_with_logits(x, y, reduction=r), INPUT, PROBABILITIES),
    "kl_div": (lambda F, x, y, r: F.kl_div(x, y, reduction=r), INPUT, PROBABILITIES),
    "kl_div_log": (lambda F, x, y, r: F.kl_div(x, y, reduction=r, log_target=True), INPUT, TARGET),
    "poisson": (lambda F, x, y, r: F.poisson_nll_loss(x, y, reduction=r), INPUT, 3 * PROBABILITIES),
    "poisson_full": (
        lambda F, x, y, r: F.poisson_nll_loss(x, y, False, True, reduction=r), PROBABILITIES, 3 * PROBABILITIES),
    "soft_margin": (lambda F, x, y, r: F.soft_margin_loss(x, y, reduction=r), INPUT, SIGNS),
    "hinge": (lambda F, x, y, r: F.hinge_embedding_loss(x, y, 0.6, reduction=r), INPUT, SIGNS),
    "multilabel_soft": (lambda F, x, y, r: F.multilabel_soft_margin_loss(x, y, reduction=r), INPUT, PROBABILITIES),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:reduction")
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise(name, reduction):
    function, x, y = ELEMENTWISE[name]
    agree(lambda torch, x: function(torch.nn.functional, x, torch.from_numpy(y.copy()), reduction), x)
    if name not in ("kl_div", "soft_margin", "hinge", "poisson_full"):
        agree(lambda torch, x, y: function(torch.nn.functional, x, y, reduction), x, y)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_weights_of_elements(reduction):
    (weight,) = arrays((3, 4), seed=4)
    for name in ("mse_loss", "l1_loss", "huber_loss"):
        agree(lambda torch, x, y, w, name=name: getattr(torch.nn.functional, name)(x, y, reduction=reduction, weight=w),
              INPUT, TARGET, weight)  # fmt: skip
    agree(lambda torch, x, y: torch.nn.functional.binary_cross_entropy(
        x, y, torch.from_numpy(weight[:1].copy()), reduction=reduction),
        PROBABILITIES, PROBABILITIES[::-1])  # fmt: skip
    positive = np.array([1.0, 2.0, 3.0, 0.5])
    agree(lambda torch, x, y: torch.nn.functional.binary_cross_entropy_with_logits(
        x, y, torch.from_numpy(weight.copy()), reduction=reduction, pos_weight=torch.from_numpy(positive)),
        INPUT, PROBABILITIES)  # fmt: skip


def test_binary_cross_entropy_of_certain_probabilities():
    x, y = np.array([0.0, 1.0, 0.0, 1.0, 0.5]), np.array([0.0, 1.0, 1.0, 0.0, 1.0])
    agree(lambda torch, x, y: torch.nn.functional.binary_cross_entropy(x, y, reduction="none"), x, y, gradients=False)
    # Behind a saturated sigmoid the gradient is 0, not NaN.
    agree(lambda torch, x: torch.nn.functional.binary_cross_entropy(x.sigmoid(), torch.from_numpy(y)),
          np.array([-800.0, 800.0, -800.0, 800.0, 0.0]))  # fmt: skip


def test_kl_div_batchmean():
    agree(lambda torch, x: torch.nn.functional.kl_div(x, torch.from_numpy(PROBABILITIES), reduction="batchmean"), INPUT)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_pairs(reduction):
    x, y, z = arrays((3, 4), (3, 4), (3, 4))
    signs = np.array([1.0, -1.0, 1.0])
    agree(lambda torch, x, y: torch.nn.functional.margin_ranking_loss(
        x, y, torch.from_numpy(SIGNS), 0.3, reduction=reduction), x, y)  # fmt: skip
    agree(lambda torch, x, y: torch.nn.functional.cosine_embedding_loss(
        x, y, torch.from_numpy(signs), 0.1, reduction=reduction), x, y)  # fmt: skip
    agree(lambda torch, *t: torch.nn.functional.triplet_margin_loss(*t, swap=True, reduction=reduction), x, y, z)
    agree(lambda torch, *t: torch.nn.functional.triplet_margin_loss(*t, p=1, reduction=reduction), x, y, z)
    agree(lambda torch, *t: torch.nn.functional.triplet_margin_with_distance_loss(*t, reduction=reduction), x, y, z)


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("shape", [(3, 4), (3, 1), (3,)])
def test_gaussian_nll(shape, full):
    variance = np.abs(arrays(shape, seed=3)[0]) * 1.5
    agree(lambda torch, *t: torch.nn.functional.gaussian_nll_loss(*t, full=full, eps=0.2), INPUT, TARGET, variance)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("shape, labels", [((5, 4), (5,)), ((4,), ()), ((2, 4, 3), (2, 3)), ((2, 4, 2, 3), (2, 2, 3))])
@pytest.mark.parametrize(
    "options", [{}, {"ignore_index": 1}, {"label_smoothing": 0.2}, {"ignore_index": 1, "label_smoothing": 0.1}]
)
def test_cross_entropy(shape, labels, reduction, options):
    (x,) = arrays(shape)
    target = np.arange(int(np.prod(labels)), dtype=np.int64).reshape(labels) % 4
    weight = np.array([0.5, 1.0, 2.0, 1.5])

    def loss(torch, x, weight=None):
        target_tensor = torch.from_numpy(np.array(target))
        return torch.nn.functional.cross_entropy(x, target_tensor, weight, reduction=reduction, **options)

    agree(loss, x)
    agree(lambda torch, x: loss(torch, x, torch.from_numpy(weight)), x)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("shape", [(5, 4), (4,), (2, 4, 3)])
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_cross_entropy_with_probabilities(shape, reduction, smoothing):
    x, y = arrays(shape, shape)
    y = np.abs(y)
    weight = np.array([0.5, 1.0, 2.0, 1.5])
    agree(
        lambda torch, x, y: torch.nn.functional.cross_entropy(x, y, reduction=reduction, label_smoothing=smoothing),
        x,
        y,
    )
    agree(lambda torch, x, y: torch.nn.functional.cross_entropy(
        x, y, torch.from_numpy(weight), reduction=reduction, label_smoothing=smoothing), x, y)  # fmt: skip


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_margins_over_classes(reduction):
    (x,) = arrays((5, 4))
    target, weight = np.array([0, 3, 1, 2, 2]), np.array([0.5, 1.0, 2.0, 1.5])
    for p in (1, 2):
        agree(lambda torch, x, p=p: torch.nn.functional.multi_margin_loss(
            x, torch.from_numpy(target), p, 0.7, torch.from_numpy(weight), reduction=reduction), x)  # fmt: skip
    labels = np.array([[3, 0, -1, 1], [-1, 0, 0, 0], [0, 1, 2, 3], [2, -1, 2, -1], [1, 3, -1, -1]])
    agree(
        lambda torch, x: torch.nn.functional.multilabel_margin_loss(x, torch.from_numpy(labels), reduction=reduction), x
    )
    agree(lambda torch, x: torch.nn.functional.multi_margin_loss(x, torch.tensor(2), reduction=reduction), x[0])
