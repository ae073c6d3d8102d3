/* Fast paths of operators on values of any type: identity, None, tuples. */
#include "machine_values.h"

#define OPERATOR(name) static FastStatus name(PyObject **arguments, Py_ssize_t Py_UNUSED(count), PyObject **result)

OPERATOR(is) { return give_bool(result, arguments[0] == arguments[1]); }

OPERATOR(is_not) { return give_bool(result, arguments[0] != arguments[1]); }

OPERATOR(not) { return give_truth(result, PyObject_Not(arguments[0])); }

OPERATOR(first) { return give(result, Py_NewRef(arguments[0])); }

OPERATOR(unwrap) { return arguments[0] == Py_None ? FAST_UNUSUAL : first(arguments, 1, result); }

OPERATOR(choose)
{
    int truth = PyObject_IsTrue(arguments[0]);
    return truth < 0 ? FAST_FAILED : give(result, Py_NewRef(arguments[truth ? 1 : 2]));
}

OPERATOR(tuple_item)
{
    int64_t index;
    if (!PyTuple_Check(arguments[0]) || !as_int(arguments[1], &index))
        return FAST_UNUSUAL;
    if (Py_TYPE(arguments[0])->tp_as_mapping->mp_subscript != PyTuple_Type.tp_as_mapping->mp_subscript)
        return FAST_UNUSUAL; /* a subclass with its own __getitem__, such as torch.Size */
    Py_ssize_t length = PyTuple_GET_SIZE(arguments[0]);
    index += index < 0 ? length : 0;
    return index >= 0 && index < length ? give(result, Py_NewRef(PyTuple_GET_ITEM(arguments[0], index))) : FAST_UNUSUAL;
}

static FastStatus give_none(PyObject **Py_UNUSED(arguments), Py_ssize_t Py_UNUSED(count), PyObject **result)
{
    return give(result, Py_NewRef(Py_None));
}

const FastOperator machine_value_operators[] = {
    {"aten::__is__", 2, 1, is},
    {"aten::__isnot__", 2, 1, is_not},
    {"aten::__not__", 1, 1, not},
    {"aten::_unwrap_optional", 1, 1, unwrap},
    {"prim::unchecked_unwrap_optional", 1, 1, first},
    {"prim::unchecked_cast", 1, 1, first},
    {"prim::IfThenElse", 3, 1, choose},
    {"prim::TupleIndex", 2, 1, tuple_item},
    {"prim::Uninitialized", 0, 1, give_none},
    {NULL, 0, 0, NULL},
};
