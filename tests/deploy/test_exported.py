"""Exported programs as C++: values, open sizes, state, several methods, and what is said of wrong arguments."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn
from rushlight.deploy import NotExportable, export
from rushlight.deploy.binding import ModelError
from tests.deploy.built import arrays, built, close


class Classifier(nn.Module):
    """Images to scores: convolutions, batch norm, pooling, attention over positions."""

    def __init__(self):
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2))
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.last = nn.Linear(8, 5)

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        seen = self.first(x).flatten(2).transpose(1, 2)
        mixed, _ = self.attention(seen, seen, seen, need_weights=False)
        return {"scores": self.last(mixed.mean(1)), "seen": seen}


@pytest.fixture(scope="module")
def classifier(tmp_path_factory):
    torch.manual_seed(0)
    module = Classifier().eval()
    shapes = {"x": {0: torch.export.Dim("n", max=8), 2: torch.export.Dim("h", min=4, max=32)}}
    folder = tmp_path_factory.mktemp("classifier")
    return module, built(module, (torch.rand(3, 3, 12, 8),), folder, "classifier", dynamic_shapes=shapes)


@pytest.mark.parametrize("size", [(3, 12), (1, 12), (8, 4), (2, 31), (1, 5)])
def test_open_sizes(classifier, size):
    module, model = classifier
    x = torch.rand(size[0], 3, size[1], 8)
    scores, seen = model.forward(*arrays(x))
    expected = module(x)
    close(scores, expected["scores"])
    close(seen, expected["seen"])


def test_signature_names_sizes_and_results(classifier):
    text = classifier[1].signature("forward")
    assert text.startswith("forward(x: float32[n, 3, h, 8]) -> scores: float32[n, 5], seen: float32[n, ")


def test_any_strides(classifier):
    module, model = classifier
    x = torch.rand(2, 8, 12, 3).permute(0, 3, 2, 1)
    close(model.forward(x.numpy())[0], module(x)["scores"])
    wide = np.random.default_rng(0).random((2, 6, 12, 16), np.float32)[:, ::2, :, ::2]
    close(model.forward(wide)[0], module(torch.from_numpy(wide.copy()))["scores"])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (np.zeros((9, 3, 12, 8), np.float32), "x must be as in x: .* with . to 8 in dimension 0, got the sizes \\[9, "),
        (np.zeros((2, 3, 33, 8), np.float32), "with 4 to 32 in dimension 2"),
        (np.zeros((2, 4, 12, 8), np.float32), r"as in x: float32\[n, 3, h, 8\], got the sizes \[2, 4, 12, 8\]"),
        (np.zeros((2, 3, 12, 8)), "dtype float32, got float64"),
        (np.zeros((3, 12, 8), np.float32), "must have 4 dimensions, got 3"),
        (3, "must be a tensor, got an int"),
        (None, "must be a tensor, got nothing"),
        ([np.zeros(3, np.float32)], "must be a tensor, got a list"),
    ],
)
def test_wrong_arguments(classifier, given, said):
    with pytest.raises(ModelError, match=said):
        classifier[1].forward(given)


def test_threads_give_the_same(classifier):
    module, model = classifier
    x = torch.rand(8, 3, 32, 8)
    other = model.share()
    other.set_threads(3)
    close(other.forward(*arrays(x))[0], module(x)["scores"])
    with pytest.raises(ModelError, match="1 to 64 threads, not on 0"):
        other.set_threads(0)


class Counter(nn.Module):
    """Keeps how often it ran, and what it has seen."""

    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))
        self.register_buffer("seen", torch.zeros(3))

    def forward(self, x: torch.Tensor, scale: int):
        self.count.add_(1)
        self.seen.copy_(self.seen * 0.5 + x)
        return self.seen * scale, self.count.clone(), torch.rand(4)


def test_state_and_random_numbers(tmp_path):
    module = Counter()
    model = built(Counter(), (torch.ones(3), 2), tmp_path)
    drawn = []
    for _ in range(3):
        x = torch.rand(3)
        seen, count, numbers = model.forward(x.numpy())
        expected = module(x, 2)
        close(seen, expected[0])
        assert count == expected[1]
        drawn.append(numbers)
    assert len({each.tobytes() for each in drawn}) == 3 and all((0 <= each).all() and (each < 1).all() for each in drawn)
    model.reset()
    model.seed(0)
    seen, count, numbers = model.forward(np.ones(3, np.float32))
    assert count == 1 and (seen == 2).all() and (numbers == drawn[0]).all()


class Halves(nn.Module):
    def encode(self, x):
        return x.to(torch.bfloat16) * 2

    def decode(self, i, b):
        return torch.where(b, i, -i), i.sum(), i.to(torch.uint8)


class _Of(nn.Module):
    def __init__(self, owner, name):
        super().__init__()
        self.owner, self.forward = owner, getattr(owner, name)


def test_several_methods_and_dtypes(tmp_path):
    owner = Halves()
    programs = {
        "encode": torch.export.export(_Of(owner, "encode"), (torch.ones(2, 3),)),
        "decode": torch.export.export(_Of(owner, "decode"), (torch.arange(4), torch.tensor([True, False, True, False]))),
    }
    model = built(programs, (), tmp_path, embed=True)
    x = torch.randn(2, 3)
    found = model.encode(x.numpy())
    assert (found.astype(np.float32) == owner.encode(x).float().numpy()).all()
    chosen, total, small = model.decode(np.arange(4), np.array([True, False, True, False]))
    assert chosen.tolist() == [0, -1, 2, -3] and total == 6 and small.dtype == np.uint8


def test_what_has_no_native_form_is_refused_before_anything_is_written(tmp_path):
    class Decomposed(nn.Module):
        def forward(self, x):
            return torch.linalg.eigvals(x).abs() + 1

    folder = tmp_path / "out"
    with pytest.raises(NotExportable, match=r"no native form(.|\n)*eigvals(.|\n)*test_exported.py"):
        export(Decomposed(), (torch.rand(3, 3),), folder)
    assert not folder.exists()


def test_other_files_are_not_written_over(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(FileExistsError, match="holds other files"):
        export(nn.Linear(2, 2), (torch.ones(1, 2),), tmp_path)
    export(nn.Linear(2, 2), (torch.ones(1, 2),), tmp_path, force=True)
    export(nn.Linear(2, 2), (torch.ones(1, 2),), tmp_path)  # one's own export may be written anew
    assert (tmp_path / "mine.txt").read_text() == "mine"


@pytest.mark.parametrize("name", ["2d", "for", "a-b", "", "int"])
def test_names_are_identifiers(tmp_path, name):
    with pytest.raises(ValueError, match="must be an identifier of C"):
        export(nn.Linear(2, 2), (torch.ones(1, 2),), tmp_path, name=name)
