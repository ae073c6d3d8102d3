"""Control flow: ifs, loops, early exits, assertions, exceptions."""

from typing import List, Optional

import rushlight as torch


def if_else(x: int):
    if x > 0:
        y = 1
    else:
        y = 2
    return y
#: (3,)
#: (-3,)


def if_elif(x: int):
    if x > 10:
        y = "a"
    elif x > 5:
        y = "b"
    elif x > 0:
        y = "c"
    else:
        y = "d"
    return y
#: (11,)
#: (6,)
#: (1,)
#: (0,)


def if_without_else(x: int):
    y = x
    if x > 3:
        y = y * 2
    return y
#: (4,)
#: (1,)


def nested_ifs(x: int, y: int):
    r = 0
    if x > 0:
        if y > 0:
            r = 1
        else:
            r = 2
    else:
        if y > 0:
            r = 3
    return r
#: (1, 1)
#: (1, 0)
#: (0, 1)
#: (0, 0)


def if_on_tensor(x: torch.Tensor):
    if x.sum() > 0:
        return x * 2
    return x - 1
#: (torch.ones(2),)
#: (-torch.ones(2),)


def if_on_bool_tensor(x: torch.Tensor):
    if x:
        return 1
    else:
        return 2
#: (torch.tensor(True),)
#: (torch.tensor(0),)


def if_on_int(x: int):
    if x:
        return "some"
    return "none"
#: (3,)
#: (0,)


def early_return(x: int):
    if x < 0:
        return -1
    if x > 100:
        return 100
    return x
#: (-5,)
#: (500,)
#: (7,)


def return_in_both(x: int):
    if x > 0:
        return "p"
    else:
        return "n"
#: (1,)
#: (-1,)


def return_in_loop(items: List[int], wanted: int):
    for i in range(len(items)):
        if items[i] == wanted:
            return i
    return -1
#: ([1, 2, 3], 2)
#: ([1, 2, 3], 9)


def return_in_nested_loop(n: int):
    for i in range(n):
        for j in range(n):
            if i * j > 5:
                return i, j
    return -1, -1
#: (5,)
#: (2,)


def return_in_while(n: int):
    while True:
        n -= 3
        if n < 0:
            return n
#: (10,)


def count_down(n: int):
    total = 0
    while n > 0:
        total += n
        n -= 1
    return total
#: (4,)
#: (0,)


def while_and(n: int, m: int):
    while n > 0 and m > 0:
        n -= 1
        m -= 2
    return n, m
#: (10, 5)


def break_while(n: int):
    i = 0
    while i < n:
        if i == 3:
            break
        i += 1
    return i
#: (10,)
#: (2,)


def continue_for(n: int):
    total = 0
    for i in range(n):
        if i % 2 == 0:
            continue
        total += i
    return total
#: (6,)


def break_and_continue(n: int):
    out: List[int] = []
    for i in range(n):
        if i == 1:
            continue
        if i == 4:
            break
        out.append(i)
    return out
#: (10,)
#: (3,)


def nested_breaks(n: int):
    count = 0
    for i in range(n):
        for j in range(n):
            if j > i:
                break
            if (i + j) % 3 == 0:
                continue
            count += 1
        if count > 6:
            break
    return count
#: (6,)


def carried(x: torch.Tensor, n: int):
    y = torch.zeros_like(x)
    for i in range(n):
        y = y + x * i
        x = x + 1
    return x, y
#: (torch.ones(2), 3)


def for_range_steps():
    out: List[int] = []
    for i in range(2, 10, 3):
        out.append(i)
    for i in range(5, 0, -2):
        out.append(i)
    for i in range(3, 3):
        out.append(i)
    return out
#: ()


def range_by_zero(step: int):
    total = 0
    for i in range(0, 10, step):
        total += i
    return total
#: (3,)
#: (0,)


def loop_variable_after(n: int):
    i = -1
    for i in range(n):
        pass
    return i
#: (3,)


def for_over_list(a: List[int]):
    total = 0
    for x in a:
        total += x
    return total
#: ([1, 2, 3],)
#: ([],)


def for_over_tuple():
    total = 0.0
    for x in (1.0, 2.5, 3.0):
        total += x
    return total
#: ()


def for_over_mixed_tuple(x: torch.Tensor):
    out = x
    for t in (1, 2.0, x):
        out = out + t
    return out
#: (torch.ones(2),)


