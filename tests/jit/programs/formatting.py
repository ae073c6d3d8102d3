"""Values as text: escaped braces, and numbers and containers in str, format and f-strings."""

from typing import Any, Dict, List, Optional, Tuple
import rushlight as torch
from rushlight import Tensor


def braces_1(x: int):
    return f"{{{x}}}"
#: (1,)


def braces_3(x: int):
    return f"{{x}}"
#: (1,)


def braces_4(x: int):
    return f"a{x}b{{c}}"
#: (1,)


def braces_7(x: int):
    return "{{}}".format()
#: (1,)


def braces_8(x: int):
    return "{{{}}}".format(x)
#: (1,)


def braces_9(x: int):
    return "{} {{}} {}".format(x, x)
#: (1,)


def braces_10(x: int):
    return "{{}}".format(x)
#: (1,)


def braces_11(x: int):
    return "{{a}}".format(x)
#: (1,)


def braces_12(x: int):
    return "{{a}} {}".format(x)
#: (1,)


def braces_13(x: int):
    return f"}}{x}{{"
#: (1,)


def braces_16(x: int):
    return f"{'{}'}"
#: (1,)


def braces_17(x: int):
    return "{}" + f"{x}"
#: (1,)


def braces_18(x: str):
    return x.format(1)
#: ("a{}",)
#: ("{{}}",)


def braces_19(x: int):
    return "{{" + str(x)
#: (1,)


def printed_3(x: float):
    return str(x), f"{x}", "{}".format(x), "%s" % x
#: (2.0,)
#: (0.1,)
#: (1e20,)
#: (1e-7,)
#: (float("inf"),)
#: (float("nan"),)
#: (123456789.123,)
#: (1e16,)
#: (-0.0,)
#: (100000.0,)
#: (1e5 + 0.5,)
#: (3.14,)
#: (1e17,)
#: (1234567890123456789.0,)


def printed_4(x: List[int]):
    return str(x), f"{x}", "{}".format(x)
#: ([1, 2],)
#: ([],)


def printed_5(x: List[float]):
    return str(x), f"{x}"
#: ([1.0, 2.5, 0.1],)


def printed_6(x: List[str]):
    return str(x), f"{x}"
#: (["a", "b'c"],)


def printed_7(x: Dict[str, int]):
    return str(x), f"{x}"
#: ({"a": 1, "b": 2},)


def printed_8(x: Tuple[int, float, str]):
    return str(x), f"{x}"
#: ((1, 2.0, "a"),)


def printed_9(x: bool):
    return str(x), f"{x}"
#: (True,)


def printed_12(x: complex):
    return str(x), f"{x}"
#: (1+2j,)


def printed_13(x: List[List[int]]):
    return str(x)
#: ([[1], [2, 3]],)


def printed_14(x: str):
    return f"{x}", str(x), "{}".format(x)
#: ("a{}b",)


def printed_16(x: List[bool]):
    return str(x)
#: ([True],)


def printed_17(x: torch.device):
    return str(x)
#: (torch.device("cpu"),)


def printed_18(x: float, y: int):
    return f"{x}{y}" + str(x) * 2
#: (1.0, 2)


def printed_19(x: int):
    return "{0} {1}".format(x, x)
#: (1,)


def printed_20(x: int):
    return "a}".format(x)
#: (1,)


def printed_21(x: int):
    return "{".format(x)
#: (1,)


def printed_22(x: int):
    return "{} {}".format(x)
#: (1,)


def printed_25(x: Dict[int, float]):
    return str(x)
#: ({1: 2.0},)


def printed_26(x: Tuple[int]):
    return str(x)
#: ((1,),)


def printed_27(x: Dict[str, List[float]]):
    return str(x)
#: ({"a": [1.0]},)


def printed_28(x: int):
    return f"{x:d}"
#: (1,)


def printed_29(x: float):
    return f"{x:.2f}"
#: (1.0,)


def printed_30(x: float):
    return f"{x!r}"
#: (1.0,)


def printed_32(x: int):
    return "{}".format(x, x)
#: (1,)


def printed_33(x: List[complex]):
    return str(x)
#: ([1j],)


def printed_34(x: Optional[float]):
    return str(x)
#: (2.0,)


def printed_35(x: Any):
    return str(x)
#: (2.0,)


def printed_36(x: List[float]):
    return "%s" % x[0], "%s" % str(x)
#: ([1.0],)
