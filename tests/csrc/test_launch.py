"""Calling native entries by address, and what the processor offers."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import threading

import numpy as np
import pytest

from rushlight import _C

ENTRY = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_void_p))

SOURCE = """
#include <stddef.h>
int add(void **p)
{
    float *a = p[0], *b = p[1], *out = p[2];
    for (int i = 0; i < 8; i++) out[i] = a[i] + b[i];
    return 0;
}
int sum(void **p) { int total = 0; for (; *p != (void *)1; p++) total += *(int *)*p; return total; }
int is_null(void **p) { return p[0] == NULL; }
int wait_for(void **p) { volatile int *flag = p[0]; while (!*flag) {} return *flag; }
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    folder = tmp_path_factory.mktemp("launch")
    (folder / "entries.c").write_text(SOURCE)
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", "entries.so", "entries.c"], cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "entries.so"))


def address_of(function) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value


@pytest.mark.parametrize("container", [list, tuple, lambda items: range(items[0], items[0] + 1)])
def test_status_is_returned_and_sequences_are_accepted(library, container):
    assert _C.launch(address_of(library.is_null), container([0])) == 1
    assert _C.launch(address_of(library.is_null), container([64])) == 0


def test_a_kernel_reads_and_writes_blocks(library):
    blocks = [_C.allocate(32) for _ in range(3)]
    a, b, out = (np.frombuffer(block, np.float32) for block in blocks)
    a[:], b[:], out[:] = np.arange(8), 10, 0
    assert _C.launch(address_of(library.add), [block.data_ptr for block in blocks]) == 0
    np.testing.assert_array_equal(out, np.arange(8) + 10)


@pytest.mark.parametrize("count", [0, 1, 255, 256, 257, 5000])
def test_any_number_of_pointers(library, count):
    values = np.arange(1, count + 1, dtype=np.int32)
    pointers = [values.ctypes.data + 4 * i for i in range(count)] + [1]
    assert _C.launch(address_of(library.sum), pointers) == values.sum()


def test_the_interpreter_runs_on_while_a_kernel_does(library):
    flag = np.zeros(1, np.int32)
    results: list[int] = []
    thread = threading.Thread(
        target=lambda: results.append(_C.launch(address_of(library.wait_for), (flag.ctypes.data,))), daemon=True
    )
    thread.start()
    flag[0] = 5
    thread.join(timeout=30)
    assert results == [5]


def test_a_callback_into_python_may_run_inside():
    entry = ENTRY(lambda pointers: pointers[0] - 100)
    assert _C.launch(address_of(entry), [142]) == 42


def test_bad_arguments(library):
    entry = address_of(library.is_null)
    with pytest.raises(ValueError, match="got 0"):
        _C.launch(0, [])
    with pytest.raises(TypeError, match="address must be an int, got str"):
        _C.launch("entry", [])
    with pytest.raises(TypeError, match=r"pointers\[1\] must be an int, got float"):
        _C.launch(entry, [0, 1.5])
    with pytest.raises(TypeError, match="must be a sequence"):
        _C.launch(entry, 3)
    with pytest.raises(TypeError, match="expected 2 arguments"):
        _C.launch(entry)
    for no_address in (2**64, -(2**70)):
        with pytest.raises(ValueError, match="no address"):
            _C.launch(entry, [no_address])


def test_features_are_known_names():
    features = _C.cpu_features()
    assert isinstance(features, tuple)
    assert set(features) <= {
        "avx2", "fma", "avx512f", "avx512bw", "avx512vl", "avx512_bf16", "avx512_vnni", "neon",
    }  # fmt: skip


def test_features_agree_with_the_kernel():
    try:
        with open("/proc/cpuinfo") as file:
            flags = set(next(line for line in file if line.startswith("flags")).split())
    except (OSError, StopIteration):
        pytest.skip("needs /proc/cpuinfo of an x86 processor")
    assert set(_C.cpu_features()) <= flags
