"""The explorer where PyTorch is imported, too."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.oracle


def test_a_block_is_recorded(tmp_path):
    program = """
import torch as theirs
import rushlight as torch
import rushlight.explorer.commands
from rushlight.explorer.recorder import Recorder

recorder = Recorder()
recorder.start()
torch.compile(lambda x: x + 1)(torch.ones(2))
recorder.stop()
print(len(recorder.as_dict("title", "command")["units"]), theirs.ones(2).sum().item())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, cwd=tmp_path)
    assert done.stdout == "1 2.0\n", done.stderr
