/* Fast paths of operators on strings. For exact strs they give the results of rushlight/jit/operators/strings.py. */
#include "machine_values.h"

static FastStatus length(PyObject **arguments, Py_ssize_t Py_UNUSED(count), PyObject **result)
{
    return PyUnicode_CheckExact(arguments[0]) ? give_int(result, PyUnicode_GET_LENGTH(arguments[0])) : FAST_UNUSUAL;
}

/* Concatenate strings. Append in place if nothing else references the first one: then a loop that collects characters need not
   copy it. */
static FastStatus concatenate(PyObject **arguments, Py_ssize_t Py_UNUSED(count), PyObject **result)
{
    if (!PyUnicode_CheckExact(arguments[0]) || !PyUnicode_CheckExact(arguments[1]))
        return FAST_UNUSUAL;
    PyObject *left = arguments[0];
    arguments[0] = NULL;
    PyUnicode_Append(&left, arguments[1]);
    return give(result, left);
}

static FastStatus repeat(PyObject **arguments, Py_ssize_t Py_UNUSED(count), PyObject **result)
{
    return give(result, PyNumber_Multiply(arguments[0], arguments[1]));
}

static FastStatus contains(PyObject **arguments, Py_ssize_t Py_UNUSED(count), PyObject **result)
{
    return give_truth(result, PySequence_Contains(arguments[0], arguments[1]));
}

