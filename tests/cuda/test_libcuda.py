"""NVIDIA's driver without a GPU: the calls reach a stub of libcuda as its functions are declared; kernels become cubins."""

import ctypes
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import rushlight as torch
from rushlight._C import LaunchPlan
from rushlight.cuda.allocator import CachingAllocator
from rushlight.cuda.driver import Cubin, DriverError, DriverOutOfMemory, KernelImage
from rushlight.cuda.libcuda import LibCuda


class Launch(ctypes.Structure):
    """The stub's record of a launch."""

    _fields_ = [
        ("values", ctypes.c_uint64 * 16), ("grid", ctypes.c_uint * 3), ("threads", ctypes.c_uint), ("shared", ctypes.c_uint),
        ("stream", ctypes.c_void_p), ("count", ctypes.c_int),
    ]  # fmt: skip


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    path = tmp_path_factory.mktemp("stub") / "libcuda_stub.so"
    source = Path(__file__).with_name("libcuda_stub.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", path, source], check=True, timeout=60)
    return ctypes.CDLL(str(path))


@pytest.fixture
def cuda(library):
    made = LibCuda(library)
    made.use(0)
    return made


def test_device(cuda):
    facts = cuda.properties(0)
    assert (facts.name, facts.major, facts.minor, facts.total_memory) == ("stub", 75, 76, 1 << 20)
    assert cuda.device_count() == 1 and cuda.memory_info()[1] == 1 << 20


def test_memory(cuda):
    address = cuda.allocate(64)
    source, target = ctypes.create_string_buffer(b"0123456789abcdef"), ctypes.create_string_buffer(17)
    cuda.copy_to_device(address, ctypes.addressof(source), 16, 0)
    cuda.fill(address + 2, 65, 2, 0)
    cuda.fill_word(address + 4, int.from_bytes(b"WORD", "little"), 0)
    cuda.copy_on_device(address + 16, address, 16, 0)
    cuda.copy_to_host(ctypes.addressof(target), address + 16, 16, 0)
    assert target.value == b"01AAWORD89abcdef"
    cuda.free(address)
    host = cuda.allocate_host(16)
    cuda.free_host(host)
    with pytest.raises(DriverOutOfMemory, match="out of memory"):
        cuda.allocate(1 << 30)


def test_streams_events_and_graphs(cuda):
    stream = cuda.create_stream(-1)
    events = [cuda.create_event(True) for _ in range(2)]
    assert {cuda.is_event_done(event) for event in events} == {True, False}
    cuda.record_event(events[0], stream)
    cuda.stream_waits_for(stream, events[0])
    assert cuda.is_stream_done(stream) and cuda.milliseconds(*events) == 1.5 and not cuda.is_capturing(stream)
    cuda.begin_capture(stream)
    executable = cuda.instantiate(cuda.end_capture(stream))
    cuda.launch_graph(executable, stream)
    cuda.destroy_executable(executable)
    with pytest.raises(DriverError, match="CUDA_ERROR_INVALID_HANDLE"):
        cuda.record_event(0, stream)


def test_launches(cuda, library):
    asked = []

    def cubin(capability):
        asked.append(capability)
        return Cubin(b"\0cubin\0\0", "kernel", 50000, 128)

    kernel = cuda.load(KernelImage("kernel", ["*fp32", "i64", "*i64"], cubin, None))
    ctypes.c_int.in_dll(library, "parameters").value = 5
    kernel.launch(9, (3, 2, 1), (1 << 40, -5, 0), {"BLOCK": 64})
    found = Launch.in_dll(library, "last_launch")
    assert asked == [75 * 10 + 76]
    assert list(found.values)[:5] == [1 << 40, (1 << 64) - 5, 0, 0, 0]
    assert (list(found.grid), found.threads, found.shared, found.stream) == ([3, 2, 1], 128, 50000, 9)


@pytest.fixture
def device(cuda):
    """What makes plans and tensors on the stub."""
    heap = CachingAllocator(cuda, 0)
    heap.add_segment(cuda.allocate(1 << 14), 1 << 14, 0, True, 0)
    facts = {"place": torch.device("cuda", 0), "driver": cuda, "heap": heap, "index": 0, "failing": {}, "reason": "a test"}
    uses = SimpleNamespace(use=lambda: cuda.use(0))

    def plan(**given):
        return LaunchPlan(device=uses, **facts, **given)

    def tensor(count):
        return heap.empty((count,), None, torch.float32, 0, facts["place"])

    return SimpleNamespace(plan=plan, tensor=tensor, failing=facts["failing"])


