"""Products of panels stored in every type, and by words, on this machine's instruction sets and, emulated, on NEON."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from tests.inductor.native.native_build import TARGETS, available, built

EMULATED = ("aarch64-linux-gnu-g++", "qemu-aarch64-static")


# Beside the targets: the native one without tile registers.
FLAGS = {**TARGETS, "untiled": [*TARGETS["native"], "-DRL_NO_TILES"]}


@pytest.mark.parametrize("target", [*FLAGS, "neon"])
def test_products_of_every_storage_type_are_exact(target, session_cache):
    if target == "neon" and not all(map(shutil.which, EMULATED)):
        pytest.skip("there is no cross compiler or no emulator for aarch64")
    if target != "neon" and not available(target):
        pytest.skip(f"target {target!r} cannot be built or run here, or is what 'native' is")
    compiler, *flags = [EMULATED[0], "-static"] if target == "neon" else ["g++", *FLAGS[target]]
    program = built("storage.cpp", compiler, ["-std=c++17", "-O1", "-Wall", "-Wno-psabi", "-Wno-unknown-pragmas", *flags])
    run = subprocess.run([EMULATED[1], str(program)] if target == "neon" else [str(program)], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stdout.split() == ["float", "0", "bfloat16", "0", "half", "0", "int8", "0", "bytes", "0", "pairs", "0"]
