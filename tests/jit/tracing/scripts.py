"""Scripted pieces that traces call."""


def looped(x, n: int):
    """x times n! plus n."""
    for i in range(n):
        x = x * (i + 1)
    return x + n


def make_branching(torch):
    """A module that branches on its input."""

    class Branching(torch.nn.Module):
        def forward(self, x):
            if bool(x.sum() > 100.0):
                return x * 2
            return x - 1

    return Branching()
