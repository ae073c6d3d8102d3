"""What each stage of inductor writes, beside the files in golden/. RUSHLIGHT_UPDATE_GOLDEN=1 writes them anew."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import rushlight as torch
from rushlight.aot.functionalize import functionalize
from rushlight.core.symbolic import ShapeEnv
from rushlight.fx.proxy_tensor import capture
from rushlight.fx.symbolic_sizes import open_sizes
from rushlight.inductor.codegen.cpp.program import ProgramWriter
from rushlight.inductor.graph import GraphLowering
from tests.inductor.golden.programs import MLP, GatedRows, chain, factors, histogram, image_gradients, normalise, ranks, scores

GOLDEN = Path(__file__).parent / "golden"
THREADS = 2
OPEN = {"scores": ((0,), (1,))}


def programs() -> dict[str, tuple]:
    return {
        "normalise": (normalise, torch.zeros(3, 8), torch.zeros(8)),
        "chain": (chain, torch.zeros(5, 4), torch.zeros(7, 4), torch.zeros(5, dtype=torch.int64)),
        "scores": (scores, torch.zeros(5, 16), torch.zeros(16, 9)),
        "histogram": (
            histogram, torch.zeros(50), torch.zeros(50, dtype=torch.int64), torch.zeros(7, 20), torch.zeros(7, dtype=torch.int32),
        ),
        "image_gradients": (image_gradients, torch.zeros(2, 32, 4, 4), torch.zeros(2, 16, 8, 8), torch.zeros(32, 16, 3, 3)),
        "ranks": (ranks, torch.zeros(4, 50), torch.zeros(9)),
        "factors": (factors, torch.zeros(3, 4, 4), torch.zeros(6)),
        "mlp": (MLP().eval(), torch.zeros(32, 16)),
        "gated_rows": (GatedRows().eval(), torch.zeros(2, 8, 60)),
    }


def stages(name: str) -> dict[str, str]:
    """The text of each stage of one program."""
    function, *inputs = programs()[name]
    opened = OPEN.get(name, [()] * len(inputs))
    names = {}
    if isinstance(function, torch.nn.Module):
        names = {value._impl: key for key, value in (*function.named_parameters(), *function.named_buffers())}
    with torch.no_grad():
        environment = ShapeEnv()
        geometry = [open_sizes(environment, tensor._impl, dims, "") for tensor, dims in zip(inputs, opened, strict=True)]
        module = capture(function, tuple(inputs), names=names, open_leaves=geometry).module
    functionalize(module)
    lowered = GraphLowering(module).run()
    loops = str(lowered)
    program = ProgramWriter(lowered, THREADS).write()
    fusion = "\n\n".join(map(str, program.groups))
    return {"loops": loops, "fusion": fusion, "memory": str(program.arena), "code": program.source}


@pytest.mark.parametrize("name, stage", [
    ("normalise", "loops"), ("normalise", "code"), ("chain", "loops"), ("chain", "fusion"), ("chain", "code"),
    ("scores", "loops"), ("scores", "memory"), ("scores", "code"), ("mlp", "fusion"), ("mlp", "memory"), ("mlp", "code"),
    ("histogram", "loops"), ("histogram", "fusion"), ("histogram", "code"),
    ("image_gradients", "loops"), ("image_gradients", "fusion"),
    ("gated_rows", "loops"), ("gated_rows", "fusion"),
    ("factors", "loops"), ("factors", "fusion"), ("factors", "code"),
    ("ranks", "loops"), ("ranks", "fusion"), ("ranks", "code"),
])  # fmt: skip
def test_stage_is_as_in_its_golden_file(name, stage):
    text = stages(name)[stage].rstrip().replace(f"{GOLDEN}{os.sep}", "") + "\n"
    path = GOLDEN / f"{name}.{stage}.{'cpp' if stage == 'code' else 'txt'}"
    if os.environ.get("RUSHLIGHT_UPDATE_GOLDEN"):
        path.write_text(text)
    assert text == path.read_text(), f"{path.name} differs; RUSHLIGHT_UPDATE_GOLDEN=1 writes it anew"
