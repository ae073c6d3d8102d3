"""A short part of `python -m tests.fuzz_files`: hostile GGUF files and safetensors, in a process with a limit of memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(("kind", "trials"), [("gguf", 250), ("safetensors", 250)])
def test_hostile_files(kind, trials):
    command = [sys.executable, "-m", "tests.fuzz_files", "--kind", kind, "--trials", str(trials)]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
    assert done.stdout.endswith(f"{trials} of {kind}: 0 findings\n")
