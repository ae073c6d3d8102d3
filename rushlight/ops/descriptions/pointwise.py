"""Docstrings of operators that work element by element, by name."""

DOCSTRINGS: dict[str, str] = {
    "abs": """The absolute value of each element; of complex numbers the modulus, as a real
tensor.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.abs(torch.tensor([-1.5, 2.0]))
    tensor([1.5000, 2.0000])""",
    "absolute": """Another name of `abs`.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.absolute(torch.tensor([-3, 4]))
    tensor([3, 4])""",
    "acos": """The angle in [0, pi] whose cosine each element is; NaN outside of [-1, 1]. Integers
give the default floating dtype.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.acos(torch.tensor([1.0, 0.0, -1.0]))
    tensor([0.0000, 1.5708, 3.1416])""",
    "asin": """The angle in [-pi/2, pi/2] whose sine each element is; NaN outside of [-1, 1].
Integers give the default floating dtype.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.asin(torch.tensor([1.0, 0.0, -1.0]))
    tensor([ 1.5708,  0.0000, -1.5708])""",
    "atan": """The angle in (-pi/2, pi/2) whose tangent each element is. Integers give the default
floating dtype.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.atan(torch.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7854])""",
    "acosh": """The nonnegative number whose hyperbolic cosine each element is; NaN below 1.
Integers give the default floating dtype.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.acosh(torch.tensor([1.0, 2.0]))
    tensor([0.0000, 1.3170])""",
    "asinh": """The number whose hyperbolic sine each element is. Integers give the default floating
dtype.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.asinh(torch.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8814])""",
    "atanh": """The number whose hyperbolic tangent each element is; NaN outside of [-1, 1].
Integers give the default floating dtype.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.atanh(torch.tensor([0.0, 0.5]))
    tensor([0.0000, 0.5493])""",
    "cos": """The cosine of each element, in radians. Integers give the default floating dtype.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.cos(torch.tensor([0.0, 3.14159265]))
    tensor([ 1., -1.])""",
    "sin": """The sine of each element, in radians. Integers give the default floating dtype.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.sin(torch.tensor([0.0, 1.5707963]))
    tensor([0., 1.])""",
    "tan": """The tangent of each element, in radians. Integers give the default floating dtype.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.tan(torch.tensor([0.0, 0.7853982]))
    tensor([0.0000, 1.0000])""",
    "cosh": """The hyperbolic cosine of each element: (e^x + e^-x) / 2. Integers give the default
floating dtype.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.cosh(torch.tensor([0.0, 1.0]))
    tensor([1.0000, 1.5431])""",
    "sinh": """The hyperbolic sine of each element: (e^x - e^-x) / 2. Integers give the default
floating dtype.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.sinh(torch.tensor([0.0, 1.0]))
    tensor([0.0000, 1.1752])""",
    "tanh": """The hyperbolic tangent of each element: sinh(x) / cosh(x). Integers give the default
floating dtype.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.tanh(torch.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7616])""",
    "exp": """e to the power of each element. Integers give the default floating dtype.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.exp(torch.tensor([0.0, 1.0]))
    tensor([1.0000, 2.7183])""",
    "exp2": """2 to the power of each element. Integers give the default floating dtype.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.exp2(torch.tensor([3.0, 0.5]))
    tensor([8.0000, 1.4142])""",
    "expm1": """e^x - 1 of each element x, exact near 0, too. Integers give the default floating
dtype.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.expm1(torch.tensor([0.0, 1e-8]))
    tensor([0.0000e+00, 1.0000e-08])""",
    "log": """The natural logarithm of each element; minus infinity for 0, NaN below. Integers
give the default floating dtype.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.log(torch.tensor([1.0, 10.0]))
    tensor([0.0000, 2.3026])""",
    "log2": """The logarithm to the base 2 of each element. Integers give the default floating
dtype.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.log2(torch.tensor([1.0, 8.0]))
    tensor([0., 3.])""",
    "log10": """The logarithm to the base 10 of each element. Integers give the default floating
dtype.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.log10(torch.tensor([1.0, 1000.0]))
    tensor([0., 3.])""",
    "log1p": """The natural logarithm of 1 + x for each element x, exact near 0, too. Integers give
the default floating dtype.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.log1p(torch.tensor([0.0, 1e-8]))
    tensor([0.0000e+00, 1.0000e-08])""",
    "sqrt": """The square root of each element; NaN below 0 for real numbers. Integers give the
default floating dtype.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.sqrt(torch.tensor([4.0, 2.0]))
    tensor([2.0000, 1.4142])""",
    "rsqrt": """One divided by the square root of each element. Integers give the default floating
dtype.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.rsqrt(torch.tensor([4.0, 0.25]))
    tensor([0.5000, 2.0000])""",
    "reciprocal": """One divided by each element. Integers give the default floating dtype.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.reciprocal(torch.tensor([2.0, 4.0]))
    tensor([0.5000, 0.2500])""",
    "erf": """The error function of each element: 2 / sqrt(pi) times the integral of exp(-t^2)
from 0 to x. Integers give the default floating dtype.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.erf(torch.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8427])""",
    "erfc": """1 - erf(x) of each element, exact where that is small, too. Integers give the
default floating dtype.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.erfc(torch.tensor([0.0, 3.0]))
    tensor([1.0000e+00, 2.2090e-05])""",
    "erfinv": """The inverse of the error function, for elements in (-1, 1). Integers give the
default floating dtype.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.erfinv(torch.tensor([0.0, 0.5]))
    tensor([0.0000, 0.4769])""",
    "sigmoid": """1 / (1 + e^-x) of each element x. Integers give the default floating dtype.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.sigmoid(torch.tensor([0.0, 2.0]))
    tensor([0.5000, 0.8808])""",
    "lgamma": """The logarithm of the absolute value of the gamma function. Integers give the default
floating dtype.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.lgamma(torch.tensor([0.5, 4.0]))
    tensor([0.5724, 1.7918])""",
    "digamma": """The derivative of the logarithm of the gamma function. Integers give the default
floating dtype.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.digamma(torch.tensor([1.0, 2.0]))
    tensor([-0.5772,  0.4228])""",
    "i0": """The modified Bessel function of the first kind of order 0. Integers give the default
floating dtype.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.i0(torch.tensor([0.0, 1.0]))
    tensor([1.0000, 1.2661])""",
    "sinc": """sin(pi x) / (pi x) of each element x, and 1 at 0. Integers give the default floating
dtype.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.sinc(torch.tensor([0.0, 0.5]))
    tensor([1.0000, 0.6366])""",
    "deg2rad": """Degrees as radians. Integers give the default floating dtype.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.deg2rad(torch.tensor([180.0, 90.0]))
    tensor([3.1416, 1.5708])""",
    "rad2deg": """Radians as degrees. Integers give the default floating dtype.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.rad2deg(torch.tensor([3.14159265, 1.5707963]))
    tensor([180.,  90.])""",
    "arccos": """Another name of `acos`.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.arccos(torch.tensor([1.0]))
    tensor([0.])""",
    "arccosh": """Another name of `acosh`.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.arccosh(torch.tensor([1.0]))
    tensor([0.])""",
    "arcsin": """Another name of `asin`.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.arcsin(torch.tensor([1.0]))
    tensor([1.5708])""",
    "arcsinh": """Another name of `asinh`.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.arcsinh(torch.tensor([1.0]))
    tensor([0.8814])""",
    "arctan": """Another name of `atan`.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.arctan(torch.tensor([1.0]))
    tensor([0.7854])""",
    "arctanh": """Another name of `atanh`.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.arctanh(torch.tensor([1.0]))
    tensor([inf])""",
    "square": """Each element times itself.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.square(torch.tensor([3, -4]))
    tensor([ 9, 16])""",
    "neg": """The opposite of each element. RuntimeError for truth values.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.neg(torch.tensor([1.0, -2.0]))
    tensor([-1.,  2.])""",
    "negative": """Another name of `neg`.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.negative(torch.tensor([1.0, -2.0]))
    tensor([-1.,  2.])""",
    "positive": """The input itself, which may not be of truth values.

Args:
    input (Tensor): the operand.

Example:
    >>> torch.positive(torch.tensor([1, -2]))
    tensor([ 1, -2])""",
    "sign": """-1, 0 or 1: the sign of each element.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.sign(torch.tensor([-2.5, 0.0, 3.0]))
    tensor([-1.,  0.,  1.])""",
    "sgn": """The sign of each element; of complex numbers x / |x|, and 0 for 0.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.sgn(torch.tensor([3 + 4j, 0]))
    tensor([0.6000+0.8000j, 0.0000+0.0000j])""",
    "signbit": """Whether the sign bit is set: for negative numbers and for -0.0.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.signbit(torch.tensor([-0.0, 1.0]))
    tensor([ True, False])""",
    "floor": """The largest integer up to each element, in the same dtype.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.floor(torch.tensor([1.7, -1.2]))
    tensor([ 1., -2.])""",
    "ceil": """The smallest integer from each element up, in the same dtype.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.ceil(torch.tensor([1.2, -1.7]))
    tensor([ 2., -1.])""",
    "trunc": """The integer part of each element, in the same dtype.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.trunc(torch.tensor([1.7, -1.7]))
    tensor([ 1., -1.])""",
    "fix": """Another name of `trunc`.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.fix(torch.tensor([-1.7]))
    tensor([-1.])""",
    "frac": """What is left of each element without its integer part, with its sign.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.frac(torch.tensor([1.75, -1.75]))
    tensor([ 0.7500, -0.7500])""",
    "round": """The nearest integer, or number of so many decimal places; ties go to the even one
(IEEE 754).

Args:
    input (Tensor): the operand.
    decimals (int): to how many decimal places.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.round(torch.tensor([0.5, 1.5, 2.567]))
    tensor([0., 2., 3.])
    >>> torch.round(torch.tensor([2.567]), decimals=1)
    tensor([2.6000])""",
    "add": """input + alpha * other, broadcast, in the dtype that both promote to.

Args:
    input (Tensor): the operand.
    other (Tensor): the second operand, which is broadcast with the first.
    alpha (Number): a factor: for `other`, or for the product.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.add(torch.tensor([1, 2]), torch.tensor([0.5, 1.5]), alpha=2)
    tensor([2., 5.])""",
    "sub": """input - alpha * other, broadcast. Truth values are refused.

Args:
    input (Tensor): the operand.
    other (Tensor): the second operand, which is broadcast with the first.
    alpha (Number): a factor: for `other`, or for the product.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.sub(torch.tensor([5, 7]), 2, alpha=3)
    tensor([-1,  1])""",
    "subtract": """Another name of `sub`.

Args:
    input (Tensor): the operand.
    other (Tensor): the second operand, which is broadcast with the first.
    alpha (Number): a factor: for `other`, or for the product.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.subtract(torch.tensor([5, 7]), 2)
    tensor([3, 5])""",
    "rsub": """other - alpha * input.

Args:
    input (Tensor): the operand.
    other (Tensor): the second operand, which is broadcast with the first.
    alpha (Number): a factor: for `other`, or for the product.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.rsub(torch.tensor([1.0, 2.0]), 10)
    tensor([9., 8.])""",
    "mul": """The product of elements, broadcast.

Args:
    input (Tensor): the operand.
    other (Tensor): the second operand, which is broadcast with the first.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.mul(torch.tensor([[1], [2]]), torch.tensor([3, 4]))
    tensor([[3, 4],
            [6, 8]])""",
    "multiply": """Another name of `mul`.

Args:
    input (Tensor): the operand.
    other (Tensor): the second operand, which is broadcast with the first.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.multiply(torch.tensor([1, 2]), 3)
    tensor([3, 6])""",
    "div": """The quotient of elements, broadcast: exact by default, with integers as floating
numbers; rounded with `rounding_mode`.

Args:
    input (Tensor): the operand.
    other (Tensor): the second operand, which is broadcast with the first.
    rounding_mode (str | None): None, "trunc" (towards zero) or "floor".
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.div(torch.tensor([7, -7]), 2)
    tensor([ 3.5000, -3.5000])
    >>> torch.div(torch.tensor([7, -7]), 2, rounding_mode='floor')
    tensor([ 3, -4])""",
    "divide": """Another name of `div`.

Args:
    input (Tensor): the operand.
    other (Tensor): the second operand, which is broadcast with the first.
    rounding_mode (str | None): None, "trunc" (towards zero) or "floor".
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.divide(torch.tensor([3.0]), 2)
    tensor([1.5000])""",
    "true_divide": """`div` without rounding.

Args:
    input (Tensor): the operand.
    other (Tensor): the second operand, which is broadcast with the first.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.true_divide(torch.tensor([3]), 2)
    tensor([1.5000])""",
    "floor_divide": """The quotient rounded down, as Python's `//`. RuntimeError for an integer divided by
zero.

Args:
    input (Tensor): the operand.
    other (Tensor): the second operand, which is broadcast with the first.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.floor_divide(torch.tensor([7, -7]), 2)
    tensor([ 3, -4])""",
    "remainder": """What division leaves, with the divisor's sign, as Python's `%`.

Args:
    input (Tensor): the operand.
    other (Tensor): the second operand, which is broadcast with the first.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.remainder(torch.tensor([-3.0, 3.0]), 2)
    tensor([1., 1.])""",
    "fmod": """What division leaves, with the dividend's sign, as C's `fmod`.

Args:
    input (Tensor): the operand.
    other (Tensor): the second operand, which is broadcast with the first.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.fmod(torch.tensor([-3.0, 3.0]), 2)
    tensor([-1.,  1.])""",
    "pow": """input to the power of exponent, broadcast. Integers to negative powers are refused.

Args:
    input (Tensor): the operand.
    exponent (Tensor): the exponent.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.pow(torch.tensor([2.0, 3.0]), 2)
    tensor([4., 9.])
    >>> torch.pow(2, torch.tensor([1.0, 3.0]))
    tensor([2., 8.])""",
    "float_power": """The power in float64 (complex128 for complex operands).

Args:
    input (Tensor): the operand.
    exponent (Tensor): the exponent.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.float_power(torch.tensor([2, 3]), -1)
    tensor([0.5000, 0.3333], dtype=torch.float64)""",
    "addcmul": """input + value * tensor1 * tensor2.

Args:
    input (Tensor): the operand.
    tensor1 (Tensor): the first factor, or the numerator.
    tensor2 (Tensor): the second factor, or the denominator.
    value (Number): a number, or the value at masked or chosen places.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.addcmul(torch.ones(2), torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]), value=0.5)
    tensor([2.5000, 5.0000])""",
    "addcdiv": """input + value * tensor1 / tensor2. Integer operands are refused.

Args:
    input (Tensor): the operand.
    tensor1 (Tensor): the first factor, or the numerator.
    tensor2 (Tensor): the second factor, or the denominator.
    value (Number): a number, or the value at masked or chosen places.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.addcdiv(torch.ones(2), torch.tensor([1.0, 2.0]), torch.tensor([2.0, 4.0]), value=2)
    tensor([2., 2.])""",
    "lerp": """input + weight * (end - input): the point between two, where weight is 0 at the
first.

Args:
    input (Tensor): the operand.
    end (Tensor): the position behind the last, or the last number.
    weight (Number): the weights, or a factor per class or channel.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.lerp(torch.tensor([0.0, 10.0]), torch.tensor([10.0, 20.0]), 0.25)
    tensor([ 2.5000, 12.5000])""",
    "maximum": """The larger of two elements; NaN if one of them is.

Args:
    input (Tensor): the operand.
    other (Tensor): the second operand, which is broadcast with the first.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.maximum(torch.tensor([1.0, 5.0]), torch.tensor([3.0, 2.0]))
    tensor([3., 5.])""",
    "minimum": """The smaller of two elements; NaN if one of them is.

Args:
    input (Tensor): the operand.
    other (Tensor): the second operand, which is broadcast with the first.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.minimum(torch.tensor([1.0, 5.0]), torch.tensor([3.0, 2.0]))
    tensor([1., 2.])""",
    "fmax": """The larger of two elements; where one is NaN, the other (IEEE 754's maximumNumber).

Args:
    input (Tensor): the operand.
    other (Tensor): the second operand, which is broadcast with the first.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.fmax(torch.tensor([1.0, float('nan')]), torch.tensor([3.0, 2.0]))
    tensor([3., 2.])""",
    "fmin": """The smaller of two elements; where one is NaN, the other.

Args:
    input (Tensor): the operand.
    other (Tensor): the second operand, which is broadcast with the first.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.fmin(torch.tensor([1.0, float('nan')]), torch.tensor([3.0, 2.0]))
    tensor([1., 2.])""",
    "clamp": """Each element moved into [min, max]; max where min is above it. Bounds may be
tensors, one may be missing.

Args:
    input (Tensor): the operand.
    min (Tensor | None): the lower bound.
    max (Tensor | None): the upper bound.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.clamp(torch.tensor([-2.0, 0.5, 9.0]), 0, 1)
    tensor([0.0000, 0.5000, 1.0000])""",
    "clip": """Another name of `clamp`.

Args:
    input (Tensor): the operand.
    min (Tensor | None): the lower bound.
    max (Tensor | None): the upper bound.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.clip(torch.tensor([-2, 9]), max=5)
    tensor([-2,  5])""",
    "clamp_min": """The larger of each element and a bound.

Args:
    input (Tensor): the operand.
    min (Number): the lower bound.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.clamp_min(torch.tensor([-2, 9]), 0)
    tensor([0, 9])""",
    "clamp_max": """The smaller of each element and a bound.

Args:
    input (Tensor): the operand.
    max (Number): the upper bound.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.clamp_max(torch.tensor([-2, 9]), 0)
    tensor([-2,  0])""",
    "atan2": """The angle of the point (other, input), in (-pi, pi].

Args:
    input (Tensor): the operand.
    other (Tensor): the second operand, which is broadcast with the first.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.atan2(torch.tensor([1.0, -1.0]), torch.tensor([0.0, 0.0]))
    tensor([ 1.5708, -1.5708])""",
    "arctan2": """Another name of `atan2`.

Args:
    input (Tensor): the operand.
    other (Tensor): the second operand, which is broadcast with the first.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.arctan2(torch.tensor([1.0]), torch.tensor([1.0]))
    tensor([0.7854])""",
    "hypot": """sqrt(input^2 + other^2), without overflow on the way.

Args:
    input (Tensor): the operand.
    other (Tensor): the second operand, which is broadcast with the first.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.hypot(torch.tensor([3.0]), torch.tensor([4.0]))
    tensor([5.])""",
    "copysign": """The magnitude of input with the sign of other.

Args:
    input (Tensor): the operand.
    other (Tensor): the second operand, which is broadcast with the first.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.copysign(torch.tensor([1.0, -2.0]), torch.tensor([-0.0, 1.0]))
    tensor([-1.,  2.])""",
    "nextafter": """The next floating number after input in the direction of other.

Args:
    input (Tensor): the operand.
    other (Tensor): the second operand, which is broadcast with the first.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.nextafter(torch.tensor([1.0]), torch.tensor([2.0])) > 1
    tensor([True])""",
    "ldexp": """input * 2^other.

Args:
    input (Tensor): the operand.
    other (Tensor): the second operand, which is broadcast with the first.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.ldexp(torch.tensor([1.0, 1.5]), torch.tensor([3, 2]))
    tensor([8., 6.])""",
    "frexp": """Mantissa in [0.5, 1) and exponent with input = mantissa * 2^exponent.

Args:
    input (Tensor): the operand.

Example:
    >>> torch.frexp(torch.tensor([8.0, 0.75]))
    torch.return_types.frexp(
    mantissa=tensor([0.5000, 0.7500]),
    exponent=tensor([4, 0], dtype=torch.int32))""",
    "logaddexp": """log(e^input + e^other), without overflow on the way.

Args:
    input (Tensor): the operand.
    other (Tensor): the second operand, which is broadcast with the first.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.logaddexp(torch.tensor([0.0]), torch.tensor([0.0]))
    tensor([0.6931])""",
    "logaddexp2": """log2(2^input + 2^other), without overflow on the way.

Args:
    input (Tensor): the operand.
    other (Tensor): the second operand, which is broadcast with the first.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.logaddexp2(torch.tensor([3.0]), torch.tensor([3.0]))
    tensor([4.])""",
    "heaviside": """0 below 0, 1 above, and the given value at 0.

Args:
    input (Tensor): the operand.
    values (Tensor): the values to write.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.heaviside(torch.tensor([-1.0, 0.0, 2.0]), torch.tensor([0.5]))
    tensor([0.0000, 0.5000, 1.0000])""",
    "xlogy": """input * log(other), and 0 where input is 0.

Args:
    input (Tensor): the operand.
    other (Tensor): the second operand, which is broadcast with the first.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.xlogy(torch.tensor([0.0, 2.0]), torch.tensor([0.0, 3.0]))
    tensor([0.0000, 2.1972])""",
    "logit": """log(x / (1 - x)), the inverse of sigmoid; with eps the input is first moved into
[eps, 1 - eps].

Args:
    input (Tensor): the operand.
    eps (float | None): a small number that keeps quotients finite.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.logit(torch.tensor([0.5, 0.9]))
    tensor([0.0000, 2.1972])""",
    "gcd": """The greatest common divisor of integers.

Args:
    input (Tensor): the operand.
    other (Tensor): the second operand, which is broadcast with the first.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.gcd(torch.tensor([12, 18]), torch.tensor([8, 27]))
    tensor([4, 9])""",
    "lcm": """The least common multiple of integers.

Args:
    input (Tensor): the operand.
    other (Tensor): the second operand, which is broadcast with the first.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.lcm(torch.tensor([4, 6]), torch.tensor([6, 4]))
    tensor([12, 12])""",
    "nan_to_num": """Numbers in the place of NaN and infinities.

Args:
    input (Tensor): the operand.
    nan (float | None): what stands for NaN.
    posinf (float | None): what stands for infinity: the largest number by default.
    neginf (float | None): what stands for minus infinity: the smallest number by default.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.nan_to_num(torch.tensor([float('nan'), 1.0]), nan=7.0)
    tensor([7., 1.])""",
    "igamma": """The regularized lower incomplete gamma function P(input, other).

Args:
    input (Tensor): the operand.
    other (Tensor): the second operand, which is broadcast with the first.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.igamma(torch.tensor([1.0]), torch.tensor([1.0]))
    tensor([0.6321])""",
    "igammac": """The regularized upper incomplete gamma function Q = 1 - P.

Args:
    input (Tensor): the operand.
    other (Tensor): the second operand, which is broadcast with the first.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.igammac(torch.tensor([1.0]), torch.tensor([1.0]))
    tensor([0.3679])""",
    "polygamma": """The n-th derivative of the digamma function.

Args:
    n (int): the order, or the number of points.
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.polygamma(1, torch.tensor([1.0]))
    tensor([1.6449])""",
    "mvlgamma": """The logarithm of the multivariate gamma function of dimension p.

Args:
    input (Tensor): the operand.
    p (int): the probability, or the exponent of the norm.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.mvlgamma(torch.tensor([2.0]), 2)
    tensor([0.4516])""",
    "eq": """Whether each element is equal, as a tensor of truth values; operands are broadcast.

Args:
    input (Tensor): the operand.
    other (Tensor): the second operand, which is broadcast with the first.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.eq(torch.tensor([1, 2, 3]), 2)
    tensor([False,  True, False])""",
    "ne": """Whether each element is different, as a tensor of truth values; operands are
broadcast.

Args:
    input (Tensor): the operand.
    other (Tensor): the second operand, which is broadcast with the first.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.ne(torch.tensor([1, 2, 3]), 2)
    tensor([ True, False,  True])""",
    "lt": """Whether each element is smaller, as a tensor of truth values; operands are
broadcast.

Args:
    input (Tensor): the operand.
    other (Tensor): the second operand, which is broadcast with the first.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.lt(torch.tensor([1, 2, 3]), 2)
    tensor([ True, False, False])""",
    "le": """Whether each element is smaller or equal, as a tensor of truth values; operands are
broadcast.

Args:
    input (Tensor): the operand.
    other (Tensor): the second operand, which is broadcast with the first.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.le(torch.tensor([1, 2, 3]), 2)
    tensor([ True,  True, False])""",
    "gt": """Whether each element is larger, as a tensor of truth values; operands are broadcast.

Args:
    input (Tensor): the operand.
    other (Tensor): the second operand, which is broadcast with the first.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.gt(torch.tensor([1, 2, 3]), 2)
    tensor([False, False,  True])""",
    "ge": """Whether each element is larger or equal, as a tensor of truth values; operands are
broadcast.

Args:
    input (Tensor): the operand.
    other (Tensor): the second operand, which is broadcast with the first.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.ge(torch.tensor([1, 2, 3]), 2)
    tensor([False,  True,  True])""",
    "not_equal": """Another name of `ne`.

Args:
    input (Tensor): the operand.
    other (Tensor): the second operand, which is broadcast with the first.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.not_equal(torch.tensor([1, 2, 3]), 2)
    tensor([ True, False,  True])""",
    "less": """Another name of `lt`.

Args:
    input (Tensor): the operand.
    other (Tensor): the second operand, which is broadcast with the first.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.less(torch.tensor([1, 2, 3]), 2)
    tensor([ True, False, False])""",
    "less_equal": """Another name of `le`.

Args:
    input (Tensor): the operand.
    other (Tensor): the second operand, which is broadcast with the first.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.less_equal(torch.tensor([1, 2, 3]), 2)
    tensor([ True,  True, False])""",
    "greater": """Another name of `gt`.

Args:
    input (Tensor): the operand.
    other (Tensor): the second operand, which is broadcast with the first.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.greater(torch.tensor([1, 2, 3]), 2)
    tensor([False, False,  True])""",
    "greater_equal": """Another name of `ge`.

Args:
    input (Tensor): the operand.
    other (Tensor): the second operand, which is broadcast with the first.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.greater_equal(torch.tensor([1, 2, 3]), 2)
    tensor([False,  True,  True])""",
    "equal": """Whether two tensors have the same sizes and elements: one truth value. NaN equals
nothing.

Args:
    input (Tensor): the operand.
    other (Tensor): the second operand, which is broadcast with the first.

Example:
    >>> torch.equal(torch.tensor([1, 2]), torch.tensor([1, 2]))
    True""",
    "isclose": """Whether |input - other| <= atol + rtol * |other|, element by element.

Args:
    input (Tensor): the operand.
    other (Tensor): the second operand, which is broadcast with the first.
    rtol (float): the relative tolerance.
    atol (float): the absolute tolerance.
    equal_nan (bool): whether NaN equals NaN.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.isclose(torch.tensor([1.0, 2.0]), torch.tensor([1.0 + 1e-9, 2.1]))
    tensor([ True, False])""",
    "allclose": """Whether `isclose` holds for all elements.

Args:
    input (Tensor): the operand.
    other (Tensor): the second operand, which is broadcast with the first.
    rtol (float): the relative tolerance.
    atol (float): the absolute tolerance.
    equal_nan (bool): whether NaN equals NaN.

Example:
    >>> torch.allclose(torch.ones(2), torch.ones(2) + 1e-9)
    True""",
    "isnan": """Whether each element is NaN.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.isnan(torch.tensor([1.0, float('nan')]))
    tensor([False,  True])""",
    "isinf": """Whether each element is infinite.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.isinf(torch.tensor([1.0, float('inf')]))
    tensor([False,  True])""",
    "isfinite": """Whether each element is neither infinite nor NaN.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.isfinite(torch.tensor([1.0, float('nan')]))
    tensor([ True, False])""",
    "isposinf": """Whether each element is plus infinity.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.isposinf(torch.tensor([float('inf'), -float('inf')]))
    tensor([ True, False])""",
    "isneginf": """Whether each element is minus infinity.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.isneginf(torch.tensor([float('inf'), -float('inf')]))
    tensor([False,  True])""",
    "isreal": """Whether each element has no imaginary part.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.isreal(torch.tensor([1 + 0j, 1j]))
    tensor([ True, False])""",
    "isin": """Whether each element is among `test_elements`.

Args:
    elements (Tensor): what is looked for.
    test_elements (Tensor): in what it is looked for.
    assume_unique (bool): whether no element occurs twice, which is quicker.
    invert (bool): whether the answer is turned round.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.isin(torch.tensor([1, 2, 3]), torch.tensor([2, 5]))
    tensor([False,  True, False])""",
    "logical_and": """Whether both are true, where numbers other than 0 are.

Args:
    input (Tensor): the operand.
    other (Tensor): the second operand, which is broadcast with the first.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.logical_and(torch.tensor([True, False]), torch.tensor([True, True]))
    tensor([ True, False])""",
    "logical_or": """Whether one is true, where numbers other than 0 are.

Args:
    input (Tensor): the operand.
    other (Tensor): the second operand, which is broadcast with the first.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.logical_or(torch.tensor([True, False]), torch.tensor([True, True]))
    tensor([True, True])""",
    "logical_xor": """Whether exactly one is true, where numbers other than 0 are.

Args:
    input (Tensor): the operand.
    other (Tensor): the second operand, which is broadcast with the first.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.logical_xor(torch.tensor([True, False]), torch.tensor([True, True]))
    tensor([False,  True])""",
    "logical_not": """Whether each element is false or 0.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.logical_not(torch.tensor([0, 2]))
    tensor([ True, False])""",
    "bitwise_and": """The bits of integers or truth values, combined by and.

Args:
    input (Tensor): the operand.
    other (Tensor): the second operand, which is broadcast with the first.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.bitwise_and(torch.tensor([12, 5]), torch.tensor([10, 3]))
    tensor([8, 1])""",
    "bitwise_or": """The bits of integers or truth values, combined by or.

Args:
    input (Tensor): the operand.
    other (Tensor): the second operand, which is broadcast with the first.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.bitwise_or(torch.tensor([12, 5]), torch.tensor([10, 3]))
    tensor([14,  7])""",
    "bitwise_xor": """The bits of integers or truth values, combined by exclusive or.

Args:
    input (Tensor): the operand.
    other (Tensor): the second operand, which is broadcast with the first.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.bitwise_xor(torch.tensor([12, 5]), torch.tensor([10, 3]))
    tensor([6, 6])""",
    "bitwise_not": """All bits turned round; the opposite of truth values.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.bitwise_not(torch.tensor([0, 5]))
    tensor([-1, -6])""",
    "bitwise_left_shift": """input * 2^other, by shifting bits.

Args:
    input (Tensor): the operand.
    other (Tensor): the second operand, which is broadcast with the first.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.bitwise_left_shift(torch.tensor([1, 3]), 2)
    tensor([ 4, 12])""",
    "bitwise_right_shift": """input / 2^other rounded down, by shifting bits.

Args:
    input (Tensor): the operand.
    other (Tensor): the second operand, which is broadcast with the first.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.bitwise_right_shift(torch.tensor([8, -8]), 2)
    tensor([ 2, -2])""",
    "angle": """The angle of complex numbers in radians; of real ones 0, or pi below 0.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.angle(torch.tensor([1j, -1 + 0j]))
    tensor([1.5708, 3.1416])""",
    "real": """The real parts of complex numbers, as a view; real tensors as they are.

Args:
    input (Tensor): the operand.

Example:
    >>> torch.real(torch.tensor([1 + 2j]))
    tensor([1.])""",
    "imag": """The imaginary parts of complex numbers, as a view. RuntimeError for real tensors.

Args:
    input (Tensor): the operand.

Example:
    >>> torch.imag(torch.tensor([1 + 2j]))
    tensor([2.])""",
    "conj": """The complex conjugates, as a view that kernels resolve.

Args:
    input (Tensor): the operand.

Example:
    >>> torch.conj(torch.tensor([1 + 2j]))
    tensor([1.-2.j])""",
    "conj_physical": """The complex conjugates, in new memory.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.conj_physical(torch.tensor([1 + 2j]))
    tensor([1.-2.j])""",
    "resolve_conj": """The input in memory of its own where it is a conjugate view.

Args:
    input (Tensor): the operand.

Example:
    >>> torch.resolve_conj(torch.tensor([1 + 2j]).conj()).is_conj()
    False""",
    "resolve_neg": """The input in memory of its own where it is a negative view.

Args:
    input (Tensor): the operand.

Example:
    >>> torch.resolve_neg(torch.tensor([1.0]))
    tensor([1.])""",
    "is_conj": """Whether a tensor is a conjugate view, whose elements are not yet conjugated in
memory.

Args:
    input (Tensor): the operand.

Example:
    >>> torch.is_conj(torch.tensor([1j]).conj())
    True""",
    "is_neg": """Whether a tensor is a negative view.

Args:
    input (Tensor): the operand.

Example:
    >>> torch.is_neg(torch.tensor([1j]).conj().imag)
    True""",
    "complex": """Complex numbers of real and imaginary parts, which are both float32 or both float64.

Args:
    real (Tensor): the real part.
    imag (Tensor): the imaginary part.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.complex(torch.tensor([1.0]), torch.tensor([2.0]))
    tensor([1.+2.j])""",
    "polar": """Complex numbers abs * e^(i angle).

Args:
    abs (Tensor): the absolute value.
    angle (Tensor): the angle, in radians.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.polar(torch.tensor([2.0]), torch.tensor([0.0]))
    tensor([2.+0.j])""",
    "view_as_real": """Complex numbers as a view of real ones with a last dimension of 2.

Args:
    input (Tensor): the operand.

Example:
    >>> torch.view_as_real(torch.tensor([1 + 2j]))
    tensor([[1., 2.]])""",
    "view_as_complex": """Real numbers with a last dimension of 2 as a view of complex ones.

Args:
    input (Tensor): the operand.

Example:
    >>> torch.view_as_complex(torch.tensor([[1.0, 2.0]]))
    tensor([1.+2.j])""",
    "relu": """max(x, 0).

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.relu(torch.tensor([-1.0, 2.0]))
    tensor([0., 2.])""",
    "celu": """max(0, x) + min(0, alpha * (e^(x / alpha) - 1)) (Barron 2017).

Args:
    input (Tensor): the operand.
    alpha (Number): a factor: for `other`, or for the product.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.celu(torch.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.0000])""",
    "selu": """scale * (max(0, x) + min(0, alpha * (e^x - 1))), with the constants of Klambauer et
al. 2017.

Args:
    input (Tensor): the operand.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.selu(torch.tensor([-1.0, 2.0]))
    tensor([-1.1113,  2.1014])""",
    "rrelu": """leaky_relu whose slope below 0 is drawn from [lower, upper] in training, and their
mean otherwise.

Args:
    input (Tensor): the operand.
    lower (Number): the lower bound.
    upper (Number): whether the upper triangle is meant, not the lower.
    training (bool): whether statistics are those of the batch.
    generator (Generator | None): where random numbers come from: the default generator if not given.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.rrelu(torch.tensor([-12.0, 2.0]), 0.25, 0.25)
    tensor([-3.,  2.])""",
    "prelu": """x above 0 and weight * x below, with a weight for all or one per channel.

Args:
    input (Tensor): the operand.
    weight (Tensor): the weights, or a factor per class or channel.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.prelu(torch.tensor([-4.0, 2.0]), torch.tensor([0.25]))
    tensor([-1.,  2.])""",
    "threshold": """x above the threshold, and a value below.

Args:
    input (Tensor): the operand.
    threshold (Number): the threshold.
    value (Number): a number, or the value at masked or chosen places.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.threshold(torch.tensor([0.5, 2.0]), 1.0, -1.0)
    tensor([-1.,  2.])""",
    "hardshrink": """x outside of [-lambd, lambd], and 0 within.

Args:
    input (Tensor): the operand.
    lambd (Number): the threshold.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.hardshrink(torch.tensor([0.3, -2.0]))
    tensor([ 0., -2.])""",
    "softmax": """e^x divided by the sum of e^x along a dimension: nonnegative numbers whose sum is 1.

Args:
    input (Tensor): the operand.
    dim (int): the dimension, or dimensions, along which to work; negative ones count from the last.
    dtype (dtype | None): the dtype of the result; by default what the operands promote to.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.softmax(torch.tensor([1.0, 2.0]), 0)
    tensor([0.2689, 0.7311])""",
    "log_softmax": """The logarithm of `softmax`, without overflow on the way.

Args:
    input (Tensor): the operand.
    dim (int): the dimension, or dimensions, along which to work; negative ones count from the last.
    dtype (dtype | None): the dtype of the result; by default what the operands promote to.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.log_softmax(torch.tensor([1.0, 2.0]), 0)
    tensor([-1.3133, -0.3133])""",
    "dropout": """Elements set to 0 with probability p, the others divided by 1 - p, in training; the
input otherwise.

Args:
    input (Tensor): the operand.
    p (float): the probability, or the exponent of the norm.
    train (bool): whether values are dropped; otherwise the input is returned.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.dropout(torch.ones(3), 0.5, False)
    tensor([1., 1., 1.])""",
    "alpha_dropout": """Dropout that keeps mean and variance of SELU's outputs (Klambauer et al. 2017).

Args:
    input (Tensor): the operand.
    p (float): the probability, or the exponent of the norm.
    train (bool): whether values are dropped; otherwise the input is returned.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.alpha_dropout(torch.ones(3), 0.5, False)
    tensor([1., 1., 1.])""",
    "feature_dropout": """Dropout of whole channels.

Args:
    input (Tensor): the operand.
    p (float): the probability, or the exponent of the norm.
    train (bool): whether values are dropped; otherwise the input is returned.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.feature_dropout(torch.ones(1, 2, 2), 0.5, False).shape
    torch.Size([1, 2, 2])""",
    "feature_alpha_dropout": """`alpha_dropout` of whole channels.

Args:
    input (Tensor): the operand.
    p (float): the probability, or the exponent of the norm.
    train (bool): whether values are dropped; otherwise the input is returned.
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.feature_alpha_dropout(torch.ones(1, 2, 2), 0.5, False).shape
    torch.Size([1, 2, 2])""",
}
