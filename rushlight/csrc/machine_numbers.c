/* Fast paths of operators on numbers: arithmetic, comparison, bits, conversion. They match the functions of
   rushlight/jit/operators/numbers.py, which handle errors and results beyond 64 bits. */
#include "machine_values.h"

/* Ints wrap around at 64 bits. */
#define WRAPPING(name, operation, function)                                                                              \
    static FastStatus name##_ints(PyObject **arguments, Py_ssize_t Py_UNUSED(count), PyObject **result)                  \
    {                                                                                                                    \
        int64_t a, b;                                                                                                    \
        if (!as_int(arguments[0], &a) || !as_int(arguments[1], &b))                                                      \
            return FAST_UNUSUAL;                                                                                         \
        return give_int(result, (int64_t)((uint64_t)a operation (uint64_t)b));                                           \
    }                                                                                                                    \
    static FastStatus name##_reals(PyObject **arguments, Py_ssize_t Py_UNUSED(count), PyObject **result)                 \
    {                                                                                                                    \
        double a, b;                                                                                                     \
        if (!as_real(arguments[0], &a) || !as_real(arguments[1], &b))                                                    \
            return FAST_UNUSUAL;                                                                                         \
        return give_float(result, a operation b);                                                                        \
    }                                                                                                                    \
    static FastStatus name##_scalars(PyObject **arguments, Py_ssize_t Py_UNUSED(count), PyObject **result)               \
    {                                                                                                                    \
        int64_t a, b;                                                                                                    \
        if (as_int(arguments[0], &a) && as_int(arguments[1], &b))                                                        \
            return give_int(result, (int64_t)((uint64_t)a operation (uint64_t)b));                                       \
        if (PyLong_Check(arguments[0]) && PyLong_Check(arguments[1]))                                                    \
            return FAST_UNUSUAL;                                                                                         \
        return give(result, function(arguments[0], arguments[1]));                                                       \
    }
WRAPPING(add, +, PyNumber_Add)
WRAPPING(subtract, -, PyNumber_Subtract)
WRAPPING(multiply, *, PyNumber_Multiply)

/* Operators with Python's own semantics, for values of any type. */
#define PLAIN_BINARY(name, function)                                                                                     \
    static FastStatus name(PyObject **arguments, Py_ssize_t Py_UNUSED(count), PyObject **result)                         \
    {                                                                                                                    \
        return give(result, function(arguments[0], arguments[1]));                                                       \
    }
PLAIN_BINARY(plain_and, PyNumber_And)
PLAIN_BINARY(plain_or, PyNumber_Or)
PLAIN_BINARY(plain_xor, PyNumber_Xor)

#define COMPARISON(name, operation, code)                                                                                \
    static FastStatus name(PyObject **arguments, Py_ssize_t Py_UNUSED(count), PyObject **result)                         \
    {                                                                                                                    \
        int64_t a, b;                                                                                                    \
        double x, y;                                                                                                     \
        if (as_int(arguments[0], &a) && as_int(arguments[1], &b))                                                        \
            return give_bool(result, a operation b);                                                                     \
        if (as_float(arguments[0], &x) && as_float(arguments[1], &y))                                                    \
            return give_bool(result, x operation y);                                                                     \
        return give(result, PyObject_RichCompare(arguments[0], arguments[1], code));                                     \
    }
COMPARISON(less, <, Py_LT)
COMPARISON(greater, >, Py_GT)
COMPARISON(less_or_equal, <=, Py_LE)
COMPARISON(greater_or_equal, >=, Py_GE)
COMPARISON(equal, ==, Py_EQ)
COMPARISON(unequal, !=, Py_NE)

/* Floor division as in Python: the quotient rounds towards minus infinity, and the remainder has the divisor's sign. */
static int divide_ints(PyObject **arguments, int64_t *quotient, int64_t *rest)
{
    int64_t a, b;
    if (!as_int(arguments[0], &a) || !as_int(arguments[1], &b) || b == 0 || (b == -1 && a == INT64_MIN))
        return 0;
    *quotient = a / b;
    *rest = a % b;
    if (*rest && (*rest < 0) != (b < 0)) {
        *quotient -= 1;
        *rest += b;
    }
    return 1;
}

