/* The description of a compiled graph, read from tuples: see the header. */
#include "graph_description.h"
#include "tensor_impl.h"

static void *array_of(PyObject *tuple, size_t size)
{
    void *made = PyMem_Calloc((size_t)PyTuple_GET_SIZE(tuple) + 1, size);
    return made ? made : PyErr_NoMemory();
}

/* Set an exception about a description, unless one is set; return -1. */
static int refuse_description(PyObject *kind, const char *expected, PyObject *description)
{
    if (!PyErr_Occurred())
        PyErr_Format(kind, "GraphLaunch: %s, got %R", expected, description);
    return -1;
}

/* Compile size programs that all read the same number of inputs; -1 with an exception set. */
static int set_programs(SizeProgram **programs, PyObject *codes, Py_ssize_t number_count)
{
    *programs = array_of(codes, sizeof **programs);
    for (Py_ssize_t i = 0; *programs && i < PyTuple_GET_SIZE(codes); i++)
        if (size_program_set(&(*programs)[i], PyTuple_GET_ITEM(codes, i), number_count) < 0)
            return -1;
    return *programs ? 0 : -1;
}

static void clear_programs(SizeProgram *programs, Py_ssize_t count)
{
    for (Py_ssize_t i = 0; programs && i < count; i++)
        size_program_clear(&programs[i]);
    PyMem_Free(programs);
}

/* Inputs */

static int set_tensor(Expected *input, PyObject *description)
{
    PyObject *dtype, *sizes, *strides = NULL;
    if (!PyArg_ParseTuple(description, "OO|O!", &dtype, &sizes, &PyTuple_Type, &strides))
        return -1;
    input->itemsize = itemsize_of(dtype);
    if (input->itemsize < 0)
        return -1;
    input->dtype = Py_NewRef(dtype);
    if (!strides) {
        input->rank = PyLong_Check(sizes) ? PyLong_AsSsize_t(sizes) : -1;
        return input->rank < 0 ? refuse_description(PyExc_ValueError, "expected the rank of a tensor with open sizes", description) : 0;
    }
    if (!PyTuple_Check(sizes) || PyTuple_GET_SIZE(sizes) != PyTuple_GET_SIZE(strides))
        return refuse_description(PyExc_ValueError, "expected as many strides as sizes", description);
    for (Py_ssize_t dim = 0; dim < PyTuple_GET_SIZE(sizes); dim++)
        if (!PyLong_Check(PyTuple_GET_ITEM(sizes, dim)) || !PyLong_Check(PyTuple_GET_ITEM(strides, dim)))
            return refuse_description(PyExc_TypeError, "expected ints for sizes and strides", description);
    input->rank = PyTuple_GET_SIZE(sizes);
    input->sizes = Py_NewRef(sizes);
    input->strides = Py_NewRef(strides);
    return 0;
}

static int set_inputs(GraphDescription *graph, PyObject *inputs, int is_open)
{
    graph->inputs = array_of(inputs, sizeof *graph->inputs);
    if (!graph->inputs)
        return -1;
    graph->input_count = PyTuple_GET_SIZE(inputs);
    for (Py_ssize_t i = 0; i < graph->input_count; i++) {
        PyObject *description = PyTuple_GET_ITEM(inputs, i);
        if (description != Py_None) {
            if (!PyTuple_Check(description))
                return refuse_description(PyExc_TypeError, "an input is (dtype, sizes, strides), (dtype, rank) or None", description);
            if (set_tensor(&graph->inputs[i], description) < 0)
                return -1;
            graph->tensor_count++;
        }
        if (!is_open && !graph->inputs[i].sizes)
            return refuse_description(PyExc_ValueError, "without symbols, an input is a tensor of known sizes", description);
    }
    return 0;
}

/* Symbols */

static int set_number(const GraphDescription *graph, SizeNumber *number, PyObject *description)
{
    if (!PyTuple_Check(description) || !PyArg_ParseTuple(description, "inn", &number->kind, &number->slot, &number->dim))
        return refuse_description(PyExc_TypeError, "a number is (kind, input, dim)", description);
    if (number->kind >= 0 && number->kind < NUMBER_KINDS && number->slot >= 0 && number->slot < graph->input_count) {
        const Expected *input = &graph->inputs[number->slot];
        if (number->kind == NUMBER_VALUE ? !input->dtype : number->dim >= 0 && number->dim < input->rank)
            return 0;
    }
    return refuse_description(PyExc_ValueError, "expected a number that an input has", description);
}

