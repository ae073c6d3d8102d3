"""Joint graphs and their partitions, beside the files in golden/. RUSHLIGHT_UPDATE_GOLDEN=1 writes them anew."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import rushlight as torch
from rushlight.aot.joint import trace_joint
from rushlight.aot.partition import min_cut_partition
from rushlight.aot.saved_images import keep_channels_last
from rushlight.compiler.open_inputs import open_inputs
from rushlight.compiler.passes import PIPELINE
from tests.aot.golden.programs import images, normalise, perceptron, rectified, views

GOLDEN = Path(__file__).parent / "golden"


def leaf(*shape):
    return torch.zeros(*shape).requires_grad_()


PROGRAMS = {
    "perceptron": (perceptron, torch.zeros(4, 3), torch.zeros(4, dtype=torch.int64), leaf(8, 3), leaf(5, 8)),
    "views": (views, leaf(4, 3), torch.zeros(3)),
    "normalise": (normalise, leaf(6, 3)),
    "rectified": (rectified, torch.zeros(4, 3), leaf(8, 3), leaf(5, 8)),
    "images": (images, torch.zeros(2, 3, 8, 8), leaf(4, 3, 3, 3), leaf(5, 4, 1, 1)),
}


def stages(name: str) -> dict[str, str]:
    """The text of each stage of one program."""
    function, *inputs = PROGRAMS[name]
    found = {}

    def backend(module, tensors):
        joint = trace_joint(module, tensors, {}, open_inputs(module))
        for graph_pass in PIPELINE:
            graph_pass(joint.module)
        parts = min_cut_partition(joint)
        keep_channels_last(parts, len(joint.results.computed))
        found["joint"] = joint.module.print_readable(print_output=False)
        for stage in ("forward", "backward"):
            part = getattr(parts, stage)
            part.recompile()
            found[stage] = part.print_readable(print_output=False)
        found["forward"] += f"\nsaved: {', '.join(f'{place.kind} {place.position}' for place in parts.saved)}"
        return module.forward

    torch.compile(function, backend=backend, fullgraph=True, dynamic=name == "normalise")(*inputs)
    return found


@pytest.mark.parametrize("stage", ["joint", "forward", "backward"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_stage_is_as_in_its_golden_file(name, stage):
    text = stages(name)[stage].rstrip().replace(f"{GOLDEN}{os.sep}", "") + "\n"
    path = GOLDEN / f"{name}.{stage}.txt"
    if os.environ.get("RUSHLIGHT_UPDATE_GOLDEN"):
        path.write_text(text)
    assert text == path.read_text(), f"{path.name} differs; RUSHLIGHT_UPDATE_GOLDEN=1 writes it anew"
