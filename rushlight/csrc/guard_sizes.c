/* Guards on dynamic sizes: see the header. */
#include "guard_sizes.h"

#include "tensor_impl.h"

enum { FEW_NUMBERS = 32 };
enum Found { FOUND, NOT_THERE, TOO_LARGE };

static enum Found read_integer(PyObject *value, int64_t *number)
{
    int overflow;
    if (!PyLong_Check(value))
        return NOT_THERE;
    *number = PyLong_AsLongLongAndOverflow(value, &overflow);
    return overflow ? TOO_LARGE : FOUND;
}

static enum Found read_number(const SizeNumber *number, PyObject **slots, int64_t *found)
{
    PyObject *value = slots[number->slot];
    if (!value)
        return NOT_THERE;
    if (number->kind == NUMBER_VALUE)
        return read_integer(value, found);
    const TensorImpl *impl = impl_of(value);
    PyObject *all = !impl ? NULL : number->kind == NUMBER_SIZE ? impl->sizes : impl->strides;
    return all && number->dim < PyTuple_GET_SIZE(all) ? read_integer(PyTuple_GET_ITEM(all, number->dim), found) : NOT_THERE;
}

static enum Found check(const GuardSizes *sizes, PyObject **slots, int64_t *numbers, int *hold)
{
    *hold = 0;
    for (Py_ssize_t i = 0; i < sizes->number_count; i++) {
        enum Found found = read_number(&sizes->numbers[i], slots, &numbers[i]);
        if (found != FOUND)
            return found;
    }
    for (Py_ssize_t i = 0; i < sizes->condition_count; i++) {
        int64_t value;
        if (!size_program_run(&sizes->conditions[i].program, numbers, &value))
            return TOO_LARGE;
        if (!relation_to_zero(sizes->conditions[i].kind, value))
            return FOUND;
    }
    *hold = 1;
    return FOUND;
}

int guard_sizes_hold(const GuardSizes *sizes, PyObject **slots, PyObject *const *values, Py_ssize_t value_count)
{
    int64_t few[FEW_NUMBERS], *numbers = few;
    int hold;
    if (!sizes->exact)
        return 1;
    if (sizes->number_count > FEW_NUMBERS && !(numbers = PyMem_New(int64_t, sizes->number_count))) {
        PyErr_NoMemory();
        return -1;
    }
    enum Found found = check(sizes, slots, numbers, &hold);
    if (numbers != few)
        PyMem_Free(numbers);
    if (found != TOO_LARGE)
        return hold;
    PyObject *answer = PyObject_Vectorcall(sizes->exact, values, (size_t)value_count, NULL);
    hold = answer ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(answer);
    return hold;
}

/* Construction */

static int set_number(SizeNumber *number, PyObject *description, Py_ssize_t slot_count)
{
    if (!PyTuple_Check(description) || !PyArg_ParseTuple(description, "inn", &number->kind, &number->slot, &number->dim)) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "a number of a guard on sizes is (kind, slot, dim)");
        return -1;
    }
    if (number->kind >= 0 && number->kind < NUMBER_KINDS && number->slot >= 0 && number->slot < slot_count && number->dim >= 0)
        return 0;
    PyErr_Format(PyExc_ValueError, "a number of a guard on sizes is wrong: %R", description);
    return -1;
}

static int set_condition(SizeCondition *condition, PyObject *description, Py_ssize_t number_count)
{
    PyObject *code;
    if (!PyTuple_Check(description) || !PyArg_ParseTuple(description, "iO", &condition->kind, &code)) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "a condition of a guard on sizes is (kind, code)");
        return -1;
    }
    if (condition->kind < 0 || condition->kind >= SIZE_RELATION_KINDS) {
        PyErr_Format(PyExc_ValueError, "a guard on sizes has no relation %d", condition->kind);
        return -1;
    }
    return size_program_set(&condition->program, code, number_count);
}

int guard_sizes_set(GuardSizes *sizes, PyObject *description, Py_ssize_t slot_count)
{
    PyObject *numbers, *conditions, *exact;
    if (!PyArg_ParseTuple(description, "O!O!O", &PyTuple_Type, &numbers, &PyTuple_Type, &conditions, &exact))
        return -1;
    if (!PyCallable_Check(exact)) {
        PyErr_SetString(PyExc_TypeError, "guards on sizes need a function that says the same");
        return -1;
    }
    sizes->exact = Py_NewRef(exact);
    sizes->numbers = PyMem_Calloc((size_t)PyTuple_GET_SIZE(numbers) + 1, sizeof *sizes->numbers);
    sizes->conditions = PyMem_Calloc((size_t)PyTuple_GET_SIZE(conditions) + 1, sizeof *sizes->conditions);
    if (!sizes->numbers || !sizes->conditions) {
        PyErr_NoMemory();
        return -1;
    }
    sizes->number_count = PyTuple_GET_SIZE(numbers);
    sizes->condition_count = PyTuple_GET_SIZE(conditions);
    for (Py_ssize_t i = 0; i < sizes->number_count; i++)
        if (set_number(&sizes->numbers[i], PyTuple_GET_ITEM(numbers, i), slot_count) < 0)
            return -1;
    for (Py_ssize_t i = 0; i < sizes->condition_count; i++)
        if (set_condition(&sizes->conditions[i], PyTuple_GET_ITEM(conditions, i), sizes->number_count) < 0)
            return -1;
    return 0;
}

void guard_sizes_clear(GuardSizes *sizes)
{
    for (Py_ssize_t i = 0; sizes->conditions && i < sizes->condition_count; i++)
        size_program_clear(&sizes->conditions[i].program);
    PyMem_Free(sizes->conditions);
    PyMem_Free(sizes->numbers);
    Py_XDECREF(sizes->exact);
    *sizes = (GuardSizes){0};
}