static int set_condition(SizeCondition *condition, PyObject *description, Py_ssize_t number_count)
{
    PyObject *code;
    if (!PyTuple_Check(description) || !PyArg_ParseTuple(description, "iO", &condition->kind, &code))
        return refuse_description(PyExc_TypeError, "a condition is (kind, code)", description);
    if (condition->kind < 0 || condition->kind >= SIZE_RELATION_KINDS)
        return refuse_description(PyExc_ValueError, "expected a kind of condition that there is", description);
    return size_program_set(&condition->program, code, number_count);
}

static int set_symbols(GraphDescription *graph, PyObject *description)
{
    PyObject *numbers, *symbols, *conditions;
    if (!PyArg_ParseTuple(description, "O!O!O!", &PyTuple_Type, &numbers, &PyTuple_Type, &symbols, &PyTuple_Type, &conditions) ||
        !(graph->numbers = array_of(numbers, sizeof *graph->numbers)) ||
        !(graph->symbols = array_of(symbols, sizeof *graph->symbols)) ||
        !(graph->conditions = array_of(conditions, sizeof *graph->conditions)))
        return -1;
    graph->number_count = PyTuple_GET_SIZE(numbers);
    graph->symbol_count = PyTuple_GET_SIZE(symbols);
    graph->condition_count = PyTuple_GET_SIZE(conditions);
    for (Py_ssize_t i = 0; i < graph->number_count; i++)
        if (set_number(graph, &graph->numbers[i], PyTuple_GET_ITEM(numbers, i)) < 0)
            return -1;
    for (Py_ssize_t i = 0; i < graph->symbol_count; i++)
        if (size_program_set(&graph->symbols[i], PyTuple_GET_ITEM(symbols, i), graph->number_count + i) < 0)
            return -1;
    for (Py_ssize_t i = 0; i < graph->condition_count; i++)
        if (set_condition(&graph->conditions[i], PyTuple_GET_ITEM(conditions, i), graph->number_count + graph->symbol_count) < 0)
            return -1;
    return 0;
}

/* Results */

static int set_layout(Output *output, PyObject *sizes, PyObject *strides, PyObject *offset, Py_ssize_t numbers)
{
    if (PyTuple_GET_SIZE(sizes) != PyTuple_GET_SIZE(strides))
        return refuse_description(PyExc_ValueError, "expected as many strides as sizes of a result", sizes);
    output->rank = PyTuple_GET_SIZE(sizes);
    if (set_programs(&output->sizes, sizes, numbers) < 0 || set_programs(&output->strides, strides, numbers) < 0)
        return -1;
    return size_program_set(&output->offset, offset, numbers);
}

static int set_made(const GraphDescription *graph, Output *output, PyObject *description, Py_ssize_t numbers)
{
    int kind;
    PyObject *sizes, *strides, *offset, *dtype;
    if (!PyArg_ParseTuple(description, "inO!O!OO", &kind, &output->source, &PyTuple_Type, &sizes, &PyTuple_Type, &strides, &offset,
                          &dtype) ||
        itemsize_of(dtype) < 0)
        return -1;
    output->dtype = Py_NewRef(dtype);
    if (output->source < 0 || output->source >= graph->made_count)
        return refuse_description(PyExc_ValueError, "a result lies in memory that there is not", description);
    return set_layout(output, sizes, strides, offset, numbers);
}

static int set_source(const GraphDescription *graph, Output *output, PyObject *source)
{
    output->source = -1;
    if (!PyLong_Check(source)) {
        output->object = Py_NewRef(source);
        return impl_of(source) ? 0 : refuse_description(PyExc_TypeError, "a result is a view of an input or a tensor", source);
    }
    output->source = PyLong_AsSsize_t(source);
    if (output->source >= 0 && output->source < graph->input_count && graph->inputs[output->source].dtype)
        return 0;
    return refuse_description(PyExc_ValueError, "a result is an input that there is not", source);
}

static int set_alias(const GraphDescription *graph, Output *output, PyObject *description, Py_ssize_t numbers)
{
    int kind;
    PyObject *operator, *source, *sizes, *strides, *offset;
    if (!PyArg_ParseTuple(description, "iOOO!O!O", &kind, &operator, &source, &PyTuple_Type, &sizes, &PyTuple_Type, &strides,
                          &offset) ||
        set_source(graph, output, source) < 0)
        return -1;
    output->operator = Py_NewRef(operator);
    return set_layout(output, sizes, strides, offset, numbers);
}

