"""Lists, dicts and tuples: literals, methods, comprehensions, iteration."""

from typing import Dict, List, Optional, Tuple

import rushlight as torch


def append(a: List[int]):
    a.append(4)
    a.append(5)
    return a
#: ([1, 2],)


def extend(a: List[int]):
    a.extend([7, 8])
    a += [9]
    return a + [1]
#: ([1],)


def insert(a: List[int]):
    a.insert(0, 5)
    a.insert(10, 6)
    a.insert(-1, 7)
    return a
#: ([1, 2],)


def pop(a: List[int]):
    x = a.pop()
    y = a.pop(0)
    return x, y, a
#: ([1, 2, 3],)


def pop_empty(a: List[int]):
    return a.pop()
#: ([],)


def remove(a: List[int]):
    a.remove(2)
    return a
#: ([1, 2, 3, 2],)
#: ([1],)


def clear(a: List[int]):
    a.clear()
    return len(a)
#: ([1, 2],)


def reverse(a: List[int]):
    a.reverse()
    return a
#: ([1, 2, 3],)


def sort(a: List[int]):
    a.sort()
    b = a.copy()
    b.sort(reverse=True)
    return a, b
#: ([3, 1, 2],)


def sorted_(a: List[int]):
    return sorted(a)
#: ([3, 1, 2],)


def index(a: List[int]):
    return a.index(3)
#: ([1, 3, 5],)
#: ([1],)


def count(a: List[int]):
    return a.count(1)
#: ([1, 3, 1],)


def slices(a: List[int]):
    return a[1:], a[:-1], a[::2], a[-2:], a[::-1], a[1:10]
#: ([1, 2, 3, 4],)


def set_items(a: List[int]):
    a[0] = 10
    a[-1] += 5
    return a
#: ([1, 2, 3],)


def delete_item(a: List[int]):
    del a[0]
    return a
#: ([1, 2, 3],)


def get_out_of_range(a: List[int]):
    return a[5]
#: ([1],)


def set_out_of_range(a: List[int]):
    a[5] = 1
    return a
#: ([1],)


def negative_out_of_range(a: List[int]):
    return a[-5]
#: ([1],)


def member(a: List[int]):
    return 2 in a, 5 not in a
#: ([1, 2],)


def equal(a: List[int], b: List[int]):
    return a == b, a != b
#: ([1, 2], [1, 2])
#: ([1], [2])


def repeated(a: List[int]):
    return a * 2, [0] * 3
#: ([1, 2],)


def sums(a: List[int], b: List[float]):
    return sum(a), sum(b), min(a), max(b)
#: ([1, 2], [0.5, 2.5])


def any_all(a: List[bool], b: List[int]):
    return any(a), all(a), any(b), all(b)
#: ([True, False], [1, 2])


def comprehension(a: List[int]):
    return [x * 2 for x in a], [float(x) for x in a]
#: ([1, 2],)


def comprehension_if(a: List[int]):
    return [x for x in a if x > 1]
#: ([1, 2, 3],)


def comprehension_range(n: int):
    return [i * i for i in range(n)]
#: (4,)


def nested_lists():
    a = [[1, 2], [3]]
    a[0].append(9)
    a.append([4])
    return a, len(a[0])
#: ()


def annotated():
    a: List[str] = []
    a.append('x')
    b = torch.jit.annotate(List[float], [])
    b.append(1.0)
    return a, b
#: ()


def of_floats(n: int):
    out: List[float] = []
    for i in range(n):
        out.append(i / 2)
    return out
#: (3,)


def of_tensors(x: torch.Tensor):
    items = [x, x + 1]
    items.append(x * 2)
    return torch.stack(items), torch.cat(items, dim=0)
#: (torch.ones(2),)


def empty_is_tensors(x: torch.Tensor):
    out = []
    for i in range(3):
        out.append(x * i)
    return out
#: (torch.ones(2),)


def aliases(a: List[int]):
    b = a
    b.append(3)
    c = a[:]
    c.append(4)
    return a, b, c
