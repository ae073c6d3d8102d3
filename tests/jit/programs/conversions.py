"""Tensors where a number is expected, and which overload such a call means."""

from typing import List, Optional, Tuple

import rushlight as torch
from rushlight import Tensor


def whole(a: int):
    return a


def real(a: float):
    return a


def returned(x: Tensor) -> int:
    return x[0]
#: (torch.tensor([1.7, 0.0]),)
#: (torch.tensor([1.0, 0.0]),)
#: (torch.tensor([1, 0]),)
#: (torch.tensor([[1, 0]]),)
#: (torch.tensor([True, False]),)
#: (torch.tensor([1 + 1j, 0]),)
#: (torch.tensor([2.5], dtype=torch.float64),)
#: (torch.tensor([1, 0], dtype=torch.uint8),)


def index(x: Tensor):
    return [1, 2, 3][x[0]]
#: (torch.tensor([1.7, 0.0]),)
#: (torch.tensor([1.0, 0.0]),)
#: (torch.tensor([1, 0]),)
#: (torch.tensor([[1, 0]]),)
#: (torch.tensor([True, False]),)
#: (torch.tensor([1 + 1j, 0]),)
#: (torch.tensor([2.5], dtype=torch.float64),)
#: (torch.tensor([1, 0], dtype=torch.uint8),)


def key(x: Tensor):
    return {1: 2, 0: 3}[x[0]]
#: (torch.tensor([1.7, 0.0]),)
#: (torch.tensor([1.0, 0.0]),)
#: (torch.tensor([1, 0]),)
#: (torch.tensor([[1, 0]]),)
#: (torch.tensor([True, False]),)
#: (torch.tensor([1 + 1j, 0]),)
#: (torch.tensor([2.5], dtype=torch.float64),)
#: (torch.tensor([1, 0], dtype=torch.uint8),)


def bound(x: Tensor):
    return [1, 2, 3][:x[0]]
#: (torch.tensor([1.7, 0.0]),)
#: (torch.tensor([1.0, 0.0]),)
#: (torch.tensor([1, 0]),)
#: (torch.tensor([[1, 0]]),)
#: (torch.tensor([True, False]),)
#: (torch.tensor([1 + 1j, 0]),)
#: (torch.tensor([2.5], dtype=torch.float64),)
#: (torch.tensor([1, 0], dtype=torch.uint8),)


def character(x: Tensor):
    return "abc"[x[0]]
#: (torch.tensor([1.7, 0.0]),)
#: (torch.tensor([1.0, 0.0]),)
#: (torch.tensor([1, 0]),)
#: (torch.tensor([[1, 0]]),)
#: (torch.tensor([True, False]),)
#: (torch.tensor([1 + 1j, 0]),)
#: (torch.tensor([2.5], dtype=torch.float64),)
#: (torch.tensor([1, 0], dtype=torch.uint8),)


def repeated(x: Tensor):
    return [1] * x[0]
#: (torch.tensor([1.7, 0.0]),)
#: (torch.tensor([1.0, 0.0]),)
#: (torch.tensor([1, 0]),)
#: (torch.tensor([[1, 0]]),)
#: (torch.tensor([True, False]),)
#: (torch.tensor([1 + 1j, 0]),)
#: (torch.tensor([2.5], dtype=torch.float64),)
#: (torch.tensor([1, 0], dtype=torch.uint8),)


def size(x: Tensor):
    return torch.zeros(x[0])
#: (torch.tensor([1.7, 0.0]),)
#: (torch.tensor([1.0, 0.0]),)
#: (torch.tensor([1, 0]),)
#: (torch.tensor([[1, 0]]),)
#: (torch.tensor([True, False]),)
#: (torch.tensor([1 + 1j, 0]),)
#: (torch.tensor([2.5], dtype=torch.float64),)
#: (torch.tensor([1, 0], dtype=torch.uint8),)


def to_whole(x: Tensor):
    return whole(x[0])
#: (torch.tensor([1.7, 0.0]),)
#: (torch.tensor([1.0, 0.0]),)
#: (torch.tensor([1, 0]),)
#: (torch.tensor([[1, 0]]),)
#: (torch.tensor([True, False]),)
#: (torch.tensor([1 + 1j, 0]),)
#: (torch.tensor([2.5], dtype=torch.float64),)
#: (torch.tensor([1, 0], dtype=torch.uint8),)


def to_real(x: Tensor):
    return real(x[0])
#: (torch.tensor([1.7, 0.0]),)
#: (torch.tensor([1.0, 0.0]),)
#: (torch.tensor([1, 0]),)
#: (torch.tensor([[1, 0]]),)
#: (torch.tensor([True, False]),)
#: (torch.tensor([1 + 1j, 0]),)
#: (torch.tensor([2.5], dtype=torch.float64),)
#: (torch.tensor([1, 0], dtype=torch.uint8),)