static int set_output(const GraphDescription *graph, Output *output, PyObject *description, Py_ssize_t numbers)
{
    PyObject *kind = PyTuple_Check(description) && PyTuple_GET_SIZE(description) > 1 ? PyTuple_GET_ITEM(description, 0) : NULL;
    long number = kind && PyLong_Check(kind) ? PyLong_AsLong(kind) : -1;
    if (number < 0 || number >= OUTPUT_KINDS)
        return refuse_description(PyExc_TypeError, "a result is a tuple that begins with its kind", description);
    output->kind = (enum OutputKind)number;
    PyObject *second = PyTuple_GET_ITEM(description, 1);
    switch (output->kind) {
    case MADE: return set_made(graph, output, description, numbers);
    case ALIAS: return set_alias(graph, output, description, numbers);
    case INPUT: return PyLong_Check(second) ? set_source(graph, output, second)
                                            : refuse_description(PyExc_TypeError, "expected the position of an input", description);
    case NUMBER: return size_program_set(&output->offset, second, numbers);
    default: output->object = Py_NewRef(second); return 0;
    }
}

int graph_description_set(GraphDescription *graph, PyObject *inputs, PyObject *made, PyObject *outputs, PyObject *symbols)
{
    if (set_inputs(graph, inputs, symbols != Py_None) < 0 || (symbols != Py_None && set_symbols(graph, symbols) < 0))
        return -1;
    Py_ssize_t numbers = graph->number_count + graph->symbol_count;
    graph->made_count = PyTuple_GET_SIZE(made);
    if (set_programs(&graph->made_bytes, made, numbers) < 0 || !(graph->outputs = array_of(outputs, sizeof *graph->outputs)))
        return -1;
    graph->output_count = PyTuple_GET_SIZE(outputs);
    for (Py_ssize_t i = 0; i < graph->output_count; i++)
        if (set_output(graph, &graph->outputs[i], PyTuple_GET_ITEM(outputs, i), numbers) < 0)
            return -1;
    return 0;
}

int graph_description_set_work(GraphDescription *graph, PyObject *arena_bytes, PyObject *arena_bytes_for, PyObject *work)
{
    Py_ssize_t numbers = graph->number_count + graph->symbol_count;
    if (arena_bytes_for != Py_None) {
        graph->arena_bytes_for = PyLong_Check(arena_bytes_for) ? (ArenaBytes)PyLong_AsVoidPtr(arena_bytes_for) : NULL;
        if (!graph->arena_bytes_for)
            return refuse_description(PyExc_ValueError, "expected the address of a function", arena_bytes_for);
    }
    if (size_program_set(&graph->arena_bytes, arena_bytes, numbers) < 0)
        return -1;
    return size_program_set(&graph->work, work, numbers);
}

static void output_clear(Output *output)
{
    clear_programs(output->sizes, output->rank);
    clear_programs(output->strides, output->rank);
    size_program_clear(&output->offset);
    Py_XDECREF(output->dtype);
    Py_XDECREF(output->object);
    Py_XDECREF(output->operator);
}

void graph_description_clear(GraphDescription *graph)
{
    for (Py_ssize_t i = 0; i < graph->input_count; i++) {
        Py_XDECREF(graph->inputs[i].dtype);
        Py_XDECREF(graph->inputs[i].sizes);
        Py_XDECREF(graph->inputs[i].strides);
    }
    for (Py_ssize_t i = 0; i < graph->output_count; i++)
        output_clear(&graph->outputs[i]);
    for (Py_ssize_t i = 0; i < graph->condition_count; i++)
        size_program_clear(&graph->conditions[i].program);
    clear_programs(graph->made_bytes, graph->made_count);
    clear_programs(graph->symbols, graph->symbol_count);
    size_program_clear(&graph->arena_bytes);
    size_program_clear(&graph->work);
    PyMem_Free(graph->inputs);
    PyMem_Free(graph->outputs);
    PyMem_Free(graph->numbers);
    PyMem_Free(graph->conditions);
    *graph = (GraphDescription){0};
}

int graph_description_traverse(const GraphDescription *graph, visitproc visit, void *arg)
{
    for (Py_ssize_t i = 0; i < graph->output_count; i++) {
        Py_VISIT(graph->outputs[i].object);
        Py_VISIT(graph->outputs[i].operator);
    }
    return 0;
}
