"""LinAlgError: the input of a factorization or solver is singular, or the algorithm did not converge."""

from __future__ import annotations


class LinAlgError(RuntimeError):
    """A matrix is singular, not positive-definite, or an iteration did not converge. `torch.linalg.LinAlgError`."""


def failed(name: str, position: tuple[int, ...], count: int, reason: str) -> LinAlgError:
    """Return the error of operator `name` for the matrix at `position` of a batch of rank `len(position)`.

    `count` is the matrix's number in the batch, row-major.
    """
    where = f"(Batch element {count}): " if position else ""
    return LinAlgError(f"{name}: {where}{reason}")
