"""Programs that do not compile: each is refused in both libraries."""

from typing import Any, Dict, List, Optional, Tuple, Union

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


def while_else(n: int):
    while n > 0:
        n -= 1
    else:
        n = 5
    return n
#: (3,)


def for_else(n: int):
    for i in range(n):
        n += i
    else:
        n = 5
    return n
#: (3,)


def filtered_comprehension(a: List[int]):
    return [x for x in a if x > 1]
#: ([1, 2],)


def doubled_comprehension(a: List[int]):
    return [x + y for x in a for y in a]
#: ([1, 2],)


def set_comprehension(a: List[int]):
    return {x for x in a}
#: ([1, 2],)


def break_in_unrolled(t: Tuple[int, int]):
    n = 0
    for x in t:
        if x > 1:
            break
        n += x
    return n
#: ((1, 2),)


def continue_in_unrolled(x: torch.Tensor):
    for y in (x, x):
        if bool(y.sum() > 1):
            continue
        x = x + 1
    return x
#: (torch.ones(1),)


def undefined_after_break(n: int):
    for i in range(n):
        break
        n += nothing
    return n
#: (3,)


def defined_in_loop_only(n: int):
    for i in range(n):
        last = i
    return last
#: (3,)


def loop_target_after(n: int):
    for i in range(n):
        pass
    return i
#: (3,)


def format_specification(x: float):
    return f"{x:.2f}"
#: (1.0,)


def format_conversion(x: str):
    return f"{x!r}"
#: ('a',)


def sliced_assignment(a: List[int]):
    a[0:2] = [3, 4]
    return a
#: ([1, 2, 3],)


def optional_compared(x: Optional[int]):
    return x > 3
#: (3,)


def optional_in_loop(items: Optional[List[int]]):
    total = 0
    for x in items:
        total += x
    return total
#: ([1],)


def union_unchecked(x: Union[int, str]):
    return x + 1
#: (3,)


def any_used(x: Any):
    return x + 1
#: (3,)


def refined_too_late(x: Optional[int]):
    y = x + 1
    assert x is not None
    return y
#: (3,)


def wrong_branch_types(flag: bool):
    if flag:
        x = 1
    else:
        x = "a"
    return x
#: (True,)


def none_then_int(flag: bool):
    x = None
    if flag:
        x = 3
    return x
#: (True,)


class Plain:
    def __init__(self, n: int):
        self.n = n

    def early(self) -> int:
        return self.n


def unknown_attribute_of_object(n: int):
    return Plain(n).missing
#: (1,)


def attribute_added_outside(n: int):
    p = Plain(n)
    p.extra = 3
    return p.n
#: (1,)


def attribute_of_wrong_type(n: int):
    p = Plain(n)
    p.n = "a"
    return p.n
#: (1,)


def method_with_too_many(n: int):
    return Plain(n).early(3)
#: (1,)


def object_not_callable(n: int):
    return Plain(n)(3)
#: (1,)


def object_without_addition(n: int):
    return Plain(n) + Plain(n)
#: (1,)


def dynamic_tuple_index(t: Tuple[int, str], i: int):
    return t[i]
#: ((1, 'a'), 0)


def dynamic_getattr(n: int, name: str):
    return getattr(Plain(n), name)
#: (1, 'n')


def no_context(n: int):
    with Plain(n):
        n += 1
    return n
#: (1,)


def nonlocal_function(n: int):
    def inner(m: int):
        return m + n
    return inner(3)
#: (1,)


def local_class(n: int):
    class Inner:
        pass
    return n
#: (1,)


def imported(n: int):
    import math
    return math.sqrt(n)
#: (1,)


def matched(n: int):
    match n:
        case 1:
            return 2
    return 3
#: (1,)


def divided_text(a: str):
    return a / 2
#: ('a',)


def list_plus_number(a: List[int]):
    return a + 1
#: ([1],)


def dict_of_mixed_keys():
    return {1: 2, "a": 3}
#: ()


def empty_then_text():
    x = []
    x.append("a")
    return x
#: ()


def wrong_default(x: int = "a"):
    return x
#: ()


def returned_none_for_int(x: int) -> int:
    if x > 0:
        return x
#: (1,)


def raised_without_exception(x: int):
    raise x
#: (1,)


def starred_call(a: List[int]):
    return helper(*a)
#: ([1, 2],)


def keyword_unpacked(d: Dict[str, int]):
    return helper(**d)
#: ({'x': 1, 'y': 2},)


def counts_to_a_tensor(x: torch.Tensor):
    s = 0
    for i in range(x[0]):
        s += i
    return s
