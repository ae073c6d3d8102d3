"""Compilers get flags that keep them from making wrong code of rushlight/*.h."""

from __future__ import annotations

import ctypes
import platform
import shutil
import subprocess

import numpy as np
import pytest

from tests.inductor.native.native_build import FLAGS, INCLUDE

OF_FIVE_TAPS = """
#include <rushlight/depthwise.h>
#include <stdlib.h>
#include <string.h>
extern "C" __attribute__((visibility("default"))) void to_weight(const float* ones, long channels, float* out) {
  const rl::conv_shape shape = {1, channels, 1, 9, channels, 1, 5, 1, 1, 0, 0, 1, 1, channels};
  const rl::image_strides of_image = {9 * channels, 1, 9 * channels, channels};
  void* memory = aligned_alloc(64, (rl::depthwise_weight_scratch_bytes(shape, 1) + 63) / 64 * 64);
  rl::channelwise_weight_gradient(ones, of_image, ones, of_image, shape, memory,
                                  rl::epilogue_of([=](auto lane, long c, long tap, auto value) {
                                    lane.store(out + c * 5 + tap, value);
                                  }));
  free(memory);
}
"""


@pytest.mark.skipif(platform.machine() != "x86_64" or not shutil.which("g++"), reason="compiles by g++ for x86-64")
@pytest.mark.parametrize("processor", ["generic", "haswell", "skylake", "icelake-server", "znver2"])
def test_conditional_moves_read_the_flags_of_their_comparison(processor, tmp_path):
    """See CONDITIONAL_MOVE_WORKAROUND: without it, GCC 12.2 chose the loop for one tap where two are left, for the third and fourth of these."""
    library = tmp_path / "taps.so"
    flags = [*FLAGS.split(), "-fvisibility=hidden", f"-mtune={processor}", f"-I{INCLUDE}"]
    command = ["g++", *flags, "-x", "c++", "-", "-o", str(library)]
    subprocess.run(command, input=OF_FIVE_TAPS, text=True, check=True)
    out = np.zeros((40, 5), np.float32)
    ones = np.ones((9, 40), np.float32)
    ctypes.CDLL(str(library)).to_weight(ctypes.c_void_p(ones.ctypes.data), ctypes.c_long(40), ctypes.c_void_p(out.ctypes.data))
    assert (out == 5).all()
