"""A bool where a number is wanted, extremes of several numbers, the truth of containers, sums of tuples, tensordot."""

from typing import Dict, List, Optional, Tuple
import rushlight as torch
from rushlight import Tensor


def bool_as_number_1(x: Tensor, b: bool):
    return x * b
#: (torch.ones(2), True)


def bool_as_number_2(x: Tensor, b: bool):
    return x + b
#: (torch.ones(2), True)


def bool_as_number_3(x: Tensor, b: bool):
    return x - b
#: (torch.ones(2), True)


def bool_as_number_4(x: Tensor, b: bool):
    return x / b
#: (torch.ones(2), True)


def bool_as_number_5(x: Tensor, b: bool):
    return b * x
#: (torch.ones(2), True)


def bool_as_number_6(x: Tensor, b: bool):
    return b - x
#: (torch.ones(2), True)


def bool_as_number_7(b: bool):
    return torch.full([2], b)
#: (True,)


def bool_as_number_8(x: Tensor, b: bool):
    return x.masked_fill(x > 0, b)
#: (torch.ones(2), False)


def bool_as_number_9(x: Tensor, b: bool):
    return torch.clamp(x, b)
#: (torch.zeros(2), True)


def bool_as_number_10(b: bool):
    return b + 1
#: (True,)


def bool_as_number_11(b: bool):
    return 1 + b, b * 2, b - 1, 1 - b, b / 2, b // 2, b % 2, b ** 2, 2 ** b
#: (True,)


def bool_as_number_12(b: bool):
    return b + 1.5, b * 1.5, 1.5 - b, b / 1.5, b // 1.5, b % 1.5, b ** 1.5
#: (True,)


def bool_as_number_13(b: bool, c: bool):
    return b + c
#: (True,True)


def bool_as_number_14(b: bool, c: bool):
    return b * c
#: (True,True)


def bool_as_number_15(b: bool, c: bool):
    return b - c
#: (True,True)


def bool_as_number_16(b: bool):
    return -b
#: (True,)


def bool_as_number_17(b: bool):
    return abs(b)
#: (True,)


def bool_as_number_18(b: bool, c: int):
    return b == c, b != c, b < c, b > c, b <= c, b >= c
#: (True,1)


def bool_as_number_19(b: bool, c: float):
    return b == c, b != c, b < c, b > c, b <= c, b >= c
#: (True,1.0)


def bool_as_number_20(b: bool, c: bool):
    return b == c, b != c
#: (True,False)


def bool_as_number_21(b: bool, c: bool):
    return b < c
#: (True,False)


def i(x: int):
    return x


def f(x: float):
    return x


def bool_as_number_22(b: bool):
    return i(b)
#: (True,)


def bool_as_number_23(b: bool):
    return f(b)
#: (True,)


def bool_as_number_24(x: Tensor, b: bool):
    return x > b, x == b, x >= b
#: (torch.ones(2), True)


def bool_as_number_25(x: Tensor, b: bool):
    return x.add(b), x.mul(b)
#: (torch.ones(2), True)


def bool_as_number_26(x: Tensor, b: bool):
    return x.add_(b)
#: (torch.ones(2), True)


def bool_as_number_27(x: Tensor, b: bool):
    x += b
    return x
#: (torch.ones(2), True)


def bool_as_number_28(x: Tensor, b: bool):
    x[0] = b
    return x
#: (torch.ones(2), True)


def bool_as_number_29(x: Tensor, b: bool):
    return x ** b
#: (torch.ones(2), True)


def bool_as_number_30(x: Tensor, b: bool):
    return torch.where(x > 0, x, b)
#: (torch.ones(2), True)


def bool_as_number_31(x: Tensor, b: bool):
    return torch.pow(x, b), torch.full_like(x, b), x.new_full([2], b), x.fill_(b)
#: (torch.ones(2), True)


def bool_as_number_32(b: bool):
    return max(b, 1)
#: (True,)


def bool_as_number_33(b: bool):
    return int(b), float(b), str(b), complex(b)
#: (True,)


def bool_as_number_34(b: bool):
    return torch.tensor(b), torch.tensor([b])
#: (True,)


def bool_as_number_35(b: bool):
    l = [1, 2]
    return l[b]
#: (True,)


def bool_as_number_36(b: bool):
    return torch.zeros(b)
#: (True,)


