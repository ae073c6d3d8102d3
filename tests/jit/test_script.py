"""Scripted functions: their graphs in SSA, and what they give, against the same functions as Python."""

from __future__ import annotations

import copy
import io
import re
from typing import Dict, List, Optional, Union  # noqa: UP035 (scripted code as people write it)

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.jit.errors import ErrorReport, JitException
from rushlight.jit.ir.lint import lint
from rushlight.jit.runtime.executor import executor_of
from rushlight.jit.scripting import script


def pointwise(a, b):
    c = a + b
    d = c * c
    return d + torch.tanh(d * c)


def early_exits(x, n: int):
    y = x
    for i in range(n):
        if i > 2:
            y = y + i
            continue
        if bool(y.sum() > 3):
            return y * 2
    while bool(y.sum() < 3):
        y = y * 2
    return y


def refined(x: Optional[int], items: List[int], s: Union[int, str]):  # noqa: UP006, UP007, UP045
    if x is None:
        return 0
    y = x + 1
    for i, v in enumerate(items):
        y += v * i
    if isinstance(s, int):
        y = y + s
    d: Dict[str, int] = {"a": y}  # noqa: UP006
    d["b"] = 3
    p, q = (1, 2.0)
    assert y > 3, f"bad {y}"
    return y if y > 2 and q > 1.0 or p < 3 else d["a"]


def views(x):
    x[0] = 1
    y = x[1:3, ..., None]
    y += 2
    return y, [q * 2 for q in [1, 2, 3]], x.size(0)


def broken_out(items: List[str]):  # noqa: UP006
    found = ""
    for item in items:
        if item == "stop":
            break
        found = found + item.upper()
    return found


CALLS = [
    (pointwise, (torch.ones(3), torch.ones(3))),
    (early_exits, (torch.ones(3) / 9, 3)),
    (early_exits, (torch.ones(3) * 3, 3)),
    (early_exits, (torch.ones(3) * 0.1, 9)),
    (refined, (None, [1], 2)),
    (refined, (3, [1, 2, 3], 2)),
    (refined, (3, [1, 2, 3], "x")),
    (views, (torch.ones(4, 2),)),
    (broken_out, (["a", "b", "stop", "c"],)),
]


@pytest.mark.parametrize(("function", "args"), CALLS)
def test_scripted_functions_give_what_python_gives(function, args):
    scripted = script(function)
    lint(scripted.graph)
    wanted, found = function(*copy.deepcopy(args)), scripted(*copy.deepcopy(args))
    if isinstance(wanted, str):
        assert found == wanted
    else:
        torch.testing.assert_close(found, wanted)


def test_a_graph_prints_as_torch_prints_it():
    graph = str(script(pointwise).graph)
    lines = [line.partition(" # ")[0] for line in graph.splitlines()]
    numbers = dict(re.findall(r"%(\d+) : \S+ = (aten::\w+|prim::Constant)", graph))
    lines = [re.sub(r"%(\d+)\b(?!\.)", lambda found: f"%{numbers[found[1]]}", line) for line in lines]
    assert lines == [
        "graph(%a.1 : Tensor,",
        "      %b.1 : Tensor):",
        "  %prim::Constant : int = prim::Constant[value=1]()",
        "  %c.1 : Tensor = aten::add(%a.1, %b.1, %prim::Constant)",
        "  %d.1 : Tensor = aten::mul(%c.1, %c.1)",
        "  %aten::mul : Tensor = aten::mul(%d.1, %c.1)",
        "  %aten::tanh : Tensor = aten::tanh(%aten::mul)",
        "  %aten::add : Tensor = aten::add(%d.1, %aten::tanh, %prim::Constant)",
        "  return (%aten::add)",
    ]


def test_code_is_instructions():
    code = str(executor_of(script(pointwise)._function).plan().code)
    assert "LOADC 0 # 1\n" in code
    assert "OPN 0 3 # aten::add\n" in code
    assert code.endswith("RET 0\n")


def test_an_error_shows_the_scripted_line():
    with pytest.raises(JitException, match=r"assert y > 3, f\"bad \{y\}\"\n(.|\n)*AssertionError: bad -7"):
        script(refined)(-9, [1], 1)


def mistyped(x):
    y = x
    if bool(x.sum() > 0):
        y = 3
    return y


def test_a_type_error_marks_the_place():
    with pytest.raises(
        ErrorReport, match="previously had type Tensor but is now being assigned to a value of type int"
    ) as error:
        script(mistyped)
    assert "y = 3\n        ~~~~~ <--- HERE" in str(error.value)


class Block(nn.Module):
    """A layer with a constant, a counter and a buffer."""

    __constants__ = ["scale"]

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 4))
        self.scale = 3
        self.calls: int = 0
        self.register_buffer("shift", torch.zeros(4))

    def forward(self, x):
        self.calls += 1
        return torch.relu(x @ self.weight.t() + self.shift) * self.scale


class Tower(nn.Module):
    """Blocks in a list, and a method that forward calls."""

    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block() for _ in range(3)])

    def doubled(self, x, times: int = 2):
        return x * times

    def forward(self, x, double: bool = True):
        for i, block in enumerate(self.blocks):
            x = block(x) + i
        if double:
            x = self.doubled(x)
        return x, self.training


def test_a_scripted_module_shares_parameters_and_trains():
    module = Tower()
    scripted, x = script(module), torch.randn(2, 4)
    torch.testing.assert_close(scripted(x)[0], module(x)[0])
    assert list(scripted.state_dict()) == list(module.state_dict())
    scripted(x)[0].sum().backward()
    assert module.blocks[0].weight.grad.shape == (4, 4)
    assert scripted(x)[1] is True
    assert scripted.eval()(x)[1] is False