static FastStatus floor_divide_ints(PyObject **arguments, Py_ssize_t Py_UNUSED(count), PyObject **result)
{
    int64_t quotient, rest;
    return divide_ints(arguments, &quotient, &rest) ? give_int(result, quotient) : FAST_UNUSUAL;
}

static FastStatus remainder_ints(PyObject **arguments, Py_ssize_t Py_UNUSED(count), PyObject **result)
{
    int64_t quotient, rest;
    return divide_ints(arguments, &quotient, &rest) ? give_int(result, rest) : FAST_UNUSUAL;
}

/* Whether both arguments are numbers whose division does not raise. */
static int may_divide(PyObject **arguments, double *a, double *b)
{
    return as_real(arguments[0], a) && as_real(arguments[1], b) && *b != 0;
}

static FastStatus divide(PyObject **arguments, Py_ssize_t Py_UNUSED(count), PyObject **result)
{
    double a, b;
    return may_divide(arguments, &a, &b) ? give_float(result, a / b) : FAST_UNUSUAL;
}

static FastStatus floor_divide_reals(PyObject **arguments, Py_ssize_t Py_UNUSED(count), PyObject **result)
{
    double a, b;
    return may_divide(arguments, &a, &b) ? give(result, PyNumber_FloorDivide(arguments[0], arguments[1])) : FAST_UNUSUAL;
}

static FastStatus remainder_reals(PyObject **arguments, Py_ssize_t Py_UNUSED(count), PyObject **result)
{
    double a, b;
    return may_divide(arguments, &a, &b) ? give(result, PyNumber_Remainder(arguments[0], arguments[1])) : FAST_UNUSUAL;
}

static FastStatus int_power(PyObject **arguments, Py_ssize_t Py_UNUSED(count), PyObject **result)
{
    int64_t a, b;
    if (!as_int(arguments[0], &a) || !as_int(arguments[1], &b) || b < 0)
        return FAST_UNUSUAL;
    uint64_t power = 1, base = (uint64_t)a;
    for (; b; b >>= 1, base *= base)
        power *= b & 1 ? base : 1;
    return give_int(result, (int64_t)power);
}

#define BITWISE(name, operation, otherwise)                                                                              \
    static FastStatus name(PyObject **arguments, Py_ssize_t count, PyObject **result)                                    \
    {                                                                                                                    \
        int64_t a, b;                                                                                                    \
        if (as_int(arguments[0], &a) && as_int(arguments[1], &b))                                                        \
            return give_int(result, a operation b);                                                                      \
        return otherwise(arguments, count, result);                                                                      \
    }
BITWISE(bitwise_and, &, plain_and)
BITWISE(bitwise_or, |, plain_or)
BITWISE(bitwise_xor, ^, plain_xor)

static FastStatus shift_left(PyObject **arguments, Py_ssize_t Py_UNUSED(count), PyObject **result)
{
    int64_t a, b;
    if (!as_int(arguments[0], &a) || !as_int(arguments[1], &b) || b < 0 || b > 63)
        return FAST_UNUSUAL;
    return give_int(result, (int64_t)((uint64_t)a << b));
}

static FastStatus shift_right(PyObject **arguments, Py_ssize_t Py_UNUSED(count), PyObject **result)
{
    int64_t a, b;
    if (!as_int(arguments[0], &a) || !as_int(arguments[1], &b) || b < 0 || b > 63)
        return FAST_UNUSUAL;
    return give_int(result, a >> b);
}

static FastStatus invert(PyObject **arguments, Py_ssize_t Py_UNUSED(count), PyObject **result)
{
    return give(result, PyNumber_Invert(arguments[0]));
}