#: (torch.tensor([1]),)


def annotates_a_tensor(x: torch.Tensor):
    y: int = x[0]
    return y
#: (torch.tensor([1]),)


def takes_truth(a: bool):
    return a


def gives_a_tensor_for_truth(x: torch.Tensor):
    return takes_truth(x[0])
#: (torch.tensor([True]),)


def branches_of_types(x: torch.Tensor, b: bool):
    if b:
        y = 1
    else:
        y = "a"
    return y
#: (torch.ones(2), True)


def returns_of_types(x: torch.Tensor, b: bool):
    if b: return 1
    return "a"
#: (torch.ones(2), True)


def expression_of_types(x: torch.Tensor, b: bool):
    return 1 if b else "a"
#: (torch.ones(2), True)


def expression_of_numbers(x: torch.Tensor, b: bool):
    return 1 if b else 2.0
#: (torch.ones(2), True)


def branches_of_numbers(x: torch.Tensor, b: bool):
    if b: y = 1
    else: y = 2.0
    return y
#: (torch.ones(2), True)


def branches_of_tuples(x: torch.Tensor, b: bool):
    if b: y = (1, 2)
    else: y = (1, 2, 3)
    return y
#: (torch.ones(2), True)


def branches_of_lists(x: torch.Tensor, b: bool):
    if b: y = [1]
    else: y = [1.0]
    return y
#: (torch.ones(2), True)


def loop_of_types(x: torch.Tensor, b: bool):
    y = x
    for i in range(3):
        y = 1
    return y
#: (torch.ones(2), True)


def defined_in_a_loop(x: torch.Tensor, b: bool):
    while b:
        z = 1
    return z
#: (torch.ones(2), False)


class HookWithoutTuple(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.l = torch.nn.ReLU()
        self.l.register_forward_hook(hook_without_tuple)
    def forward(self, x: torch.Tensor): return self.l(x)
#: (torch.ones(2),)


def hook_without_tuple(self, input: torch.Tensor, output: torch.Tensor): return output + 1


class HookOfTwo(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.l = torch.nn.ReLU()
        self.l.register_forward_hook(hook_of_two)
    def forward(self, x: torch.Tensor): return self.l(x)
#: (torch.ones(2),)


def hook_of_two(self, input: Tuple[torch.Tensor]): return input


class PreHookOfInt(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.l = torch.nn.ReLU()
        self.l.register_forward_pre_hook(pre_hook_of_int)
    def forward(self, x: torch.Tensor): return self.l(x)
#: (torch.ones(2),)


def pre_hook_of_int(self, input: Tuple[torch.Tensor]) -> int: return 1


class HookOfInt(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.l = torch.nn.ReLU()
        self.l.register_forward_hook(hook_of_int)
    def forward(self, x: torch.Tensor): return self.l(x)
#: (torch.ones(2),)


def hook_of_int(self, input: Tuple[torch.Tensor], output: int): return output + 1


class HookOfPair(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.l = torch.nn.ReLU()
        self.l.register_forward_hook(hook_of_pair)
    def forward(self, x: torch.Tensor): return self.l(x)
#: (torch.ones(2),)


def hook_of_pair(self, input: Tuple[torch.Tensor, torch.Tensor], output: torch.Tensor): return output + 1


class HookOfLambda(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.l = torch.nn.ReLU()
        self.l.register_forward_hook(lambda m, i, o: o)
    def forward(self, x: torch.Tensor): return self.l(x)
#: (torch.ones(2),)


@torch.jit._overload
def declared_for_two(x: int) -> int: ...


@torch.jit._overload
def declared_for_two(x: str) -> str: ...


def declared_for_two(x): return x


def no_overload_fits(x: float): return declared_for_two(x)
#: (1.0,)


@torch.jit._overload
def declared_with_other_names(x: int, z: int) -> int: ...


def declared_with_other_names(x, y): return x


def overload_of_other_names(x: int): return declared_with_other_names(x, x)
#: (1,)


@torch.jit._overload
def declared_with_another_default(x: int, y: int = 2) -> int: ...


def declared_with_another_default(x, y=3): return x + y


def overload_of_other_defaults(x: int): return declared_with_another_default(x)
#: (1,)


@torch.jit._overload
def declared_without_a_type(x: int, y=2) -> int: ...


@torch.jit._overload
def declared_without_a_type(x: float) -> int: ...


def declared_without_a_type(x, y=2): return 1


def overload_without_a_type(x: int): return declared_without_a_type(x)
#: (1,)
