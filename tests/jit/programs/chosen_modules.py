"""Modules of containers that are chosen at run time, seen as an interface."""

from typing import List
import rushlight as torch
from rushlight import Tensor, nn


@torch.jit.interface
class Step(nn.Module):
    def forward(self, x: Tensor) -> Tensor: pass


@torch.jit.interface
class Two(nn.Module):
    def forward(self, x: Tensor) -> Tensor: pass

    def other(self, x: Tensor, n: int) -> Tensor: pass


class A(nn.Module):
    def __init__(self, k: float = 2.0):
        super().__init__()
        self.k = k

    def forward(self, x: Tensor) -> Tensor: return x * self.k

    def other(self, x: Tensor, n: int) -> Tensor: return x + n


class B(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(2, 2)

    def forward(self, x: Tensor) -> Tensor: return x + 1

    def other(self, x: Tensor, n: int) -> Tensor: return x - n


class ByIndex(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([A(), B(), A(3.0)])

    def forward(self, x: Tensor, i: int):
        m: Step = self.layers[i]
        return m.forward(x)
#: (torch.ones(2), 0)
#: (torch.ones(2), 1)


class CalledInALoop(ByIndex):
    def forward(self, x: Tensor, n: int):
        for i in range(n):
            m: Step = self.layers[i]
            x = m(x)
        return x
#: (torch.ones(2), 3)


class ByKey(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleDict({"a": A(), "b": B()})

    def forward(self, x: Tensor, i: str):
        m: Step = self.layers[i]
        return m.forward(x)
#: (torch.ones(2), "a")
#: (torch.ones(2), "b")


class OtherMethods(ByKey):
    def forward(self, x: Tensor, i: List[str]):
        for k in i:
            m: Two = self.layers[k]
            x = m.other(x, 3)
            x = m.forward(x)
        return x
#: (torch.ones(2), ["a", "b", "a"])


class ByLiteral(ByIndex):
    def forward(self, x: Tensor):
        m: Step = self.layers[1]
        return m.forward(x)
#: (torch.ones(2),)


class OfSequential(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(A(), B())

    def forward(self, x: Tensor, i: int):
        m: Step = self.layers[i]
        return m.forward(x)
#: (torch.ones(2), 1)


class C(nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> Tensor: return x


class Annotated(ByIndex):
    def forward(self, x: Tensor, i: int):
        m = torch.jit.annotate(Step, self.layers[i])
        return m.forward(x)
#: (torch.ones(2), 2)


class Returned(ByIndex):
    def pick(self, i: int) -> Step:
        return self.layers[i]

    def forward(self, x: Tensor, i: int):
        return self.pick(i).forward(x)
#: (torch.ones(2), 2)


class ByTensor(ByIndex):
    def forward(self, x: Tensor, i: Tensor):
        m: Step = self.layers[int(i)]
        return m.forward(x)
#: (torch.ones(2), torch.tensor(1))


class AsAttribute(nn.Module):
    step: Step

    def __init__(self):
        super().__init__()
        self.step = A()

    def forward(self, x: Tensor):
        return self.step.forward(x)
#: (torch.ones(2),)


class TwoOfThem(ByIndex):
    def forward(self, x: Tensor, i: int):
        m: Step = self.layers[i + 1]
        n: Step = self.layers[i]
        return m.forward(n.forward(x))
#: (torch.ones(2), 1)


class Sliced(ByIndex):
    def forward(self, x: Tensor, i: int):
        for l in self.layers[1:]:
            x = l(x)
        return x
#: (torch.ones(2), 1)