def cast_to_whole(x: Tensor):
    return int(x[0])
#: (torch.tensor([1.7, 0.0]),)
#: (torch.tensor([1.0, 0.0]),)
#: (torch.tensor([1, 0]),)
#: (torch.tensor([[1, 0]]),)
#: (torch.tensor([True, False]),)
#: (torch.tensor([1 + 1j, 0]),)
#: (torch.tensor([2.5], dtype=torch.float64),)
#: (torch.tensor([1, 0], dtype=torch.uint8),)


def cast_to_real(x: Tensor):
    return float(x[0])
#: (torch.tensor([1.7, 0.0]),)
#: (torch.tensor([1.0, 0.0]),)
#: (torch.tensor([1, 0]),)
#: (torch.tensor([[1, 0]]),)
#: (torch.tensor([True, False]),)
#: (torch.tensor([1 + 1j, 0]),)
#: (torch.tensor([2.5], dtype=torch.float64),)
#: (torch.tensor([1, 0], dtype=torch.uint8),)


def filled(x: Tensor):
    return torch.full([2], x[0])
#: (torch.tensor([1.7, 0.0]),)
#: (torch.tensor([1.0, 0.0]),)
#: (torch.tensor([1, 0]),)
#: (torch.tensor([[1, 0]]),)
#: (torch.tensor([True, False]),)
#: (torch.tensor([1 + 1j, 0]),)
#: (torch.tensor([2.5], dtype=torch.float64),)
#: (torch.tensor([1, 0], dtype=torch.uint8),)


class ByType(torch.nn.Module):
    @torch.jit._overload_method
    def go(self, x: int) -> int: pass

    @torch.jit._overload_method
    def go(self, x: float) -> float: pass

    @torch.jit._overload_method
    def go(self, x: Tensor) -> Tensor: pass

    def go(self, x):
        return x + x

    def forward(self, x: Tensor):
        return self.go(x[0]), self.go(3), self.go(2.5), self.go(x)
#: (torch.tensor([1, 2]),)
#: (torch.tensor([1.5, 2.0]),)


class Defaults(torch.nn.Module):
    @torch.jit._overload_method
    def go(self, x: Tensor, y: Tensor) -> Tensor: pass

    @torch.jit._overload_method
    def go(self, x: Tensor, y: int) -> Tensor: pass

    @torch.jit._overload_method
    def go(self, x: Tensor, y: Optional[int]) -> Tensor: pass

    def go(self, x, y=None):
        if isinstance(y, int):
            return x + 1000 * y
        if y is None:
            return x + 7
        return x + 1

    def forward(self, x: Tensor):
        return self.go(x, x), self.go(x, 2), self.go(x, None), self.go(x, x[0]), self.go(x, y=3), self.go(y=x, x=x)
#: (torch.tensor([1, 2]),)
#: (torch.tensor([1.5, 2.0]),)


class RealFirst(torch.nn.Module):
    @torch.jit._overload_method
    def go(self, x: float) -> float: pass

    @torch.jit._overload_method
    def go(self, x: int) -> int: pass

    def go(self, x):
        return x + x

    def forward(self, x: Tensor):
        return self.go(x[0]), self.go(1), self.go(1.5)
#: (torch.tensor([1, 2]),)
#: (torch.tensor([1.5, 2.0]),)


class WholeFirst(torch.nn.Module):
    @torch.jit._overload_method
    def go(self, x: int) -> int: pass

    @torch.jit._overload_method
    def go(self, x: float) -> float: pass

    def go(self, x):
        return x + x

    def forward(self, x: Tensor):
        return self.go(x[0]), self.go(1), self.go(1.5)
#: (torch.tensor([1, 2]),)
#: (torch.tensor([1.5, 2.0]),)


class Containers(torch.nn.Module):
    @torch.jit._overload_method
    def go(self, x: List[int]) -> int: pass

    @torch.jit._overload_method
    def go(self, x: List[Tensor]) -> int: pass

    @torch.jit._overload_method
    def go(self, x: Tuple[int, int]) -> int: pass

    def go(self, x):
        return len(x)

    def forward(self, x: Tensor):
        return self.go([1]), self.go([x]), self.go((1, 2)), self.go([])
#: (torch.tensor([1, 2]),)
#: (torch.tensor([1.5, 2.0]),)


class Inner(torch.nn.Module):
    @torch.jit._overload_method
    def forward(self, x: int) -> int: pass

    @torch.jit._overload_method
    def forward(self, x: Tensor) -> Tensor: pass

    def forward(self, x):
        return x + x


class OfInner(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()

    def forward(self, x: Tensor):
        return self.inner(x), self.inner(3)
#: (torch.tensor([1, 2]),)
#: (torch.tensor([1.5, 2.0]),)
