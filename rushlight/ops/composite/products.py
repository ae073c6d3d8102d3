"""Composite products: matmul in all ranks, vectors, batches, einsum."""

from __future__ import annotations

import math

from rushlight.core.strides import broadcast_shapes
from rushlight.core.tensor import Tensor
from rushlight.ops.packet import namespaces
from rushlight.ops.registry import composite

aten = namespaces.namespace("aten")


@composite("matmul(Tensor self, Tensor other) -> Tensor", "linalg_matmul(Tensor self, Tensor other) -> Tensor")
def matmul(self, other):
    a, b = self.dim(), other.dim()
    if a == 0 or b == 0:
        raise RuntimeError(f"both arguments to matmul need to be at least 1D, but they are {a}D and {b}D")
    if a == 1 and b == 1:
        return dot(self, other)
    if a == 2 and b == 2:
        return aten.mm.default(self, other)
    if b == 1:
        product = matmul(self, aten.unsqueeze.default(other, 1))
        return aten.view.default(product, product.shape[:-1])
    if a == 1:
        return aten.squeeze.dims(matmul(aten.unsqueeze.default(self, 0), other), [-2])
    if self.size(-1) != other.size(-2):
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({math.prod(self.shape[:-1])}x{self.size(-1)} and "
            f"{other.size(-2)}x{other.size(-1)})"
        )
    if b == 2:
        flat = aten.mm.default(aten.reshape.default(self, (math.prod(self.shape[:-1]), self.size(-1))), other)
        return aten.view.default(flat, (*self.shape[:-1], other.size(-1)))
    return _batched_product(self, other)


def _batched_product(self: Tensor, other: Tensor) -> Tensor:
    batch = broadcast_shapes(self.shape[:-2], other.shape[:-2])
    rows, inner, columns = self.size(-2), self.size(-1), other.size(-1)
    left = aten.expand.default(self, (*batch, rows, inner))
    right = aten.expand.default(other, (*batch, inner, columns))
    count = math.prod(batch)
    result = aten.bmm.default(
        aten.reshape.default(left, (count, rows, inner)), aten.reshape.default(right, (count, inner, columns))
    )
    return aten.view.default(result, (*batch, rows, columns))


@composite("vdot(Tensor self, Tensor other) -> Tensor")
def vdot(self, other):
    return dot(aten.conj.default(self), other)


@composite("dot(Tensor self, Tensor tensor) -> Tensor")
def dot(self, tensor):
    if self.dim() != 1 or tensor.dim() != 1:
        raise RuntimeError(f"1D tensors expected, but got {self.dim()}D and {tensor.dim()}D tensors")
    if self.dtype is not tensor.dtype:
        raise RuntimeError(
            f"dot : expected both vectors to have same dtype, but found {self.dtype.scalar_name} and {tensor.dtype.scalar_name}"
        )
    if self.size(0) != tensor.size(0):
        raise RuntimeError(
            f"inconsistent tensor size, expected tensor [{self.size(0)}] and src [{tensor.size(0)}] to have the same number "
            f"of elements, but got {self.size(0)} and {tensor.size(0)} elements respectively"
        )
    return aten.sum.dim_IntList(aten.mul.Tensor(self, tensor), None, dtype=self.dtype)


@composite("mv(Tensor self, Tensor vec) -> Tensor")
def mv(self, vec):
    if self.dim() != 2 or vec.dim() != 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got {self.dim()}, {vec.dim()}")
    if self.size(1) != vec.size(0):
        raise RuntimeError(f"size mismatch, got input ({self.size(0)}x{self.size(1)}), vec ({vec.size(0)})")
    return matmul(self, vec)


@composite("outer(Tensor self, Tensor vec2) -> Tensor", "ger(Tensor self, Tensor vec2) -> Tensor")
def outer(self, vec2):
    if self.dim() != 1 or vec2.dim() != 1:
        raise RuntimeError(f"outer: Expected 1-D arguments, but got {self.dim()}-D and {vec2.dim()}-D")
    return aten.unsqueeze.default(self, 1) * vec2


