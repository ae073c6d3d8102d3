"""Sequential, ModuleList, ModuleDict, ParameterList, ParameterDict: the interface of lists and dicts."""

from __future__ import annotations

import copy
from collections import OrderedDict

import pytest

import rushlight as torch
from rushlight.nn.modules.container import ModuleDict, ModuleList, Sequential
from rushlight.nn.modules.module import Module
from rushlight.nn.modules.parameter_container import ParameterDict, ParameterList
from rushlight.nn.parameter import Parameter


class Add(Module):
    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number

    def forward(self, x):
        return x + self.number


def numbers(modules) -> list[int]:
    return [module.number for module in modules]


def test_sequential_runs_in_order():
    assert Sequential(Add(1), lambda_module(lambda x: x * 2))(3) == 8
    named = Sequential(OrderedDict(one=Add(1), two=Add(2)))
    assert named.two.number == 2 and named(0) == 3 and named[0].number == 1
    assert list(named[1:]._modules) == ["two"]


def lambda_module(function) -> Module:
    module = Module()
    module.forward = function
    return module


@pytest.mark.parametrize("kind", [lambda *modules: Sequential(*modules), lambda *modules: ModuleList(modules)])
def test_sequence_interface(kind):
    listed = kind(Add(0), Add(1), Add(2))
    assert len(listed) == 3 and numbers(listed) == [0, 1, 2] and listed[-1].number == 2
    assert type(listed[:2]) is type(listed) and numbers(listed[:2]) == [0, 1]
    listed[1] = Add(10)
    assert listed.append(Add(3)) is listed and numbers(listed) == [0, 10, 2, 3]
    listed.insert(1, Add(5))
    assert numbers(listed) == [0, 5, 10, 2, 3] and list(listed._modules) == list("01234")
    listed.insert(-1, Add(6))
    assert numbers(listed) == [0, 5, 10, 2, 6, 3]
    del listed[1]
    del listed[-2:]
    assert numbers(listed) == [0, 10, 2] and list(listed._modules) == list("012")
    assert listed.pop(0).number == 0 and listed.pop().number == 2 and numbers(listed) == [10]
    listed.extend([Add(1), Add(2)])
    listed += kind(Add(3))
    assert numbers(listed) == [10, 1, 2, 3] and numbers(listed + kind(Add(4))) == [10, 1, 2, 3, 4]
    assert numbers(copy.deepcopy(listed)) == [10, 1, 2, 3]
    assert "0" not in dir(listed)


@pytest.mark.parametrize(
    ("action", "kind", "message"),
    [
        (lambda s: s[5], IndexError, "index 5 is out of range"),
        (lambda s: s["a"], TypeError, "cannot be interpreted as an integer"),
        (lambda s: s.append(3), TypeError, "int is not a Module subclass"),
        (lambda s: s.extend(3), TypeError, "Sequential.extend should be called with an iterable, but got int"),
        (lambda s: s.insert(9, Add(1)), IndexError, "Index out of range: 9"),
        (lambda s: s + 3, ValueError, "add operator supports only objects of Sequential class"),
        (lambda s: s * 0, ValueError, "Non-positive multiplication factor 0"),
        (lambda s: s * 1.5, TypeError, "unsupported operand type"),
        (lambda s: ModuleList([3]), TypeError, "int is not a Module subclass"),
        (lambda s: ModuleDict(3), TypeError, "ModuleDict.update should be called with an iterable of key/value pairs"),
        (lambda s: ModuleDict([(1, 2, 3)]), ValueError, "sequence element #0 has length 3; 2 is required"),
        (lambda s: ModuleDict([1]), TypeError, "sequence element #0 should be Iterable; is int"),
        (lambda s: ModuleDict()["a"], KeyError, "a"),
        (lambda s: ModuleDict({"pop": Add(1)}), KeyError, "attribute 'pop' already exists"),
        (lambda s: ParameterList()[0], IndexError, "index 0 is out of range"),
        (lambda s: ParameterList(3), TypeError, "ParameterList.extend should be called with an iterable, but got int"),
        (lambda s: ParameterList()(1), RuntimeError, "ParameterList should not be called"),
        (lambda s: ParameterDict()["a"], KeyError, "a"),
        (lambda s: ParameterDict({1: 2}), TypeError, "needs a str as key, got int"),
        (lambda s: ParameterDict().popitem(), KeyError, "empty"),
    ],
)
def test_errors(action, kind, message):
    with pytest.raises(kind) as caught:
        action(Sequential(Add(1)))
    assert message in str(caught.value)


