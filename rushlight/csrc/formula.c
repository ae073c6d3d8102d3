/* Evaluates the formulas of a recorded node: they turn the gradients of its outputs into those of its inputs. */
#include "record.h"

/* Return a tuple of bools: for each input of a formula, whether its gradient is needed. */
static PyObject *needs_tuple(PyObject *row)
{
    PyObject *tuple = PyTuple_New(PyList_GET_SIZE(row));
    for (Py_ssize_t i = 0; tuple && i < PyList_GET_SIZE(row); i++) {
        PyObject *flag = PyList_GET_ITEM(row, i);
        int any = flag == Py_True;
        for (Py_ssize_t k = 0; PyList_Check(flag) && k < PyList_GET_SIZE(flag); k++)
            any |= PyList_GET_ITEM(flag, k) == Py_True;
        PyTuple_SET_ITEM(tuple, i, PyBool_FromLong(any));
    }
    return tuple;
}

/* Return the value of something that the node saved. */
static PyObject *unpack_saved(OperatorNode *node, PyObject *saved)
{
    if ((PyObject *)Py_TYPE(saved) == configuration.saved_type) {
        SavedTensorBase *kept = (SavedTensorBase *)saved;
        const TensorImpl *impl = kept->tensor && !is_set(kept->unpack_hook) ? impl_of(kept->tensor) : NULL;
        /* If nothing is recorded and no forward-mode level runs, an output without its history and tangents is enough. */
        const ThreadRecord *record = thread_record();
        int complete = !is_set(kept->output_nr) || (!record->grad_enabled && !(record->include & DUAL_BIT));
        if (impl && version_value(impl) == kept->version && complete)
            return Py_NewRef(kept->tensor);
    } else if (!PyList_Check(saved))
        return Py_NewRef(saved);
    return PyObject_CallFunctionObjArgs(configuration.unpack, saved, (PyObject *)node, NULL);
}

/* Return one argument of a formula: gradients, needs, or a saved value. */
static PyObject *formula_argument(OperatorNode *node, PyObject *source, PyObject *grads, PyObject *row)
{
    if (PyLong_CheckExact(source)) {
        long which = PyLong_AsLong(source);
        return which == 0 ? Py_NewRef(field(grads, 0)) : which == 1 ? Py_NewRef(grads) : needs_tuple(row);
    }
    PyObject *saved = PyDict_GetItemWithError(node->saved, source);
    if (!saved) {
        if (!PyErr_Occurred())
            PyErr_SetObject(PyExc_KeyError, source);
        return NULL;
    }
    Py_INCREF(saved);
    PyObject *value = unpack_saved(node, saved);
    Py_DECREF(saved);
    return value;
}

static PyObject *evaluate(OperatorNode *node, PyObject *formula, PyObject *grads, PyObject *row)
{
    PyObject *sources = field(formula, FORMULA_SOURCES), *values[MAX_ARGUMENTS], *result = NULL;
    Py_ssize_t count = PyTuple_GET_SIZE(sources), made = 0;
    while (made < count && (values[made] = formula_argument(node, field(sources, made), grads, row)))
        made++;
    if (made == count)
        result = PyObject_Vectorcall(field(formula, FORMULA_FUNCTION), values, (size_t)count, NULL);
    while (made)
        Py_DECREF(values[--made]);
    return result;
}

/* Append None for an input, or for each tensor of an input that is a list. */
static int append_none(PyObject *results, PyObject *flag)
{
    Py_ssize_t count = PyList_Check(flag) ? PyList_GET_SIZE(flag) : 1;
    for (Py_ssize_t i = 0; i < count; i++)
        if (PyList_Append(results, Py_None) < 0)
            return -1;
    return 0;
}

/* Append the gradient of one input: several gradients if the input is a list of tensors. */
static int append_gradient(PyObject *results, PyObject *gradient, PyObject *flag)
{
    if (!PyList_Check(flag))
        return PyList_Append(results, flag == Py_True ? gradient : Py_None);
    if (gradient == Py_None)
        return append_none(results, flag);
    PyObject *extended = PySequence_InPlaceConcat(results, gradient);
    Py_XDECREF(extended);
    return extended ? 0 : -1;
}

static int append_gradients(PyObject *results, PyObject *found, PyObject *row)
{
    Py_ssize_t count = PyList_GET_SIZE(row);
    if (count == 1)
        return append_gradient(results, found, PyList_GET_ITEM(row, 0));
    PyObject *several = PySequence_Fast(found, "a formula for several inputs must return as many gradients");
    int failed = !several;
    if (several && PySequence_Fast_GET_SIZE(several) != count) {
        PyErr_SetString(PyExc_ValueError, "a formula returned a wrong number of gradients");
        failed = 1;
    }
    for (Py_ssize_t i = 0; !failed && i < count; i++)
        failed = append_gradient(results, PySequence_Fast_GET_ITEM(several, i), PyList_GET_ITEM(row, i)) < 0;
    Py_XDECREF(several);
    return failed ? -1 : 0;
}

static int apply_formula(OperatorNode *node, PyObject *formula, PyObject *grads, PyObject *row, int wanted, PyObject *results)
{
    if (wanted) {
        PyObject *found = evaluate(node, formula, grads, row);
        int failed = !found || append_gradients(results, found, row) < 0;
        Py_XDECREF(found);
        return failed ? -1 : 0;
    }
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(row); i++)
        if (append_none(results, PyList_GET_ITEM(row, i)) < 0)
            return -1;
    return 0;
}

static int is_applicable(OperatorNode *node, PyObject *formulas)
{
    Py_ssize_t count = PyTuple_GET_SIZE(formulas);
    if (!node->needs || !node->wanted || !PyList_Check(node->needs) || !PyList_Check(node->wanted) ||
        PyList_GET_SIZE(node->needs) != count || PyList_GET_SIZE(node->wanted) != count)
        return 0;
    for (Py_ssize_t i = 0; i < count; i++)
        if (!PyList_Check(PyList_GET_ITEM(node->needs, i)))
            return 0;
    return 1;
}

PyObject *operator_node_apply(PyObject *self, PyObject *grads)
{
    OperatorNode *node = (OperatorNode *)self;
    if (!PyTuple_Check(grads) || !PyTuple_GET_SIZE(grads))
        return PyErr_Format(PyExc_TypeError, "apply: expected a tuple of gradients, got %.200s", Py_TYPE(grads)->tp_name);
    if (!node->plan || !node->saved || !PyDict_Check(node->saved) || !is_applicable(node, field(node->plan, PLAN_FORMULAS)))
        return PyObject_CallMethod(self, "_apply_freed", NULL);
    PyObject *formulas = field(node->plan, PLAN_FORMULAS), *results = PyList_New(0);
    for (Py_ssize_t i = 0; results && i < PyTuple_GET_SIZE(formulas); i++)
        if (apply_formula(node, field(formulas, i), grads, PyList_GET_ITEM(node->needs, i),
                          PyList_GET_ITEM(node->wanted, i) == Py_True, results) < 0)
            Py_CLEAR(results);
    PyObject *tuple = results ? PyList_AsTuple(results) : NULL;
    Py_XDECREF(results);
    return tuple;
}