#: ([1],)


def unpacked(a: List[int]):
    x, y = a
    return y, x
#: ([1, 2],)
#: ([1, 2, 3],)


def enumerated(a: List[str]):
    out: List[str] = []
    for i, s in enumerate(a):
        out.append(s + str(i))
    for i, s in enumerate(a, 5):
        out.append(s + str(i))
    return out
#: (['x', 'y'],)


def zipped(a: List[int], b: List[float]):
    total = 0.0
    for x, y in zip(a, b):
        total += x * y
    return total
#: ([1, 2, 3], [0.5, 1.5])


def reversed_loop(a: List[int]):
    out: List[int] = []
    for x in a[::-1]:
        out.append(x)
    return out
#: ([1, 2, 3],)


def list_of_range(n: int):
    return list(range(n)), list(range(2, n)), list(range(n, 0, -2))
#: (5,)


def optional_items(a: List[Optional[int]]):
    n = 0
    for x in a:
        if x is not None:
            n += x
    return n
#: ([1, None, 3],)


def tuples(a: Tuple[int, str]):
    x, y = a
    return y, x, a[0], a[-1], len(a)
#: ((1, 'b'),)


def tuple_slices():
    t = (1, 'a', 2.0, True)
    return t[1:3], t[:-1], t[::2]
#: ()


def tuple_in_list(a: List[Tuple[int, str]]):
    out: List[str] = []
    for n, s in a:
        out.append(s * n)
    return out, a[0][1]
#: ([(2, 'x'), (1, 'y')],)


def tuple_compare(a: Tuple[int, int], b: Tuple[int, int]):
    return a == b, a != b
#: ((1, 2), (1, 2))
#: ((1, 2), (2, 1))


def nested_unpack():
    (a, b), c = (1, 2.0), 'x'
    return c, b, a
#: ()


def starred():
    a, *b = (1, 2, 3)
    return a, b
#: ()


def swap(a: int, b: int):
    a, b = b, a
    return a, b
#: (1, 2)


def tuple_of_tensors(x: torch.Tensor):
    values, indices = torch.max(x, dim=1)
    return values, indices
#: (torch.arange(6).reshape(2, 3).float(),)


def nested_tuple_in_branch(x: torch.Tensor, k: bool):
    if k:
        y = (x, (x, x))
    else:
        y = (x + 1, (x, x * 2))
    return y
#: (torch.ones(2), True)
#: (torch.ones(2), False)


def nested_tuple_in_loop(n: int):
    y = (0, (1, (2.0, 'a')))
    for i in range(n):
        y = (i, (y[0], (3.0, 'b')))
    return y
#: (0,)
#: (3,)


def nested_tuple_of_lists(a: List[int]):
    y = (a, ([1], a))
    y[1][0].append(2)
    (first, (second, third)) = y
    return y, len(y), len(first), second, third
#: ([1, 2, 3],)


def tuple_of_list(a: List[int]):
    x = (a[0], a)
    return x
#: ([1, 2],)


def single_tuple(x: int):
    return (x,)
#: (3,)


def dict_get(d: Dict[str, int]):
    return d['a'], d.get('b'), d.get('z', 9), len(d)
#: ({'a': 1, 'b': 2},)


def dict_missing(d: Dict[str, int]):
    return d['zz']
#: ({'a': 1},)


def dict_set(d: Dict[str, int]):
    d['a'] = 5
    d['n'] = 6
    d['a'] += 1
    return d
#: ({'a': 1, 'b': 2},)


def dict_delete(d: Dict[str, int]):
    del d['a']
    return d
#: ({'a': 1, 'b': 2},)


def dict_pop(d: Dict[str, int]):
    x = d.pop('a')
    y = d.pop('q', 7)
    return x, y, d
#: ({'a': 1, 'b': 2},)


def dict_popitem(d: Dict[str, int]):
    return d.popitem(), len(d)
#: ({'a': 1},)


