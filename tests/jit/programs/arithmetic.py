"""Numbers: operators, conversions and functions of ints, floats, complex numbers and bools."""

import math  # noqa: F401

import rushlight as torch  # noqa: F401


def add_int_int(a: int, b: int):
    return a + b
#: (7, -3)
#: (-3, 7)


def add_int_float(a: int, b: float):
    return a + b
#: (7, -0.75)
#: (-3, 2.5)


def add_float_int(a: float, b: int):
    return a + b
#: (2.5, -3)
#: (-0.75, 7)


def add_float_float(a: float, b: float):
    return a + b
#: (2.5, -0.75)
#: (-0.75, 2.5)


def add_complex_complex(a: complex, b: complex):
    return a + b
#: (1 + 2j, -1j)
#: (-1j, 1 + 2j)


def sub_int_int(a: int, b: int):
    return a - b
#: (7, -3)
#: (-3, 7)


def sub_int_float(a: int, b: float):
    return a - b
#: (7, -0.75)
#: (-3, 2.5)


def sub_float_int(a: float, b: int):
    return a - b
#: (2.5, -3)
#: (-0.75, 7)


def sub_float_float(a: float, b: float):
    return a - b
#: (2.5, -0.75)
#: (-0.75, 2.5)


def sub_complex_complex(a: complex, b: complex):
    return a - b
#: (1 + 2j, -1j)
#: (-1j, 1 + 2j)


def mul_int_int(a: int, b: int):
    return a * b
#: (7, -3)
#: (-3, 7)


def mul_int_float(a: int, b: float):
    return a * b
#: (7, -0.75)
#: (-3, 2.5)


def mul_float_int(a: float, b: int):
    return a * b
#: (2.5, -3)
#: (-0.75, 7)


def mul_float_float(a: float, b: float):
    return a * b
#: (2.5, -0.75)
#: (-0.75, 2.5)


def mul_complex_complex(a: complex, b: complex):
    return a * b
#: (1 + 2j, -1j)
#: (-1j, 1 + 2j)


def truediv_int_int(a: int, b: int):
    return a / b
#: (7, -3)
#: (-3, 7)
#: (7, 0)


def truediv_int_float(a: int, b: float):
    return a / b
#: (7, -0.75)
#: (-3, 2.5)


def truediv_float_int(a: float, b: int):
    return a / b
#: (2.5, -3)
#: (-0.75, 7)
#: (2.5, 0)


def truediv_float_float(a: float, b: float):
    return a / b
#: (2.5, -0.75)
#: (-0.75, 2.5)


def truediv_complex_complex(a: complex, b: complex):
    return a / b
#: (1 + 2j, -1j)
#: (-1j, 1 + 2j)


def floordiv_int_int(a: int, b: int):
    return a // b
#: (7, -3)
#: (-3, 7)
#: (7, 0)


def floordiv_int_float(a: int, b: float):
    return a // b
#: (7, -0.75)
#: (-3, 2.5)


def floordiv_float_int(a: float, b: int):
    return a // b
#: (2.5, -3)
#: (-0.75, 7)
#: (2.5, 0)


def floordiv_float_float(a: float, b: float):
    return a // b
#: (2.5, -0.75)
#: (-0.75, 2.5)


def mod_int_int(a: int, b: int):
    return a % b
#: (7, -3)
#: (-3, 7)


def mod_int_float(a: int, b: float):
    return a % b
#: (7, -0.75)
#: (-3, 2.5)


def mod_float_int(a: float, b: int):
    return a % b
#: (2.5, -3)
#: (-0.75, 7)


def mod_float_float(a: float, b: float):
    return a % b
#: (2.5, -0.75)
#: (-0.75, 2.5)


def pow_int_int(a: int, b: int):
    return a ** b
#: (7, 7)
#: (7, 3)


def pow_int_float(a: int, b: float):
    return a ** b
#: (7, 2.5)
#: (7, 0.75)


def pow_float_int(a: float, b: int):
    return a ** b
