"""What changes between two calls of a compiled function: guards notice, and say so."""

from __future__ import annotations

import types

import pytest

import rushlight as torch
from rushlight import nn
from rushlight._dynamo.eval_frame import _debug_get_cache_entry_list


@pytest.fixture(autouse=True)
def forget_afterwards():
    yield
    torch.compiler.reset()


def ones():
    return torch.ones(2)


def namespace(text: str) -> dict:
    """A module's globals after running a text."""
    made = types.ModuleType("changing").__dict__
    exec(text, made)
    return made


def test_code_objects_that_are_replaced():
    def function(x):
        return x + 1

    def other(x):
        return x * 10

    compiled = torch.compile(function, backend="eager")
    assert compiled(ones()).tolist() == [2, 2]
    before, function.__code__ = function.__code__, other.__code__
    assert compiled(ones()).tolist() == [10, 10]
    function.__code__ = before
    assert compiled(ones()).tolist() == [2, 2]


def test_the_code_of_a_called_function_that_is_replaced():
    module = namespace("def helper(x):\n    return x + 1\ndef function(x):\n    return helper(x) * 2")
    compiled = torch.compile(module["function"], backend="eager")
    assert compiled(ones()).tolist() == [4, 4]
    module["helper"].__code__ = (lambda x: x - 1).__code__
    assert compiled(ones()).tolist() == [0, 0]


def test_functions_that_are_defined_anew():
    module = namespace("def helper(x):\n    return x + 1\ndef function(x):\n    return helper(x) * 2")
    compiled = torch.compile(module["function"], backend="eager")
    assert compiled(ones()).tolist() == [4, 4]
    exec("def helper(x):\n    return x + 2", module)
    assert compiled(ones()).tolist() == [6, 6]
    module["helper"] = torch.neg
    assert compiled(ones()).tolist() == [-2, -2]
    del module["helper"]
    with pytest.raises(NameError, match="helper"):
        compiled(ones())


def test_globals_that_change_themselves():
    text = "count, name = 0, ''\ndef function(x):\n    global count, name\n    count += 1\n    name += 'a'\n    return x + count + len(name)"
    module = namespace(text)
    compiled = torch.compile(module["function"], backend="eager", options={"recompile_limit": 3})
    with pytest.warns(UserWarning, match="runs in eager"):
        assert [compiled(ones())[0].item() for _ in range(6)] == [3, 5, 7, 9, 11, 13]
    assert (module["count"], module["name"]) == (6, "aaaaaa")


def test_defaults_and_closures_that_change():
    scale = 2

    def function(x, offset=1):
        return x * scale + offset

    compiled = torch.compile(lambda x: function(x), backend="eager")
    assert compiled(ones()).tolist() == [3, 3]
    function.__defaults__ = (5,)
    assert compiled(ones()).tolist() == [7, 7]
    scale = 3
    assert compiled(ones()).tolist() == [8, 8]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2, 2)
        self.scale = 2.0

    def forward(self, x):
        return self.shift(self.linear(x)) * self.scale

    def shift(self, x):
        return x + 1


CHANGES = {
    "method of the class": lambda model: setattr(Net, "shift", lambda self, x: x + 7),
    "method of the instance": lambda model: setattr(model, "shift", lambda x: x - 3),
    "forward of the class": lambda model: setattr(Net, "forward", lambda self, x: self.linear(x) * 0),
    "forward of a child": lambda model: setattr(model.linear, "forward", lambda x: x * 2),
    "attribute": lambda model: setattr(model, "scale", -1.0),
    "child": lambda model: setattr(model, "linear", nn.Linear(2, 2)),
    "child of another class": lambda model: setattr(model, "linear", nn.Identity()),
    "class": lambda model: setattr(model, "__class__", Other),
    "parameter": lambda model: setattr(model.linear, "bias", nn.Parameter(torch.full((2,), 9.0))),
    "parameter removed": lambda model: setattr(model.linear, "bias", None),
    "frozen parameter": lambda model: model.requires_grad_(False),
    "hook": lambda model: model.linear.register_forward_hook(lambda module, args, result: result * 100),
}