@composite("einsum(str equation, Tensor[] tensors, *, int[]? path=None) -> Tensor")
def einsum(equation, tensors, *, path=None):
    inputs, output = _parse_einsum(equation, tensors)
    total, labels = tensors[0], inputs[0]
    total, labels = _diagonals(total, labels)
    for position, (tensor, own) in enumerate(zip(tensors[1:], inputs[1:], strict=True), 1):
        tensor, own = _diagonals(tensor, own)
        later = set(output).union(*inputs[position + 1 :])
        free = [label for label in output if (label in labels) != (label in own)]
        if later == set(output) and free and free[0] in own:  # swap the operands, to avoid permuting the result
            total, labels, tensor, own = tensor, own, total, labels
        total, labels = _contract(total, labels, tensor, own, later)
    dropped = [dim for dim, label in enumerate(labels) if label not in output]
    if dropped:
        total = aten.sum.dim_IntList(total, dropped)
        labels = [label for label in labels if label in output]
    return aten.permute.default(total, [labels.index(label) for label in output])


def _parse_einsum(equation: str, tensors: list[Tensor]) -> tuple[list[list], list]:
    """Return the labels of each operand and of the result; an ellipsis becomes labels -k..-1 for the dimensions it covers."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(tensors):
        raise RuntimeError(f"einsum(): the equation {equation!r} names {len(terms)} operands, but {len(tensors)} were given")
    covered = 0
    inputs = []
    for term, tensor in zip(terms, tensors, strict=True):
        named = len(term.replace("...", ""))
        extra = tensor.dim() - named
        if extra < 0 or (extra and "..." not in term):
            raise RuntimeError(
                f"einsum(): the number of subscripts in {term!r} does not match the dimensions of a {tensor.dim()}-D operand"
            )
        covered = max(covered, extra)
        inputs.append(_labels(term, extra))
    if arrow:
        output = _labels(right, covered)
        _check_output(right.replace("...", ""), left)
    else:
        seen = [label for labels in inputs for label in labels if isinstance(label, str)]
        output = [*range(-covered, 0), *sorted(label for label in set(seen) if seen.count(label) == 1)]
    return inputs, output


def _check_output(labels: str, left: str) -> None:
    for label in labels:
        if label not in left:
            raise RuntimeError(f"einsum(): output subscript {label} does not appear in the equation for any input operand")
        if labels.count(label) > 1:
            raise RuntimeError(f"einsum(): output subscript {label} appears more than once in the output")


def _labels(term: str, extra: int) -> list:
    before, dots, after = term.partition("...")
    return [*before, *(range(-extra, 0) if dots else ()), *after]


def _diagonals(tensor: Tensor, labels: list) -> tuple[Tensor, list]:
    labels = list(labels)
    for label in set(labels):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            tensor = aten.diagonal.default(tensor, 0, first, second)
            labels = [name for dim, name in enumerate(labels) if dim not in (first, second)] + [label]
    return tensor, labels


def _contract(a: Tensor, a_labels: list, b: Tensor, b_labels: list, later: set) -> tuple[Tensor, list]:
    """Multiply two operands as one batched product, and sum over labels that neither later operands nor the result use."""
    shared = [label for label in a_labels if label in b_labels]
    batch = [label for label in shared if label in later]
    inner = [label for label in shared if label not in later]
    left = [label for label in a_labels if label not in shared]
    right = [label for label in b_labels if label not in shared]
    sizes = {}
    for tensor, labels in ((a, a_labels), (b, b_labels)):
        for label, size in zip(labels, tensor.shape, strict=True):
            if sizes.get(label, 1) not in (1, size) and size != 1:
                raise RuntimeError(
                    f"einsum(): subscript {label!r} has size {size} which does not broadcast with {sizes[label]}"
                )
            sizes[label] = max(size, sizes.get(label, 1)) if size else 0

    def arrange(tensor: Tensor, labels: list, groups: tuple[list, ...]) -> Tensor:
        order = [labels.index(label) for group in groups for label in group]
        moved = aten.permute.default(tensor, order)
        moved = aten.expand.default(moved, [sizes[label] for group in groups for label in group])
        return aten.reshape.default(moved, [math.prod(sizes[label] for label in group) for group in groups])

    product = aten.bmm.default(arrange(a, a_labels, (batch, left, inner)), arrange(b, b_labels, (batch, inner, right)))
    labels = [*batch, *left, *right]
    return aten.view.default(product, [sizes[label] for label in labels]), labels
