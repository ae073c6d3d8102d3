"""Operators on lists, dicts and tuples.

Dicts keep the order of insertion. Indices count from the end where they are negative; those out of range raise IndexError.
"""

from __future__ import annotations

import operator

from rushlight.core.tensor import Tensor
from rushlight.jit.operators.numbers import wrapping
from rushlight.jit.operators.registry import declare_operator
from rushlight.jit.runtime.objects import ScriptObject

_KEYS = ("str", "int", "bool", "float", "complex", "Tensor")
_SORTED = ("int", "float", "bool", "str")


def _register_lists() -> None:
    register = declare_operator
    register("aten::len.t(t[] a) -> int", len)
    register("aten::append.t(t[](a!) self, t(c -> *) el) -> t[](a!)", _append)
    register("aten::extend.t(t[](a!) self, t[] other) -> ()", lambda self, other: self.extend(list(other)))
    register("aten::insert.t(t[](a!) self, int idx, t(b -> *) el) -> ()", lambda self, idx, el: self.insert(idx, el))
    register("aten::pop.t(t[](a!) self, int idx=-1) -> t(*)", _pop)
    register("aten::clear.t(t[](a!) self) -> ()", lambda self: self.clear())
    register("aten::reverse.t(t[](a!) self) -> ()", lambda self: self.reverse())
    register("aten::copy.t(t[](a) self) -> t[]", list)
    register("aten::list.t(t[] l) -> t[]", list)
    register("aten::Delete.t(t[](a!) self, int idx) -> ()", _delete)
    register("aten::__getitem__.t(t[](a) list, int idx) -> t(*)", _get)
    register("aten::select.t(t[](a) list, int idx) -> t(*)", _get)
    register("aten::_set_item.t(t[](a!) l, int idx, t(b -> *) el) -> t[](a!)", _set)
    register("aten::slice.t(t[] l, int? start=None, int? end=None, int step=1) -> t[]", _slice)
    register("aten::add.t(t[] a, t[] b) -> t[]", operator.add)
    register("aten::add_.t(t[](a!) self, t[] b) -> t[]", operator.iadd)
    register("aten::mul.left_t(t[] l, int n) -> t[]", operator.mul)
    register("aten::mul.right_(int n, t[] l) -> t[]", operator.mul)
    register("aten::mul_.t(t[](a!) l, int n) -> t[](a!)", operator.imul)
    register("prim::rangelist(int n) -> int[]", lambda n: list(range(n)))
    register("aten::Size(int[] sizes) -> int[]", list)
    for kind in _SORTED:
        register(f"aten::sort.{kind}({kind}[](a!) self, bool reverse=False) -> ()", _sort)
        register(f"aten::sorted.{kind}({kind}[](a) input) -> {kind}[]", sorted)
        register(f"aten::remove.{kind}({kind}[](a!) self, {kind} el) -> ()", _remove)
        register(f"aten::index.list_{kind}({kind}[] self, {kind} el) -> int", _index)
        register(f"aten::count.{kind}({kind}[] self, {kind} el) -> int", operator.countOf)
        register(f"aten::__contains__.{kind}_list({kind}[] l, {kind} item) -> bool", operator.contains)
    for name in ("remove", "index", "count"):
        _register_by_value(name)
    register("aten::sort.any(t[](a!) self, bool reverse=False) -> ()", _sort_any)
    register("aten::sorted.any(t[](a) self) -> t[]", _sorted_any)
    for kind in ("int", "float", "complex"):
        register(f"aten::sum.{kind}({kind}[] self) -> {kind}", wrapping(sum))
    register("aten::sum.bool(bool[] self) -> int", sum)
    for name, function in (("all", all), ("any", any)):
        for kind in ("int", "float", "bool"):
            register(f"aten::{name}.{kind}({kind}[] self) -> bool", function)
    register("aten::any.str(str[] self) -> bool", any)


def _register_by_value(name: str) -> None:
    by_value = {"remove": _remove_tensor, "index": _index_of_tensor, "count": _count_tensor}[name]
    overload = "list_Tensor" if name == "index" else "Tensor"
    mark, result = ("(a!)", "()") if name == "remove" else ("", "int")
    declare_operator(f"aten::{name}.{overload}(Tensor[]{mark} self, Tensor el) -> {result}", by_value)


def _position(self: list[Tensor], el: Tensor) -> int | None:
    return next((index for index, item in enumerate(self) if item is el or bool((item == el).all())), None)


def _index_of_tensor(self: list[Tensor], el: Tensor) -> int:
    found = _position(self, el)
    if found is None:
        raise ValueError(f"'{el}' is not in list")
    return found


def _remove_tensor(self: list[Tensor], el: Tensor) -> None:
    found = _position(self, el)
    if found is None:
        raise ValueError("list.remove(x): x not in list")
    del self[found]


def _count_tensor(self: list[Tensor], el: Tensor) -> int:
    return sum(bool((item == el).all()) for item in self)


def _append(self: list, el: object) -> list:
    self.append(el)
    return self


def _check_index(values: list, idx: int) -> int:
    if not -len(values) <= idx < len(values):
        raise IndexError("list index out of range")
    return idx


def _pop(self: list, idx: int = -1) -> object:
    if not self:
        raise IndexError("pop from empty list")
    return self.pop(_check_index(self, idx))


