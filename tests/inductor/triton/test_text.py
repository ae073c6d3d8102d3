"""The Triton text of functions, without Triton: golden files, launches, and what importing costs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import rushlight as torch
from rushlight.inductor import costs
from rushlight.inductor.codegen.triton.wrapper import grid_sizes
from tests.inductor.triton.interpreted import pieces_of

F = torch.nn.functional
GOLDEN = Path(__file__).parent / "golden"


def fused_chain(x, bias, i):
    y = torch.relu(x + bias) * torch.sigmoid(x)
    return y, y[i].to(torch.bfloat16)


def softmax(x):
    return torch.softmax(x, -1)


def layer_norm(x, weight, bias):
    return F.layer_norm(x, (x.shape[-1],), weight, bias)


def long_layer_norm(x, weight, bias):
    return F.layer_norm(x, (x.shape[-1],), weight, bias)


def gelu_layer(x, weight, bias):
    return F.gelu(F.linear(x, weight, bias))


def attention(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


PROGRAMS = {
    "fused_chain": (fused_chain, torch.zeros(5, 7), torch.zeros(7), torch.zeros(3, dtype=torch.int64)),
    "softmax": (softmax, torch.zeros(64, 1000)),
    "layer_norm": (layer_norm, torch.zeros(64, 768), torch.zeros(768), torch.ones(768)),
    "long_layer_norm": (long_layer_norm, torch.zeros(100, 40000), torch.zeros(40000), torch.ones(40000)),
    "gelu_layer": (gelu_layer, torch.zeros(512, 768).bfloat16(), torch.zeros(3072, 768).bfloat16(), torch.zeros(3072).bfloat16()),
    "attention": (attention, *(torch.zeros(2, 4, 128, 64).bfloat16() for _ in range(3))),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_text_is_as_in_its_golden_file(name):
    function, *inputs = PROGRAMS[name]
    text = pieces_of(function, *inputs)[1].source.replace(f"{Path(__file__).parent}{os.sep}", "")
    text = re.sub(r"(test_text\.py):\d+", r"\1", text)
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("RUSHLIGHT_UPDATE_GOLDEN"):
        path.write_text(text)
    assert text == path.read_text(), f"{path.name} differs; RUSHLIGHT_UPDATE_GOLDEN=1 writes it anew"


def test_kernels_with_the_same_computation_share_one_function():
    _, pieces = pieces_of(lambda x, w: torch.relu(torch.relu(x @ w) @ w), torch.zeros(8, 8), torch.zeros(8, 8))
    ((_, program),) = pieces.programs
    assert (len(program.launches), len(program.kernels)) == (2, 1)


def test_launches_give_their_grids():
    _, pieces = pieces_of(lambda a, b: F.relu(a @ b), torch.zeros(512, 64), torch.zeros(64, 2048))
    ((_, program),) = pieces.programs
    (launch,) = program.launches
    rows, columns = launch.choice.constants["ROWS"], launch.choice.constants["COLUMNS"]
    assert grid_sizes(launch, {}) == (512 // rows * (2048 // columns),)
    assert launch.choice in launch.candidates and len(launch.candidates) > 1


def test_large_tensors_are_indexed_by_64_bits():
    wide = torch.zeros(1).expand(2**31 + 5)
    assert "x = tl.program_id(0).to(tl.int64) * XBLOCK" in pieces_of(lambda x: x + 1, wide)[1].source
    assert "x = tl.program_id(0) * XBLOCK" in pieces_of(lambda x: x + 1, wide[:1000])[1].source


def test_open_sizes_are_indexed_by_the_bits_that_they_need():
    _, pieces = pieces_of(lambda x, y: (x + y,), torch.zeros(40, 40), torch.zeros(40), dynamic=True)
    ((_, program),) = pieces.programs
    (launch,) = program.launches
    symbols = {symbol: 50000 for size in launch.open for symbol in size.free_variables()}
    assert launch.constants(symbols)["INDEX"] == 64
    assert launch.constants(dict.fromkeys(symbols, 40000))["INDEX"] == 32
    assert ">= 2147483648 else 32" in program.wrapper_source


def test_text_does_not_depend_on_the_host(monkeypatch):
    def layers(x, w, image, filters):
        return (w.t() @ x, F.conv2d(image, filters, padding=1))

    given = [torch.zeros(size).bfloat16() for size in ((40, 48), (40, 32), (2, 16, 9, 9), (32, 16, 3, 3))]
    texts = []
    for has_pairs in (False, True):
        for name in ("multiplies_pairs", "multiplies_in_tiles"):
            monkeypatch.setattr(costs, name, lambda found=has_pairs: found)
        texts.append(pieces_of(layers, *given)[1].source)
    assert texts[0] == texts[1] and "tiles_mm" not in texts[0]


def test_precision_of_products_follows_the_setting():
    given = (lambda a, b: a @ b, torch.zeros(40, 40), torch.zeros(40, 40))
    assert 'input_precision="ieee"' in pieces_of(*given)[1].source
    assert 'input_precision="tf32"' in pieces_of(*given, precision="tf32")[1].source


def test_triton_text_of_a_module_has_forward_and_backward():
    text = torch.compiler.triton_text(torch.nn.Linear(8, 4), torch.randn(3, 8, requires_grad=True))
    assert text.count("def call(launcher") == 2 and "tl.dot" in text


def test_writing_text_imports_no_triton():
    code = """
import sys
import rushlight as torch
assert "tl.load" in torch.compiler.triton_text(lambda x: torch.relu(x) + 1, torch.zeros(4))
assert not [name for name in sys.modules if name.split(".")[0] == "triton"]
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
