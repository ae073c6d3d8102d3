"""Archives that PyTorch wrote: constant numbers of traces, operators of older versions, and deep nesting."""

from __future__ import annotations

import io
import zipfile

import pytest

import rushlight

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle

HALF = torch.tensor(0.5, dtype=torch.float64)
PROGRAMS = {
    "mul": lambda x: x * 0.5, "add": lambda x: x + 0.5, "sub": lambda x: x - 0.5, "div": lambda x: x / 2.5,
    "alpha": lambda x: torch.add(x, 0.5, alpha=2), "in_place": lambda x: x.mul(0.5).add_(1.5), "sum": lambda x: x.sum() * 0.5,
    "floor": lambda x: x // 2.5, "mode": lambda x: torch.div(x, 2.5, rounding_mode="floor"), "first": lambda x: torch.add(0.5, x),
    "power": lambda x: x**0.5, "complex": lambda x: x * 1j, "isclose": lambda x: torch.isclose(x.float(), x * 1.0),
    "constant": lambda x: x * HALF, "constant_first": lambda x: HALF * x, "constant_maximum": lambda x: torch.maximum(x, HALF),
    "constant_result": lambda x: (x * HALF) + HALF.sin(), "constant_half": lambda x: x.half() * HALF,
    "constant_where": lambda x: torch.where(x > 1, x, HALF), "constant_returned": lambda x: (x * HALF, HALF)[1] + 0 * x,
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.filterwarnings("ignore")
def test_dtypes(name):
    file = io.BytesIO()
    torch.jit.save(torch.jit.trace(PROGRAMS[name], torch.arange(1, 4), check_trace=False), file)
    theirs = torch.jit.load(io.BytesIO(file.getvalue()))
    ours = rushlight.jit.load(io.BytesIO(file.getvalue()))
    for _ in range(4):
        expected, got = theirs(torch.arange(1, 4)), ours(rushlight.arange(1, 4))
        assert str(got.dtype) == str(expected.dtype)
        assert got.tolist() == pytest.approx(expected.tolist())


OLD = {
    "torch.linspace(0, 1, dtype=None, layout=None, device=None, pin_memory=None)": 8,
    'torch.linspace(0, 1, None, dtype=6, layout=0, device=torch.device("cpu"), pin_memory=False)': 8,
    "torch.logspace(0, 1, dtype=None, layout=None, device=None, pin_memory=None)": 9,
    "torch.logspace(0., 1., base=2.)": 9,
    "torch.logspace(0, 1, 3, 2., dtype=None, layout=None, device=None, pin_memory=None)": 11,
}


def archive_of(expression: str, version: int) -> bytes:
    """An archive of an earlier version, of a module that computes an expression."""

    class Old(torch.nn.Module):
        def forward(self, x):
            return x

    saved, written = io.BytesIO(), io.BytesIO()
    torch.jit.save(torch.jit.script(Old()), saved)
    with zipfile.ZipFile(saved) as source, zipfile.ZipFile(written, "w") as target:
        for name in source.namelist():
            data = source.read(name)
            if name.endswith(".py") and b"def forward" in data:
                head = data.decode().partition("  def forward")[0]
                data = f"{head}  def forward(self,\n    x: Tensor) -> Tensor:\n    return {expression}\n".encode()
            if name.endswith("/version"):
                data = f"{version}\n".encode()
            if not name.endswith(".debug_pkl"):
                target.writestr(name, data)
    return written.getvalue()


@pytest.mark.parametrize("version", [3, 7, 8, 10])
@pytest.mark.parametrize("expression", OLD)
@pytest.mark.filterwarnings("ignore")
def test_steps_of_old_archives(expression, version):
    data = archive_of(expression, version)
    if version >= OLD[expression]:
        with pytest.raises(RuntimeError, match="Arguments for call are not valid"):
            rushlight.jit.load(io.BytesIO(data))(rushlight.ones(1))
        return
    expected = torch.jit.load(io.BytesIO(data))(torch.ones(1))
    got = rushlight.jit.load(io.BytesIO(data))(rushlight.ones(1))
    assert str(got.dtype) == str(expected.dtype) and got.tolist() == pytest.approx(expected.tolist(), rel=1e-5)


@pytest.mark.parametrize("kind", ["wrapped", "sequential"])
@pytest.mark.parametrize("writer", ["torch", "rushlight"])
@pytest.mark.filterwarnings("ignore")
def test_deeply_nested_archives(writer, kind):
    library = {"torch": torch, "rushlight": rushlight}[writer]

    class Wrapper(library.nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner = inner

        def forward(self, x):
            return self.inner(x)

    module = library.nn.ReLU()
    for _ in range(180):
        module = Wrapper(module) if kind == "wrapped" else library.nn.Sequential(module)
    file = io.BytesIO()
    library.jit.save(library.jit.trace(module, library.ones(2)), file)
    loaded = rushlight.jit.load(io.BytesIO(file.getvalue()))
    assert loaded(rushlight.tensor([-1.0, 2.0])).tolist() == [0.0, 2.0]
