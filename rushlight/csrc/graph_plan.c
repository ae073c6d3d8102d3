/* The plan of one call's sizes: see graph_description.h. */
#include "graph_description.h"

#include <string.h>

#include "tensor_impl.h"

/* Read an int that is not negative. */
static int read_count(PyObject *object, Py_ssize_t *count)
{
    *count = PyLong_AsSsize_t(object);
    if (*count == -1 && PyErr_Occurred())
        PyErr_Clear();
    return *count >= 0;
}

/* Compute the bytes from the first element to the end of the last. Return 0 if a size or stride is negative, or if the reach is
   too large. */
static int reach_of(PyObject *sizes, PyObject *strides, int itemsize, Py_ssize_t *reach)
{
    Py_ssize_t last = 0, size, step;
    *reach = 0;
    for (Py_ssize_t dim = 0; dim < PyTuple_GET_SIZE(sizes); dim++) {
        if (!read_count(PyTuple_GET_ITEM(sizes, dim), &size) || !read_count(PyTuple_GET_ITEM(strides, dim), &step))
            return 0;
        if (size == 0)
            return 1;
        if (__builtin_mul_overflow(size - 1, step, &step) || __builtin_add_overflow(last, step, &last))
            return 0;
    }
    return !__builtin_add_overflow(last, 1, &last) && !__builtin_mul_overflow(last, (Py_ssize_t)itemsize, reach);
}

/* Allocate one zeroed block for the plan and its arrays. */
static GraphPlan *plan_allocate(const GraphDescription *graph)
{
    size_t values = (size_t)(graph->number_count + graph->symbol_count) * sizeof(int64_t);
    size_t reaches = (size_t)graph->input_count * sizeof(Py_ssize_t), made = (size_t)graph->made_count * sizeof(Py_ssize_t);
    char *memory = PyMem_Calloc(1, sizeof(GraphPlan) + values + reaches + made + (size_t)graph->output_count * sizeof(Layout));
    GraphPlan *plan = (GraphPlan *)memory;
    if (!plan) {
        PyErr_NoMemory();
        return NULL;
    }
    plan->references = 1;
    plan->layout_count = graph->output_count;
    plan->values = (int64_t *)(memory += sizeof(GraphPlan));
    plan->reaches = (Py_ssize_t *)(memory += values);
    plan->made_bytes = (Py_ssize_t *)(memory += reaches);
    plan->layouts = (Layout *)(memory + made);
    return plan;
}

void graph_plan_release(GraphPlan *plan)
{
    if (!plan || --plan->references)
        return;
    for (Py_ssize_t i = 0; i < plan->layout_count; i++) {
        Py_XDECREF(plan->layouts[i].sizes);
        Py_XDECREF(plan->layouts[i].strides);
    }
    PyMem_Free(plan);
}

/* Compute the reach of each input. Return 0 if one is not valid. */
static int set_reaches(GraphPlan *plan, const GraphDescription *graph, PyObject *const *inputs)
{
    for (Py_ssize_t i = 0; i < graph->input_count; i++) {
        const Expected *expected = &graph->inputs[i];
        if (!expected->dtype)
            continue;
        const TensorImpl *impl = expected->sizes ? NULL : impl_of(inputs[i]);
        PyObject *sizes = impl ? impl->sizes : expected->sizes, *strides = impl ? impl->strides : expected->strides;
        if (!reach_of(sizes, strides, expected->itemsize, &plan->reaches[i]))
            return 0;
    }
    return 1;
}

static int set_values(GraphPlan *plan, const GraphDescription *graph, const int64_t *numbers)
{
    if (graph->number_count)
        memcpy(plan->values, numbers, (size_t)graph->number_count * sizeof *numbers);
    for (Py_ssize_t i = 0; i < graph->symbol_count; i++)
        if (!size_program_run(&graph->symbols[i], plan->values, &plan->values[graph->number_count + i]))
            return 0;
    for (Py_ssize_t i = 0; i < graph->condition_count; i++) {
        int64_t value;
        if (!size_program_run(&graph->conditions[i].program, plan->values, &value) ||
            !relation_to_zero(graph->conditions[i].kind, value))
            return 0;
    }
    return 1;
}

/* Evaluate a size program. Return 0 if there is no value or it is negative. */
static int evaluate_count(const SizeProgram *program, const GraphPlan *plan, Py_ssize_t *count)
{
    int64_t value;
    if (!size_program_run(program, plan->values, &value))
        return 0;
    *count = (Py_ssize_t)value;
    return value >= 0;
}

static int set_memory(GraphPlan *plan, const GraphDescription *graph)
{
    int64_t work;
    for (Py_ssize_t i = 0; i < graph->made_count; i++)
        if (!evaluate_count(&graph->made_bytes[i], plan, &plan->made_bytes[i]))
            return 0;
    if (!size_program_run(&graph->work, plan->values, &work))
        return 0;
    plan->is_long = work > 0;
    if (!graph->arena_bytes_for)
        return evaluate_count(&graph->arena_bytes, plan, &plan->arena_bytes);
    plan->arena_bytes = (Py_ssize_t)graph->arena_bytes_for(plan->values + graph->number_count);
    return plan->arena_bytes >= 0;
}

static PyObject *tuple_of(const SizeProgram *programs, Py_ssize_t count, const GraphPlan *plan)
{
    PyObject *tuple = PyTuple_New(count);
    for (Py_ssize_t i = 0; tuple && i < count; i++) {
        Py_ssize_t number;
        PyObject *value = evaluate_count(&programs[i], plan, &number) ? PyLong_FromSsize_t(number) : NULL;
        if (!value)
            Py_CLEAR(tuple);
        else
            PyTuple_SET_ITEM(tuple, i, value);
    }
    return tuple;
}

/* Whether a result lies within its memory. */
static int lies_within(const Layout *layout, PyObject *dtype, Py_ssize_t nbytes)
{
    Py_ssize_t reach, begin;
    int itemsize = itemsize_of(dtype);
    if (itemsize < 0 || !reach_of(layout->sizes, layout->strides, itemsize, &reach))
        return 0;
    return reach == 0 || (!__builtin_mul_overflow(layout->offset, (Py_ssize_t)itemsize, &begin) && begin <= nbytes - reach);
}

static int set_layout(Layout *layout, const Output *output, const GraphPlan *plan)
{
    int64_t offset;
    if (output->kind == INPUT || output->kind == OBJECT)
        return 1;
    if (!size_program_run(&output->offset, plan->values, &offset))
        return 0;
    layout->offset = (Py_ssize_t)offset;
    if (output->kind == NUMBER)
        return 1;
    if (offset < 0 || !(layout->sizes = tuple_of(output->sizes, output->rank, plan)) ||
        !(layout->strides = tuple_of(output->strides, output->rank, plan)))
        return 0;
    layout->numel = count_elements(layout->sizes);
    return output->kind == ALIAS || lies_within(layout, output->dtype, plan->made_bytes[output->source]);
}

GraphPlan *graph_plan_make(const GraphDescription *graph, const int64_t *numbers, PyObject *const *inputs)
{
    GraphPlan *plan = plan_allocate(graph);
    if (!plan)
        return NULL;
    int is_right = set_reaches(plan, graph, inputs) && set_values(plan, graph, numbers) && set_memory(plan, graph);
    for (Py_ssize_t i = 0; is_right && i < graph->output_count; i++)
        is_right = set_layout(&plan->layouts[i], &graph->outputs[i], plan);
    if (is_right)
        return plan;
    graph_plan_release(plan);
    return NULL;
}
