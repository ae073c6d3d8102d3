"""Operators on strings, lists, dicts and numbers, and their functions in `include/rushlight/deployed_language.h`.

Each row is a call over numbered operands: `{0}` is an `any`, and `{0:int}`, `{0:float}`, `{0:bool}` are C++ numbers. A row that
ends in `!` may fail. The call returns the type of the node's result.
"""

from __future__ import annotations

_NO = "any{}"

_COMPARISONS = {
    "aten::eq": "equal({0}, {1})",
    "aten::ne": "!equal({0}, {1})",
    "aten::lt": "order({0}, {1}) < 0",
    "aten::le": "order({0}, {1}) <= 0",
    "aten::gt": "order({0}, {1}) > 0",
    "aten::ge": "order({0}, {1}) >= 0",
}

STRINGS: dict[str, str] = {
    **{
        f"aten::{name}": f"run.{name}({{0}})!"
        for name in (
            "upper",
            "lower",
            "swapcase",
            "title",
            "capitalize",
            "isalpha",
            "isdigit",
            "isalnum",
            "isspace",
            "isupper",
            "islower",
        )
    },
    "aten::isdecimal": "run.isdigit({0})!",
    "aten::isnumeric": "run.isdigit({0})!",
    "aten::len": "run.length({0})",
    "aten::add": "run.joined({0}, {1})!",
    "aten::mul": "run.times({0}, {1:int})!",
    "aten::__contains__": "run.contains({0}, {1})",
    "aten::__getitem__": "run.character({0}, {1:int})!",
    "prim::StringIndex": "run.character({0}, {1:int})!",
    "aten::slice": "run.slice({0}, {1}, {2}, {3:int})!",
    "aten::ord": "run.ord({0})!",
    "aten::list": "run.letters({0})!",
    "aten::split": "run.split({0}, {1}, {2:int})!",
    "aten::join": "run.join({0}, {1})!",
    "aten::replace": "run.replace({0}, {1}, {2}, {3:int})!",
    "aten::zfill": "run.zero_filled({0}, {1:int})!",
    "aten::ljust": "run.padded({0}, {1:int}, {2}, 0, 1)!",
    "aten::rjust": "run.padded({0}, {1:int}, {2}, 1, 0)!",
    "aten::center": "run.padded({0}, {1:int}, {2}, 1, 1)!",
    "aten::partition": "run.parted({0}, {1}, false)!",
    "aten::rpartition": "run.parted({0}, {1}, true)!",
    "aten::splitlines": "run.split_lines({0}, {1:bool})!",
    **_COMPARISONS,
    "aten::Int": "run.parsed_integer({0})!",
    "aten::Float": "run.parsed_real({0})!",
}
"""Operators whose first argument is a string."""

STRIPS = {"aten::strip": "true, true", "aten::lstrip": "true, false", "aten::rstrip": "false, true"}
ENDS = {
    "aten::startswith": "begins",
    "aten::endswith": "ends",
    "aten::find": "find",
    "aten::rfind": "find",
    "aten::count": "count",
}

LISTS: dict[str, str] = {
    "aten::len": "{0}.as.list->count",
    "aten::append": "run.append({0}, {1})!",
    "aten::extend": "run.extend({0}, {1})!",
    "aten::add_": "run.extend({0}, {1})!",
    "aten::insert": "run.insert({0}, {1:int}, {2})!",
    "aten::pop": "run.pop({0}, {1:int})!",
    "aten::clear": "({0}.as.list->count = 0)",
    "aten::reverse": "run.reverse({0})",
    "aten::copy": "run.copied({0})!",
    "aten::list": "run.copied({0})!",
    "aten::Delete": "(void)run.pop({0}, {1:int})!",
    "aten::__getitem__": "run.at_index({0}, {1:int})!",
    "aten::select": "run.at_index({0}, {1:int})!",
    "aten::_set_item": "run.set_index({0}, {1:int}, {2})!",
    "aten::slice": "run.slice({0}, {1}, {2}, {3:int})!",
    "aten::add": "run.added({0}, {1})!",
    "aten::mul": "run.repeated({0}, {1:int})!",
    "aten::Size": "run.copied({0})!",
    "aten::sorted": "run.sorted({0})!",
    "aten::remove": "run.remove({0}, {1})!",
    "aten::index": "run.index_of({0}, {1})!",
    "aten::count": "run.count_of_item({0}, {1})",
    "aten::__contains__": "(run.found_in({0}, {1}) >= 0)",
    "aten::any": "run.any_true({0})",
    "aten::all": "run.all_true({0})",
    "prim::min": "run.extreme({0}, false)!",
    "prim::max": "run.extreme({0}, true)!",
    **_COMPARISONS,
}
"""Operators whose first argument is a list."""

DICTS: dict[str, str] = {
    "aten::len": "({0}.as.list->count / 2)",
    "aten::keys": "run.every({0}, 0)!",
    "aten::values": "run.every({0}, 1)!",
    "aten::items": "run.pairs({0})!",
    "aten::__getitem__": "run.lookup({0}, {1})!",
    "aten::setdefault": "run.put_default({0}, {1}, {2})!",
    "aten::Delete": "(void)run.taken({0}, {1})!",
    "aten::popitem": "run.last_item({0})!",
    "aten::clear": "({0}.as.list->count = 0)",
    "aten::update": "run.update({0}, {1})!",
    "aten::copy": "run.copied({0})!",
    "aten::__contains__": "(run.entry({0}, {1}) != nullptr)",
    "aten::_set_item": "run.put({0}, {1}, {2})!",
    "aten::dict": "run.copied({0})!",
    "aten::eq": "equal({0}, {1})",
    "aten::ne": "!equal({0}, {1})",
}
"""Operators whose first argument is a dict."""

NUMBERS: dict[str, str] = {
    "aten::hex": 'run.based({0:int}, 16, "0x")!',
    "aten::oct": 'run.based({0:int}, 8, "0o")!',
    "aten::bin": 'run.based({0:int}, 2, "0b")!',
    "aten::chr": "run.chr({0:int})!",
    "aten::degrees": "({0:float} * 57.29577951308232)",
    "aten::radians": "({0:float} * 0.017453292519943295)",
    "aten::factorial": "run.factorial({0:int})!",
    "aten::gamma": "run.gamma({0:float})!",
    "aten::lgamma": "run.log_gamma({0:float})!",
    "aten::ldexp": "run.scaled({0:float}, {1:int})!",
    "aten::frexp": "run.fraction({0:float})!",
    "aten::modf": "run.whole_and_rest({0:float})!",
    "aten::__round_to_zero_floordiv": "run.divided({0:int}, {1:int})!",
}
"""Functions of numbers that structured programs do not have, and their text."""

COMPARING = frozenset(
    [
        *(f"aten::{name}" for name in "eq ne lt le gt ge sort sorted __contains__ index count remove".split()),
        "prim::min",
        "prim::max",
    ]
)
"""Operators that compare items."""
GROWING = {"aten::append": 1, "aten::insert": 2, "aten::_set_item": 2, "aten::setdefault": 2}
"""Operators that put one of their operands into a container, and which."""
SHOWING = frozenset(f"aten::{name}" for name in ("__getitem__", "select", "pop", "get", "setdefault"))
"""Operators that give an item of a container."""
ALIKE = frozenset(f"aten::{name}" for name in ("copy", "list", "slice", "sorted", "mul", "dict", "Size"))
"""Operators that give a container with the same items."""
