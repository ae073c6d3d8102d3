/* One call of a compiled graph: see the header. */
#include "graph_call.h"

#include <string.h>

#include "allocator.h"
#include "frame_hook.h"
#include "tensor_impl.h"

int graph_call_reserve(GraphCall *call, const GraphDescription *graph, Py_ssize_t constants)
{
    Py_ssize_t held = graph->tensor_count + graph->made_count, pointers = held + constants + 1 + graph->symbol_count;
    call->plan = NULL;
    call->held_count = 0;
    call->arena = NULL;
    call->pointers = pointers > ON_STACK ? PyMem_New(void *, pointers) : call->few_pointers;
    call->held = held > ON_STACK ? PyMem_New(PyObject *, held) : call->few_held;
    call->numbers = graph->number_count > ON_STACK ? PyMem_New(int64_t, graph->number_count) : call->few_numbers;
    if (call->pointers && call->held && call->numbers)
        return 0;
    PyErr_NoMemory();
    return -1;
}

void graph_call_release(GraphCall *call)
{
    if (call->arena)
        allocator_free(call->arena, call->arena_capacity);
    for (Py_ssize_t i = 0; i < call->held_count; i++)
        Py_DECREF(call->held[i]);
    graph_plan_release(call->plan);
    if (call->pointers != call->few_pointers)
        PyMem_Free(call->pointers);
    if (call->held != call->few_held)
        PyMem_Free(call->held);
    if (call->numbers != call->few_numbers)
        PyMem_Free(call->numbers);
}

static int read_number(const SizeNumber *number, PyObject *const *args, int64_t *found)
{
    PyObject *value = args[number->slot];
    int overflow;
    if (number->kind != NUMBER_VALUE) {
        const TensorImpl *impl = ((TensorBase *)value)->impl;
        value = PyTuple_GET_ITEM(number->kind == NUMBER_SIZE ? impl->sizes : impl->strides, number->dim);
    }
    if (!PyLong_CheckExact(value))
        return 0;
    *found = PyLong_AsLongLongAndOverflow(value, &overflow);
    return !overflow;
}

/* Read the numbers that determine the sizes of a call. 0 if an input has another kind or rank, or a number is too large. */
static int read_numbers(GraphCall *call, const GraphDescription *graph, PyObject *const *args)
{
    for (Py_ssize_t i = 0; i < graph->input_count; i++) {
        const Expected *expected = &graph->inputs[i];
        const TensorImpl *impl = expected->dtype ? impl_of(args[i]) : NULL;
        if (expected->dtype && (!impl || impl->fake || PyTuple_GET_SIZE(impl->sizes) != expected->rank))
            return 0;
    }
    for (Py_ssize_t i = 0; i < graph->number_count; i++)
        if (!read_number(&graph->numbers[i], args, &call->numbers[i]))
            return 0;
    return 1;
}

int graph_call_plan(GraphCall *call, const GraphDescription *graph, GraphPlan **latest, PyObject *const *args)
{
    size_t size = (size_t)graph->number_count * sizeof(int64_t);
    if (size && !read_numbers(call, graph, args))
        return 0;
    if (!*latest || (size && memcmp((*latest)->values, call->numbers, size) != 0)) {
        GraphPlan *made = graph_plan_make(graph, call->numbers, args);
        if (!made)
            return 0;
        GraphPlan *before = *latest; /* read now, because making objects may have let other threads replace it */
        *latest = made;
        graph_plan_release(before);
        call->plan = graph_plan_share(made);
        return 1;
    }
    call->plan = graph_plan_share(*latest);
    return 1;
}

int graph_call_inputs(GraphCall *call, const GraphDescription *graph, PyObject *const *args)
{
    void **pointers = call->pointers;
    for (Py_ssize_t i = 0; i < graph->input_count; i++) {
        const Expected *expected = &graph->inputs[i];
        if (!expected->dtype)
            continue;
        TensorImpl *impl = impl_of(args[i]);
        if (!impl || impl->fake || impl->key_set & SPECIAL_BITS || impl->dtype != expected->dtype ||
            !Py_IS_TYPE(impl->storage, &StorageImpl_Type))
            return 0;
        const StorageImpl *storage = (StorageImpl *)impl->storage;
        if (storage->device != configuration.cpu || impl->storage_offset < 0 ||
            impl->storage_offset > (storage->nbytes - call->plan->reaches[i]) / expected->itemsize ||
            storage->nbytes < call->plan->reaches[i])
            return 0;
        int same = expected->sizes ? sizes_match(impl->sizes, expected->sizes) : 1;
        if (same > 0 && expected->sizes)
            same = sizes_match(impl->strides, expected->strides);
        if (same <= 0)
            return same;
        *pointers = impl_data(impl);
        if (!*pointers++)
            return PyErr_Occurred() ? -1 : 0;
        call->held[call->held_count++] = Py_NewRef(impl->storage);
    }
    return 1;
}

