/* Fast paths of `math` functions on floats. If a function raises or its result is not finite, the Python implementation is
   called instead. */
#include "machine_values.h"

#include <math.h>

static FastStatus apply(PyObject **arguments, PyObject **result, double (*function)(double))
{
    double x;
    if (!as_float(arguments[0], &x) || !isfinite(x))
        return FAST_UNUSUAL;
    double y = function(x);
    return isfinite(y) ? give_float(result, y) : FAST_UNUSUAL;
}

#define OF_FLOAT(name)                                                                                                   \
    static FastStatus fast_##name(PyObject **arguments, Py_ssize_t Py_UNUSED(count), PyObject **result)                  \
    {                                                                                                                    \
        return apply(arguments, result, name);                                                                           \
    }
OF_FLOAT(sin)
OF_FLOAT(cos)
OF_FLOAT(tan)
OF_FLOAT(tanh)
OF_FLOAT(exp)
OF_FLOAT(log)
OF_FLOAT(log10)
OF_FLOAT(sqrt)
OF_FLOAT(fabs)

static FastStatus round_to_int(PyObject **arguments, PyObject **result, double (*function)(double))
{
    double x;
    if (!as_float(arguments[0], &x) || !(fabs(x) < 9e18))
        return FAST_UNUSUAL;
    return give_int(result, (int64_t)function(x));
}

static FastStatus fast_floor(PyObject **arguments, Py_ssize_t Py_UNUSED(count), PyObject **result)
{
    return round_to_int(arguments, result, floor);
}

static FastStatus fast_ceil(PyObject **arguments, Py_ssize_t Py_UNUSED(count), PyObject **result)
{
    return round_to_int(arguments, result, ceil);
}

static FastStatus power(PyObject **arguments, Py_ssize_t Py_UNUSED(count), PyObject **result)
{
    double a, b;
    if (!as_real(arguments[0], &a) || !as_real(arguments[1], &b) || !(a > 0) || !isfinite(a) || !isfinite(b))
        return FAST_UNUSUAL;
    double y = pow(a, b);
    return isfinite(y) ? give_float(result, y) : FAST_UNUSUAL;
}

const FastOperator machine_math_operators[] = {
    {"aten::sin.float", 1, 1, fast_sin},     {"aten::cos.float", 1, 1, fast_cos},
    {"aten::tan.float", 1, 1, fast_tan},     {"aten::tanh.float", 1, 1, fast_tanh},
    {"aten::exp.float", 1, 1, fast_exp},     {"aten::log.float", 1, 1, fast_log},
    {"aten::log10.float", 1, 1, fast_log10}, {"aten::sqrt.float", 1, 1, fast_sqrt},
    {"aten::fabs.float", 1, 1, fast_fabs},   {"aten::floor.float", 1, 1, fast_floor},
    {"aten::ceil.float", 1, 1, fast_ceil},   {"aten::pow.int", 2, 1, power},
    {"aten::pow.float", 2, 1, power},        {"aten::pow.int_float", 2, 1, power},
    {"aten::pow.float_int", 2, 1, power},    {"aten::pow.Scalar_Scalar", 2, 1, power},
    {NULL, 0, 0, NULL},
};