#: (2.5, 7)
#: (2.5, 3)


def pow_float_float(a: float, b: float):
    return a ** b
#: (2.5, 2.5)
#: (2.5, 0.75)


def pow_complex_complex(a: complex, b: complex):
    return a ** b
#: (1 + 2j, 1 + 2j)
#: (1 + 2j, 1j)


def eq_int_int(a: int, b: int):
    return a == b
#: (7, -3)
#: (-3, 7)


def eq_int_float(a: int, b: float):
    return a == b
#: (7, -0.75)
#: (-3, 2.5)


def eq_float_int(a: float, b: int):
    return a == b
#: (2.5, -3)
#: (-0.75, 7)


def eq_float_float(a: float, b: float):
    return a == b
#: (2.5, -0.75)
#: (-0.75, 2.5)


def eq_complex_complex(a: complex, b: complex):
    return a == b
#: (1 + 2j, -1j)
#: (-1j, 1 + 2j)


def ne_int_int(a: int, b: int):
    return a != b
#: (7, -3)
#: (-3, 7)


def ne_int_float(a: int, b: float):
    return a != b
#: (7, -0.75)
#: (-3, 2.5)


def ne_float_int(a: float, b: int):
    return a != b
#: (2.5, -3)
#: (-0.75, 7)


def ne_float_float(a: float, b: float):
    return a != b
#: (2.5, -0.75)
#: (-0.75, 2.5)


def ne_complex_complex(a: complex, b: complex):
    return a != b
#: (1 + 2j, -1j)
#: (-1j, 1 + 2j)


def lt_int_int(a: int, b: int):
    return a < b
#: (7, -3)
#: (-3, 7)


def lt_int_float(a: int, b: float):
    return a < b
#: (7, -0.75)
#: (-3, 2.5)


def lt_float_int(a: float, b: int):
    return a < b
#: (2.5, -3)
#: (-0.75, 7)


def lt_float_float(a: float, b: float):
    return a < b
#: (2.5, -0.75)
#: (-0.75, 2.5)


def le_int_int(a: int, b: int):
    return a <= b
#: (7, -3)
#: (-3, 7)


def le_int_float(a: int, b: float):
    return a <= b
#: (7, -0.75)
#: (-3, 2.5)


def le_float_int(a: float, b: int):
    return a <= b
#: (2.5, -3)
#: (-0.75, 7)


def le_float_float(a: float, b: float):
    return a <= b
#: (2.5, -0.75)
#: (-0.75, 2.5)


def gt_int_int(a: int, b: int):
    return a > b
#: (7, -3)
#: (-3, 7)


def gt_int_float(a: int, b: float):
    return a > b
#: (7, -0.75)
#: (-3, 2.5)


def gt_float_int(a: float, b: int):
    return a > b
#: (2.5, -3)
#: (-0.75, 7)


def gt_float_float(a: float, b: float):
    return a > b
#: (2.5, -0.75)
#: (-0.75, 2.5)


def ge_int_int(a: int, b: int):
    return a >= b
#: (7, -3)
#: (-3, 7)


def ge_int_float(a: int, b: float):
    return a >= b
#: (7, -0.75)
#: (-3, 2.5)


def ge_float_int(a: float, b: int):
    return a >= b
#: (2.5, -3)
#: (-0.75, 7)


def ge_float_float(a: float, b: float):
    return a >= b
#: (2.5, -0.75)
#: (-0.75, 2.5)


def and_int_int(a: int, b: int):
    return a & b
#: (7, -3)
#: (-3, 7)


def or_int_int(a: int, b: int):
    return a | b
#: (7, -3)
#: (-3, 7)


def xor_int_int(a: int, b: int):
    return a ^ b
#: (7, -3)
#: (-3, 7)


def lshift_int_int(a: int, b: int):
    return a << b
#: (7, 2)
#: (-9, 1)


def rshift_int_int(a: int, b: int):
    return a >> b
#: (7, 2)
#: (-9, 1)