static FastStatus character(PyObject **arguments, Py_ssize_t Py_UNUSED(count), PyObject **result)
{
    int64_t index;
    if (!PyUnicode_CheckExact(arguments[0]) || !as_int(arguments[1], &index))
        return FAST_UNUSUAL;
    Py_ssize_t length = PyUnicode_GET_LENGTH(arguments[0]);
    index += index < 0 ? length : 0;
    if (index < 0 || index >= length)
        return FAST_UNUSUAL;
    return give(result, PyUnicode_FromOrdinal((int)PyUnicode_READ_CHAR(arguments[0], index)));
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

static FastStatus slice(PyObject **arguments, Py_ssize_t Py_UNUSED(count), PyObject **result)
{
    int64_t step;
    Py_ssize_t start, end;
    if (!PyUnicode_CheckExact(arguments[0]) || !as_int(arguments[3], &step) || step != 1)
        return FAST_UNUSUAL;
    Py_ssize_t length = PyUnicode_GET_LENGTH(arguments[0]);
    if (!slice_bound(arguments[1], length, 0, &start) || !slice_bound(arguments[2], length, length, &end))
        return FAST_UNUSUAL;
    return give(result, PyUnicode_Substring(arguments[0], start, end < start ? start : end));
}

/* Whether the arguments search a whole string for another string, without start and end. */
static int searches_whole_string(PyObject **arguments)
{
    int64_t start, end;
    return PyUnicode_CheckExact(arguments[0]) && PyUnicode_CheckExact(arguments[1]) && as_int(arguments[2], &start) &&
           as_int(arguments[3], &end) && start == 0 && end == -1;
}

static FastStatus find(PyObject **arguments, PyObject **result, int direction, int must_be_there)
{
    if (!searches_whole_string(arguments))
        return FAST_UNUSUAL;
    Py_ssize_t place = PyUnicode_Find(arguments[0], arguments[1], 0, PyUnicode_GET_LENGTH(arguments[0]), direction);
    if (place == -2)
        return FAST_FAILED;
    return place < 0 && must_be_there ? FAST_UNUSUAL : give_int(result, place);
}

static FastStatus find_first(PyObject **arguments, Py_ssize_t Py_UNUSED(count), PyObject **result)
{
    return find(arguments, result, 1, 0);
}

static FastStatus find_last(PyObject **arguments, Py_ssize_t Py_UNUSED(count), PyObject **result)
{
    return find(arguments, result, -1, 0);
}

static FastStatus index_of(PyObject **arguments, Py_ssize_t Py_UNUSED(count), PyObject **result)
{
    return find(arguments, result, 1, 1);
}

static FastStatus occurrences(PyObject **arguments, Py_ssize_t Py_UNUSED(count), PyObject **result)
{
    if (!searches_whole_string(arguments))
        return FAST_UNUSUAL;
    Py_ssize_t found = PyUnicode_Count(arguments[0], arguments[1], 0, PyUnicode_GET_LENGTH(arguments[0]));
    return found < 0 ? FAST_FAILED : give_int(result, found);
}

static FastStatus match_end(PyObject **arguments, PyObject **result, int direction)
{
    if (!searches_whole_string(arguments))
        return FAST_UNUSUAL;
    return give_truth(result, (int)PyUnicode_Tailmatch(arguments[0], arguments[1], 0, PyUnicode_GET_LENGTH(arguments[0]), direction));
}

static FastStatus starts_with(PyObject **arguments, Py_ssize_t Py_UNUSED(count), PyObject **result)
{
    return match_end(arguments, result, -1);
}

static FastStatus ends_with(PyObject **arguments, Py_ssize_t Py_UNUSED(count), PyObject **result)
{
    return match_end(arguments, result, 1);
}

static FastStatus split_by(PyObject **arguments, PyObject **result, PyObject *(*function)(PyObject *, PyObject *, Py_ssize_t))
{
    int64_t most;
    PyObject *separator = arguments[1] == Py_None ? NULL : arguments[1];
    if (!PyUnicode_CheckExact(arguments[0]) || (separator && !PyUnicode_CheckExact(separator)) || !as_int(arguments[2], &most))
        return FAST_UNUSUAL;
    return give(result, function(arguments[0], separator, (Py_ssize_t)most));
}

static FastStatus split(PyObject **arguments, Py_ssize_t Py_UNUSED(count), PyObject **result)
{
    return split_by(arguments, result, PyUnicode_Split);
}

static FastStatus split_from_right(PyObject **arguments, Py_ssize_t Py_UNUSED(count), PyObject **result)
{
    return split_by(arguments, result, PyUnicode_RSplit);
}

static FastStatus join(PyObject **arguments, Py_ssize_t Py_UNUSED(count), PyObject **result)
{
    if (!PyUnicode_CheckExact(arguments[0]) || !PyList_CheckExact(arguments[1]))
        return FAST_UNUSUAL;
    return give(result, PyUnicode_Join(arguments[0], arguments[1]));
}

static FastStatus replace(PyObject **arguments, Py_ssize_t Py_UNUSED(count), PyObject **result)
{
    int64_t most;
    for (int i = 0; i < 3; i++)
        if (!PyUnicode_CheckExact(arguments[i]))
            return FAST_UNUSUAL;
    if (!as_int(arguments[3], &most))
        return FAST_UNUSUAL;
    return give(result, PyUnicode_Replace(arguments[0], arguments[1], arguments[2], (Py_ssize_t)most));
}

/* Call a method of str; the method is looked up once. */
static FastStatus call_method(PyObject **arguments, Py_ssize_t count, PyObject **result, PyObject **method, const char *name)
{
    if (!PyUnicode_CheckExact(arguments[0]))
        return FAST_UNUSUAL;
    if (!*method && !(*method = PyObject_GetAttrString((PyObject *)&PyUnicode_Type, name)))
        return FAST_FAILED;
    return give(result, PyObject_Vectorcall(*method, arguments, (size_t)count, NULL));
}

#define METHOD(name)                                                                                                     \
    static FastStatus fast_##name(PyObject **arguments, Py_ssize_t count, PyObject **result)                             \
    {                                                                                                                    \
        static PyObject *method;                                                                                         \
        return call_method(arguments, count, result, &method, #name);                                                    \
    }
METHOD(strip)
METHOD(lstrip)
METHOD(rstrip)

/* Whether scripted code formats a value as Python does. Python code handles floats, and values that may contain floats or
   strings. */
static int is_plain_text(PyObject *value)
{
    return PyUnicode_CheckExact(value) || PyLong_CheckExact(value) || PyBool_Check(value) || value == Py_None;
}

static FastStatus to_text(PyObject **arguments, Py_ssize_t Py_UNUSED(count), PyObject **result)
{
    if (!is_plain_text(arguments[0]))
        return FAST_UNUSUAL;
    return give(result, PyObject_Str(arguments[0]));
}

/* Join the parts of a format with the values between them as text; NULL with an exception set. Steal the parts. */
static PyObject *fill_format(PyObject *parts, PyObject **values)
{
    Py_ssize_t count = PyList_GET_SIZE(parts);
    PyObject *made = PyList_New(2 * count - 1);
    for (Py_ssize_t i = 0; made && i < count; i++) {
        PyList_SET_ITEM(made, 2 * i, Py_NewRef(PyList_GET_ITEM(parts, i)));
        PyObject *text = i + 1 < count ? PyObject_Str(values[i]) : NULL;
        if (text)
            PyList_SET_ITEM(made, 2 * i + 1, text);
        else if (i + 1 < count)
            Py_CLEAR(made);
    }
    Py_DECREF(parts);
    return made;
}

static FastStatus format(PyObject **arguments, Py_ssize_t count, PyObject **result)
{
    if (count < 1 || !PyUnicode_CheckExact(arguments[0]))
        return FAST_UNUSUAL;
    for (Py_ssize_t i = 1; i < count; i++)
        if (!is_plain_text(arguments[i]))
            return FAST_UNUSUAL;
    PyObject *mark = PyUnicode_FromString("{}"), *nothing = PyUnicode_FromString("");
    PyObject *parts = mark ? PyUnicode_Split(arguments[0], mark, -1) : NULL;
    FastStatus status = FAST_FAILED;
    if (parts && nothing && PyList_GET_SIZE(parts) > count) {
        Py_DECREF(parts);
        status = FAST_UNUSUAL;
    } else if (parts && nothing && (parts = fill_format(parts, arguments + 1))) {
        status = give(result, PyUnicode_Join(nothing, parts));
        Py_DECREF(parts);
    }
    Py_XDECREF(mark);
    Py_XDECREF(nothing);
    return status;
}

const FastOperator machine_string_operators[] = {
    {"aten::len.str", 1, 1, length},
    {"aten::add.str", 2, 1, concatenate},
    {"aten::mul.str_int", 2, 1, repeat},
    {"aten::__contains__.str_str", 2, 1, contains},
    {"aten::__getitem__.str", 2, 1, character},
    {"prim::StringIndex", 2, 1, character},
    {"aten::slice.str", 4, 1, slice},
    {"aten::find", 4, 1, find_first},
    {"aten::rfind", 4, 1, find_last},
    {"aten::index.str", 4, 1, index_of},
    {"aten::count", 4, 1, occurrences},
    {"aten::startswith", 4, 1, starts_with},
    {"aten::endswith", 4, 1, ends_with},
    {"aten::split.str", 3, 1, split},
    {"aten::rsplit", 3, 1, split_from_right},
    {"aten::join", 2, 1, join},
    {"aten::replace", 4, 1, replace},
    {"aten::strip", 2, 1, fast_strip},
    {"aten::lstrip", 2, 1, fast_lstrip},
    {"aten::rstrip", 2, 1, fast_rstrip},
    {"aten::str", 1, 1, to_text},
    {"aten::format", -1, 1, format},
    {NULL, 0, 0, NULL},
};