def dict_clear(d: Dict[str, int]):
    d.clear()
    return len(d)
#: ({'a': 1},)


def dict_update(d: Dict[str, int]):
    d.update({'b': 5, 'c': 6})
    return d
#: ({'a': 1, 'b': 2},)


def dict_setdefault(d: Dict[str, int]):
    x = d.setdefault('a', 5)
    y = d.setdefault('c', 6)
    return x, y, d
#: ({'a': 1},)


def dict_copy(d: Dict[str, int]):
    e = d.copy()
    e['z'] = 1
    return d, e
#: ({'a': 1},)


def dict_keys(d: Dict[str, int]):
    return list(d.keys()), list(d.values()), list(d.items())
#: ({'a': 1, 'b': 2},)


def dict_iterate(d: Dict[str, int]):
    out: List[str] = []
    for k in d:
        out.append(k)
    total = 0
    for k, v in d.items():
        total += v
    for v in d.values():
        total += v
    return out, total
#: ({'a': 1, 'b': 2},)


def dict_contains(d: Dict[str, int]):
    return 'a' in d, 'x' not in d
#: ({'a': 1},)


def dict_literal(n: int):
    d = {'a': n, 'b': n + 1}
    e: Dict[int, str] = {}
    e[3] = 'x'
    return d, e
#: (3,)


def dict_comprehension(a: List[int]):
    return {x: x * x for x in a}
#: ([1, 2, 3],)


def dict_constructor():
    d = dict([('a', 1), ('b', 2)])
    return d
#: ()


def dict_float_keys(d: Dict[float, int]):
    return d[1.5]
#: ({1.5: 3},)


def dict_bool_keys(d: Dict[bool, int]):
    return d[True]
#: ({True: 3},)


def dict_of_tensors(d: Dict[str, torch.Tensor]):
    d['c'] = d['a'] + d['b']
    return d
#: ({'a': torch.ones(2), 'b': torch.ones(2)},)


def dict_of_lists():
    d: Dict[str, List[int]] = {}
    for i in range(4):
        k = 'even' if i % 2 == 0 else 'odd'
        if k not in d:
            d[k] = []
        d[k].append(i)
    return d
#: ()


def dict_compare(d: Dict[str, int]):
    return d == {'a': 1}
#: ({'a': 1},)
#: ({'a': 2},)


def lists_of_strings(a: List[str]):
    a.sort()
    return a, 'x' in a, a.index('x')
#: (['y', 'x'],)


def list_min_max(a: List[int], b: List[int]):
    return min(a), max(a), min(a, b)
#: ([1, 5], [2, 0])


def bool_lists(a: List[bool]):
    a.append(True)
    a.reverse()
    return a
#: ([False],)


def mixed_numeric():
    return [1.0, 2.0], [True, False], ['a'], [1 + 2j]
#: ()


def len_of(a: List[int], d: Dict[str, int], t: Tuple[int, int], s: str, x: torch.Tensor):
    return len(a), len(d), len(t), len(s), len(x)
#: ([1], {'a': 1}, (1, 2), 'abc', torch.ones(3, 2))


def list_tensor(a: List[int]):
    return torch.tensor(a), torch.tensor([[1.0, 2.0], [3.0, 4.0]])
#: ([1, 2],)


def tolist(x: torch.Tensor):
    a: List[float] = x.tolist()
    return a
#: (torch.ones(2),)


def tolist_nested(x: torch.Tensor):
    a: List[List[int]] = x.tolist()
    return a
#: (torch.arange(4).reshape(2, 2),)


def cumulative(a: List[int]):
    out: List[int] = []
    total = 0
    for x in a:
        total += x
        out.append(total)
    return out
#: ([1, 2, 3],)


def emptied_in_a_loop(n: int):
    found: List[int] = [7]
    pair = (1, [2])
    for i in range(n):
        if i > 1:
            found = []
        pair = (i, [])
        found.append(i)
    return found, pair
#: (4,)
#: (0,)