def bool_as_number_37(b: bool):
    return torch.arange(b)
#: (True,)


def bool_as_number_38(x: Tensor, b: bool):
    return x.sum(b)
#: (torch.ones(2), False)


def bool_as_number_39(x: Tensor, b: bool):
    return torch.add(x, x, alpha=b)
#: (torch.ones(2), True)


def bool_as_number_40(x: Tensor, b: bool):
    return x & b, x | b, x ^ b
#: (torch.ones(2).bool(), True)


def bool_as_number_41(b: bool, c: bool):
    return b & c, b | c, b ^ c
#: (True, False)


def bool_as_number_42(b: bool, c: int):
    return b & c
#: (True, 1)


def bool_as_number_43(b: bool):
    return range(b)
#: (True,)


def bool_as_number_44(b: bool):
    s = 0
    s += b
    return s
#: (True,)


def bool_as_number_45(bs: List[bool]):
    return sum(bs)
#: ([True, True],)


def bool_as_number_46(b: bool):
    return torch.nn.functional.dropout(torch.ones(2), b)
#: (False,)


def bool_as_number_47(x: Tensor, b: bool):
    return x.clamp(min=b), x.clamp(max=b), x.clamp_(b)
#: (torch.ones(2), True)


def bool_as_number_48(b: bool) -> int:
    return b
#: (True,)


def bool_as_number_49(b: bool) -> float:
    return b
#: (True,)


def bool_as_number_50(b: bool):
    y: int = b
    return y
#: (True,)


def bool_as_number_51(x: Tensor, b: bool):
    return torch.eq(x, b), torch.div(x, b), torch.rsub(x, b), x.remainder(b), x % b
#: (torch.ones(2), True)


def bool_as_number_52(x: Tensor, b: bool):
    return x * (x.size(0) == 2)
#: (torch.ones(2), True)


def bool_as_number_53(x: Tensor, b: bool):
    return torch.lerp(x, x, b)
#: (torch.ones(2), True)


def bool_as_number_54(x: Tensor, b: bool):
    return torch.addcmul(x, x, x, value=b)
#: (torch.ones(2), True)


def bool_as_number_55(x: Tensor, b: bool):
    return torch.nn.functional.pad(x, [1, 1], value=b)
#: (torch.ones(2), True)


def bool_as_number_56(x: Tensor, b: bool):
    return torch.threshold(x, b, b)
#: (torch.ones(2), True)


def bool_as_number_57(x: Tensor, b: bool):
    return x.scatter(0, torch.tensor([0]), b)
#: (torch.ones(2), True)


def bool_as_number_58(x: Tensor, b: bool):
    return x.index_fill(0, torch.tensor([0]), b)
#: (torch.ones(2), True)


def bool_as_number_59(b: bool):
    return torch.scalar_tensor(b)
#: (True,)


def bool_as_number_60(x: Tensor, b: bool):
    return torch.copysign(x, b), torch.fmod(x, b)
#: (torch.ones(2), True)


def bool_as_number_61(n: Optional[int], b: bool):
    return n == b
#: (2, True)


def bool_as_number_62(b: bool):
    return round(b)
#: (True,)


def extreme_1(a: int, b: int, c: int):
    return max(a, b, c), min(a, b, c)
#: (1, 3, 2)


def extreme_2(a: float, b: float, c: float):
    return max(a, b, c), min(a, b, c)
#: (1., 3., 2.)


def extreme_3(a: int, b: float, c: float):
    return max(a, b, c), min(a, b, c)
#: (1, 3., 2.)


def extreme_4(a: int, b: int, c: int, d: int):
    return max(a, b, c, d), min(a, b, c, d)
#: (1, 3, 2, 9)


def extreme_5(a: Tensor, b: Tensor):
    return max(a, b)
#: (torch.ones(1), torch.zeros(1))


def extreme_6(a: Tensor, b: Tensor):
    return min(a, b)
#: (torch.ones(1), torch.zeros(1))


def extreme_7(a: Tensor):
    return max(a)
#: (torch.ones(1),)


def extreme_8(a: int):
    return max(a)
#: (1,)


def extreme_9(a: str, b: str):
    return max(a, b)
#: ("a", "b")


def extreme_10(a: List[int], b: List[int]):
    return max(a, b), max(a), min(b)
#: ([1], [2])


def extreme_11(a: Tuple[int, int]):
    return max(a)