def test_launches_of_plans(cuda, library, device):
    """Arguments are addresses, offsets in slots and numbers, and behind them two null pointers."""
    kernel = cuda.load(KernelImage("kernel", ["*fp32", "*fp32", "i64"], lambda capability: Cubin(b"\0cubin\0\0", "kernel", 0, 64), None))
    step = kernel, (7, 2, 1), ((0, 4), (1, 16), (-1, -3)), {}
    made = device.plan(
        reaches=(8,), memory=(32,), steps=(step,), outputs=(("memory", 1, (4,), (1,), 4, torch.float32), ("input", 0)),
    )  # fmt: skip
    x = device.tensor(2)
    ctypes.c_int.in_dll(library, "parameters").value = 5
    result, same = made(x)
    found = Launch.in_dll(library, "last_launch")
    address = result.untyped_storage().data_ptr()
    assert same is x and list(found.values)[:5] == [x.data_ptr() + 4, address + 16, (1 << 64) - 3, 0, 0]
    assert (list(found.grid), found.threads, found.shared, found.stream) == ([7, 2, 1], 64, 0, None)
    assert device.failing == {"a test": None} and result.shape == (4,) and result.data_ptr() == address + 16


def test_copies_of_plans(cuda, device):
    step = None, None, ((1, 0), (0, 4), (-1, 4)), None
    made = device.plan(reaches=(8,), memory=(4,), steps=(step,), outputs=(("memory", 1, (1,), (1,), 0, torch.float32),))
    x = device.tensor(2)
    cuda.fill_word(x.data_ptr() + 4, 77, 0)
    (result,) = made(x)
    assert ctypes.c_int32.from_address(result.data_ptr()).value == 77


def test_a_plan_names_what_the_driver_refuses(cuda, device):
    kernel = SimpleNamespace(native=(cuda.launch_address, 0, 1, 0, 0))  # no function
    made = device.plan(reaches=(), memory=(), steps=((kernel, (1, 1, 1), (), {}),), outputs=())
    with pytest.raises(DriverError, match="cuLaunchKernel"):
        made()


def test_an_image_that_the_driver_does_not_know(cuda):
    with pytest.raises(DriverError, match="knows CUDA 12.4, cannot load .* Install a later driver, or an earlier Triton"):
        cuda.load(KernelImage("kernel", [], lambda capability: Cubin(b"later", "kernel", 0, 128), None))


_COMPILE = """
import rushlight as torch
from rushlight.core.device import CPU
from rushlight.inductor.triton import compiler, strided_copy
text = strided_copy._text(3)
names = ["target", "source", "count", *(f"{kind}{dim}" for dim in range(3) for kind in ("size", "target_stride", "source_stride"))]
spec = compiler.KernelSpec("copy_strided", tuple((name, "*i32" if place < 2 else "i64") for place, name in enumerate(names)),
                           {"BLOCK": 1024}, 4, 1)
made = [compiler.compile_kernel(compiler.load_text(text, "<copy>"), spec, capability) for capability in (80, 90)]
print([len(each.cubin) > 0 and each.scratch == 0 for each in made])
"""


def compiling(program, *arguments):
    """Run a program in a process in which Triton compiles; returns its last line."""
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


def test_the_copy_is_a_cubin():
    assert compiling(_COMPILE) == "[True, True]"


_COMPILING = """
import rushlight as torch
from rushlight.cuda import driver, stand_in

class Kernel:
    def launch(self, *arguments):
        pass

class Compiling(stand_in.StandIn):
    def load(self, image):
        cubin = image.cubin(80)
        loaded.append(image.name.rpartition("_")[0])
        assert cubin.code and not cubin.scratch
        return Kernel()

loaded = []
driver.use_driver(Compiling())
"""

_EAGER = """
x, w = torch.randn(64, 32).cuda(), torch.randn(32, 16).cuda()
torch.softmax(x @ w + 1.0, -1)
print(*loaded)
"""


def test_eager_kernels_are_cubins():
    names = compiling(_COMPILING + _EAGER)
    assert "product_mm" in names and "add" in names and "softmax" in names


_GRADIENTS = """
def gradients(q, k, v):
    found = torch.nn.functional.scaled_dot_product_attention(q, k, v)
    torch._dynamo.graph_break()
    return torch.autograd.grad(found, (q, k, v), torch.ones_like(found))

torch._C.skip_code(Compiling.load.__code__)
made = [torch.randn(1, 2, 32, 16, device="cuda", requires_grad=True) for _ in range(3)]
torch.compile(gradients)(*made)
print(len(loaded))
"""


def test_kernels_that_a_compiled_function_needs_after_a_break(monkeypatch, tmp_path):
    """Triton's own functions are not captured."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    assert int(compiling(_COMPILING + _GRADIENTS)) >= 4


_STANDALONE = """
import pathlib, runpy, sys
x = torch.randn(4, 8, device="cuda")
torch.compile(lambda x: torch.softmax(x, -1), options={"dump": sys.argv[1]})(x)
(path,) = pathlib.Path(sys.argv[1]).glob("*/*_module.py")
count = len(loaded)
runpy.run_path(str(path))["module"]([x])
print(len(loaded) - count)
"""


def test_a_file_of_a_program_compiles_its_kernels(tmp_path):
    assert compiling(_COMPILING + _STANDALONE, str(tmp_path)) == "1"


def test_the_library_loads_no_driver():
    names = "[m for m in sys.modules if m.startswith(('rushlight.cuda', 'triton', 'cuda'))]"
    assert compiling(f"import sys, rushlight as torch; torch.ones(2) + 1; print({names})") == "[]"