def for_over_tensor(x: torch.Tensor):
    total = torch.zeros(2)
    for row in x:
        total = total + row
    return total
#: (torch.arange(6).reshape(3, 2),)


def for_modifies_list(a: List[int]):
    for x in a:
        if x < 3:
            a.append(x + 1)
    return a
#: ([1, 2],)


def asserted(x: int):
    assert x > 0
    assert x < 10, "too big"
    return x
#: (3,)
#: (-1,)
#: (11,)


def asserted_f_string(x: int):
    assert x > 0, f"bad value {x}"
    return x
#: (1,)
#: (-2,)


def raises(x: int):
    if x > 0:
        raise ValueError("positive")
    return x
#: (-1,)
#: (1,)


def raises_formatted(x: int):
    if x > 0:
        raise RuntimeError("got {}".format(x))
    return x
#: (1,)


def raises_in_all(x: int):
    if x > 0:
        raise RuntimeError("a")
    else:
        raise RuntimeError("b")
    return x
#: (1,)
#: (0,)


def defined_by_raise(x: int):
    if x > 0:
        y = x
    else:
        raise ValueError("negative")
    return y
#: (1,)
#: (0,)


def collatz(n: int):
    steps = 0
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
    return steps
#: (27,)


def primes(n: int):
    found: List[int] = []
    for i in range(2, n):
        is_prime = True
        for p in found:
            if p * p > i:
                break
            if i % p == 0:
                is_prime = False
                break
        if is_prime:
            found.append(i)
    return found
#: (30,)


def fibonacci(n: int):
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a
#: (20,)


def bubble(a: List[int]):
    n = len(a)
    for i in range(n):
        for j in range(n - 1 - i):
            if a[j] > a[j + 1]:
                a[j], a[j + 1] = a[j + 1], a[j]
    return a
#: ([3, 1, 2],)


def helper(x: int, y: int = 2) -> int:
    return x * y


def calls(x: int):
    return helper(x) + helper(x, 3) + helper(y=4, x=x)
#: (5,)


def recursive(x: int) -> int:
    return helper(x - 1) if x > 1 else 1
#: (4,)


def keyword_only(x: int, *, y: int):
    return x - y


def calls_keyword_only(x: int):
    return keyword_only(x, y=3)
#: (5,)


def default_arguments(x: int, y: float = 2.5, z: Optional[int] = None, s: str = "a"):
    if z is not None:
        return x + z, y, s
    return x, y, s
#: (1,)
#: (1, 3.0, 4)
#: (1, 3.0, None, 'q')


def returns_none(x: int):
    x + 1
#: (1,)


def returns_optional(x: int) -> Optional[int]:
    if x > 0:
        return x
    return None
#: (1,)
#: (-1,)


def shadowed(x: int):
    y = x
    if x > 0:
        y = y + 1
        z = y
    else:
        z = 0
    return y + z
#: (1,)
#: (0,)


def pass_and_docstring(x: int):
    """Does nothing."""
    if x > 0:
        pass
    for _ in range(2):
        pass
    return x
#: (1,)


def conditions(x: int, y: float):
    return x > 1 and y > 1.0, x > 1 or y > 1.0, not x > 1, 0 < x < 5
#: (2, 0.5)
#: (7, 2.0)


def while_true_break(n: int):
    i = 0
    while True:
        i += 2
        if i > n:
            break
    return i
#: (7,)


def loop_with_if_assignment(n: int):
    x = 0
    for i in range(n):
        if i % 3 == 0:
            x += 1
        elif i % 3 == 1:
            x += 10
        else:
            x -= 5
    return x
#: (7,)


def early_return_in_with(x: torch.Tensor):
    with torch.no_grad():
        if x.sum() > 0:
            return x + 1
        y = x * 2
    return y
#: (torch.ones(2),)
#: (-torch.ones(2),)


def no_grad(x: torch.Tensor):
    with torch.no_grad():
        y = x * 2
    z = x * 3
    return y, z
#: (torch.ones(2, requires_grad=True),)


def printed(x: int):
    print("x is", x)
    return x
#: (1,)


def deleted(x: int):
    y = x + 1
    z = y
    del y
    return z
#: (1,)


def ternary_of_tensors(x: torch.Tensor, flag: bool):
    y = x * 2 if flag else x - 1
    return y if y.sum() > 0 else -y
#: (torch.ones(2), True)
#: (torch.zeros(2), False)


def multiple_assignment():
    a = b = 3
    a += 1
    return a, b
#: ()