def _get(self: list, idx: int) -> object:
    return self[_check_index(self, idx)]


def _set(self: list, idx: int, el: object) -> list:
    self[_check_index(self, idx)] = el
    return self


def _delete(self: list, idx: int) -> None:
    del self[_check_index(self, idx)]


def _slice(self: list, start: int | None = None, end: int | None = None, step: int = 1) -> list:
    return self[slice(start, None if end == 9223372036854775807 else end, step)]


def _sort(self: list, reverse: bool = False) -> None:
    self.sort(reverse=reverse)


def _sort_any(self: list, reverse: bool = False) -> None:
    _check_sortable(self)
    self.sort(reverse=reverse)


def _sorted_any(self: list) -> list:
    _check_sortable(self)
    return sorted(self)


def _check_sortable(values: list) -> None:
    """Raise RuntimeError for elements that have no order."""
    for value in values[:1]:
        if isinstance(value, ScriptObject) and value.type.find_method("__lt__") is None:
            raise RuntimeError(f"To sort a list of {value.type}, it must define a __lt__ method")
        if isinstance(value, list | dict):
            raise RuntimeError("Only lists of Tensors, ints, floats, bools, strs, tuples of these and of objects with __lt__ "
                               "can be sorted")  # fmt: skip
    for value in values:
        _check_same_type(values[0], value)


def _check_same_type(first: object, second: object) -> None:
    if type(first) is not type(second) or isinstance(first, tuple) and len(first) != len(second):
        kinds = f"{type(first).__name__} and {type(second).__name__}"
        raise RuntimeError(f"Only values of same type can be compared. Found {kinds}")
    if not isinstance(first, tuple):
        return
    for one, other in zip(first, second, strict=True):
        if isinstance(one, list | dict):
            raise RuntimeError(f"Contained elements in {first} are not sortable: it contains a {type(one).__name__}")
        _check_same_type(one, other)


def _remove(self: list, el: object) -> None:
    if el not in self:
        raise ValueError("list.remove(x): x not in list")
    self.remove(el)


def _index(self: list, el: object) -> int:
    if el not in self:
        raise ValueError(f"'{el}' is not in list")
    return self.index(el)


def _register_dicts() -> None:
    for key in _KEYS:
        _register_dict(key, f"Dict({key}, t)")


def _register_dict(key: str, kind: str) -> None:
    register = declare_operator
    register(f"aten::len.Dict_{key}({kind} self) -> int", len)
    register(f"aten::keys.{key}({kind} self) -> {key}[](*)", list)
    register(f"aten::values.{key}({kind} self) -> t[](*)", lambda self: list(self.values()))
    register(f"aten::items.{key}({kind} self) -> ({key}, t)[]", lambda self: list(self.items()))
    register(f"aten::__getitem__.Dict_{key}({kind} self, {key} key) -> t(*)", _lookup)
    register(f"aten::get.{key}({kind} self, {key} key) -> t(*)?", lambda self, key: self.get(key))
    register(f"aten::get.default_{key}({kind} self, {key} key, t default_value) -> t(*)", lambda self, key, d: self.get(key, d))
    register(f"aten::setdefault.{key}({kind}(a!) self, {key}(b -> *) key, t(c -> *) default_value) -> t(*)",
             lambda self, key, default: self.setdefault(key, default))  # fmt: skip
    register(f"aten::Delete.Dict_{key}({kind}(a!) self, {key} key) -> ()", lambda self, key: _pop_key(self, key) and None)
    register(f"aten::pop.Dict_{key}({kind}(a!) self, {key} key) -> t(*)", lambda self, key: _pop_key(self, key)[0])
    register(f"aten::pop.Dict_default_{key}({kind}(a!) self, {key} key, t default_value) -> t(*)",
             lambda self, key, default: self.pop(key, default))  # fmt: skip
    register(f"aten::popitem.{key}({kind}(a!) self) -> (({key}, t))", _pop_item)
    register(f"aten::clear.{key}({kind}(a!) self) -> ()", lambda self: self.clear())
    register(f"aten::update.{key}({kind}(a!) self, {kind}(a!) to_add) -> ()", lambda self, to_add: self.update(to_add))
    register(f"aten::copy.Dict_{key}({kind}(a) self) -> {kind}", dict)
    register(f"aten::__contains__.{key}({kind} dict, {key} key) -> bool", operator.contains)
    register(f"aten::_set_item.{key}({kind}(a!) l, {key}(b -> *) idx, t(c -> *) v) -> ()", _set_item)
    register(f"aten::dict.{key}(({key}, tVal)[] inputs) -> Dict({key}, tVal)", dict)
    register(f"aten::dict.Dict_{key}({kind}(a) self) -> {kind}", dict)


def _lookup(self: dict, key: object) -> object:
    if key not in self:
        raise KeyError(key)
    return self[key]


def _pop_key(self: dict, key: object) -> tuple:
    if key not in self:
        raise KeyError(key)
    return (self.pop(key),)


def _pop_item(self: dict) -> tuple:
    if not self:
        raise KeyError("popitem(): dictionary is empty")
    return self.popitem()


def _set_item(self: dict, key: object, value: object) -> None:
    self[key] = value


declare_operator("aten::dict() -> Dict(str, Tensor)", dict)
_register_lists()
_register_dicts()
