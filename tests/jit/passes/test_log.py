"""What passes print about themselves, and how many changes they may make."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys

import pytest

from rushlight.jit.ir.parser import parse_ir
from rushlight.jit.passes.pass_log import LogSettings, set_logging_option
from rushlight.jit.passes.run import run_pass

TEXT = """
graph(%x : Tensor):
  %a : Tensor = aten::relu(%x)
  %b : Tensor = aten::neg(%x)
  %c : Tensor = aten::neg(%x)
  return (%c)
"""


@pytest.fixture
def logged():
    """Runs dead code elimination with a level and limits; what it printed, and how many nodes it left."""

    def run(levels: str, limits: str = "") -> tuple[str, int]:
        stream = io.StringIO()
        set_logging_option(levels, limits, stream)
        graph = parse_ir(TEXT)
        run_pass("_jit_pass_dce", graph)
        return stream.getvalue(), len(list(graph.nodes))

    yield run
    set_logging_option("")


def test_a_name_prints_the_graphs_before_and_after(logged):
    text, _ = logged("dead_code_elimination")
    lines = text.splitlines()
    assert all(re.match(r"\[DUMP dead_code_elimination\.py:\d+\] ", line) for line in lines)
    assert "[DUMP" in lines[0] and "Before EliminateDeadCode" in lines[0]
    assert text.count("aten::relu") == 1 and text.count("aten::neg") == 3


def test_one_arrow_prints_changes_too(logged):
    text, _ = logged(">dead_code_elimination:other")
    assert re.search(r"\[UPDATE dead_code_elimination\.py:\d+\] aten::relu is dead and is removed", text)


def test_other_passes_are_silent(logged):
    assert logged("peephole")[0] == ""


def test_a_limit_stops_changes(logged):
    assert logged("")[1] == 1
    assert logged("", "dead_code_elimination=1")[1] == 2
    assert logged("", "dead_code_elimination=0:peephole=7")[1] == 3


def test_a_limit_must_be_a_count():
    with pytest.raises(ValueError, match="holds 'peephole'; a limit is a pass and a count"):
        LogSettings("", "peephole")


@pytest.mark.parametrize("prefix", ["RUSHLIGHT", "PYTORCH"])
def test_the_environment_sets_levels(prefix):
    program = (
        "from rushlight.jit.ir.parser import parse_ir\nfrom rushlight.jit.passes.run import run_pass\n"
        f"run_pass('_jit_pass_dce', parse_ir('''{TEXT}'''))"
    )
    environment = {**os.environ, f"{prefix}_JIT_LOG_LEVEL": ">>dead_code_elimination"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert "[UPDATE dead_code_elimination.py:" in done.stderr