def neg_int(a: int):
    return -a
#: (7,)
#: (-3,)


def neg_float(a: float):
    return -a
#: (2.5,)
#: (-0.75,)


def not_int(a: int):
    return not a
#: (7,)
#: (-3,)


def not_float(a: float):
    return not a
#: (2.5,)
#: (-0.75,)


def not_bool(a: bool):
    return not a
#: (True,)
#: (False,)


def int_of_int(a: int):
    return int(a)
#: (7,)
#: (-3,)


def int_of_float(a: float):
    return int(a)
#: (2.5,)
#: (-0.75,)


def int_of_bool(a: bool):
    return int(a)
#: (True,)
#: (False,)


def float_of_int(a: int):
    return float(a)
#: (7,)
#: (-3,)


def float_of_float(a: float):
    return float(a)
#: (2.5,)
#: (-0.75,)


def float_of_bool(a: bool):
    return float(a)
#: (True,)
#: (False,)


def bool_of_int(a: int):
    return bool(a)
#: (7,)
#: (-3,)


def bool_of_float(a: float):
    return bool(a)
#: (2.5,)
#: (-0.75,)


def bool_of_bool(a: bool):
    return bool(a)
#: (True,)
#: (False,)


def str_of_int(a: int):
    return str(a)
#: (7,)
#: (-3,)


def str_of_bool(a: bool):
    return str(a)
#: (True,)
#: (False,)


def math_ceil(a: float):
    return math.ceil(a)
#: (0.5,)
#: (1.75,)


def math_floor(a: float):
    return math.floor(a)
#: (0.5,)
#: (1.75,)


def math_fabs(a: float):
    return math.fabs(a)
#: (0.5,)
#: (1.75,)


def math_sqrt(a: float):
    return math.sqrt(a)
#: (0.5,)
#: (1.75,)


def math_exp(a: float):
    return math.exp(a)
#: (0.5,)
#: (1.75,)


def math_log(a: float):
    return math.log(a)
#: (0.5,)
#: (1.75,)


def math_sin(a: float):
    return math.sin(a)
#: (0.5,)
#: (1.75,)


def math_cos(a: float):
    return math.cos(a)
#: (0.5,)
#: (1.75,)


def math_tan(a: float):
    return math.tan(a)
#: (0.5,)
#: (1.75,)


def math_tanh(a: float):
    return math.tanh(a)
#: (0.5,)
#: (1.75,)


def math_sinh(a: float):
    return math.sinh(a)
#: (0.5,)
#: (1.75,)


def math_cosh(a: float):
    return math.cosh(a)
#: (0.5,)
#: (1.75,)


def math_atan(a: float):
    return math.atan(a)
#: (0.5,)
#: (1.75,)


def math_isnan(a: float):
    return math.isnan(a)
#: (0.5,)
#: (1.75,)


def math_isinf(a: float):
    return math.isinf(a)
#: (0.5,)
#: (1.75,)


def math_isfinite(a: float):
    return math.isfinite(a)
#: (0.5,)
#: (1.75,)


def math_degrees(a: float):
    return math.degrees(a)
#: (0.5,)
#: (1.75,)


def math_radians(a: float):
    return math.radians(a)
#: (0.5,)
#: (1.75,)


def math_erf(a: float):
    return math.erf(a)
#: (0.5,)
#: (1.75,)


def math_erfc(a: float):
    return math.erfc(a)
#: (0.5,)
#: (1.75,)


def math_gamma(a: float):
    return math.gamma(a)
#: (0.5,)
#: (1.75,)


def math_lgamma(a: float):
    return math.lgamma(a)
#: (0.5,)
#: (1.75,)


def math_expm1(a: float):
    return math.expm1(a)
#: (0.5,)
#: (1.75,)


def math_log1p(a: float):
    return math.log1p(a)
#: (0.5,)
#: (1.75,)


def math_ceil_int(a: int):
    return math.ceil(a)
#: (2,)
#: (5,)


def math_floor_int(a: int):
    return math.floor(a)
