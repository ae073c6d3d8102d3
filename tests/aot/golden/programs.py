"""The programs whose joint graphs and partitions are kept in this folder."""

from __future__ import annotations

from rushlight.nn import functional as F


def perceptron(rows, labels, first, second):
    """A loss over two layers: the inputs of the backward's products are saved."""
    hidden = F.gelu(F.linear(rows, first))
    return F.cross_entropy(F.linear(hidden, second), labels)


def views(table, scale):
    """Writes to a part, and a result that is a view of another."""
    scaled = table * scale
    scaled[1:].mul_(2)
    return scaled, scaled.t()


def normalise(rows):
    """The number of rows is dynamic: the backward receives sizes as numbers."""
    centred = rows - rows.mean(0)
    return centred / (centred * centred).mean(0).sqrt() * rows.shape[0]


def rectified(rows, first, second):
    """Of several results of equal size the latest is saved."""
    hidden = (rows @ first.t()).relu()
    return (hidden @ second.t()).sum()


def images(x, first, second):
    """Convolutions: their results are saved channels-last, and gradients arrive row-major."""
    return F.conv2d(F.conv2d(x, first, padding=1).exp().sin(), second).mean()
