"""Every primitive has a row in the table of each stage; the failure names the operators and the table."""

from __future__ import annotations

import pytest

from rushlight.autograd.derivative_table import DERIVATIVES, NON_DIFFERENTIABLE
from rushlight.core.dispatch_key import DispatchKey
from rushlight.inductor.lowering import FALLBACKS, LOWERINGS
from rushlight.inductor.lowering.complex_numbers import COMPLEX
from rushlight.ops.dispatcher import OpOverload
from rushlight.ops.registry import PRIMITIVES


def _has_kernel(op: OpOverload, key: DispatchKey) -> bool:
    return key in op.kernels or DispatchKey.CompositeExplicitAutograd in op.kernels


TABLES = {
    "ops/meta": lambda op: _has_kernel(op, DispatchKey.Meta),
    "ops/cpu": lambda op: _has_kernel(op, DispatchKey.CPU),
    "autograd/derivatives": lambda op: (op in DERIVATIVES) != (op in NON_DIFFERENTIABLE),
    "inductor/lowering": lambda op: (op in LOWERINGS or op in COMPLEX) != (op in FALLBACKS),
}


@pytest.mark.parametrize("table", TABLES)
def test_every_primitive_has_one_row(table):
    lacking = [str(op) for op in PRIMITIVES if not TABLES[table](op)]
    assert not lacking, f"rushlight/{table} needs exactly one row for each of: {', '.join(lacking)}"
