"""Calls in torch's oldest form, with a number between the tensors: `x.add(2, y)` for `x.add(y, alpha=2)`.

In: the arguments of a call that no overload fits. Out: the same call in today's form, with a warning once per operator.
"""

from __future__ import annotations

import warnings

from rushlight.core.tensor import Tensor

# Operators whose scale may precede the last tensors.
_SCALED = {"add": "alpha", "sub": "alpha", "addcmul": "value", "addcdiv": "value"}
# Operators where beta, alpha or both may precede a tensor.
_PRODUCTS = frozenset({"addmm", "addbmm", "addmv", "addr", "baddbmm"})
_warned: set[str] = set()


def convert_deprecated_call(name: str, args: tuple, kwargs: dict) -> tuple[tuple, dict] | None:
    """Return positional arguments and keywords for today's overloads; None for a call that was never valid."""
    plain = name.removesuffix("_")
    given = _match_scaled_form(plain, args) if plain in _SCALED else _match_product_form(args) if plain in _PRODUCTS else None
    if given is None or given[1].keys() & kwargs.keys():
        return None
    tensors, scales = given
    if name not in _warned:
        _warned.add(name)
        now = ", ".join([*["Tensor"] * len(tensors), *[f"{key}=Number" for key in scales]])
        then = ", ".join(["Tensor" if isinstance(value, Tensor) else "Number" for value in args])
        warnings.warn(
            f"This overload of {name} is deprecated:\n\t{name}({then})\nConsider using one of the following signatures "
            f"instead:\n\t{name}({now})", UserWarning, stacklevel=4,
        )  # fmt: skip
    return tensors, kwargs | scales


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | complex) or isinstance(value, Tensor) and not value.dim()


def _match_scaled_form(name: str, args: tuple) -> tuple[tuple, dict] | None:
    count = 3 if name in ("add", "sub") else 4
    if len(args) != count or not _is_number(args[1]) or not all(isinstance(value, Tensor) for value in args[2:]):
        return None
    return (args[0], *args[2:]), {_SCALED[name]: args[1]}


def _match_product_form(args: tuple) -> tuple[tuple, dict] | None:
    numbers = [isinstance(value, int | float | complex) for value in args]
    # Beta of the function form, or of the method form.
    if numbers in ([True, False, False, False], [False, True, False, False]):
        beta, first = (args[0], args[1]) if numbers[0] else (args[1], args[0])
        return (first, *args[2:]), {"beta": beta}
    if numbers == [True, False, True, False, False]:
        return (args[1], *args[3:]), {"beta": args[0], "alpha": args[2]}
    if numbers == [False, True, True, False, False]:
        return (args[0], *args[3:]), {"beta": args[1], "alpha": args[2]}
    return None
