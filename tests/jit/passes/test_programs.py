"""Every pass on the graphs of all programs in `tests/jit/programs`: the graph holds together, prints and parses, and computes the
same."""

from __future__ import annotations

import contextlib
import io

import pytest

import rushlight
from rushlight.jit.function import Function
from rushlight.jit.ir import Graph
from rushlight.jit.ir.lint import lint
from rushlight.jit.ir.parser import parse_ir
from rushlight.jit.passes.inline import inline
from rushlight.jit.passes.run import run_pass
from rushlight.jit.runtime.executor import run_function
from rushlight.jit.script_function import ScriptFunction, bind_arguments
from tests.jit import differential

PASSES = ("Inline", "EliminateDeadCode", "EliminateDeadCodeKeepingWrites", "ConstantPropagation",
          "ConstantPropagationImmutableTypes", "ConstantPooling", "EliminateCommonSubexpression", "PeepholeOptimize",
          "PeepholeOptimizeListIdioms", "LowerSimpleTuples", "UnrollLoops", "UnrollConstantLoops", "RemoveListMutation",
          "RemoveTensorMutation", "NormalizeOps", "CanonicalizeOps", "CanonicalizeModifiedLoops", "DecomposeOps", "RemoveExpands",
          "InlineForkWait", "FuseLinear", "BatchMM", "CreateAutodiffSubgraphs", "FuseGraph", "FunctionalToInplaceActivation",
          "InplaceToFunctionalActivation", "PropagateInputShapes", "ClearProfilingInformation")  # fmt: skip
PROGRAMS = [program for program in differential.programs() if program.file != "errors"]


@pytest.fixture(scope="module")
def modules(tmp_path_factory):
    folder = tmp_path_factory.mktemp("programs")
    return {path.stem: differential.load(path, "rushlight", folder) for path in differential.FOLDER.glob("*.py")}


def scripted_of(module, program) -> tuple[ScriptFunction, list]:
    """What is scripted, and the arguments that come before a call's: a module's own object."""
    rushlight.manual_seed(0)
    target = getattr(module, program.name)
    if isinstance(target, type):
        made = rushlight.jit.script(target().eval())
        return made._method("forward"), [made._c]
    return rushlight.jit.script(target), []


def outcome(function: Function, schema, first: list, call: str, module) -> tuple:
    """What a call gives, prints and does to its arguments; for an error, that it raises."""
    rushlight.manual_seed(1)
    arguments = eval(call, vars(module))
    printed = io.StringIO()
    try:
        bound = bind_arguments(schema.without_self() if first else schema, arguments, {})
        with contextlib.redirect_stdout(printed):
            result = run_function(function, [*first, *bound])
    except Exception:
        return "raises", printed.getvalue()
    return differential.plain(result, rushlight), differential.plain(arguments, rushlight), printed.getvalue()


def changed(graph: Graph, names: tuple[str, ...]) -> Graph:
    """A copy of a graph after passes, checked after each."""
    made = graph.copy()
    assert str(parse_ir(str(made))) == str(made)
    for name in names:
        run_pass(name, made)
        lint(made)
    assert str(parse_ir(str(made))) == str(made)
    return made


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_passes_keep_what_a_program_does(program, modules):
    module = modules[program.file]
    try:
        scripted, _ = scripted_of(module, program)
    except Exception:
        pytest.skip("is not taken by the compiler; test_programs_oracle.py says whether it should be")
    schema, graph = scripted._function.schema, scripted._function.graph.copy()
    inline(graph)
    plain, function = Function("plain", graph), Function("changed", changed(graph, PASSES))
    for call in program.calls:
        wanted, found = (outcome(each, schema, scripted_of(module, program)[1], call, module) for each in (plain, function))
        assert differential.same(found, wanted) or str(found) == str(wanted), f"{call}\n{found}\n{wanted}"
