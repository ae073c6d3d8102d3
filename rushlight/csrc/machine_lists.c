/* Fast paths of operators on lists. For exact lists and indices in range they give the results of
   rushlight/jit/operators/containers.py. */
#include "machine_values.h"

#define UNARY(name) static FastStatus name(PyObject **arguments, Py_ssize_t Py_UNUSED(count), PyObject **result)
#define WITHOUT_RESULT(name) static FastStatus name(PyObject **arguments, Py_ssize_t Py_UNUSED(count), PyObject **Py_UNUSED(result))

static FastStatus as_status(int status) { return status < 0 ? FAST_FAILED : FAST_DONE; }

/* Compute an element's position; return 0 if the index is out of range. Negative indices count from the end. */
static inline int place_of(PyObject *list, PyObject *value, Py_ssize_t *place)
{
    int64_t index;
    if (!PyList_CheckExact(list) || !as_int(value, &index))
        return 0;
    index += index < 0 ? PyList_GET_SIZE(list) : 0;
    *place = (Py_ssize_t)index;
    return index >= 0 && index < PyList_GET_SIZE(list);
}

UNARY(length)
{
    return PyList_CheckExact(arguments[0]) ? give_int(result, PyList_GET_SIZE(arguments[0])) : FAST_UNUSUAL;
}

UNARY(append)
{
    if (!PyList_CheckExact(arguments[0]))
        return FAST_UNUSUAL;
    return PyList_Append(arguments[0], arguments[1]) < 0 ? FAST_FAILED : give(result, Py_NewRef(arguments[0]));
}

WITHOUT_RESULT(extend)
{
    if (!PyList_CheckExact(arguments[0]) || !PyList_CheckExact(arguments[1]))
        return FAST_UNUSUAL;
    Py_ssize_t end = PyList_GET_SIZE(arguments[0]);
    return as_status(PyList_SetSlice(arguments[0], end, end, arguments[1]));
}

WITHOUT_RESULT(insert)
{
    int64_t index;
    if (!PyList_CheckExact(arguments[0]) || !as_int(arguments[1], &index))
        return FAST_UNUSUAL;
    return as_status(PyList_Insert(arguments[0], (Py_ssize_t)index, arguments[2]));
}

UNARY(pop)
{
    Py_ssize_t place;
    if (!place_of(arguments[0], arguments[1], &place))
        return FAST_UNUSUAL;
    PyObject *item = Py_NewRef(PyList_GET_ITEM(arguments[0], place));
    if (PyList_SetSlice(arguments[0], place, place + 1, NULL) < 0)
        Py_CLEAR(item);
    return give(result, item);
}

WITHOUT_RESULT(remove_at)
{
    Py_ssize_t place;
    return place_of(arguments[0], arguments[1], &place) ? as_status(PyList_SetSlice(arguments[0], place, place + 1, NULL)) : FAST_UNUSUAL;
}

WITHOUT_RESULT(clear)
{
    if (!PyList_CheckExact(arguments[0]))
        return FAST_UNUSUAL;
    return as_status(PyList_SetSlice(arguments[0], 0, PyList_GET_SIZE(arguments[0]), NULL));
}

WITHOUT_RESULT(reverse)
{
    return PyList_CheckExact(arguments[0]) ? as_status(PyList_Reverse(arguments[0])) : FAST_UNUSUAL;
}

UNARY(copy)
{
    if (!PyList_CheckExact(arguments[0]))
        return FAST_UNUSUAL;
    return give(result, PyList_GetSlice(arguments[0], 0, PyList_GET_SIZE(arguments[0])));
}

UNARY(get)
{
    Py_ssize_t place;
    if (!place_of(arguments[0], arguments[1], &place))
        return FAST_UNUSUAL;
    return give(result, Py_NewRef(PyList_GET_ITEM(arguments[0], place)));
}

UNARY(set)
{
    Py_ssize_t place;
    if (!place_of(arguments[0], arguments[1], &place))
        return FAST_UNUSUAL;
    PyObject *before = PyList_GET_ITEM(arguments[0], place);
    PyList_SET_ITEM(arguments[0], place, Py_NewRef(arguments[2]));
    *result = Py_NewRef(arguments[0]);
    Py_DECREF(before); /* may run Python code; the list is already consistent */
    return FAST_DONE;
}

/* Compute the bound of a slice; None stands for the default. */
static int slice_bound(PyObject *value, Py_ssize_t length, Py_ssize_t otherwise, Py_ssize_t *found)
{
    int64_t index = otherwise;
    if (value != Py_None && !as_int(value, &index))
        return 0;
    if (index < 0)
        index = index + length < 0 ? 0 : index + length;
    *found = index > length ? length : (Py_ssize_t)index;
    return 1;
}

UNARY(slice)
{
    int64_t step;
    Py_ssize_t start, end;
    if (!PyList_CheckExact(arguments[0]) || !as_int(arguments[3], &step) || step != 1)
        return FAST_UNUSUAL;
    Py_ssize_t length = PyList_GET_SIZE(arguments[0]);
    if (!slice_bound(arguments[1], length, 0, &start) || !slice_bound(arguments[2], length, length, &end))
        return FAST_UNUSUAL;
    return give(result, PyList_GetSlice(arguments[0], start, end));
}

UNARY(add) { return give(result, PyNumber_Add(arguments[0], arguments[1])); }

UNARY(add_in_place) { return give(result, PyNumber_InPlaceAdd(arguments[0], arguments[1])); }

UNARY(repeat) { return give(result, PyNumber_Multiply(arguments[0], arguments[1])); }

UNARY(contains) { return give_truth(result, PySequence_Contains(arguments[0], arguments[1])); }

WITHOUT_RESULT(sort)
{
    if (!PyList_CheckExact(arguments[0]) || arguments[1] != Py_False)
        return FAST_UNUSUAL;
    return as_status(PyList_Sort(arguments[0]));
}

#define FOR_SORTED(name, end, arity, results, function)                                                                  \
    {name ".int" end, arity, results, function}, {name ".float" end, arity, results, function},                          \
        {name ".bool" end, arity, results, function}, {name ".str" end, arity, results, function}

const FastOperator machine_list_operators[] = {
    {"aten::len.t", 1, 1, length},
    {"aten::append.t", 2, 1, append},
    {"aten::extend.t", 2, 0, extend},
    {"aten::insert.t", 3, 0, insert},
    {"aten::pop.t", 2, 1, pop},
    {"aten::clear.t", 1, 0, clear},
    {"aten::reverse.t", 1, 0, reverse},
    {"aten::copy.t", 1, 1, copy},
    {"aten::list.t", 1, 1, copy},
    {"aten::Delete.t", 2, 0, remove_at},
    {"aten::__getitem__.t", 2, 1, get},
    {"aten::select.t", 2, 1, get},
    {"aten::_set_item.t", 3, 1, set},
    {"aten::slice.t", 4, 1, slice},
    {"aten::add.t", 2, 1, add},
    {"aten::add_.t", 2, 1, add_in_place},
    {"aten::mul.left_t", 2, 1, repeat},
    {"aten::mul.right_", 2, 1, repeat},
    FOR_SORTED("aten::__contains__", "_list", 2, 1, contains),
    FOR_SORTED("aten::sort", "", 2, 0, sort),
    {NULL, 0, 0, NULL},
};
