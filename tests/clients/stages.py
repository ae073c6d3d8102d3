"""Clients of PyTorch as a table of stages: what each package does with `torch`, step by step, and what came out.

A client is a class whose methods marked with `@stage` run in the order in which they are written, on one object, so that a later
stage uses what an earlier one made. A stage returns tensors, numbers or texts; their digest is what is compared with PyTorch's.
The files in `packages` import `torch` as users do, so that the same file runs over PyTorch and over Rushlight.
"""

from __future__ import annotations

import contextlib
import io
import time
import warnings
from collections.abc import Callable, Iterator

import numpy as np
import torch

CLIENTS: list[type[Client]] = []


def stage(method: Callable) -> Callable:
    """Mark a method as a stage."""
    method.is_stage = True
    return method


class Client:
    """One use of a package. A subclass with stages of its own and a `name` is entered into `CLIENTS`."""

    name = ""

    def __init_subclass__(cls, **options) -> None:
        super().__init_subclass__(**options)
        if cls.name:
            CLIENTS.append(cls)

    @classmethod
    def stages(cls) -> list[str]:
        """The names of the stages, a base class's first."""
        found = {}
        for base in reversed(cls.__mro__):
            found.update({name: None for name, value in vars(base).items() if hasattr(value, "is_stage")})
        return [name for name in found if getattr(cls, name) is not None]


def run(client: type[Client]) -> Iterator[dict]:
    """Run the stages of a client; yields a record with the digest of each, or the error."""
    subject = client()
    for name in client.stages():
        record = {"client": client.name, "stage": name}
        start = time.perf_counter()
        try:
            torch.manual_seed(0)
            np.random.seed(0)
            with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
                warnings.simplefilter("ignore")
                record["values"] = digest(getattr(subject, name)())
        except Exception as error:  # any error is a result of the stage
            record["error"] = f"{type(error).__name__}: {first_line(error)}"
        yield {**record, "seconds": round(time.perf_counter() - start, 2)}
        if name == "build" and "error" in record:
            yield from (
                {"client": client.name, "stage": later, "error": "not reached", "seconds": 0} for later in client.stages()[1:]
            )
            return


def first_line(error: BaseException) -> str:
    """The first line of an error's text, shortened."""
    return (str(error).strip().splitlines() or [""])[0][:300]


def digest(value: object) -> object:
    """A few numbers that summarise `value`: for a tensor its sizes, mean, root mean square and some elements."""
    if isinstance(value, torch.Tensor):
        return _digest_tensor(value)
    if isinstance(value, np.ndarray | np.generic):
        return digest(torch.from_numpy(np.array(value)))
    if isinstance(value, dict):
        return {str(key): digest(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [digest(entry) for entry in value]
    return _rounded(value) if isinstance(value, float) else value


def _digest_tensor(tensor: torch.Tensor) -> dict:
    values = tensor.detach().cpu().reshape(-1)
    if not values.is_floating_point() and not values.is_complex() and values.numel() <= 64:
        return {"sizes": list(tensor.shape), "all": values.tolist()}
    values = torch.view_as_real(values).reshape(-1) if values.is_complex() else values
    values = values.double().numpy()
    chosen = values[np.linspace(0, len(values) - 1, min(6, len(values))).astype(int)] if len(values) else values
    summary = {"mean": float(values.mean()), "rms": float(np.sqrt((values**2).mean()))} if len(values) else {}
    return {
        "sizes": list(tensor.shape),
        **{k: _rounded(v) for k, v in summary.items()},
        "some": [_rounded(float(v)) for v in chosen],
    }


def _rounded(number: float) -> float:
    return float(f"{number:.6g}")


def difference(found: object, expected: object, relative: float = 1e-3, absolute: float = 1e-4) -> str | None:
    """The difference between two digests, in words; None if they agree."""
    if isinstance(expected, dict) and isinstance(found, dict):
        if found.keys() != expected.keys():
            return f"{sorted(found)} instead of {sorted(expected)}"
        pairs = [(key, found[key], expected[key]) for key in expected]
    elif isinstance(expected, list) and isinstance(found, list):
        if len(found) != len(expected):
            return f"{len(found)} values instead of {len(expected)}"
        pairs = [(str(i), *pair) for i, pair in enumerate(zip(found, expected, strict=True))]
    elif isinstance(expected, float) and isinstance(found, float | int):
        close = np.isclose(found, expected, rtol=relative, atol=absolute, equal_nan=True)
        return None if close else f"{found} instead of {expected}"
    else:
        return None if found == expected else f"{found!r} instead of {expected!r}"
    return next((f"{key}: {told}" for key, a, b in pairs if (told := difference(a, b, relative, absolute))), None)