#: ((1, 2),)


def extreme_12(a: List[str]):
    return max(a)
#: (["a", "b"],)


def extreme_13(a: int, b: float):
    return max(a, b), min(b, a)
#: (1, 2.5)


def extreme_14(a: List[float]):
    return max(a), min(a)
#: ([1.5, 2.5],)


def truth_1(s: str):
    return bool(s)
#: ("",)
#: ("a",)


def truth_2(s: List[int]):
    return bool(s)
#: ([],)


def truth_3(s: Tensor):
    return bool(s)
#: (torch.ones(1),)


def truth_4(s: int, t: float):
    return bool(s), bool(t)
#: (1, 0.0)


def truth_5(s: str):
    if s: return 1
    return 2
#: ("",)


def truth_6(s: Optional[int]):
    return bool(s)
#: (1,)


def truth_7(s: Dict[str, int]):
    return bool(s)
#: ({},)


def truth_8(s: complex):
    return bool(s)
#: (1j,)


def truth_9(s: Tuple[int]):
    return bool(s)
#: ((1,),)


def truth_10(b: bool):
    return bool(b)
#: (True,)


def joined_tuple_1(a: Tuple[int, int], b: Tuple[int]):
    return a + b
#: ((1, 2), (3,))


def joined_tuple_2(a: Tuple[int, int]):
    return a + (1, "a")
#: ((1, 2),)


def joined_tuple_3(x: Tensor):
    return x.size() + x.size(), (1, 2) + (3,)
#: (torch.ones(2),)


def joined_tuple_4(x: Tensor):
    return x.view((1,) + (2,))
#: (torch.ones(2),)


def joined_tuple_5(a: Tuple[int, int]):
    a += (1,)
    return a
#: ((1, 2),)


def joined_tuple_6(a: Tuple[int, int]):
    return a * 2
#: ((1, 2),)


def joined_tuple_7(a: Tuple[int, int], b: List[int]):
    return a + b
#: ((1, 2), [1])


def joined_tuple_8(x: Tensor):
    return (x,) + (x, x)
#: (torch.ones(2),)


def joined_tuple_9(x: Tensor):
    a = ()
    a = a + (x,)
    return a
#: (torch.ones(2),)


def joined_tuple_10(a: Tuple[int, int]):
    return a == (1, 2), a != (1, 2), a < (2, 2)
#: ((1, 2),)


def dot_1(x: Tensor, y: Tensor):
    return torch.tensordot(x, y, 2)
#: (torch.ones(2,3), torch.ones(2,3))


def dot_2(x: Tensor, y: Tensor):
    return torch.tensordot(x, y, dims=1)
#: (torch.ones(2,3), torch.ones(3,3))


def dot_3(x: Tensor, y: Tensor):
    return torch.tensordot(x, y, dims=([1], [0]))
#: (torch.ones(2,3), torch.ones(3,3))


def dot_4(x: Tensor, y: Tensor):
    return torch.tensordot(x, y, dims=[[1], [0]])
#: (torch.ones(2,3), torch.ones(3,3))


def dot_5(x: Tensor, y: Tensor, d: int):
    return torch.tensordot(x, y, d)
#: (torch.ones(2,3), torch.ones(3,3), 1)


def dot_6(x: Tensor, y: Tensor, d: List[List[int]]):
    return torch.tensordot(x, y, d)
#: (torch.ones(2,3), torch.ones(3,3), [[1],[0]])


def dot_7(x: Tensor, y: Tensor):
    return torch.tensordot(x, y)
#: (torch.ones(2,3), torch.ones(2,3))


def dot_8(x: Tensor, y: Tensor):
    return torch.tensordot(x, y, [1], [0])
#: (torch.ones(2,3), torch.ones(3,3))


def dot_9(x: Tensor, y: Tensor):
    return torch.tensordot(x, y, dims_self=[1], dims_other=[0])
#: (torch.ones(2,3), torch.ones(3,3))


def dot_10(x: Tensor, y: Tensor, d: Tuple[List[int], List[int]]):
    return torch.tensordot(x, y, d)
#: (torch.ones(2,3), torch.ones(3,3), ([1],[0]))


def dot_11(x: Tensor, y: Tensor, d: Tensor):
    return torch.tensordot(x, y, d)
#: (torch.ones(2,3), torch.ones(3,3), torch.tensor([[1],[0]]))
