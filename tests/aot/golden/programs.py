"""The programs whose joint graphs and partitions are kept in this folder."""

from __future__ import annotations

from rushlight.nn import functional as F


def perceptron(rows, labels, first, second):
    """A loss over two layers: what the products of the backward read is kept."""
    hidden = F.gelu(F.linear(rows, first))
    return F.cross_entropy(F.linear(hidden, second), labels)


def views(table, scale):
    """Writes to a part, and a result that is a view of another."""
    scaled = table * scale
    scaled[1:].mul_(2)
    return scaled, scaled.t()


def normalise(rows):
    """Sizes of the rows are open: the backward gets them as numbers."""
    centred = rows - rows.mean(0)
    return centred / (centred * centred).mean(0).sqrt() * rows.shape[0]


def rectified(rows, first, second):
    """Of results of equal size the later one is kept."""
    hidden = (rows @ first.t()).relu()
    return (hidden @ second.t()).sum()


def images(x, first, second):
    """Convolutions: what they made is kept channels-last, and gradients are given row-major."""
    return F.conv2d(F.conv2d(x, first, padding=1).exp().sin(), second).mean()
