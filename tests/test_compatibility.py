"""docs/compatibility.md says which names of PyTorch are here; it must say what is so."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import rushlight
from rushlight.core.absent import absent_class, absent_function, is_absent
from tools import compatibility

ROOT = Path(rushlight.__file__).parents[1]


def test_the_page_is_current():
    done = subprocess.run([sys.executable, "tools/compatibility.py", "--check"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_states_of_names():
    class Module:
        @staticmethod
        def takes_all(a, *, b=1):
            return a, b

        raises = absent_function("torch.raises")
        refuses = absent_class("torch.refuses")

    assert compatibility.state_of(Module, "takes_all", "function (a, b)") == (compatibility.HERE, [])
    assert compatibility.state_of(Module, "takes_all", "function (a, b, c)") == (compatibility.PARTLY, ["c"])
    for name in ("raises", "refuses"):
        assert compatibility.state_of(Module, name, "function") == (compatibility.RAISES, [])
    assert compatibility.state_of(Module, "nothing", "function") == (compatibility.ABSENT, [])
    assert not is_absent(rushlight.add) and not is_absent(rushlight.nn.Linear)


@pytest.mark.oracle
def test_the_list_is_of_the_oracle():
    """The names that the page counts are those of the version of PyTorch that the tests compare with."""
    torch = pytest.importorskip("torch")
    names = json.loads((ROOT / "tools" / "torch_names.json").read_text())
    assert set(names["torch.fft"]) == set(torch.fft.__all__)
    assert "Linear" in names["torch.nn"] and "matmul" in names["torch"] and "add_" in names["torch.Tensor"]
