"""RUSHLIGHT_LOGS and RUSHLIGHT_DUMP, seen from outside the process."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

import rushlight as torch

PROGRAM = """
import rushlight as torch

def attend(x, w):
    scores = x @ w
    return torch.poisson(scores.softmax(-1)).relu()

compiled = torch.compile(attend)
with torch.no_grad():
    compiled(torch.ones(4, 8), torch.ones(8, 16))
    compiled(torch.ones(2, 8), torch.ones(8, 16))
"""


@pytest.fixture
def run(tmp_path):
    """Run the program in a process with some variables; gives its standard error."""
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)

    def start(**variables: str) -> str:
        environment = {**os.environ, **variables}
        done = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, timeout=120)
        assert done.returncode == variables.get("EXPECTED", 0), done.stderr
        return done.stderr

    return start


def test_nothing_is_printed_unasked(run):
    assert run() == ""


def test_logs_print_the_stages_that_they_name(run):
    text = run(RUSHLIGHT_LOGS="graph,fusion,recompiles,graph_breaks")
    assert "--- graph: attend ---" in text and 'torch.ops.aten.mm.default' in text
    assert "program.py:5 in attend: scores = x @ w" in text or "program.py:5" in text
    assert "attend" in text and "is captured again" in text and "size=[4, 8]" in text and "found a tensor of shape [2, 8]" in text
    assert "run as eager kernels" in text and "poisson" in text
    assert "group 0: template gemm" in text and "#include" not in text


def test_the_code_and_the_loops_name_the_users_lines(run):
    text = run(RUSHLIGHT_LOGS="code,loops")
    assert "rushlight_entry" in text and "// " in text and "program.py:6 in attend" in text
    assert "ops.load(" in text and "reduction_type=sum" in text


def test_an_unknown_log_is_an_error(run):
    done = subprocess.run([sys.executable, "-c", "import rushlight as t; t.compile(abs)"], capture_output=True, text=True,
                          env={**os.environ, "RUSHLIGHT_LOGS": "graph,tea"})  # fmt: skip
    assert done.returncode and "no logs are named tea; logs are" in done.stderr


def test_dump_writes_every_stage_as_numbered_files(run, tmp_path):
    folder = tmp_path / "dump"
    run(RUSHLIGHT_DUMP=str(folder))
    assert [path.name for path in sorted(folder.iterdir())] == ["000_attend", "001_attend"]
    stages = [path.name.partition("_")[2] for path in sorted((folder / "000_attend").iterdir())]
    assert stages[:2] == ["captured.py", "passes.py"] and "graph_breaks.txt" in stages
    first = stages.index("loops.txt")
    assert stages[first : first + 5] == ["loops.txt", "fusion.txt", "memory.txt", "code.cpp", "library.txt"]
    assert stages[-2:] == ["guards.py", "bytecode.py"]
    code = next((folder / "000_attend").glob("*code.cpp")).read_text()
    assert 'extern "C" int rushlight_entry(void** buffers)' in code
    graph = next((folder / "000_attend").glob("*graph.py")).read_text()
    assert "scores = x @ w" in graph


def test_the_bytecode_log_has_the_text_and_its_instructions(run):
    text = run(RUSHLIGHT_LOGS="bytecode,guards")
    assert "def attend(x, w, __globals, __closure):" in text and re.search(r"__results = __compiled_fn_\d+\(x, w\)", text)
    assert any(line.startswith("# ") and "LOAD_GLOBAL" in line and "__compiled_fn_" in line for line in text.splitlines())
    assert "def guard(x, w, __globals, __closure):" in text and "(4, 8)" in text


def test_a_folder_that_cannot_be_written_to(tmp_path):
    """The program goes on, and is told."""
    (tmp_path / "file").write_text("")
    compiled = torch.compile(lambda x: x + 1, options={"dump": str(tmp_path / "file" / "dump")})
    with pytest.warns(UserWarning, match="not written to RUSHLIGHT_DUMP, because .*Not a directory"):
        assert compiled(torch.ones(2)).tolist() == [2, 2]


def test_a_capture_that_cannot_leave_sizes_open_says_why(capfd):
    def broken(module, inputs):
        if "[s0]" in module.print_readable(print_output=False):
            raise LookupError("open sizes are unknown here")
        return module.forward

    compiled = torch.compile(lambda x: x * 2, backend=broken, dynamic=True, options={"logs": {"recompiles"}})
    assert compiled(torch.ones(3)).tolist() == [2, 2, 2]
    text = capfd.readouterr().err
    assert "is captured with fixed sizes" in text and "LookupError: open sizes are unknown here" in text