static FastStatus negate(PyObject **arguments, Py_ssize_t Py_UNUSED(count), PyObject **result)
{
    int64_t a;
    double x;
    if (as_float(arguments[0], &x))
        return give_float(result, -x);
    if (!as_int(arguments[0], &a) || a == INT64_MIN)
        return FAST_UNUSUAL;
    return give_int(result, -a);
}

static FastStatus absolute(PyObject **arguments, Py_ssize_t Py_UNUSED(count), PyObject **result)
{
    int64_t a;
    if (PyLong_Check(arguments[0]) && (!as_int(arguments[0], &a) || a == INT64_MIN))
        return FAST_UNUSUAL;
    return give(result, PyNumber_Absolute(arguments[0]));
}

/* Python's max(a, b) and min(a, b): the first operand, unless the second is greater (less). NaN follows the same rule. */
#define EXTREME(name, operation)                                                                                         \
    static FastStatus name##_ints(PyObject **arguments, Py_ssize_t Py_UNUSED(count), PyObject **result)                  \
    {                                                                                                                    \
        int64_t a, b;                                                                                                    \
        if (!as_int(arguments[0], &a) || !as_int(arguments[1], &b))                                                      \
            return FAST_UNUSUAL;                                                                                         \
        return give(result, Py_NewRef(arguments[b operation a]));                                                        \
    }                                                                                                                    \
    static FastStatus name##_reals(PyObject **arguments, Py_ssize_t Py_UNUSED(count), PyObject **result)                 \
    {                                                                                                                    \
        double a, b;                                                                                                     \
        if (!as_real(arguments[0], &a) || !as_real(arguments[1], &b))                                                    \
            return FAST_UNUSUAL;                                                                                         \
        return give_float(result, b operation a ? b : a);                                                                \
    }
EXTREME(maximum, >)
EXTREME(minimum, <)

static FastStatus to_int(PyObject **arguments, Py_ssize_t Py_UNUSED(count), PyObject **result)
{
    int64_t whole;
    double x;
    if (as_float(arguments[0], &x) && x > -9e18 && x < 9e18)
        return give_int(result, (int64_t)x);
    if (PyBool_Check(arguments[0]))
        return give_int(result, arguments[0] == Py_True);
    return as_int(arguments[0], &whole) ? give(result, Py_NewRef(arguments[0])) : FAST_UNUSUAL;
}

static FastStatus to_float(PyObject **arguments, Py_ssize_t Py_UNUSED(count), PyObject **result)
{
    double x;
    if (PyBool_Check(arguments[0]))
        return give_float(result, arguments[0] == Py_True);
    return as_real(arguments[0], &x) ? give_float(result, x) : FAST_UNUSUAL;
}

static FastStatus to_bool(PyObject **arguments, Py_ssize_t Py_UNUSED(count), PyObject **result)
{
    return give_truth(result, PyObject_IsTrue(arguments[0]));
}

static FastStatus range_length(PyObject **arguments, Py_ssize_t Py_UNUSED(count), PyObject **result)
{
    int64_t low, high, step;
    if (!as_int(arguments[0], &low) || !as_int(arguments[1], &high) || !as_int(arguments[2], &step) || step == 0)
        return FAST_UNUSUAL;
    if (step > 0 ? low >= high : low <= high)
        return give_int(result, 0);
    uint64_t distance = step > 0 ? (uint64_t)high - (uint64_t)low : (uint64_t)low - (uint64_t)high;
    uint64_t length = (distance - 1) / (step > 0 ? (uint64_t)step : -(uint64_t)step) + 1;
    return length <= INT64_MAX ? give_int(result, (int64_t)length) : FAST_UNUSUAL;
}

static FastStatus derive_index(PyObject **arguments, Py_ssize_t Py_UNUSED(count), PyObject **result)
{
    int64_t index, start, step, product;
    if (!as_int(arguments[0], &index) || !as_int(arguments[1], &start) || !as_int(arguments[2], &step) ||
        __builtin_mul_overflow(index, step, &product) || __builtin_add_overflow(start, product, &product))
        return FAST_UNUSUAL;
    return give_int(result, product);
}

