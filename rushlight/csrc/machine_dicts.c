/* Fast paths of operators on dicts. For exact dicts and present keys they give the results of
   rushlight/jit/operators/containers.py. */
#include "machine_values.h"

#define OPERATOR(name) static FastStatus name(PyObject **arguments, Py_ssize_t Py_UNUSED(count), PyObject **result)
#define WITHOUT_RESULT(name) static FastStatus name(PyObject **arguments, Py_ssize_t Py_UNUSED(count), PyObject **Py_UNUSED(result))

OPERATOR(length)
{
    return PyDict_CheckExact(arguments[0]) ? give_int(result, PyDict_GET_SIZE(arguments[0])) : FAST_UNUSUAL;
}

OPERATOR(keys) { return PyDict_CheckExact(arguments[0]) ? give(result, PyDict_Keys(arguments[0])) : FAST_UNUSUAL; }

OPERATOR(values) { return PyDict_CheckExact(arguments[0]) ? give(result, PyDict_Values(arguments[0])) : FAST_UNUSUAL; }

OPERATOR(items) { return PyDict_CheckExact(arguments[0]) ? give(result, PyDict_Items(arguments[0])) : FAST_UNUSUAL; }

/* Look up a key; the result is `otherwise` if the key is missing. */
static FastStatus look_up(PyObject **arguments, PyObject **result, PyObject *otherwise)
{
    if (!PyDict_CheckExact(arguments[0]))
        return FAST_UNUSUAL;
    PyObject *found = PyDict_GetItemWithError(arguments[0], arguments[1]);
    if (!found && PyErr_Occurred())
        return FAST_FAILED;
    if (!found)
        found = otherwise;
    return found ? give(result, Py_NewRef(found)) : FAST_UNUSUAL;
}

OPERATOR(get_item) { return look_up(arguments, result, NULL); }

OPERATOR(get) { return look_up(arguments, result, Py_None); }

OPERATOR(get_or_default) { return look_up(arguments, result, arguments[2]); }

OPERATOR(set_default)
{
    if (!PyDict_CheckExact(arguments[0]))
        return FAST_UNUSUAL;
    return give(result, Py_XNewRef(PyDict_SetDefault(arguments[0], arguments[1], arguments[2])));
}

OPERATOR(pop)
{
    FastStatus status = look_up(arguments, result, NULL);
    if (status == FAST_DONE && PyDict_DelItem(arguments[0], arguments[1]) < 0) {
        Py_CLEAR(*result);
        return FAST_FAILED;
    }
    return status;
}

WITHOUT_RESULT(delete_item)
{
    PyObject *item = NULL;
    FastStatus status = pop(arguments, 2, &item);
    Py_XDECREF(item);
    return status;
}

OPERATOR(contains)
{
    return PyDict_CheckExact(arguments[0]) ? give_truth(result, PyDict_Contains(arguments[0], arguments[1])) : FAST_UNUSUAL;
}

WITHOUT_RESULT(set_item)
{
    if (!PyDict_CheckExact(arguments[0]))
        return FAST_UNUSUAL;
    return PyDict_SetItem(arguments[0], arguments[1], arguments[2]) < 0 ? FAST_FAILED : FAST_DONE;
}

OPERATOR(copy) { return PyDict_CheckExact(arguments[0]) ? give(result, PyDict_Copy(arguments[0])) : FAST_UNUSUAL; }

#define FOR_KEYS(name, arity, results, function)                                                                         \
    {name "str", arity, results, function}, {name "int", arity, results, function}, {name "bool", arity, results, function}, \
        {name "float", arity, results, function}, {name "complex", arity, results, function},                            \
        {name "Tensor", arity, results, function}

const FastOperator machine_dict_operators[] = {
    FOR_KEYS("aten::len.Dict_", 1, 1, length),
    FOR_KEYS("aten::keys.", 1, 1, keys),
    FOR_KEYS("aten::values.", 1, 1, values),
    FOR_KEYS("aten::items.", 1, 1, items),
    FOR_KEYS("aten::__getitem__.Dict_", 2, 1, get_item),
    FOR_KEYS("aten::get.", 2, 1, get),
    FOR_KEYS("aten::get.default_", 3, 1, get_or_default),
    FOR_KEYS("aten::setdefault.", 3, 1, set_default),
    FOR_KEYS("aten::Delete.Dict_", 2, 0, delete_item),
    FOR_KEYS("aten::pop.Dict_", 2, 1, pop),
    FOR_KEYS("aten::__contains__.", 2, 1, contains),
    FOR_KEYS("aten::_set_item.", 3, 0, set_item),
    FOR_KEYS("aten::copy.Dict_", 1, 1, copy),
    {NULL, 0, 0, NULL},
};
