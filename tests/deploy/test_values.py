"""Results whose sizes values decide, without Python: as large as in eager, also where nothing or one thing is found."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn
from rushlight.core.algebra import Var
from rushlight.deploy import NotExportable, export
from rushlight.deploy.binding import ModelError
from rushlight.deploy.parts import _checked_arithmetic
from tests.deploy.built import arrays, built, built_methods, exported, same

X, N = torch.tensor([[1.0, -2.0, 3.0], [-1.0, 2.0, 0.5]]), torch.tensor(1)


def _scaled(x: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    y[y > 0] *= 2
    return y + 1


def _put(x: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    y[torch.tensor([True, False])] = values
    return y


def _detect(boxes: torch.Tensor, scores: torch.Tensor) -> tuple[torch.Tensor, ...]:
    likely = scores > 0.3
    boxes, scores = boxes[likely], scores[likely]
    kept = torch.ops.torchvision.nms(boxes, scores, 0.5)
    return boxes[kept] * 2, scores[kept], kept


BOXES = torch.tensor([[0, 0, 10, 10], [1, 1, 10, 10], [20, 20, 30, 30], [0, 0, 3, 3.0]])
SCORES = torch.tensor([0.5, 0.9, 0.4, 0.8])
FUNCTIONS = {
    "nonzero": (lambda x: torch.nonzero(x > 0), (X,)),
    "where": (lambda x: torch.where(x > 0), (X,)),
    "mask": (lambda x: x[x > 0] * 2 + 1, (X,)),
    "mask_of_rows": (lambda x: x[x[:, 0] > 0].sum(1), (X,)),
    "mask_with_index": (lambda x: x[:, x[0] > 0], (X,)),
    "masked_select": (lambda x: torch.masked_select(x, x > 0).cumsum(0), (X,)),
    "mean": (lambda x: x[x > 0].sum() / (x > 0).sum(), (X,)),
    "twice": (lambda x: (x[x > 0].sort().values, x[x > 1].exp()), (X,)),
    "scaled": (_scaled, (X,)),
    "put": (_put, (X, torch.ones(1, 3))),
    "unique": (lambda x: torch.unique(x > 0, return_inverse=True, return_counts=True), (X,)),
    "runs": (lambda x: torch.unique_consecutive((x > 0).flatten().int(), return_counts=True), (X,)),
    "repeated": (lambda x: torch.repeat_interleave(x, (x[:, 0] > 0).long() + 1, 0), (X,)),
    "counts": (lambda x: torch.bincount((x > 0).flatten().long()), (X,)),
    "number": (lambda x: (x > 0).sum().item(), (X,)),
    "detect": (_detect, (BOXES, SCORES)),
}
INPUTS = {"some": X, "none": -X.abs(), "one": torch.tensor([[2.0, -1.0, -1.0], [-1.0, -3.0, -1.0]]), "all": X.abs() + 1.5}


@pytest.fixture(scope="module")
def values(tmp_path_factory):
    return built_methods(FUNCTIONS, tmp_path_factory.mktemp("values"))


@pytest.mark.parametrize("found", INPUTS)
@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name != "detect"])
def test_as_many_as_are_found(values, name, found):
    if (name, found) == ("mean", "none"):
        return  # not a number, as in eager
    arguments = (INPUTS[found], *FUNCTIONS[name][1][1:])
    same(getattr(values, name)(*arrays(*arguments)), FUNCTIONS[name][0](*arguments))


@pytest.mark.parametrize("scores", [SCORES, torch.zeros(4), torch.ones(4), torch.tensor([0.0, 0.0, 1.0, 0.0])])
def test_boxes_apart(values, scores):
    same(values.detect(*arrays(BOXES, scores)), _detect(BOXES, scores))


READS = {
    "row": lambda x, n: x[n.item()] + 1,
    "begin": lambda x, n: x[: n.item()] * 2,
    "narrow": lambda x, n: x.narrow(0, n.item(), 2),
    "range": lambda x, n: torch.arange(n.item()) + 1,
    "zeros": lambda x, n: torch.zeros(n.item(), 2) + x[0, :2],
}


@pytest.fixture(scope="module")
def reads(tmp_path_factory):
    x = torch.arange(12.0).reshape(4, 3)
    return built_methods({name: (function, (x, N)) for name, function in READS.items()}, tmp_path_factory.mktemp("reads"))


@pytest.mark.parametrize("name", READS)
def test_numbers_that_are_read(reads, name):
    x = torch.arange(12.0).reshape(4, 3)
    for number in (1, 2, 0):
        same(getattr(reads, name)(*arrays(x, torch.tensor(number))), READS[name](x, torch.tensor(number)))


@pytest.mark.parametrize("name", READS)
def test_numbers_out_of_range_are_a_status(reads, name):
    x = np.zeros((4, 3), np.float32)
    wrong = (-5, -(2**63)) if name in ("range", "zeros", "begin") else (4, 2**40, -5)
    for number in wrong:
        with pytest.raises(ModelError):
            getattr(reads, name)(x, np.array(number))
    getattr(reads, name)(x, np.array(1))


def test_open_sizes_beside_sizes_that_values_decide(tmp_path):
    dim = torch.export.Dim("n", min=2, max=50)
    program = exported(FUNCTIONS["mask"][0], (X,), dynamic_shapes=({0: dim},))
    model = built(program, (), tmp_path)
    assert model.signature("forward").startswith("forward(")
    for rows in (2, 7):
        x = torch.randn(rows, 3)
        same(model.forward(x.numpy()), FUNCTIONS["mask"][0](x))


def test_a_model_with_weights(tmp_path):
    class Scores(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(3, 2)
            self.register_buffer("seen", torch.zeros(()))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            chosen = x[x.sum(1) > 0]
            self.seen += chosen.sum()
            return torch.softmax(self.layer(chosen), -1) + self.seen

    torch.manual_seed(0)
    module, reference = Scores(), Scores()
    reference.load_state_dict(module.state_dict())
    model = built(module, (torch.rand(4, 3),), tmp_path)
    for x in (torch.randn(4, 3), torch.rand(4, 3), -torch.rand(4, 3), torch.randn(4, 3)):
        same(model.forward(x.numpy()), reference(x))


def test_what_values_decide_in_branches_is_checked(tmp_path):
    def chosen(x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
        number = n.item()
        return x + number if number > 1 else x

    model = built(exported(chosen, (X, torch.tensor(3))), (), tmp_path)
    same(model.forward(X.numpy(), np.array(5)), X + 5)
    with pytest.raises(ModelError, match="exported for values"):
        model.forward(X.numpy(), np.array(1))


def test_numbers_of_floats_are_refused(tmp_path):
    with pytest.raises(Exception, match="item"):
        export(lambda x: x * x.sum().item(), (X,), tmp_path)
    with pytest.raises(NotExportable, match="unique_dim"):
        export(lambda x: torch.unique(x, dim=0), (X,), tmp_path)


class Detector(nn.Module):
    """Boxes by their scores, as archives do it: masks, one index after another, and what is counted."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 1)
        self.seen = torch.zeros(1)

    def forward(self, boxes: torch.Tensor, least: float) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        scores = torch.sigmoid(self.layer(boxes)).squeeze(1)
        kept = torch.nonzero(scores > least).squeeze(1)
        best = boxes[kept]
        self.seen = self.seen + best.sum()
        return best, scores[scores > least], self.seen


