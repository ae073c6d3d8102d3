"""`rushlight launch`: its options, what it starts, and what it shows."""

from __future__ import annotations

import io
import os
import subprocess
import sys

import pytest

from rushlight.distributed.launcher import command, options, start_rank
from rushlight.distributed.launcher.output import Relay
from tests.distributed.ranks import ROOT, launch, needs_mpi


def test_options_of_torchrun_are_taken():
    words = "--nproc_per_node=2 --standalone --nnodes 1:1 --rdzv-endpoint host:123 train.py --lr 1"
    found = options.parse(words.split())
    assert (found.ranks, found.machines, found.master) == (2, 1, ("host", "123"))
    assert found.program == ("train.py", "--lr", "1") and found.kind == "script"
    assert options.parse(["-n", "3", "-m", "package.train"]).kind == "module"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--max-restarts", "3", "x.py"], "not started again"),
        (["--node-rank", "1", "x.py"], "--hosts"),
        (["--nproc-per-node", "gpu", "x.py"], "work on CPUs"),
        (["--nnodes", "1:4", "x.py"], "cannot change"),
        (["--standalone", "--nnodes", "2", "x.py"], "one machine"),
        (["-n", "0", "x.py"], "positive"),
        (["-m", "--no-python", "x"], "exclude"),
        (["--no-such-option", "x.py"], "unrecognized"),
    ],
)
def test_options_without_meaning_are_refused(words, said, capsys):
    with pytest.raises(SystemExit):
        options.parse(words)
    assert said in capsys.readouterr().err


def test_ranks_share_the_cores():
    assert [start_rank.share([0, 1, 2, 3, 4], place, 2) for place in range(2)] == [[0, 1], [2, 3]]
    assert [start_rank.share([0, 1], place, 3) for place in range(3)] == [[0], [1], [0]]


def test_threads_are_cores_by_ranks(monkeypatch):
    monkeypatch.setattr(command, "cores", lambda: 8)
    assert command.threads_of(options.parse(["-n", "3", "x.py"])) == 2
    assert command.threads_of(options.parse(["-n", "16", "x.py"])) == 1
    assert command.threads_of(options.parse(["-n", "3", "--threads", "5", "x.py"])) == 5


@pytest.mark.parametrize(
    ("reported", "said", "status"),
    [
        ("42 signal 9", "rank 1 (process 42) was killed by SIGKILL", 137),
        ("42 exit 7", "rank 1 (process 42) ended with exit code 7", 7),
        ("42 exit 0", "words of mpirun", 1),
    ],
)
def test_first_failure_is_the_cause(reported, said, status):
    relay, shown = Relay(None), io.StringIO()
    lines = f"[job,1]<stderr>: a line\nwords of mpirun\n[job,1]<stderr>: {start_rank.REPORT} {reported}\n"
    relay.copy(io.StringIO(lines + "[job,0]<stderr>: "), shown)
    if "exit 0" not in reported:
        relay.copy(io.StringIO(f"[job,0]<stderr>: {start_rank.REPORT} 43 signal 15\n"), shown)
    assert shown.getvalue() == "[rank 1] a line\n" and said in relay.cause(1) and relay.status(1) == status


@needs_mpi
def test_output_variables_and_exit_code(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import os, sys, torch\n"
        "names = ('RANK', 'WORLD_SIZE', 'LOCAL_RANK', 'LOCAL_WORLD_SIZE', 'MASTER_ADDR', 'MASTER_PORT')\n"
        "print([os.environ[name] for name in names], torch.get_num_threads(), sys.argv[1:])\n"
        "sys.exit(5 * int(os.environ['RANK']))\n"
    )
    done = launch(2, str(program), "--word", options=("--threads", "1", "--master-port", "123", "--log-dir", str(tmp_path)))
    line = "['1', '2', '1', '2', '127.0.0.1', '123'] 1 ['--word']\n"
    assert done.returncode == 5 and f"[rank 1] {line}" in done.stdout
    assert "ended with exit code 5; all other ranks were ended" in done.stderr
    assert (tmp_path / "rank_1.log").read_text() == line
    assert launch(1, str(tmp_path / "nothing.py")).returncode == 2


@needs_mpi
def test_mpirun_itself_starts_ranks(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import os, torch, torch.distributed as dist\ndist.init_process_group()\nx = torch.ones(2)\ndist.all_reduce(x)\n"
        "os.write(1, f'{os.environ[\"RANK\"]} {x.tolist()}\\n'.encode())\n"
    )
    mpirun = [command.find_mpirun(None), "-n", "2", "--map-by", ":OVERSUBSCRIBE", "--bind-to", "none"]
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMP_NUM_THREADS": "1"}
    line = [*mpirun, sys.executable, "-m", "rushlight", "exec", str(program)]
    done = subprocess.run(line, cwd=ROOT, env={**os.environ, **root}, capture_output=True, text=True, timeout=60)
    assert sorted(done.stdout.splitlines()) == ["0 [2.0, 2.0]", "1 [2.0, 2.0]"], done.stderr
