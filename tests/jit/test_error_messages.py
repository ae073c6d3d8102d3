"""Errors of scripted programs: the calls that led to them, and what scripts must not say."""

from __future__ import annotations

import pickle
import warnings
from typing import Any, NamedTuple  # noqa: UP035

import pytest

import rushlight as torch
from rushlight import nn

SCRIPTS = {
    "call a value": ("def f(x):\n  return x(3)", "cannot call a value: 'Tensor'"),
    "method as value": ("def f(x):\n  return x.relu", "builtin cannot be used as a value"),
    "unpack a tensor": ("def f(x):\n  a, *b = x\n  return a", "cannot be used as a tuple"),
    "too few values": ("def f(x: Tuple[int, int]):\n  a, b, c = x\n  return a", "need 3 values to unpack but found only 2"),
    "lone star": ("def f(x: Tuple[int, int]):\n  *a, = x\n  return a", "A Starred expression may only appear"),
    "star in a loop": ("def f():\n  for *a in [1, 2]:\n    pass", "A Starred expression may only appear"),
    "deleted": ("def f(x):\n  del x\n  return x", "undefined value x"),
    "delete a slice": ("def f(x: List[int]):\n  del x[1:2]", "deletion at a single index"),
    "float index": ("def f(x: Tuple[int, int]):\n  return x[0.5]", "must be an integer"),
    "mixed tuple": ("def f(i: int):\n  t = (1, 1.5)\n  return t[i]", "cannot resolve the output type"),
    "set a tuple": ("def f(x: Tuple[int, int]):\n  x[0] = 1", "subscripted assignment"),
    "change a tuple": ("def f(x: Tuple[int, int]):\n  x[0] += 1", "does not support augmented assign"),
    "two targets": ("def f(x):\n  a, b += x", "augmented assignment can only have one LHS expression"),
    "assign a sum": ("def f(x):\n  x + 1 = x", "unexpected expression on left-hand side"),
    "open string": ('def f(x):\n  print("\n  a")', "expected a valid token"),
    "range": ("def f():\n  for i in range():\n    pass", "range expected at least 1 arguments, got 0"),
    "enumerate": ("def f():\n  for i in enumerate():\n    pass", "enumerate expected at least 1 arguments, got 0"),
    "tuple": ("def f():\n  return tuple(1, 2)", "at most 1 argument, got 2"),
    "list annotation": ("def f():\n  b: int = [2]", "Expected an annotation of type List"),
    "union annotation": ("def f():\n  b: Union[int, str] = {}", "Expected an Union type annotation with an inner Dict"),
    "annotated twice": ("def f(x: int):\n  if x > 1:\n    x: int = 2\n  return x", "already defined in an outer block"),
    "keyword": ("def f():\n  return torch.ones([2], requires_grad=True)", "Keyword argument requires_grad unknown"),
    "tolist": ("def f(x):\n  y: List[str] = x.tolist()\n  return y", "str is not one of the supported element types"),
    "module member": ("def f(x):\n  return torch.absent(x)", "object has no attribute absent"),
    "slice": ("def f(x: List[int]):\n  return x[slice(1, stop=2)]", "does not accept any keyword arguments"),
    "getitem": ("def f(x):\n  return x.__getitem__()", "expected exactly 1 argument"),
    "hasattr": ("def f(x: Tuple[int, int]):\n  return hasattr(x, 'a')", "got a normal Tuple"),
    "untyped tuple": ("def f(x: Any):\n  if isinstance(x, tuple):\n    a, b = x", "not fully defined/refined"),
    "future": ("def f(x: Future):\n  return x", "Future without a contained type"),
    "inferred": ("def f(x, n):\n  return x.sum(n, keepdim=1)", "Inferred the value for argument 'dim' to be of type 'Tensor'"),
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_refused_scripts(name):
    script, message = SCRIPTS[name]
    with pytest.raises(RuntimeError, match=message):
        torch.jit.CompilationUnit(script)


RUNS = {
    "range step": ("def f(n: int):\n  for i in range(0, 9, n):\n    n += i\n  return n", 0, "must not be zero"),
    "divmod": ("def f(a: float):\n  return divmod(1., a)", 0.0, r"float divmod\(\)"),
    "bool": ("def f(x):\n  if x:\n    return 1\n  return 2", torch.ones(2), "Boolean value of Tensor with more than one value"),
    "few": ("def f(a: str):\n  return '%s %s' % a", "x", "Too few arguments for format string"),
    "many": ("def f(a: str):\n  return '%s' % (a, a)", "x", "Too many arguments for format string"),
    "number": ("def f(a: str):\n  return '%d' % a", "x", "%d requires a number for formatting, but got String"),
    "char": ("def f(a: str):\n  return '%c' % a", "xy", "%c requires an int or char for formatting, but got String"),
    "specifier": ("def f(a: str):\n  return '%a' % a", "x", "The specifier %a is not supported"),
    "incomplete": ("def f(a: str):\n  return '%s %' % a", "x", "Incomplete format specifier"),
    "sort": ("def f(x: List[Any]):\n  x.sort()", [(1, 2), ("a", "b")], "Only values of same type can be compared"),
    "sort dicts": ("def f(x: List[Tuple[Dict[int, int], int]]):\n  x.sort()", [({1: 2}, 1), ({1: 2}, 2)], "are not sortable"),
    "index": ("def f(x: List[Tensor]):\n  return x.index(torch.ones(1))", [torch.zeros(1)], "is not in list"),
    "union": ("def f(x: Union[int, str]):\n  return x", ["a"], r"Expected a member of Union\[int, str\] .* List\[str\]"),
    "inferred": ("def f(x):\n  return x", "a", "Inferred 'x' to be of type 'Tensor'"),
}


@pytest.mark.parametrize("name", RUNS)
def test_errors_of_runs(name):
    script, argument, message = RUNS[name]
    with pytest.raises(RuntimeError, match=message):
        torch.jit.CompilationUnit(script).f(argument)


def innermost(x):
    return torch.absent(x)


def inner(x):
    return innermost(x)


class Caller(nn.Module):
    def forward(self, x):
        return inner(x)


def test_compilation_errors_show_the_calls():
    with pytest.raises(RuntimeError) as error:
        torch.jit.script(Caller())
    lines = [line for line in str(error.value).splitlines() if "is being compiled" in line]
    assert lines == [
        "'innermost' is being compiled since it was called from 'inner'",
        "'inner' is being compiled since it was called from 'Caller.forward'",
    ]


def add(x, y):
    return x + y


def add_twice(x, y):
    return add(x, y) + y


def test_run_time_errors_show_the_calls():
    with pytest.raises(RuntimeError) as error:
        torch.jit.script(add_twice)(torch.ones(2), torch.ones(3))
    message = str(error.value)
    assert message.index("in add_twice") < message.index("return add(x, y)") < message.index("in add\n") < message.index("x + y\n")


class Plain:
    def __init__(self):
        self.n = 1


class Unentered:
    def __init__(self):
        self.n = 1

    def __enter__(self, extra: int) -> int:
        return extra

    def __exit__(self, a: Any, b: Any, c: Any) -> None:
        pass


class Point(NamedTuple):
    x: int
    y: torch.Tensor


def test_refused_objects():
    def delete():
        value = Plain()
        del value[1]

    def change():
        value = Plain()
        value += Plain()

    def enter():
        with Unentered():
            pass

    def point():
        return Point("a", torch.ones(1))

    def default(x: tuple[int, list[int]] = (1, [])):  # noqa: B006
        return x

    cases = {
        delete: "Class does not define __delitem__", change: "Cannot emit inplace op", enter: "__enter__ must have only one",
        point: "Expected a value of type 'int' for argument 'x'", default: "Mutable default parameters",
    }  # fmt: skip
    for function, message in cases.items():
        with pytest.raises(RuntimeError, match=message):
            torch.jit.script(function)


class Listed(nn.Module):
    def __init__(self):
        super().__init__()
        self.known: dict[str, int] = {}
        self.layers = nn.ModuleList([nn.ReLU()])

    def forward(self, known: dict[str, int]):
        self.known = known
        return self.layers[-3]


def test_refused_modules():
    with pytest.raises(RuntimeError, match="Tried to set nonexistent attribute: known"):
        torch.jit.script(Listed())

    class Far(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([nn.ReLU()])

        def forward(self, x):
            return self.layers[-3](x)

    with pytest.raises(RuntimeError, match="Index -3 out of range"):
        torch.jit.script(Far())

    def hook(self, input: tuple[str, str], output: torch.Tensor):
        return output

    hooked = Caller()
    hooked.register_forward_hook(hook)
    hooked.forward = None
    relu = nn.Sequential(nn.ReLU())
    relu[0].register_forward_hook(hook)
    with pytest.raises(RuntimeError, match="wrong number of contained types"):
        torch.jit.script(relu[0])
    scripted = torch.jit.script(nn.ReLU())
    with pytest.raises(RuntimeError, match="Cannot call a ScriptModule that is not a submodule"):
        torch.jit.script(lambda_free(scripted))


def lambda_free(scripted):
    def call(x):
        return scripted(x)

    return call


def test_functions_left_to_python_return_what_they_promise():
    @torch.jit.ignore
    def pair(x):
        return x, x

    @torch.jit.ignore
    def nothing(x):
        pass

    def wrong(x):
        return pair(x)

    def dropped(x):
        nothing(x)
        return x

    with pytest.raises(RuntimeError, match="instead got value of type tuple"):
        torch.jit.script(wrong)(torch.ones(1))
    assert torch.jit.script(dropped)(torch.ones(1)).item() == 1


def test_scripted_functions_cannot_be_pickled():
    with pytest.raises(pickle.PickleError, match="cannot be pickled"), warnings.catch_warnings():
        pickle.dumps(torch.jit.script(add))


