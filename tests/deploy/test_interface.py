"""The C interface: under sanitizers with random arguments, from several threads, built by CMake, with weights compiled in."""

from __future__ import annotations

import platform
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn
from rushlight.deploy import export
from tests.deploy.built import built, close

HERE = Path(__file__).parent
SANITIZED = ("-g", "-O0", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
LEVELS = ("-DTINY_LEVELS=ON",) if platform.machine() == "x86_64" else ()
C_COMPILER, CXX_COMPILER = shutil.which("gcc"), shutil.which("g++")

pytestmark = pytest.mark.skipif(C_COMPILER is None or CXX_COMPILER is None, reason="needs gcc and g++")


class Mixed(nn.Module):
    """A graph for open sizes with state, and a program with a loop and lists."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(6, 3)
        self.total = torch.zeros(3)

    def forward(self, x: torch.Tensor, i: torch.Tensor, scale: float) -> tuple[torch.Tensor, torch.Tensor]:
        found = self.layer(x[i]) * scale
        self.total = self.total + found.sum(0)
        return found, self.total

    @torch.jit.export
    def count(self, n: int, x: torch.Tensor, flag: bool) -> tuple[int, list[int], torch.Tensor]:
        seen = [n]
        while n > 1 and len(seen) < 50:
            n = n // 2 if n % 2 == 0 or flag else 3 * n + 1
            seen.append(n)
            x = torch.tanh(x * 1.5) + seen[0]
        return len(seen), seen, x


@pytest.fixture(scope="module")
def mixed(tmp_path_factory) -> tuple[object, Path]:
    torch.manual_seed(0)
    module = torch.jit.script(Mixed())
    n = torch.export.Dim("n", min=2, max=9)
    examples = {"forward": (torch.rand(3, 6), torch.tensor([0, 2]), 1.5), "count": (7, torch.rand(4), True)}
    shapes = {"forward": ({0: n}, None, None)}
    folder = tmp_path_factory.mktemp("mixed")
    return module, export(module, examples, folder, name="mixed", dynamic_shapes=shapes)


def run(*words: object, cwd: Path) -> str:
    """What a command prints; a failure shows all it said."""
    done = subprocess.run(list(map(str, words)), cwd=cwd, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, f"{words}: {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def compiled(folder: Path, program: str, name: str, flags: tuple[str, ...], libraries: tuple[str, ...] = ()) -> str:
    """A C program of this folder over a model, linked statically."""
    defined = (f"-DMODEL={name}", f"-DUPPER={name.upper()}", f'-DHEADER="{name}.h"')
    warns = (
        "-Wall",
        "-Wextra",
        "-Werror",
        "-Wno-psabi",
        "-Wno-unused-variable",
        "-Wno-unused-parameter",
        "-Wno-missing-field-initializers",
    )
    run(CXX_COMPILER, "-std=c++17", "-march=native", *flags, *warns, "-I.", "-c", f"{name}.cpp", "-o", "model.o", cwd=folder)
    run(C_COMPILER, "-std=c11", *flags, *warns, *defined, "-I.", "-c", HERE / f"{program}.c", "-o", "program.o", cwd=folder)
    run(CXX_COMPILER, *flags, "model.o", "program.o", "-o", program, "-lpthread", "-lm", *libraries, cwd=folder)
    return f"./{program}"


@pytest.mark.parametrize("seed", [1, 2])
def test_random_arguments_under_sanitizers(mixed, seed):
    _, folder = mixed
    program = "./arguments" if (folder / "arguments").exists() else compiled(folder, "arguments", "mixed", SANITIZED)
    said = run(program, "mixed.weights", 6000, seed, cwd=folder)
    assert "calls were right" in said


class Repeated(nn.Module):
    """A result that takes memory between, a state, and a list."""

    def __init__(self):
        super().__init__()
        self.total = torch.zeros(1)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, list[torch.Tensor]]:
        self.total = self.total + x[0, 0]
        return (x @ torch.eye(200)) * 2 + 1, self.total, [x + 3]


def test_places_as_the_last_run_left_them(tmp_path):
    rows = torch.export.Dim("rows", min=2)
    module = torch.jit.script(Repeated())
    export(module, (torch.rand(3, 200),), tmp_path, name="repeated", dynamic_shapes=({0: rows},))
    program = compiled(tmp_path, "again", "repeated", SANITIZED)
    assert run(program, "repeated.weights", cwd=tmp_path).split() == ["1", "3", "6", "10", "15", "21", "28", "36"]


class Numeric(nn.Module):
    """Functions over whole tensors: factors, transforms, frequent values, complex numbers."""

    def forward(self, x: torch.Tensor, z: torch.Tensor) -> tuple[torch.Tensor, ...]:
        square = x @ x.mT + torch.eye(x.shape[-1])
        factor = torch.linalg.cholesky(square)
        values, vectors = torch.linalg.eigh(square)
        u, s, vh = torch.linalg.svd(x[..., :3], full_matrices=False)
        inverse, info = torch.linalg.inv_ex(x)
        most, place = torch.mode((10 * x).int(), -1)
        spectrum = torch.fft.fft(torch.fft.rfft(x, dim=-2) * 2j, n=67)
        return factor, values, vectors, u @ vh, inverse, info, most, place, spectrum.abs(), z * z.conj() / (z + 1)


def test_functions_over_whole_tensors_under_sanitizers(tmp_path):
    torch.manual_seed(0)
    arguments = (torch.rand(2, 4, 4), torch.rand(3, dtype=torch.complex128))
    export(Numeric(), arguments, tmp_path, name="numeric", dynamic_shapes=({0: torch.export.Dim("n", min=2, max=5)}, None))
    program = compiled(tmp_path, "arguments", "numeric", SANITIZED)
    assert "calls were right" in run(program, "numeric.weights", 1500, 3, cwd=tmp_path)


class Found(nn.Module):
    """Results of sizes that values decide."""

    def forward(self, x: torch.Tensor, boxes: torch.Tensor, n: torch.Tensor) -> tuple[torch.Tensor, ...]:
        kept = torch.ops.torchvision.nms(boxes, boxes[:, 0], 0.5)
        return x[x > 0.5], boxes[kept], torch.unique(x), x[: n.item()], torch.repeat_interleave(x, (x[:, 0] > 1).long(), 0)


def test_sizes_that_values_decide_under_sanitizers(tmp_path):
    export(Found(), (torch.rand(5, 3), torch.rand(6, 4), torch.tensor(2)), tmp_path, name="found")
    program = compiled(tmp_path, "arguments", "found", SANITIZED)
    assert "calls were right" in run(program, "found.weights", 1500, 3, cwd=tmp_path)


def test_threads_with_handles_of_their_own(mixed):
    _, folder = mixed
    program = compiled(folder, "threads", "mixed", ("-g", "-O1", "-fsanitize=thread"))
    assert "agree" in run(program, "mixed.weights", cwd=folder)


@pytest.mark.skipif(shutil.which("cmake") is None, reason="needs cmake")
def test_cmake_installs_a_package_that_is_found(tmp_path):
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(4, 3), nn.Tanh())
    folder = export(module, (torch.ones(1, 4),), tmp_path / "tiny", name="tiny")
    run("cmake", "-S", folder, "-B", tmp_path / "build", "-DCMAKE_BUILD_TYPE=Debug", "-DTINY_SHARED=OFF", *LEVELS, cwd=tmp_path)
    run("cmake", "--build", tmp_path / "build", cwd=tmp_path)
    assert "result: 1 3" in run(tmp_path / "build" / "tiny_example", folder / "tiny.weights", cwd=tmp_path)
    run("cmake", "--install", tmp_path / "build", "--prefix", tmp_path / "prefix", cwd=tmp_path)
    user = tmp_path / "user"
    user.mkdir()
    shutil.copy(folder / "example.c", user)
    (user / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.16)\nproject(user C CXX)\nfind_package(tiny REQUIRED)\n"
        "add_executable(user example.c)\ntarget_link_libraries(user PRIVATE tiny::tiny)\n"
        "set_target_properties(user PROPERTIES LINKER_LANGUAGE CXX)\n"
        "add_custom_command(TARGET user POST_BUILD COMMAND user ${tiny_WEIGHTS})\n"
    )
    run("cmake", "-S", user, "-B", user / "build", f"-DCMAKE_PREFIX_PATH={tmp_path / 'prefix'}", cwd=user)
    assert "result: 1 3" in run("cmake", "--build", user / "build", cwd=user)
    assert (tmp_path / "prefix" / "share" / "tiny" / "tiny.weights").exists()
    text = next((tmp_path / "prefix").glob("lib*/pkgconfig/tiny.pc")).read_text()
    assert f"prefix={tmp_path / 'prefix'}" in text or "prefix=" in text


def test_weights_compiled_in(tmp_path):
    torch.manual_seed(0)
    module = nn.Linear(5, 2)
    model = built(module, (torch.ones(3, 5),), tmp_path, "inside", embed=True)
    x = torch.rand(3, 5)
    close(model(x.numpy()), module(x))
    (tmp_path / "inside.weights").unlink()
    close(model.share()(x.numpy()), module(x))


def test_exports_write_the_same_for_the_same(tmp_path):
    torch.manual_seed(0)
    module = nn.Linear(3, 2)
    one, other = (export(module, (torch.ones(1, 3),), tmp_path / name, name="same") for name in ("a", "b"))
    for file in ("same.cpp", "same.h", "same.weights"):
        assert (one / file).read_bytes() == (other / file).read_bytes()


def test_the_folder_says_what_it_holds(mixed):
    text = (mixed[1] / "README.md").read_text()
    assert "forward(x: float32[n, 6], i: int64[2], scale: float) -> " in text
    assert "total" in text and "SHA-256" in text and "find_package(mixed)" in text
    assert np.fromfile(mixed[1] / "mixed.weights", "S8", 1)[0] == b"RLWEIGHT"
