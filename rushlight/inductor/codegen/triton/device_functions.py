"""Scalar functions for Triton kernels. A kernel's text contains those that it calls; this module itself is never imported.

Semantics and polynomials are those of the native headers (`include/rushlight/elementwise.h`, `math.h`, `philox.h`): only
functions of `tl` are called, so that Triton's interpreter runs them too. Quotients of exponentials, which are approximate
themselves, take the faster division with an error of up to two units in the last place.
"""

import triton
import triton.language as tl


@triton.jit
def as_index(x, BITS: tl.constexpr):
    """An integer as an index of 32 or 64 bits."""
    if BITS == 64:
        return x.to(tl.int64)
    else:
        return x.to(tl.int32)


@triton.jit
def floor_quotient(a, b):
    """Integer division rounded down, for a positive divisor."""
    return (a - floor_remainder(a, b)) // b


@triton.jit
def floor_remainder(a, b):
    """Remainder in [0, b), for a positive divisor."""
    rest = a % b
    return tl.where(rest < 0, rest + b, rest)


@triton.jit
def sign_bit(x):
    if x.dtype == tl.float64:
        bits = x.to(tl.int64, bitcast=True)
    else:
        bits = x.to(tl.int32, bitcast=True)
    return bits < 0


@triton.jit
def copysign(magnitude, sign):
    size = tl.abs(magnitude)
    return tl.where(sign_bit(sign), -size, size)


@triton.jit
def sign_of(x):
    return (x > 0).to(x.dtype) - (x < 0).to(x.dtype)


@triton.jit
def is_infinite(x):
    return tl.abs(x) == float("inf")


@triton.jit
def round_half_even(x):
    """Floats of at least 2^23 (2^52) are integers; adding and subtracting that bound rounds smaller ones."""
    size = tl.abs(x)
    if x.dtype == tl.float64:
        near = (size + 4503599627370496.0) - 4503599627370496.0
        small = size < 4503599627370496.0
    else:
        near = (size + 8388608.0) - 8388608.0
        small = size < 8388608.0
    return tl.where(small, copysign(near, x), x)


@triton.jit
def truncate(x):
    return copysign(tl.floor(tl.abs(x)), x)


@triton.jit
def larger(a, b):
    """The maximum; NaN if either operand is."""
    if a.dtype.is_floating():
        return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)
    else:
        return tl.where(a > b, a, b)


@triton.jit
def smaller(a, b):
    """The minimum; NaN if either operand is."""
    if a.dtype.is_floating():
        return tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)
    else:
        return tl.where(a < b, a, b)


@triton.jit
def product_of(a, b):
    return a * b


@triton.jit
def nearest_integer(x, low, high):
    """The nearest integer, halves to even, within bounds; NaN gives the upper bound."""
    below = tl.where(x < high, x, high)
    return round_half_even(tl.where(below > low, below, low)).to(tl.int32)


