"""Lists, dicts and objects that Python shares with scripted code."""

from __future__ import annotations

import pytest

import rushlight as torch


@torch.jit.script
def append(values: list[int], value: int):
    values.append(value)


@torch.jit.script
def store(values: dict[str, int], key: str, value: int):
    values[key] = value


class Counter:
    def __init__(self, start: int):
        self.count = start

    def step(self, by: int) -> int:
        self.count += by
        return self.count

    @property
    def double(self) -> int:
        return 2 * self.count


def advance(counter: Counter) -> int:
    return counter.step(5)


def test_scripted_code_writes_to_a_list():
    shared = torch.jit.script([1, 2])
    append(shared, 3)
    assert type(shared) is torch._C.ScriptList and list(shared) == [1, 2, 3] and len(shared) == 3 and shared[-1] == 3 and 3 in shared


def test_list_checks_its_elements():
    shared = torch.jit.script([1, 2, 3])
    for write in (lambda: shared.append("a"), lambda: shared.extend([4, "a"]), lambda: shared.count("a")):
        with pytest.raises(TypeError):
            write()
    shared[:2] = [7, 8]
    shared.insert(1, 9)
    del shared[0]
    assert list(shared) == [9, 8, 3] and repr(shared[1:]) == "[8, 3]" and shared.pop() == 3


def test_scripted_code_writes_to_a_dict():
    shared = torch.jit.script({"a": 1})
    store(shared, "b", 2)
    assert dict(shared.items()) == {"a": 1, "b": 2} and shared["b"] == 2 and bool(shared)
    with pytest.raises(KeyError):
        shared[1]
    with pytest.raises(TypeError):
        shared["c"] = "d"


def test_values_of_several_types_are_refused():
    with pytest.raises(RuntimeError, match="Unable to infer type"):
        torch.jit.script([1, "a"])


def test_scripted_code_writes_to_an_object():
    counter = torch.jit.script(Counter(1))
    assert torch.jit.script(advance)(counter) == 6
    assert counter.count == 6 and counter.double == 12 and counter.step(1) == 7
    counter.count = 3
    assert counter.step(1) == 4


def test_prepared_submodules():
    class Replaced(torch.nn.Module):
        def __prepare_scriptable__(self):
            return torch.nn.ReLU()

    module = torch.nn.Sequential(torch.nn.Sequential(Replaced()), torch.nn.Identity())
    scripted = torch.jit.script(module)
    assert scripted(torch.tensor([-1.0, 2.0])).tolist() == [0.0, 2.0]
    assert isinstance(module[0][0], Replaced)