class Other(Net):
    def shift(self, x):
        return x * 5


@pytest.mark.parametrize("change", CHANGES.values(), ids=list(CHANGES))
def test_modules_that_are_changed_after_capture(change):
    kept = dict(vars(Net))
    model = Net()
    compiled = torch.compile(model, backend="eager")
    try:
        for _ in range(2):
            assert torch.allclose(compiled(ones()), model(ones()))
        before = model(ones())
        change(model)
        for _ in range(2):
            found, expected = compiled(ones()), model(ones())
            assert torch.allclose(found, expected) and found.requires_grad == expected.requires_grad
        assert not torch.allclose(before, expected) or before.requires_grad != expected.requires_grad
    finally:
        Net.shift, Net.forward = kept["shift"], kept["forward"]


@pytest.mark.parametrize("change, text, found", [
    (lambda holder: setattr(holder, "scale", 3), "== 2", "found 3"),
    (lambda holder: holder.sizes.append(1), "len(", "found [1, 1]"),
    (lambda holder: holder.table.update(b=1), "['a']", "found {'a': 1, 'b': 1}"),
    (lambda holder: setattr(holder, "weight", torch.ones(3)), "size=[2]", "a tensor of shape [3]"),
    (lambda holder: torch.set_grad_enabled(False), "the thread's modes are grad=True", ""),
], ids=["value", "length", "keys", "tensor", "mode"])  # fmt: skip
def test_the_log_names_the_guard_and_both_values(change, text, found, capsys):
    holder = types.SimpleNamespace(scale=2, sizes=[1], table={"a": 1}, weight=torch.ones(2))

    def function(x, scale, sizes, table, weight):
        return x.sum() * scale + len(sizes) + sum(table.values()) + weight.sum()

    compiled = torch.compile(function, backend="eager", options={"logs": frozenset({"recompiles"})})
    try:
        for _ in range(2):
            compiled(ones(), holder.scale, holder.sizes, holder.table, holder.weight)
        assert capsys.readouterr().err == ""
        change(holder)
        compiled(ones(), holder.scale, holder.sizes, holder.table, holder.weight)
    finally:
        torch.set_grad_enabled(True)
    log = capsys.readouterr().err
    assert "is captured again" in log and text in log and found in log


def test_guards_are_readable_python():
    compiled = torch.compile(lambda x, k, names: x * k + len(names), backend="eager")
    compiled(ones(), 3, ["a", "b"])
    (entry,) = _debug_get_cache_entry_list(compiled)
    text = entry.guarded_code.guards.text()
    for part in ("def guard(x, k, names, __globals, __closure):", "k == 3", "type(names) is list", "len(names) == 2", "(2,), (1,)"):
        assert part in text
    scope = dict(entry.guarded_code.guards.names)
    exec(text, scope)
    for args in ((ones(), 3, ["c", "d"]), (ones(), 4, ["c", "d"]), (ones(), 3, []), (torch.ones(3), 3, ["c", "d"])):
        assert bool(scope["guard"](*args, globals(), None)) == entry.check_fn(*args, globals(), None)


def test_dicts_whose_keys_are_modules():
    net, other = nn.Sequential(nn.Linear(3, 3), nn.ReLU()), nn.Linear(3, 3)

    def attend(x, cache):
        known = net[0] in cache, [type(module).__name__ for module in cache]
        cache[net[0]] = torch.cat([cache[net[0]], net[0](x)]) if net[0] in cache else net[0](x)
        cache.pop(other, None)
        return net[1](cache[net[0]]), known

    compiled = torch.compile(attend, fullgraph=True)
    for given in ({}, {net[0]: torch.ones(1, 3)}, {other: torch.ones(3), net[0]: torch.ones(2, 3)}, {net: 1}):
        ours, theirs = dict(given), dict(given)
        for x in (torch.randn(2, 3), torch.randn(2, 3)):
            (found, known), (expected, wanted) = compiled(x, ours), attend(x, theirs)
            torch.testing.assert_close(found, expected)
            assert known == wanted and list(ours) == list(theirs)
            torch.testing.assert_close(list(ours.values()), list(theirs.values()))
