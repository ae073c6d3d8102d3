"""Every program of `programs/` scripted here and by torch: equal results, errors and graphs."""

from __future__ import annotations

import pytest

import rushlight
from tests.jit import differential

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]
PROGRAMS = differential.programs()
# Programs whose graphs are other than torch's, with the same results: `len` and `in` of containers of modules are known when they
# are compiled, some functions are operators here and Python there, and torch prints bytes beyond ASCII wrongly.
OTHER_GRAPHS = frozenset((differential.FOLDER / "other_graphs.txt").read_text().split())


@pytest.fixture(scope="module")
def modules(tmp_path_factory):
    folder = tmp_path_factory.mktemp("programs")
    return {
        (path.stem, library.__name__): differential.load(path, library.__name__, folder)
        for path in differential.FOLDER.glob("*.py")
        for library in (rushlight, torch)
    }


@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_program(program, modules):
    our_graph, ours = differential.outcomes(modules[program.file, "rushlight"], program, rushlight)
    their_graph, theirs = differential.outcomes(modules[program.file, "torch"], program, torch)
    if their_graph is None:  # the language here is a little larger, except where a program must be refused
        assert our_graph is None or program.file != "errors", f"torch refuses this: {theirs}"
        return
    assert program.file != "errors", "torch takes this"
    assert len(ours) == len(theirs), (ours, theirs)
    for call, mine, other in zip(program.calls, ours, theirs, strict=False):
        assert differential.same(mine, other), f"{call}:\n{mine}\n{other}"
    assert (our_graph == their_graph) is (str(program) not in OTHER_GRAPHS), f"{our_graph}\n{their_graph}"