def test_a_class_finds_the_names_of_the_frame_that_scripts_it():
    class Inner:
        def __init__(self, n: int):
            self.n = n

    class Outer:
        def __init__(self, inner: Inner):
            self.inner = inner

        def doubled(self) -> int:
            return self.inner.n * 2

    torch.jit.script(Inner)
    torch.jit.script(Outer)

    def use(n: int):
        return Outer(Inner(n)).doubled()

    assert torch.jit.script(use)(4) == 8


def test_f_strings_with_pairs_of_braces():
    @torch.jit.script
    def text(x: int):
        return f"{{}}{x}", f"{x}{{}}", f"{{{x}: {{}}}}", f"{{{x}}}"

    assert text(1) == ("{}1", "1{}", "{1: {}}", "{1}")


def test_printed_values(capsys):
    @torch.jit.script
    def show(x: float, names: list[str]):
        print(x, [x, 0.1], names, {"a": x}, (1, "b"), 1 + 2j, None, True)

    show(2.0, ["a", "b'c"])
    assert capsys.readouterr().out == "2. [2., 0.10000000000000001] [a, b'c] {a: 2.} (1, b) 1.+2.j None True\n"


def test_dicts_of_pairs_and_keywords():
    @torch.jit.script
    def made():
        return dict([("x", 1), ("y", 0)], y=2, z=3)

    assert made() == {"x": 1, "y": 2, "z": 3}


def test_text_may_be_indented():
    unit = torch.jit.CompilationUnit("""
        def double(x):
            return x + x
    """)
    assert unit.double(torch.ones(2)).tolist() == [2, 2]


def test_operators_take_their_input_by_name():
    @torch.jit.script
    def named(x):
        return torch.ceil(input=x) + torch.add(input=x, other=x, alpha=2)

    assert named(torch.tensor([1.5])).tolist() == [6.5]


class Members(torch.nn.Module):
    def __init__(this):
        super().__init__()
        this.first = torch.nn.Linear(2, 2)
        this.pair = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Tanh())
        this.register_buffer("shift", torch.ones(2))

    def forward(this, x):
        names = ""
        for name, _child in this.named_children():
            names = names + name + " "
        for name, _module in this.named_modules():
            names = names + name + "; "
        count = 0
        for _module in this.modules():
            count += 1
        for child in this.pair.children():
            x = child(x)
        for name, buffer in this.named_buffers():
            names = names + name
            x = x + buffer
        return x, names, count


def test_members_of_modules_whatever_self_is_called():
    x, names, count = torch.jit.script(Members())(torch.zeros(2))
    assert x.tolist() == [1, 1] and names == "first pair ; first; pair; pair.0; pair.1; shift" and count == 5


def test_load_of_an_archive_goes_to_jit(tmp_path):
    file = tmp_path / "members.pt"
    torch.jit.save(torch.jit.script(Members()), file)
    with pytest.raises(RuntimeError, match="or pass weights_only=False"):
        torch.load(file)
    with pytest.warns(UserWarning, match=r"dispatching to 'torch\.jit\.load'"):
        loaded = torch.load(file, weights_only=False)
    assert loaded(torch.zeros(2))[0].tolist() == [1, 1]
    with open(file, "rb") as stream, pytest.warns(UserWarning, match="TorchScript archive"):
        assert torch.load(stream, weights_only=False)(torch.zeros(2))[2] == 5


@pytest.mark.parametrize(
    "text",
    [
        "\n    def f(x):\n        return g(x) * 2\n\n    def g(x):\n        return x + 1\n",
        "\tdef g(x):\n\t\treturn x + 1\n\tdef f(x):\n\t\treturn g(x) * 2\n",
        "\n\n# said first\n   def g(x):\n      return x + 1\n   def f(x):\n      return g(x) * 2",
        "    def g(x):\n        # type: (Tensor)\n        return x + 1\n    def f(x):\n        return g(x) * 2\n",
    ],
)
def test_units_of_indented_text(text):
    unit = torch.jit.CompilationUnit(text)
    assert unit.f(torch.ones(2)).tolist() == [4.0, 4.0]


def test_overloads_have_no_bodies():
    with pytest.raises(RuntimeError, match="can be the body of overload declaration"):

        @torch.jit._overload
        def declared(x: int) -> int:
            return x


def test_errors_of_hooks_say_what_is_expected():
    def hook(self, input: tuple[torch.Tensor], output: int):
        return output

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.nn.ReLU()
            self.inner.register_forward_hook(hook)

        def forward(self, x):
            return self.inner(x)

    expected = r"Hook 'hook' on module 'ReLU' has the wrong type for the output argument. Received type: 'int'. Expected type: 'Tensor'"
    with pytest.raises(RuntimeError, match=expected):
        torch.jit.script(Model())


class Shifting(torch.jit.ScriptModule):
    def __init__(self):
        super().__init__()
        self.shift = nn.Parameter(torch.tensor([1.0, 2.0]))
        self.child = nn.Linear(2, 1)

    @torch.jit.script_method
    def forward(self, x):
        return self.child(x + self.shift)


def test_modules_with_script_methods_are_saved():
    module, x, file = Shifting(), torch.ones(3, 2), io.BytesIO()
    torch.jit.save(module, file)
    file.seek(0)
    assert torch.equal(torch.jit.load(file)(x), module(x))
    assert torch.equal(copy.deepcopy(module)(x), module(x))
