"""A rank that dies, hangs, leaves or calls something else: the others end soon, name it and the collective, and none stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.distributed.ranks import ROOT, launch, needs_mpi

pytestmark = needs_mpi
FAULTY = str(Path(__file__).parent / "faulty.py")
WAITS = "all_reduce no. 2 of group '0' (float32[3], SUM)"

# What the output must have, and what the launcher says last.
CASES = {
    "kill": (["waits in {w}", "rank 1: its process ("], "rank 1 (process"),
    "raise": (["rank 1 of 2 raised an error", "ValueError: something is wrong"], "rank 1 (process"),
    "leave": (["rank 0 waits in {w}", "rank 1 has left the program"], "rank 0 (process"),
    "stop": (["rank 0 waited 1 s in {w}, which timed out", "rank 1 does not answer"], "rank 0 (process"),
    "sleep": (["rank 1 is not waiting in an operation; the last it began was all_reduce no. 1", "in misbehave"], "ended"),
    "other": (["broadcast no. 2 of group '0' (float32[3], from rank 0)", WAITS], "ended with exit code 1"),
    "monitored": (["Rank 1 failed to pass monitoredBarrier in 1000 ms"], "rank 0 (process"),
}


def processes_of(program: str) -> list[str]:
    """Return the processes that run a program."""
    found = subprocess.run(["pgrep", "-f", program], capture_output=True, text=True).stdout.split()
    return [pid for pid in found if int(pid) != os.getpid()]


@pytest.mark.parametrize("kind", CASES)
def test_fault_is_named_and_no_process_stays(kind, tmp_path):
    program = tmp_path / "faulty_program.py"  # a name of its own, by which its processes are found
    program.write_text(Path(FAULTY).read_text())
    start = time.monotonic()
    done = launch(2, str(program), kind)
    assert done.returncode != 0 and time.monotonic() - start < 30
    said, last = CASES[kind]
    for text in said:
        # A rank that mpirun ends before it has noticed says what it was waiting in.
        alternatives = (text.format(w=WAITS), f"was terminated while it waited in {WAITS}; gone before: rank 1")
        assert any(each in done.stderr for each in alternatives[: 2 if kind == "kill" else 1]), done.stderr
    assert last in done.stderr.strip().splitlines()[-1]
    assert not processes_of(str(program))


def test_mismatch_is_named_before_the_collective():
    done = launch(3, FAULTY, "shape", TORCH_DISTRIBUTED_DEBUG="DETAIL")
    assert done.returncode == 1
    assert "rank 1: all_reduce no. 2 of group '0' (float32[4], SUM)" in done.stderr
    assert "ranks 0, 2: all_reduce no. 2 of group '0' (float32[3], SUM)" in done.stderr


def test_interrupt_leaves_no_process(tmp_path):
    program = tmp_path / "sleeping_program.py"
    program.write_text("import time\nprint('here', flush=True)\ntime.sleep(600)\n")
    command = [sys.executable, "-m", "rushlight", "launch", "-n", "2", str(program)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert "here" in process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130 and "interrupted" in errors
    assert not processes_of(str(program))


def test_killed_launcher_leaves_no_process(tmp_path):
    program = tmp_path / "sleeping_program.py"
    program.write_text("import time\nprint('here', flush=True)\ntime.sleep(600)\n")
    command = [sys.executable, "-m", "rushlight", "launch", "-n", "2", str(program)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert "here" in process.stdout.readline()
    process.kill()
    process.communicate(timeout=30)
    end = time.monotonic() + 20
    while processes_of(str(program)) and time.monotonic() < end:
        time.sleep(0.1)
    assert not processes_of(str(program))
