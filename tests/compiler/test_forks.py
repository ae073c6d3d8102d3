"""Processes that fork: the child runs compiled code and compiles, whatever the parent's threads were doing."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys

import pytest

from rushlight.utils.native import cache

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def run(program: str) -> None:
    environment = {**os.environ, "OMP_NUM_THREADS": "2"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_compiled_code_runs_in_a_child():
    """The threads of an OpenMP pool do not survive a fork."""
    run("""
import os, rushlight as torch
x = torch.ones(1 << 20)
double, triple = torch.compile(lambda x: (x * 2).sum()), torch.compile(lambda x: (x * 3).sum())
assert double(x).item() == 1 << 21
child = os.fork()
if child == 0:
    os._exit(0 if double(x).item() == 1 << 21 and triple(x).item() == 3 << 20 else 1)
assert os.waitpid(child, 0)[1] == 0
assert double(x).item() == 1 << 21
""")


def test_a_child_compiles_though_a_thread_of_its_parent_was_compiling():
    run("""
import gc, os, threading, rushlight as torch
x, begun, end = torch.ones(3), threading.Event(), threading.Event()
def backend(module, inputs):
    begun.set()
    end.wait()
    return module.forward
thread = threading.Thread(target=torch.compile(lambda x: x + 1, backend=backend), args=(x,))
thread.start()
begun.wait()
assert not gc.isenabled()
child = os.fork()
if child == 0:
    os._exit(0 if torch.compile(lambda x: x * 2, backend="eager")(x).tolist() == [2, 2, 2] and gc.isenabled() else 1)
end.set()
thread.join()
assert os.waitpid(child, 0)[1] == 0 and gc.isenabled()
""")


def test_a_child_does_not_keep_others_from_building(tmp_path):
    """A forked process has what its parent had open, and a lock stays with that unless it is given back."""
    with cache._lock_entry(tmp_path, "ab"):
        ready, done = os.pipe(), os.pipe()
        child = os.fork()
        if child == 0:
            os.write(ready[1], b"x")
            os.read(done[0], 1)
            os._exit(0)
        os.read(ready[0], 1)
    with open(tmp_path / ".lock-ab", "wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.write(done[1], b"x")
    assert os.waitpid(child, 0)[1] == 0
    for descriptor in (*ready, *done):
        os.close(descriptor)