int graph_call_memory(GraphCall *call, const GraphDescription *graph, void *const *constants, Py_ssize_t count)
{
    const GraphPlan *plan = call->plan;
    void **pointers = call->pointers + graph->tensor_count;
    if (count)
        memcpy(pointers, constants, (size_t)count * sizeof(void *));
    pointers += count;
    for (Py_ssize_t i = 0; i < graph->made_count; i++) {
        StorageImpl *storage = storage_allocate(plan->made_bytes[i]);
        if (!storage)
            return -1;
        call->held[call->held_count++] = (PyObject *)storage;
        *pointers++ = storage->data;
    }
    *pointers = NULL;
    for (Py_ssize_t i = 0; i < graph->symbol_count; i++)
        pointers[1 + i] = (void *)(intptr_t)plan->values[graph->number_count + i];
    if (!plan->arena_bytes)
        return 0;
    call->arena = allocator_allocate((size_t)plan->arena_bytes, &call->arena_capacity);
    *pointers = call->arena;
    if (call->arena)
        return 0;
    PyErr_Format(out_of_memory_error(), "a compiled graph cannot allocate the %zd bytes that it works in", plan->arena_bytes);
    return -1;
}

PyObject *call_unhooked(PyObject *function, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    PyObject *callback = current_callback();
    PyObject *before = callback ? enter_region(NULL) : NULL;
    Py_INCREF(function);
    PyObject *results = PyObject_Vectorcall(function, args, (size_t)count, names);
    Py_DECREF(function);
    if (callback)
        leave_region(before);
    return results;
}

/* Return a view of an input or of a fixed tensor, made by the result's operator. */
static PyObject *make_alias(const Output *output, const Layout *layout, PyObject *source)
{
    const TensorImpl *impl = impl_of(source);
    if (!impl)
        return PyErr_Format(PyExc_TypeError, "a result of a compiled graph is a view of %R, which is no tensor", source);
    PyObject *offset = PyLong_FromSsize_t(impl->storage_offset + layout->offset);
    PyObject *args[] = {source, layout->sizes, layout->strides, offset};
    PyObject *result = offset ? call_unhooked(output->operator, args, 4, NULL) : NULL;
    Py_XDECREF(offset);
    return result;
}

/* Return a tensor over memory that was allocated for a result. */
static PyObject *make_result(const Output *output, const Layout *layout, PyObject *storage)
{
    TensorImpl *impl = impl_over(storage, layout->sizes, layout->strides, layout->offset, output->dtype);
    if (impl)
        impl->numel = layout->numel;
    return tensor_wrap_new(impl);
}

/* Return a result of the graph, by its kind. */
static PyObject *make_output(const GraphCall *call, const GraphDescription *graph, Py_ssize_t index, PyObject *const *args)
{
    const Output *output = &graph->outputs[index];
    const Layout *layout = &call->plan->layouts[index];
    switch (output->kind) {
    case MADE: return make_result(output, layout, call->held[graph->tensor_count + output->source]);
    case INPUT: return Py_NewRef(args[output->source]);
    case OBJECT: return Py_NewRef(output->object);
    case NUMBER: return PyLong_FromSsize_t(layout->offset);
    default: return make_alias(output, layout, output->source < 0 ? output->object : args[output->source]);
    }
}

PyObject *graph_call_results(const GraphCall *call, const GraphDescription *graph, PyObject *const *args)
{
    PyObject *results = PyTuple_New(graph->output_count);
    for (Py_ssize_t i = 0; results && i < graph->output_count; i++) {
        PyObject *result = make_output(call, graph, i, args);
        if (!result)
            Py_CLEAR(results);
        else
            PyTuple_SET_ITEM(results, i, result);
    }
    return results;
}