def test_a_scripted_module(tmp_path):
    torch.manual_seed(0)
    module, reference = torch.jit.script(Detector()), Detector()
    reference.load_state_dict(module.state_dict())
    reference.seen = torch.zeros(1)
    model = built(module, (torch.randn(6, 4), 0.5), tmp_path)
    for least in (0.5, 0.0, 2.0, 0.6):
        boxes = torch.randn(6, 4)
        same(model.forward(boxes.numpy(), least), reference(boxes, least), 1e-4)


def test_symbols_whose_names_begin_alike():
    first, tenth = Var("u1"), Var("u10")
    assert _checked_arithmetic(first + 2 * tenth) == "counted(counted(u1) + 2*counted(u10))"


def test_sums_at_indices_without_masks(tmp_path):
    def added(x, i, values):
        made = x * 2
        made.index_put_((i,), values, accumulate=True)
        return made

    x, i, values = torch.rand(4, 3), torch.tensor([1, 3, 1]), torch.rand(3, 3)
    model = built(exported(added, (x, i, values)), (), tmp_path)
    same(model.forward(*arrays(x, i, values)), added(x, i, values))


def test_a_part_of_an_open_size_is_filled(tmp_path):
    def filled(x):
        made = x + 1
        torch.chunk(made, 2, 0)[-1].fill_(2)
        return made

    dims = {0: torch.export.Dim.AUTO, 1: torch.export.Dim.AUTO}
    model = built(exported(filled, (torch.rand(5, 3),), dynamic_shapes=(dims,)), (), tmp_path)
    for rows in (5, 7, 9):  # the halves of odd numbers
        x = torch.rand(rows, 3)
        same(model.forward(x.numpy()), filled(x))