#define FOR_REALS(name, function)                                                                                        \
    {name ".float", 2, 1, function}, {name ".int_float", 2, 1, function}, {name ".float_int", 2, 1, function}
#define FOR_NUMBERS(name, ints, reals) {name ".int", 2, 1, ints}, FOR_REALS(name, reals)
#define COMPARED(name, function) FOR_NUMBERS(name, function, function), {name ".str", 2, 1, function}, {name, 2, 1, function}
#define COMPARED_FOR_EQUALITY(name, function)                                                                            \
    COMPARED(name, function), {name ".bool", 2, 1, function}, {name ".device", 2, 1, function},                          \
        {name ".enum", 2, 1, function}, {name ".int_list", 2, 1, function}, {name ".float_list", 2, 1, function},        \
        {name ".bool_list", 2, 1, function}, {name ".str_list", 2, 1, function}

const FastOperator machine_number_operators[] = {
    FOR_NUMBERS("aten::add", add_ints, add_reals),
    FOR_NUMBERS("aten::sub", subtract_ints, subtract_reals),
    FOR_NUMBERS("aten::mul", multiply_ints, multiply_reals),
    {"aten::add", 2, 1, add_scalars},
    {"aten::sub", 2, 1, subtract_scalars},
    {"aten::mul", 2, 1, multiply_scalars},
    {"aten::div.int", 2, 1, divide},
    {"aten::div.float", 2, 1, divide},
    {"aten::div", 2, 1, divide},
    FOR_NUMBERS("aten::floordiv", floor_divide_ints, floor_divide_reals),
    FOR_NUMBERS("aten::remainder", remainder_ints, remainder_reals),
    {"aten::pow.int_to_int", 2, 1, int_power},
    COMPARED("aten::lt", less),
    COMPARED("aten::gt", greater),
    COMPARED("aten::le", less_or_equal),
    COMPARED("aten::ge", greater_or_equal),
    COMPARED_FOR_EQUALITY("aten::eq", equal),
    COMPARED_FOR_EQUALITY("aten::ne", unequal),
    {"aten::__and__.bool", 2, 1, plain_and},
    {"aten::__or__.bool", 2, 1, plain_or},
    {"aten::__xor__.bool", 2, 1, plain_xor},
    {"aten::__and__.int", 2, 1, bitwise_and},
    {"aten::__or__.int", 2, 1, bitwise_or},
    {"aten::__xor__.int", 2, 1, bitwise_xor},
    {"aten::__lshift__.int", 2, 1, shift_left},
    {"aten::__rshift__.int", 2, 1, shift_right},
    {"aten::bitwise_not.int", 1, 1, invert},
    {"aten::neg.int", 1, 1, negate},
    {"aten::neg.float", 1, 1, negate},
    {"aten::neg.Scalar", 1, 1, negate},
    {"prim::abs.int", 1, 1, absolute},
    {"prim::abs.float", 1, 1, absolute},
    {"prim::abs.Scalar", 1, 1, absolute},
    FOR_NUMBERS("prim::max", maximum_ints, maximum_reals),
    FOR_NUMBERS("prim::min", minimum_ints, minimum_reals),
    {"aten::Int.float", 1, 1, to_int},
    {"aten::Int.bool", 1, 1, to_int},
    {"aten::Int.Scalar", 1, 1, to_int},
    {"aten::Float.int", 1, 1, to_float},
    {"aten::Float.bool", 1, 1, to_float},
    {"aten::Float.Scalar", 1, 1, to_float},
    {"aten::Bool.int", 1, 1, to_bool},
    {"aten::Bool.float", 1, 1, to_bool},
    {"aten::__range_length", 3, 1, range_length},
    {"aten::__derive_index", 3, 1, derive_index},
    {NULL, 0, 0, NULL},
};