def test_sequential_repetition():
    twice = Sequential(Add(1), Add(2)) * 2
    assert numbers(twice) == [1, 2, 1, 2] and numbers(2 * Sequential(Add(1))) == [1, 1]
    twice *= 2
    assert len(twice) == 8 and twice(0) == 12


def test_module_dict():
    table = ModuleDict({"a": Add(1)})
    table["b"] = Add(2)
    table.update([("c", Add(3))])
    table.update(ModuleDict({"a": Add(9)}))
    assert list(table) == list(table.keys()) == ["a", "b", "c"] and "b" in table and len(table) == 3
    assert numbers(table.values()) == [9, 2, 3] and table["a"].number == 9
    assert [key for key, _ in table.items()] == ["a", "b", "c"]
    del table["b"]
    assert table.pop("a").number == 9 and list(table) == ["c"]
    table.clear()
    assert len(table) == 0 and repr(table) == "ModuleDict()"


def test_parameter_list():
    values = ParameterList([torch.ones(2), Parameter(torch.zeros(1)), "text"])
    assert isinstance(values[0], Parameter) and values[-1] == "text" and len(values) == 3
    assert [name for name, _ in values.named_parameters()] == ["0", "1"]
    values.append(torch.ones(3))
    values += [4]
    values[2] = torch.ones(5)
    assert [name for name, _ in values.named_parameters()] == ["0", "1", "3", "2"]
    assert [type(value).__name__ for value in values] == ["Parameter"] * 4 + ["int"]
    assert len(values[1:3]) == 2 and type(values[1:3]) is ParameterList
    assert repr(values[1:2]) == "ParameterList(  (0): Parameter containing: [torch.float32 of size 1])"


def test_parameter_dict():
    values = ParameterDict({"a": torch.ones(2), "b": "text"})
    values["c"] = Parameter(torch.zeros(1))
    assert list(values) == ["a", "b", "c"] and list(reversed(values)) == ["c", "b", "a"]
    assert isinstance(values["a"], Parameter) and values.a is values["a"] and values.get("z", 1) == 1
    assert list(values.state_dict()) == ["a", "c"]
    assert values.setdefault("d", 7) == 7 and values.setdefault("d", 8) == 7 and values.popitem() == ("d", 7)
    merged = values | ParameterDict({"e": torch.ones(1)})
    assert list(merged) == ["a", "b", "c", "e"] and merged["a"] is values["a"]
    values |= ParameterDict({"f": 1})
    assert values.pop("f") == 1 and list(values.fromkeys("xy", 0).items()) == [("x", 0), ("y", 0)]
    assert "(b): Object of type: str" in repr(values)
    values.clear()
    assert len(values) == 0 and not list(values.parameters())


def test_hundreds_of_nested_modules_print():
    module = torch.nn.Identity()
    for _ in range(300):
        module = torch.nn.Sequential(module)
    assert repr(module).count("Sequential") == 300


def test_parameters_that_take_the_place_of_others_keep_their_position():
    mapping = torch.nn.ParameterDict({name: torch.nn.Parameter(torch.ones(1)) for name in "abc"})
    mapping["b"] = torch.nn.Parameter(torch.zeros(2))
    mapping.update([("d", torch.nn.Parameter(torch.ones(1))), ("a", torch.nn.Parameter(torch.zeros(3)))])
    assert [name for name, _ in mapping.named_parameters()] == list(mapping) == ["a", "b", "c", "d"]
    assert [len(value) for value in mapping.parameters()] == [3, 2, 1, 1]
    values = torch.nn.ParameterList([torch.ones(1), torch.ones(2), torch.ones(3)])
    values[1] = torch.nn.Parameter(torch.zeros(4))
    assert [len(value) for value in values.parameters()] == [len(value) for value in values] == [1, 4, 3]
    values[1] = "text"
    assert values[1] == "text" and len(list(values.parameters())) == 2
