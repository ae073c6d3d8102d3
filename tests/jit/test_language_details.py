"""Details of the language: comprehensions, conversions of arguments, special methods, generators, legacy names."""

from __future__ import annotations

import cmath
import collections
import enum

import pytest

import rushlight as torch
from rushlight import nn


def comprehensions():
    i = 1
    x = [i if i != 5 else 3 for i in range(7)]
    y = [[i * j for i in range(3)] for j in range(2)]
    z = {k: i for k, i in [(1, 2), (3, 4)]}
    return i, x, y, z


def legacy():
    return torch.BoolTensor([2]), torch.LongTensor([3]), torch.FloatTensor([7]), torch.DoubleTensor()


def special(x):
    index = torch.tensor([0, 1])
    return x.where(x > 0, -x), x.__getitem__(index), x.__getitem__(1)


def ordered():
    made = collections.OrderedDict([(1, 2), (2, 3), (1, 4)])
    return made


def of_bools():
    return torch.tensor(True, device="cpu"), torch.as_tensor([True, False], device="cpu")


def identities():
    return 0.5 is 0.5, 1 is 1, 1.5 is not 1.5  # noqa: F632


def complex_math(a: complex):
    return cmath.exp(a), cmath.sqrt(a), cmath.phase(a)


def parts(x, y: float):
    return complex(x, y)


CASES = {
    "comprehensions": (comprehensions, ()), "legacy": (legacy, ()), "special": (special, (torch.tensor([1.0, -2.0]),)),
    "ordered": (ordered, ()), "of_bools": (of_bools, ()), "identities": (identities, ()),
    "complex_math": (complex_math, (1 + 2j,)), "parts": (parts, (torch.tensor(1.5), 2.0)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_scripted_as_in_eager(name):
    function, arguments = CASES[name]
    torch.testing.assert_close(torch.jit.script(function)(*arguments), function(*arguments))


def test_arguments_are_converted():
    unit = torch.jit.CompilationUnit("def f(x: List[bool]):\n  return all(x)\ndef g(x: str):\n  return ord(x)\n"
                                     "def h(x: Dict[str, int]):\n  return x['a']\n")  # fmt: skip
    assert unit.f([True, 1]) and not unit.f([True, 0])
    assert unit.g(b"a") == 97 and unit.g("\u00a3".encode()[:1]) == 0xC2
    assert unit.h({"a": torch.ones(1)}) == 1


def test_generators():
    def draw(seed: int):
        generator = torch.Generator()
        generator.manual_seed(seed)
        return torch.empty(3).normal_(0.0, 1.0, generator=generator), generator.initial_seed()

    def seeded():
        torch.manual_seed(5)
        return torch.rand(2)

    def given(generator: torch.Generator):
        return torch.rand(2, generator=generator)

    scripted = torch.jit.script(draw)
    for seed in (3, 4, 3):
        torch.testing.assert_close(scripted(seed), draw(seed))
    assert torch.equal(torch.jit.script(seeded)(), seeded())
    first, second = torch.Generator(), torch.Generator()
    assert torch.equal(torch.jit.script(given)(first), given(second))


class Color(enum.Enum):
    RED = 1


class Cube:
    def __init__(self, side: int):
        self.side = side

    def volume(self, x: int) -> int:
        return self.side * x


@torch.jit.interface
class HasVolume:
    def volume(self, x: int) -> int:
        pass


def test_objects_for_interfaces():
    def as_interface(x: HasVolume) -> HasVolume:
        return x

    torch.jit.script(Cube)
    assert torch.jit.script(as_interface)(Cube(3)).volume(2) == 6
    assert torch.jit.script(Color) is Color
    with pytest.raises(RuntimeError, match="not compatible with interface"):
        torch.jit.script(as_interface)(object())


class Stateful(nn.Module):
    def __init__(self):
        super().__init__()
        self.value = torch.ones(2)

    @torch.jit.export
    def __getstate__(self):
        return self.value, self.training

    @torch.jit.export
    def __setstate__(self, state):
        self.value = state[0] + 1
        self.training = state[1]

    @torch.jit.export
    def __len__(self) -> int:
        """The length."""
        return 3

    def forward(self, x):
        return x + self.value


def test_special_methods_of_modules(tmp_path):
    scripted = torch.jit.script(Stateful())
    scripted.save(tmp_path / "m.pt")
    assert torch.jit.load(tmp_path / "m.pt")(torch.zeros(2)).tolist() == [2, 2]
    assert len(scripted) == 3 and scripted and scripted.__len__() == 3
    assert "value" in str(scripted.forward.graph)
    layers = torch.jit.script(nn.ModuleList([nn.ReLU(), nn.Tanh()]))
    assert len(layers) == 2 and [each.original_name for each in layers] == ["ReLU", "Tanh"]
    with pytest.raises(RuntimeError, match="does not exist"):
        scripted.save(tmp_path / "absent" / "m.pt")


def test_functions_of_units():
    unit = torch.jit.CompilationUnit("def f(x):\n  return x + 1\n")
    assert unit.find_function("f").name == "f" and unit.find_function("g") is None
    assert unit.create_function("g", unit.f.graph)(torch.ones(1)).item() == 2


def test_containers_of_results_are_traced():
    @torch.jit.script
    def several(x) -> dict[str, tuple[torch.Tensor, list[list[torch.Tensor]]]]:
        return {"a": (x + 1, [[x, x - 1], [x + 2, x - 2]])}

    def use(x):
        one, nested = several(x)["a"]
        return one, nested[0][0], nested[1][1]

    traced = torch.jit.trace(use, torch.rand(3, 4))
    x = torch.rand(5, 6)
    torch.testing.assert_close(traced(x), use(x))


def test_norms_of_pools_by_whole_numbers():
    def pooled(x):
        return torch.nn.functional.lp_pool2d(x, 2, 3), torch.nn.functional.lp_pool2d(x, 2.0, 3)

    x = torch.rand(1, 3, 7, 7)
    torch.testing.assert_close(torch.jit.script(pooled)(x), pooled(x))
