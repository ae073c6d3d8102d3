"""Tests of the device: on a GPU if there is one, else on the stand-in, whose kernels Triton interprets. Skipped without Triton."""

import gc
import importlib.util
import os

import pytest

from rushlight.cuda import driver, libcuda, runtime, stand_in

if importlib.util.find_spec("triton") is None:
    collect_ignore_glob = ["test_*.py"]
HAS_GPU = importlib.util.find_spec("triton") is not None and libcuda.find() is not None
if not HAS_GPU:
    os.environ.setdefault("TRITON_INTERPRET", "1")


@pytest.fixture(scope="module", autouse=True)
def gpu():
    """Use a GPU for these tests, and none for other folders' tests that run later."""
    if not HAS_GPU:
        driver.use_driver(stand_in.StandIn())
    yield driver.active_driver()
    if not HAS_GPU:
        gc.collect()
        driver.use_driver(driver.NoDriver())
        runtime.forget_devices()


@pytest.fixture
def standin(gpu):
    """The stand-in, for tests that read its log or its memory."""
    if HAS_GPU:
        pytest.skip("needs the stand-in for a GPU")
    gc.collect()
    gpu.wait_for_device()
    gpu.log.clear()
    return gpu