@triton.jit
def truncated_quotient(a, b):
    """Integer division rounded towards zero; a / 0 is 0."""
    if a.dtype.is_int_signed():
        odd = (b == 0) | (b == -1)
        return tl.where(b == 0, b, tl.where(odd, -a, a // tl.where(odd, (b == b).to(b.dtype), b)))
    else:
        return tl.where(b == 0, b, a // tl.where(b == 0, (b == b).to(b.dtype), b))


@triton.jit
def remainder_by_halves(a, b):
    """The C remainder of float32 numbers, by two divisions in float64, each exact for quotients below 2^29."""
    step = tl.abs(b).to(tl.float64)
    rest = tl.abs(a).to(tl.float64)
    wide = step * 536870912.0
    rest = rest - tl.floor(rest / wide) * wide
    rest = tl.where(rest < 0, rest + wide, rest)
    rest = rest - tl.floor(rest / step) * step
    rest = tl.where(rest < 0, rest + step, tl.where(rest >= step, rest - step, rest))
    found = tl.where(is_infinite(b) & (tl.abs(a) < float("inf")), tl.abs(a), rest.to(tl.float32))
    return copysign(found, a)


@triton.jit
def c_remainder(a, b):
    """The remainder with the sign of a."""
    if a.dtype == tl.float32:
        return remainder_by_halves(a, b)
    elif a.dtype == tl.float64:
        return copysign(tl.abs(a) % tl.abs(b), a)
    else:
        return a - truncated_quotient(a, b) * b


@triton.jit
def python_remainder(a, b):
    """The remainder with the sign of b."""
    rest = c_remainder(a, b)
    return tl.where((rest != 0) & ((rest < 0) != (b < 0)), rest + b, rest)


@triton.jit
def floored_quotient(a, b):
    """Python's a // b."""
    rest = c_remainder(a, b)
    below = (rest != 0) & ((rest < 0) != (b < 0))
    if a.dtype.is_floating():
        quotient = divide(a, b)
        whole = divide(a - rest, b) - below.to(a.dtype)
        down = tl.floor(whole)
        near = tl.where(whole - down > 0.5, down + 1.0, down)
        return tl.where(b == 0, quotient, tl.where(whole == 0, copysign(whole, quotient), near))
    else:
        return truncated_quotient(a, b) - (below & (b != 0)).to(a.dtype)


@triton.jit
def divide(a, b):
    """The quotient of floats, rounded once."""
    if a.dtype == tl.float32:
        return tl.div_rn(a, b)
    else:
        return a / b


@triton.jit
def reciprocal(x):
    return divide((x == x).to(x.dtype), x)


@triton.jit
def square_root(x):
    if x.dtype == tl.float32:
        return tl.sqrt_rn(x)
    else:
        return tl.sqrt(x)


@triton.jit
def expm1(x):
    """exp(x) - 1: near 0 a series of 16 terms (float64) or of 9."""
    series = x * 0.0 + 1.0
    for n in tl.static_range(16 if x.dtype == tl.float64 else 9, 1, -1):
        series = series * x * (1.0 / n) + 1.0
    return tl.where(tl.abs(x) < 0.5, series * x, tl.exp(x) - 1.0)


@triton.jit
def log1p(x):
    """log(1 + x), corrected by the rounding error of 1 + x."""
    total = x + 1.0
    lost = (x - (total - 1.0)) / total
    found = tl.log(total) + tl.where(tl.abs(lost) < 1.0, lost, 0.0)
    if x.dtype == tl.float64:
        return tl.where(tl.abs(x) < 5.551115123125783e-17, x, found)
    else:
        return tl.where(tl.abs(x) < 2.9802322387695312e-08, x, found)


@triton.jit
def power(a, b):
    """a ** b of floats, computed in float64; the special cases are C's."""
    size = tl.abs(a)
    whole = tl.floor(b) == b
    odd = whole & (tl.floor(b * 0.5) != b * 0.5)
    exponent = tl.log2(size.to(tl.float64)) * b.to(tl.float64)
    found = tl.exp2(exponent).to(a.dtype)
    found = tl.where(odd, copysign(found, a), found)
    found = tl.where((a < 0) & (size < float("inf")) & (whole == 0), float("nan"), found)
    to_one = (a == 1.0) | ((size == 1.0) & is_infinite(b))
    return tl.where((b == 0) | to_one, 1.0, found)


@triton.jit
def integer_power(a, b):
    """a ** b of integers, which wraps; negative exponents give 0, but for 1 and -1."""
    result = (a == a).to(tl.int64)
    square = a.to(tl.int64)
    rest = b.to(tl.int64)
    for _ in range(63):
        result = tl.where((rest & 1) != 0, result * square, result)
        square = square * square
        rest = rest >> 1
    one = (a == 1).to(tl.int64)
    if a.dtype.is_int_signed():
        unit = tl.where(a == -1, 1 - 2 * (b.to(tl.int64) & 1), one)
    else:
        unit = one
    return tl.where(b < 0, unit, result).to(a.dtype)


@triton.jit
def tangent(x):
    return tl.sin(x) / tl.cos(x)


@triton.jit
def arctangent_reduced(t):
    """The arc tangent of 0 <= t <= 1."""
    if t.dtype == tl.float64:
        return arctangent_reduced_wide(t)
    else:
        square = t * t
        tail = square * 0.0011348784 - 0.0074226377
        tail = tail * square + 0.022760341
        tail = tail * square - 0.044946447
        tail = tail * square + 0.06759572
        tail = tail * square - 0.088188484
        tail = tail * square + 0.110602446
        tail = tail * square - 0.14280131
        tail = tail * square + 0.19999693
        tail = tail * square - 0.33333328
        return tail * square * t + t


@triton.jit
def arctangent_reduced_wide(t):
    """The same of float64, by a rational function (Moshier, Cephes), around 0 or around 1."""
    near_one = t > 0.66
    y = tl.where(near_one, (t - 1.0) / (t + 1.0), t)
    square = y * y
    above = square * -8.750608600031904122785e-1 - 1.615753718733365076637e1
    above = above * square - 7.500855792314704667340e1
    above = above * square - 1.228866684490136173410e2
    above = above * square - 6.485021904942025371773e1
    below = square + 2.485846490142306297962e1
    below = below * square + 1.650270098316988542046e2
    below = below * square + 4.328810604912902668951e2
    below = below * square + 4.853903996359136964868e2
    below = below * square + 1.945506571482613964425e2
    arc = square * above / below * y + y
    return tl.where(near_one, arc + 3.061616997868383e-17 + 0.7853981633974483, arc)


@triton.jit
def right_angle_without(arc):
    """pi / 2 - arc."""
    if arc.dtype == tl.float64:
        return 1.5707963267948966 - (arc - 6.123233995736766e-17)
    else:
        return 1.57079637 - (arc + 4.37113883e-08)


@triton.jit
def half_turn_without(arc):
    """pi - arc."""
    if arc.dtype == tl.float64:
        return 3.141592653589793 - (arc - 1.2246467991473532e-16)
    else:
        return 3.14159274 - (arc + 8.74227766e-08)


@triton.jit
def arctangent(x):
    size = tl.abs(x)
    steep = size > 1.0
    arc = arctangent_reduced(tl.where(steep, 1.0 / size, size))
    return copysign(tl.where(steep, right_angle_without(arc), arc), x)


@triton.jit
def arctangent2(y, x):
    """The angle of the point (x, y)."""
    across = tl.abs(x)
    up = tl.abs(y)
    steep = up > across
    alike = (up == across) & ((up == 0) | is_infinite(up))
    slope = divide(tl.where(steep, across, up), tl.where(steep, up, across))
    arc = arctangent_reduced(tl.where(alike, tl.where(up == 0, 0.0, 1.0), slope))
    right = tl.where(steep, right_angle_without(arc), arc)
    angle = tl.where(sign_bit(x), half_turn_without(right), right)
    return tl.where((x != x) | (y != y), x + y, copysign(angle, y))


@triton.jit
def nearer_arc(size, large):
    """asin(size) for 0 <= size <= 1; half of acos(size) where it is large."""
    square = tl.where(large, 0.5 - size * 0.5, size * size)
    t = tl.where(large, square_root(square), size)
    tail = square * 0.037565187 + 0.014402615
    tail = tail * square + 0.031817608
    tail = tail * square + 0.04451572
    tail = tail * square + 0.07500511
    tail = tail * square + 0.1666666
    return tail * square * t + t


@triton.jit
def arcsine(x):
    if x.dtype == tl.float64:
        return arctangent2(x, tl.sqrt((1.0 - x) * (1.0 + x)))
    else:
        size = tl.abs(x)
        large = size > 0.5
        arc = nearer_arc(size, large)
        return copysign(tl.where(large, right_angle_without(arc * 2.0), arc), x)


@triton.jit
def arccosine(x):
    if x.dtype == tl.float64:
        return arctangent2(tl.sqrt((1.0 - x) * (1.0 + x)), x)
    else:
        size = tl.abs(x)
        large = size > 0.5
        arc = nearer_arc(size, large)
        steep = tl.where(x < 0, half_turn_without(arc * 2.0), arc * 2.0)
        return tl.where(large, steep, right_angle_without(copysign(arc, x)))


@triton.jit
def hyperbolic_sine(x):
    size = tl.abs(x)
    grown = expm1(tl.where(size < 80.0, size, 0.0))
    near = 0.5 * (grown + grown / (grown + 1.0))
    half = tl.exp(size * 0.5)
    return copysign(tl.where(size < 80.0, near, (half * 0.5) * half), x)


@triton.jit
def hyperbolic_cosine(x):
    half = tl.exp(tl.abs(x) * 0.5)
    grown = (half * 0.5) * half
    return grown + 0.25 / grown


@triton.jit
def hyperbolic_tangent(x):
    shrunk = expm1(tl.abs(x) * -2.0)
    return copysign(-shrunk / (shrunk + 2.0), x)


@triton.jit
def area_sine(x):
    size = tl.abs(x)
    square = size * size
    near = log1p(size + square / (square_root(square + 1.0) + 1.0))
    return copysign(tl.where(size > 67108864.0, tl.log(size) + 0.6931471805599453, near), x)


@triton.jit
def area_cosine(x):
    above = x - 1.0
    near = log1p(above + square_root(above * above + above * 2.0))
    found = tl.where(x > 67108864.0, tl.log(x) + 0.6931471805599453, near)
    return tl.where(x >= 1.0, found, float("nan"))


@triton.jit
def area_tangent(x):
    size = tl.abs(x)
    return copysign(log1p(divide(size * 2.0, 1.0 - size)) * 0.5, x)


@triton.jit
def hypotenuse(x, y):
    """The length of (x, y); float32 in float64, so that no square overflows."""
    across = tl.abs(x)
    up = tl.abs(y)
    if x.dtype == tl.float32:
        wide = across.to(tl.float64) * across.to(tl.float64) + up.to(tl.float64) * up.to(tl.float64)
        size = tl.sqrt(wide).to(tl.float32)
    else:
        longer = tl.where(across > up, across, up)
        ratio = tl.where(longer == 0, 0.0, tl.where(across > up, up, across) / longer)
        size = longer * tl.sqrt(ratio * ratio + 1.0)
    found = tl.where((x != x) | (y != y), x + y, size)
    return tl.where(is_infinite(x) | is_infinite(y), float("inf"), found)


@triton.jit
def complementary_erf(x):
    """1 - erf(x): above 0.5, exp(-x^2) times a polynomial in 1 / (1 + x / 2), with x^2 split so that no digits are lost."""
    if x.dtype == tl.float64:
        return complementary_erf_wide(x)
    else:
        bounded = tl.where(tl.abs(x) < 11.0, tl.abs(x), 11.0)
        near = 1.0 / (bounded * 0.5 + 1.0)
        high = (bounded.to(tl.int32, bitcast=True) & -4096).to(tl.float32, bitcast=True)
        low = (bounded - high) * (bounded + high)
        factor = near * -0.030349799 + 0.066829495
        factor = factor * near + 0.062973894
        factor = factor * near - 0.27179438
        factor = factor * near + 0.15207991
        factor = factor * near + 0.018592762
        factor = factor * near + 0.19300196
        factor = factor * near + 0.24423042
        factor = factor * near + 0.28232124
        factor = (factor * near + 0.28208637) * near
        scaled = tl.exp(-high * high)
        large = scaled * factor + scaled * factor * expm1(-low)
        small = 1.0 - tl.erf(x)
        return tl.where(x != x, x, tl.where(tl.abs(x) < 0.5, small, tl.where(x < 0, 2.0 - large, large)))


@triton.jit
def complementary_erf_wide(x):
    """The same of float64: above 1, exp(-x^2) times rational functions (Moshier, Cephes)."""
    size = tl.where(tl.abs(x) < 27.0, tl.abs(x), 27.0)
    high = tl.floor(size * 65536.0) * 1.52587890625e-05
    scaled = tl.exp(-high * high) * tl.exp(-(size - high) * (size + high))
    above = size * 2.46196981473530512524e-10 + 5.64189564831068821977e-1
    above = above * size + 7.46321056442269912687e0
    above = above * size + 4.86371970985681366614e1
    above = above * size + 1.96520832956077098242e2
    above = above * size + 5.26445194995477358631e2
    above = above * size + 9.34528527171957607540e2
    above = above * size + 1.02755188689515710272e3
    above = above * size + 5.57535335369399327526e2
    below = size + 1.32281951154744992508e1
    below = below * size + 8.67072140885989742329e1
    below = below * size + 3.54937778887819891062e2
    below = below * size + 9.75708501743205489753e2
    below = below * size + 1.82390916687909736289e3
    below = below * size + 2.24633760818710981792e3
    below = below * size + 1.65666309194161350182e3
    below = below * size + 5.57535340817727675546e2
    far_above = size * 5.64189583547755073984e-1 + 1.27536670759978104416e0
    far_above = far_above * size + 5.01905042251180477414e0
    far_above = far_above * size + 6.16021097993053585195e0
    far_above = far_above * size + 7.40974269950448939160e0
    far_above = far_above * size + 2.97886665372100240670e0
    far_below = size + 2.26052863220117276590e0
    far_below = far_below * size + 9.39603524938001434673e0
    far_below = far_below * size + 1.20489539808096656605e1
    far_below = far_below * size + 1.70814450747565897222e1
    far_below = far_below * size + 9.60896809063285878198e0
    far_below = far_below * size + 3.36907645100081516050e0
    large = scaled * tl.where(size < 8.0, above / below, far_above / far_below)
    found = tl.where(size < 1.0, 1.0 - tl.erf(x), tl.where(x < 0, 2.0 - large, large))
    return tl.where(x != x, x, found)


@triton.jit
def log_gamma(x):
    """log |gamma(x)|, computed in float64: Stirling's series, for arguments raised to at least 10; reflected below 0.5."""
    wide = x.to(tl.float64)
    mirrored = wide < 0.5
    z = tl.where(mirrored, 1.0 - wide, wide)
    product = (z == z).to(tl.float64)
    for _ in tl.static_range(10):
        small = z < 10.0
        product = tl.where(small, product * z, product)
        z = tl.where(small, z + 1.0, z)
    inverse = 1.0 / z
    square = inverse * inverse
    series = square * (-3617.0 / 122400.0) + 1.0 / 156.0
    series = series * square - 691.0 / 360360.0
    series = series * square + 1.0 / 1188.0
    series = series * square - 1.0 / 1680.0
    series = series * square + 1.0 / 1260.0
    series = series * square - 1.0 / 360.0
    series = (series * square + 1.0 / 12.0) * inverse
    found = (z - 0.5) * tl.log(z) - z + 0.9189385332046727 + series - tl.log(product)
    part = tl.abs(wide - round_half_even(wide))
    reflected = 1.1447298858494002 - tl.log(tl.sin(part * 3.141592653589793)) - found
    pole = (wide <= 0.0) & (part == 0.0)
    result = tl.where(pole | is_infinite(wide), float("inf"), tl.where(mirrored, reflected, found))
    return tl.where(x != x, x, result.to(x.dtype))


@triton.jit
def inverse_erf(x):
    """The inverse of erf (Giles 2010, "Approximating the erfinv function")."""
    w = -tl.log((1.0 - x) * (1.0 + x))
    t = w - 2.5
    inner = t * 2.81022636e-08 + 3.43273939e-07
    inner = inner * t - 3.5233877e-06
    inner = inner * t - 4.39150654e-06
    inner = inner * t + 0.00021858087
    inner = inner * t - 0.00125372503
    inner = inner * t - 0.00417768164
    inner = inner * t + 0.246640727
    inner = inner * t + 1.50140941
    t = square_root(tl.where(w > 0, w, 0.0)) - 3.0
    outer = t * -0.000200214257 + 0.000100950558
    outer = outer * t + 0.00134934322
    outer = outer * t - 0.00367342844
    outer = outer * t + 0.00573950773
    outer = outer * t - 0.0076224613
    outer = outer * t + 0.00943887047
    outer = outer * t + 1.00167406
    outer = outer * t + 2.83297682
    found = x * tl.where(tl.abs(x) == 1.0, float("inf"), tl.where(w < 5.0, inner, outer))
    return tl.where(tl.abs(x) <= 1.0, found, float("nan"))


@triton.jit
def logistic(x):
    return 1.0 / (tl.exp(-x) + 1.0)


@triton.jit
def silu(x):
    return x / (tl.exp(-x) + 1.0)


@triton.jit
def normal_below(x):
    """The standard normal distribution's probability below x, and exp(-x^2 / 2). For float32, to 2e-7, erfcx(|x| / sqrt(2)) / 2
    is a polynomial in t = 1 / (1 + 0.35 |x|), which takes half of erf's instructions. t is the square of the fast inverse
    square root, after a step of Newton's."""
    if x.dtype == tl.float64:
        bell = tl.exp(x * x * -0.5)
        return (tl.erf(x * 0.7071067811865476) + 1.0) * 0.5, bell
    else:
        width = tl.minimum(tl.abs(x), 40.0) * 0.35 + 1.0
        root = tl.rsqrt(width)
        t = root * root
        t += t * (1.0 - width * t)
        p = 0.144031474 - 0.0291579989 * t
        p = p * t - 0.255840151
        p = p * t + 0.159321001
        p = p * t - 0.0232132439
        p = p * t + 0.105552873
        p = p * t + 0.119821196
        p = p * t + 0.139863528
        p = p * t + 0.139621306
        scaled = x * 0.8493218002880191
        bell = tl.exp2(-scaled * scaled)
        outside = p * t * bell
        return tl.where(x < 0, outside, 1.0 - outside), bell


@triton.jit
def gelu_erf(x):
    below, _ = normal_below(x)
    return x * below


@triton.jit
def gelu_erf_slope(x):
    below, bell = normal_below(x)
    return below + x * bell * 0.3989422804014327


@triton.jit
def gelu_tanh(x):
    u = (x * x * x * 0.044715 + x) * 0.7978845608028654
    return x / (tl.exp(u * -2.0) + 1.0)


@triton.jit
def gelu_tanh_slope(x):
    square = x * x
    u = (square * x * 0.044715 + x) * 0.7978845608028654
    u_slope = (square * 0.134145 + 1.0) * 0.7978845608028654
    shrunk = tl.exp(tl.abs(u) * -2.0)
    large = 1.0 / (shrunk + 1.0)
    small = shrunk * large
    return tl.where(u < 0, small, large) + x * u_slope * small * large * 2.0


@triton.jit
def shifted_left(a, count, BITS: tl.constexpr):
    """a << count; counts outside of 0..BITS-1 shift all bits out."""
    inside = (count >= 0) & (count < BITS)
    none = count - count
    return tl.where(inside, a << tl.where(inside, count, none), none)


@triton.jit
def shifted_right(a, count, BITS: tl.constexpr):
    inside = (count >= 0) & (count < BITS)
    none = count - count
    moved = a >> tl.where(inside, count, none + (BITS - 1))
    if a.dtype.is_int_signed():
        return moved
    else:
        return tl.where(inside, moved, none)


@triton.jit
def random_bits(seed, offset, index):
    """32 random bits for each element of the stream of a seed and an offset: one word of Philox4x32 with 10 rounds. 16
    consecutive counters give 64 consecutive elements, as on the CPU."""
    place = index.to(tl.int64)
    counter = (place >> 6 << 4) | (place & 15)
    low = (counter & 0xFFFFFFFF).to(tl.uint32)
    high = ((counter >> 32) & 0xFFFFFFFF).to(tl.uint32)
    stream = low * 0 + offset
    w0, w1, w2, w3 = tl.philox(seed, low, high, stream, low * 0)
    word = (place >> 4) & 3
    return tl.where(word < 2, tl.where(word == 0, w0, w1), tl.where(word == 2, w2, w3))


@triton.jit
def random_uniform(seed, offset, index):
    """Numbers in [0, 1), multiples of 2^-24."""
    return (random_bits(seed, offset, index) >> 8).to(tl.int32).to(tl.float32) * 5.9604644775390625e-08


@triton.jit
def search_sorted(row, step, count, value, mask, RIGHT: tl.constexpr, STEPS: tl.constexpr):
    """The number of elements of a sorted row that come before `value`: the smaller ones, and the equal ones if RIGHT. `row`
    points to the first element for each value; STEPS halvings reach a single element."""
    low = (value == value).to(tl.int64) * 0
    high = low + count
    for _ in range(STEPS):
        middle = (low + high) // 2
        active = mask & (low < high)
        item = tl.load(row + middle * step, active, other=0).to(value.dtype)
        if RIGHT:
            before = (item <= value) | (value != value)
        else:
            before = (item < value) | (value != value)
        low = tl.where(active & before, middle + 1, low)
        high = tl.where(active & (before == 0), middle, high)
    return low


@triton.jit
def atomic_product(pointer, value, active):
    """Multiply the numbers at some addresses where `active` holds, each by an exchange that is tried until no other program
    came between. The other addresses must be readable."""
    if value.dtype.primitive_bitwidth == 64:
        words = pointer.to(tl.pointer_type(tl.int64), bitcast=True)
    else:
        words = pointer.to(tl.pointer_type(tl.int32), bitcast=True)
    waiting = active
    before = tl.load(words, waiting, other=0)
    while tl.max(waiting.to(tl.int32), 0) > 0:
        product = before.to(value.dtype, bitcast=True) * value
        after = tl.where(waiting, product.to(before.dtype, bitcast=True), before)
        found = tl.atomic_cas(words, before, after, sem="relaxed")
        waiting = waiting & (found != before)
        before = found


@triton.jit
def log_sum_exp(a, b):
    high = larger(a, b)
    low = smaller(a, b)
    total = high + log1p(tl.exp(low - high))
    return tl.where(is_infinite(high) | (high != high), high, total)


@triton.jit
def later_maximum(a, place_of_a, b, place_of_b):
    """The maximum of two values and its place, the later one of equal values; a NaN is only replaced by another."""
    wins = ((b >= a) | (b != b)) & ((a == a) | (b != b))
    return tl.where(wins, b, a), tl.where(wins, place_of_b, place_of_a)


@triton.jit
def later_minimum(a, place_of_a, b, place_of_b):
    wins = ((b <= a) | (b != b)) & ((a == a) | (b != b))
    return tl.where(wins, b, a), tl.where(wins, place_of_b, place_of_a)


@triton.jit
def sorting_key(x):
    """An int32 that sorts as x does; NaN as the greatest."""
    if x.dtype == tl.float32:
        bits = (x + 0.0).to(tl.int32, bitcast=True)
        key = bits ^ ((bits >> 31) & 2147483647)
        return tl.where(x != x, 2147483647, key)
    else:
        return x.to(tl.int32)


@triton.jit
def wide_sorting_key(x):
    """An int64 that sorts as x does; NaN as the greatest."""
    if x.dtype == tl.float64:
        bits = (x + 0.0).to(tl.int64, bitcast=True)
        key = bits ^ ((bits >> 63) & 9223372036854775807)
        return tl.where(x != x, 9223372036854775807, key)
    else:
        return x


@triton.jit
def merged_place(row, key, at, run, length, mask, STEPS: tl.constexpr):
    """The place of a key after the merge of two sorted runs, one of which has it at place `at` of its row. Among equal keys
    those of the first run come first. STEPS halvings reach a single element."""
    start = at // (run * 2) * (run * 2)
    middle = tl.minimum(start + run, length)
    end = tl.minimum(middle + run, length)
    is_second = at >= middle
    low = tl.where(is_second, start, middle)
    high = tl.where(is_second, middle, end)
    for _ in range(STEPS):
        probe = (low + high) // 2
        active = mask & (low < high)
        other = tl.load(row + probe, active, other=0)
        before = (other < key) | (is_second & (other == key))
        low = tl.where(active & before, probe + 1, low)
        high = tl.where(active & (before == 0), probe, high)
    return at + low - middle


@triton.jit
def sorts_before(a, place_of_a, b, place_of_b, DESCENDING: tl.constexpr):
    """Whether a sorts before b: by value, NaN as the greatest, then by place."""
    if DESCENDING:
        less = (a > b) | ((a != a) & (b == b))
    else:
        less = (a < b) | ((b != b) & (a == a))
    same = (a == b) | ((a != a) & (b != b))
    return less | (same & (place_of_a < place_of_b))
