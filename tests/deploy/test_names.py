"""What models, methods, inputs and sizes may be called: anything, also words of C, of its library and of the model's own source."""

from __future__ import annotations

import subprocess

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn
from rushlight.deploy import export
from rushlight.deploy.spelling import C_LIBRARY
from rushlight.deploy.targets import toolchain
from tests.deploy.built import built


class Named(nn.Module):
    """Its inputs are called as types, functions and variables of what is exported; so are its methods."""

    def forward(
        self, int: torch.Tensor, status: torch.Tensor, ok: int, value: float, model: torch.Tensor, bad_argument: torch.Tensor,
        int64_t: torch.Tensor, run_method: torch.Tensor, inside: torch.Tensor, linux: torch.Tensor, tensor_value: torch.Tensor,
        EOF: torch.Tensor, result: torch.Tensor,
    ):  # fmt: skip
        return (
            int
            + 2 * status
            + ok
            + value
            + 3 * model
            + bad_argument
            + int64_t
            + run_method
            + inside
            + linux
            + tensor_value
            + EOF
            + result
        )

    @torch.jit.export
    def reset(self, x: torch.Tensor):
        return x + 1

    @torch.jit.export
    def method(self, x: torch.Tensor, key: str):
        return [x, x + 2] if key == "two" else [x]

    @torch.jit.export
    def graph(self, x: torch.Tensor):
        return x + 3

    @torch.jit.export
    def double(self, x: torch.Tensor):
        return x + 4


@pytest.mark.parametrize("name", ["tensor", "seed", "run"])
def test_models_methods_and_inputs_are_called_as_the_source_is(tmp_path, name):
    module = torch.jit.script(Named())
    x = torch.rand(2)
    call = (*[x] * 2, 3, 0.5, *[x] * 9)
    examples = {"forward": call, "reset": (x,), "method": (x, "two"), "graph": (x,), "double": (x,)}
    model = built(module, examples, tmp_path, name=name)
    found = model.forward(*(each.numpy() if isinstance(each, torch.Tensor) else each for each in call))
    np.testing.assert_allclose(found, module(*call).numpy(), rtol=1e-6)
    results = [model.reset_1(x.numpy()), model.method_1(x.numpy(), "two")[1], model.graph(x.numpy()), model.double(x.numpy())]
    for added, result in enumerate(results, 1):
        np.testing.assert_allclose(result, x.numpy() + added)
    for compiler, words in ((toolchain.compiler(), ["-x", "c++"]), (["gcc"], ["-std=gnu11"])):
        text = f'#include <math.h>\n#include <stdlib.h>\n#include <string.h>\n#include <unistd.h>\n#include "{name}.h"\n'
        (tmp_path / "caller.c").write_text(text)
        subprocess.run([*compiler, *words, "-fsyntax-only", "caller.c"], cwd=tmp_path, check=True, timeout=60)


def test_methods_of_programs_are_called_apart(tmp_path):
    programs = {
        name: torch.export.export(nn.Linear(2, 2), (torch.ones(1, 2),)) for name in ("create", "create_1", "a b", "a-b", "2")
    }
    header = (export(programs, (), tmp_path, name="model") / "model.h").read_text()
    for name in ("create_1", "create_1_1", "a_b", "a_b_1", "method_2"):
        assert f" model_{name}(model* model" in header


def test_sizes_are_called_as_variables_are(tmp_path):
    names = [torch.export.Dim(name, min=2) for name in ("self", "status")]
    module = nn.Softmax(-1)
    model = built(module, (torch.rand(3, 4),), tmp_path, dynamic_shapes=({0: names[0], 1: names[1]},))
    assert model.signature("forward").endswith("float32[self, status]")
    assert model.forward(np.ones((5, 2), np.float32)).tolist() == [[0.5, 0.5]] * 5


def test_the_type_of_a_model_is_no_function_of_the_c_library(tmp_path):
    def exp(x):
        return x.exp()

    assert (export(exp, (torch.ones(2),), tmp_path) / "exp_1.h").exists()
    with pytest.raises(ValueError, match="no function of its library, got 'exp'"):
        export(exp, (torch.ones(2),), tmp_path, name="exp", force=True)


def test_functions_of_the_c_library_are_known():
    headers = "math.h stdlib.h string.h strings.h stdio.h unistd.h fcntl.h signal.h time.h sys/mman.h sys/stat.h".split()
    text = "".join(f"#include <{each}>\n" for each in headers)
    declared = "".join(f"typedef int {name};\n" for name in sorted(C_LIBRARY))
    done = subprocess.run(
        ["gcc", "-D_GNU_SOURCE", "-fsyntax-only", "-fmax-errors=0", "-x", "c", "-"], input=text + declared, capture_output=True,
        text=True, timeout=60,
    )  # fmt: skip
    refused = {line.split("‘")[1].split("’")[0] for line in done.stderr.splitlines() if "redeclared" in line}
    assert C_LIBRARY - refused == set()