#: (2,)
#: (5,)


def math_sqrt_int(a: int):
    return math.sqrt(a)
#: (2,)
#: (5,)


def math_exp_int(a: int):
    return math.exp(a)
#: (2,)
#: (5,)


def math_log_int(a: int):
    return math.log(a)
#: (2,)
#: (5,)


def math_sin_int(a: int):
    return math.sin(a)
#: (2,)
#: (5,)


def math_atan2(a: float, b: float):
    return math.atan2(a, b)
#: (2.5, 1.5)
#: (0.5, 3.0)


def math_fmod(a: float, b: float):
    return math.fmod(a, b)
#: (2.5, 1.5)
#: (0.5, 3.0)


def math_copysign(a: float, b: float):
    return math.copysign(a, b)
#: (2.5, 1.5)
#: (0.5, 3.0)


def math_pow(a: float, b: float):
    return math.pow(a, b)
#: (2.5, 1.5)
#: (0.5, 3.0)


def math_gcd(a: int, b: int):
    return math.gcd(a, b)
#: (12, 18)
#: (7, 0)


def math_factorial(a: int):
    return math.factorial(a)
#: (5,)


def math_frexp(a: float):
    return math.frexp(a)
#: (8.5,)


def math_modf(a: float):
    return math.modf(a)
#: (-2.25,)


def math_ldexp(a: float, b: int):
    return math.ldexp(a, b)
#: (0.75, 4)


def math_constants():
    return math.pi + math.e, math.inf, -math.inf
#: ()


def absolute(a: int, b: float):
    return abs(a), abs(b)
#: (-3, -2.5)


def abs_complex(a: complex):
    return abs(a)
#: (3 + 4j,)


def divmods(a: int, b: float):
    return divmod(a, 3), divmod(b, 1.5), divmod(a, b)
#: (7, 2.5)
#: (-7, 2.5)


def rounds(a: float):
    return round(a), round(a * 2)
#: (2.5,)
#: (-3.7,)


def minima(a: int, b: int, c: float):
    return min(a, b), max(a, b), min(c, 1.0), max(a, c)
#: (3, 2, 0.5)


def ords(a: str):
    return ord(a), chr(ord(a) + 1), hex(ord(a)), bin(5), oct(9)
#: ('a',)


def bases(a: int):
    return hex(a), bin(a), oct(a)
#: (255,)
#: (-7,)


def parsed(a: str, b: str):
    return int(a), float(b)
#: ('12', '2.5')
#: ('-3', '1e3')


def chained(a: int, b: int):
    return a < b < 10, a == b != 3
#: (1, 2)
#: (12, 3)


def short_circuit(a: int, b: int):
    return a > 0 and b > 0 or a == b
#: (1, 2)
#: (-1, -1)
#: (0, 3)


def ternary(a: int):
    return 'big' if a > 3 else 'small'
#: (5,)
#: (1,)


def wraps(a: int):
    return a * a
#: (4294967296,)


def complex_parts(a: complex):
    return a.real, a.imag
#: (1 + 2j,)


def complex_made(a: float, b: float):
    return complex(a, b) * 2
#: (1.0, 2.0)


def mixed(a: int, b: float, c: bool):
    return a + b, a * b - 1, int(c) + a, float(a) / 2
#: (1, 2.5, True)


def augmented(a: int, b: float):
    a += 2
    a -= 1
    a *= 3
    b /= 4
    b += a
    return a, b
#: (3, 2.0)


def scalars(x: torch.Tensor, a: int):
    return x + a, a - x, x / a, a / x, x ** a, a ** x, x // a, x % a, a % x, a * 2.0 + x, a < x, a >= x, a == x
#: (torch.arange(1, 4).float(), 2)


def of_tensor(x: torch.Tensor):
    return int(x), float(x), bool(x), x.item()
#: (torch.tensor(3),)
#: (torch.tensor(2.5),)


def big_literal():
    return 1e300, 123456789012, 0x10, 1_000
#: ()
