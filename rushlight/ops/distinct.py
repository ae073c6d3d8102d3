"""The public functions `unique` and `unique_consecutive`, whose number of results depends on their flags."""

from __future__ import annotations

from rushlight.core.overrides import overridable
from rushlight.core.tensor import Tensor
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")


@overridable
def unique(
    input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Tensor | tuple[Tensor, ...]:
    """Return the distinct elements, in rising order; with `dim`, the distinct slices along that dimension.

    With `return_inverse` also where each element (slice) is among them, int64, and with `return_counts` how often each
    occurs. The result is sorted for `sorted=False`, too. Gives no gradients.
    """
    if dim is None:
        found = aten._unique2.default(input, sorted, return_inverse, return_counts)
    else:
        found = aten.unique_dim.default(input, dim, sorted, return_inverse, return_counts)
    return _select_results(found, return_inverse, return_counts)


@overridable
def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Tensor | tuple[Tensor, ...]:
    """Return the first of each run of equal elements (of equal slices along `dim`); further results as for `unique`."""
    found = aten.unique_consecutive.default(input, return_inverse, return_counts, dim)
    return _select_results(found, return_inverse, return_counts)


def _select_results(found: tuple[Tensor, Tensor, Tensor], inverse: bool, counts: bool) -> Tensor | tuple[Tensor, ...]:
    results = (found[0], *([found[1]] if inverse else []), *([found[2]] if counts else []))
    return results if len(results) > 1 else results[0]
