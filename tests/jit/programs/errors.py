"""Programs that do not compile: each is refused in both libraries."""

from typing import Dict, List, Optional, Tuple

import rushlight as torch


def undefined_name(x: int):
    return x + nothing
#: (1,)


def undefined_in_branch(x: int):
    if x > 0:
        y = 1
    return y
#: (1,)


def type_change(x: int):
    y = x
    if x > 0:
        y = "a"
    return y
#: (1,)


def changed_in_loop(n: int):
    y = 1
    for i in range(n):
        y = 2.5
    return y
#: (1,)


def wrong_return(x: int) -> str:
    return x
#: (1,)


def different_returns(x: int):
    if x > 0:
        return 1
    return "a"
#: (1,)


def missing_return(x: int) -> int:
    if x > 0:
        return x
#: (1,)


def add_text(x: int):
    return x + "a"
#: (1,)


def mixed_list(x: int):
    return [x, "a"] + [1]
#: (1,)


def append_wrong(a: List[int]):
    a.append("x")
    return a
#: ([1],)


def unknown_method(x: torch.Tensor):
    return x.no_such_method()
#: (torch.ones(1),)


def unknown_attribute(x: torch.Tensor):
    return x.no_such_attribute
#: (torch.ones(1),)


def unknown_function(x: torch.Tensor):
    return torch.no_such_function(x)
#: (torch.ones(1),)


def optional_unchecked(x: Optional[int]):
    return x + 1
#: (1,)


def optional_tensor_unchecked(x: Optional[torch.Tensor]):
    return x.sum()
#: (torch.ones(1),)


def variadic(*args):
    return args
#: (1,)


def keyword_variadic(**kwargs):
    return kwargs
#: ()


def uses_lambda(x: int):
    f = lambda y: y + 1
    return f(x)
#: (1,)


def uses_set(x: int):
    return {x, 1}
#: (1,)


def uses_try(x: int):
    try:
        return x
    except ValueError:
        return 0
#: (1,)


def uses_yield(x: int):
    yield x
#: (1,)


def uses_global(x: int):
    global counter
    counter = x
    return x
#: (1,)


def nested_function(x: int):
    def inner(y: int):
        return y
    return inner(x)
#: (1,)


def walrus(x: int):
    if (y := x) > 0:
        return y
    return 0
#: (1,)


def break_outside(x: int):
    y = x
    for i in range(3):
        y += i
    return undefined_break
#: (1,)


def tuple_out_of_range(t: Tuple[int, int]):
    return t[5]
#: ((1, 2),)


def tuple_assignment(t: Tuple[int, int]):
    t[0] = 1
    return t
#: ((1, 2),)


def string_assignment(s: str):
    s[0] = "a"
    return s
#: ('abc',)


def wrong_key(d: Dict[str, int]):
    return d[1]
#: ({'a': 1},)


def wrong_value(d: Dict[str, int]):
    d["a"] = "b"
    return d
#: ({'a': 1},)


def unhashable_key():
    d: Dict[List[int], int] = {}
    return d
#: ()


def too_many_targets():
    a, b, c = (1, 2)
    return a
#: ()


def too_few_targets():
    a, b = (1, 2, 3)
    return a
#: ()


def missing_argument(x: int):
    return helper(x)
#: (1,)


def helper(x: int, y: int) -> int:
    return x + y


def extra_argument(x: int):
    return helper(x, x, x)
#: (1,)


def unknown_keyword(x: int):
    return helper(x, z=x)
#: (1,)


def repeated_keyword(x: int):
    return helper(x, x=x)
#: (1,)


def wrong_helper_type(x: str):
    return helper(x, 1)
#: ('a',)


def call_number(x: int):
    return x(1)
#: (1,)


def index_number(x: int):
    return x[0]
#: (1,)


def iterate_number(x: int):
    for i in x:
        pass
    return x
#: (1,)


def unknown_annotation(x: "NoSuchType"):
    return x
#: (1,)


def bare_list(x: List):
    return x
#: ([1],)


def set_attribute_of_tensor(x: torch.Tensor):
    x.name2 = 3
    return x
#: (torch.ones(1),)


def delete_undefined(x: int):
    del y
    return x
#: (1,)


def used_after_delete(x: int):
    y = x
    del y
    return y
#: (1,)


def slice_of_number(x: int):
    return x[1:2]
#: (1,)


def not_iterable_zip(x: int):
    for a, b in zip(x, [1]):
        pass
    return x
#: (1,)


def format_missing():
    return "a" + 1
#: ()


def raise_number(x: int):
    raise x
#: (1,)


def no_such_cast(x: List[int]):
    return int(x)
#: ([1],)


def annotation_mismatch():
    x: List[int] = ["a"]
    return x
#: ()


class NoForward(torch.nn.Module):
    """Has nothing to compile."""

    def __init__(self):
        super().__init__()
        self.n = 1

    def other(self, x: int):
        return x


def global_tensor(x: torch.Tensor):
    return x + GLOBAL
#: (torch.ones(1),)


GLOBAL = torch.ones(1)


def python_dict_global(x: int):
    return TABLE[x]
#: (1,)


TABLE = {1: 2}
