/* The inner loop of the backward engine: it picks the next node and passes gradients on. See rushlight.autograd.engine.

   It starts at root nodes, with their gradients in `buffers`, and ends when all leaves have accumulated their gradients. Nodes
   with hooks and unusual cases go through functions of the Python module. */
#include "accumulate.h"
#include "record.h"

typedef struct {
    double sequence;
    Py_ssize_t pushed; /* breaks ties in insertion order */
    NodeBase *node;    /* owned */
} Ready;

typedef struct {
    PyObject *awaited; /* dict: node -> number of edges into it that are still to be processed */
    PyObject *buffers; /* dict: node -> list with a gradient or None for each output */
    PyObject *run_hooked, *validate; /* functions of rushlight.autograd.engine */
    int retain_graph;
    Ready *heap; /* max-heap: the node created last comes first */
    Py_ssize_t count, capacity, pushed;
} Run;

/* The heap */

static int comes_before(const Ready *a, const Ready *b)
{
    return a->sequence != b->sequence ? a->sequence > b->sequence : a->pushed < b->pushed;
}

static int push(Run *run, NodeBase *node)
{
    double sequence = PyFloat_AsDouble(node->sequence_nr);
    if (sequence == -1.0 && PyErr_Occurred())
        return -1;
    if (run->count == run->capacity) {
        Py_ssize_t capacity = run->capacity ? 2 * run->capacity : 32;
        Ready *larger = PyMem_Resize(run->heap, Ready, (size_t)capacity);
        if (!larger) {
            PyErr_NoMemory();
            return -1;
        }
        run->heap = larger;
        run->capacity = capacity;
    }
    Ready ready = {sequence, run->pushed++, (NodeBase *)Py_NewRef((PyObject *)node)};
    Py_ssize_t place = run->count++;
    for (; place && comes_before(&ready, &run->heap[(place - 1) / 2]); place = (place - 1) / 2)
        run->heap[place] = run->heap[(place - 1) / 2];
    run->heap[place] = ready;
    return 0;
}

static NodeBase *pop(Run *run)
{
    NodeBase *first = run->heap[0].node;
    Ready last = run->heap[--run->count];
    Py_ssize_t place = 0;
    for (;;) {
        Py_ssize_t child = 2 * place + 1;
        if (child >= run->count)
            break;
        if (child + 1 < run->count && comes_before(&run->heap[child + 1], &run->heap[child]))
            child++;
        if (!comes_before(&run->heap[child], &last))
            break;
        run->heap[place] = run->heap[child];
        place = child;
    }
    run->heap[place] = last;
    return first;
}

/* Counting edges */

static int is_node(PyObject *object)
{
    if (PyObject_TypeCheck(object, &NodeBase_Type) && ((NodeBase *)object)->next_functions &&
        PyTuple_Check(((NodeBase *)object)->next_functions) && ((NodeBase *)object)->output_info &&
        PyList_Check(((NodeBase *)object)->output_info) && ((NodeBase *)object)->sequence_nr)
        return 1;
    PyErr_Format(PyExc_TypeError, "expected a node of the tape, got %.200s", Py_TYPE(object)->tp_name);
    return 0;
}

/* Return the node of an edge, borrowed; NULL if the edge leads nowhere, or with an exception set. */
static PyObject *node_of_edge(PyObject *edge)
{
    if (!PyTuple_Check(edge) || PyTuple_GET_SIZE(edge) != 2 || !PyLong_Check(PyTuple_GET_ITEM(edge, 1))) {
        PyErr_SetString(PyExc_TypeError, "next_functions must hold pairs of a node or None and a number");
        return NULL;
    }
    PyObject *node = PyTuple_GET_ITEM(edge, 0);
    return node != Py_None && is_node(node) ? node : NULL;
}

/* Add `more` to the count of a node. Return the new count, or -1 with an exception set; *met is 1 if the node had a count
   before. */
static Py_ssize_t add_count(PyObject *awaited, PyObject *node, Py_ssize_t more, int *met)
{
    PyObject *present = PyDict_GetItemWithError(awaited, node);
    *met = present != NULL;
    if (!present && PyErr_Occurred())
        return -1;
    Py_ssize_t count = (present ? PyLong_AsSsize_t(present) : 0) + more;
    PyObject *number = PyLong_FromSsize_t(count);
    int failed = !number || PyDict_SetItem(awaited, node, number) < 0;
    Py_XDECREF(number);
    return failed ? -1 : count;
}

static int count_edges_of(PyObject *awaited, PyObject *stack, NodeBase *node)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(node->next_functions); i++) {
        PyObject *following = node_of_edge(PyTuple_GET_ITEM(node->next_functions, i));
        if (!following) {
            if (PyErr_Occurred())
                return -1;
            continue;
        }
        int met;
        if (add_count(awaited, following, 1, &met) < 0 || (!met && PyList_Append(stack, following) < 0))
            return -1;
    }
    return 0;
}

static int count_from(PyObject *awaited, PyObject *stack)
{
    int met;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(stack); i++)
        if (!is_node(PyList_GET_ITEM(stack, i)) || add_count(awaited, PyList_GET_ITEM(stack, i), 0, &met) < 0)
            return -1;
    while (PyList_GET_SIZE(stack)) {
        Py_ssize_t last = PyList_GET_SIZE(stack) - 1;
        PyObject *node = Py_NewRef(PyList_GET_ITEM(stack, last));
        int failed = PyList_SetSlice(stack, last, last + 1, NULL) < 0 || count_edges_of(awaited, stack, (NodeBase *)node) < 0;
        Py_DECREF(node);
        if (failed)
            return -1;
    }
    return 0;
}

static PyObject *count_edges(PyObject *Py_UNUSED(module), PyObject *roots)
{
    PyObject *stack = PySequence_List(roots), *awaited = stack ? PyDict_New() : NULL;
    if (awaited && count_from(awaited, stack) < 0)
        Py_CLEAR(awaited);
    Py_XDECREF(stack);
    return awaited;
}

/* Gradients in flight */

static PyObject *list_of_none(Py_ssize_t count)
{
    PyObject *list = PyList_New(count);
    for (Py_ssize_t i = 0; list && i < count; i++)
        PyList_SET_ITEM(list, i, Py_NewRef(Py_None));
    return list;
}

static int add_to_buffer(PyObject *buffers, NodeBase *node, Py_ssize_t index, PyObject *grad)
{
    PyObject *buffer = PyDict_GetItemWithError(buffers, (PyObject *)node);
    if (!buffer) {
        PyObject *made = PyErr_Occurred() ? NULL : list_of_none(PyList_GET_SIZE(node->output_info));
        int failed = !made || PyDict_SetItem(buffers, (PyObject *)node, made) < 0;
        Py_XDECREF(made); /* the dict holds it */
        if (failed)
            return -1;
        buffer = made;
    }
    if (!PyList_Check(buffer) || (size_t)index >= (size_t)PyList_GET_SIZE(buffer)) {
        PyErr_SetString(PyExc_IndexError, "an edge leads to an output that its node does not have");
        return -1;
    }
    Py_INCREF(buffer);
    PyObject *present = PyList_GET_ITEM(buffer, index);
    PyObject *sum = present == Py_None ? Py_NewRef(grad) : PyNumber_Add(present, grad);
    int failed = !sum || PyList_SetItem(buffer, index, sum) < 0;
    Py_DECREF(buffer);
    return failed ? -1 : 0;
}

/* Check a gradient against its output. Return a new reference: to the gradient itself if shape, dtype and device fit, or to a
   converted one. */
static PyObject *validate_gradient(const Run *run, PyObject *grad, NodeBase *following, Py_ssize_t index, NodeBase *node)
{
    PyObject *info = (size_t)index < (size_t)PyList_GET_SIZE(following->output_info)
                         ? PyList_GET_ITEM(following->output_info, index) : NULL;
    if (!info)
        return PyErr_Format(PyExc_IndexError, "an edge leads to output %zd, which its node does not have", index);
    const TensorImpl *impl = impl_of(grad);
    if (impl && PyTuple_Check(info) && PyTuple_GET_SIZE(info) == 3 && PyTuple_GET_ITEM(info, 1) == impl->dtype &&
        PyTuple_GET_ITEM(info, 2) == impl->device) {
        PyObject *sizes = PyTuple_GET_ITEM(info, 0);
        int same = sizes == impl->sizes ? 1 : PyObject_RichCompareBool(sizes, impl->sizes, Py_EQ);
        if (same)
            return same < 0 ? NULL : Py_NewRef(grad);
    }
    return PyObject_CallFunctionObjArgs(run->validate, grad, info, (PyObject *)node, NULL);
}

/* Add a gradient to the buffer of the node at the end of an edge, and schedule that node if this was its last gradient. */
static int pass_gradient(Run *run, NodeBase *node, PyObject *edge, PyObject *grad)
{
    PyObject *following = node_of_edge(edge);
    if (!following)
        return PyErr_Occurred() ? -1 : 0;
    if (grad != Py_None) {
        Py_ssize_t index = PyLong_AsSsize_t(PyTuple_GET_ITEM(edge, 1));
        PyObject *valid = validate_gradient(run, grad, (NodeBase *)following, index, node);
        int failed = !valid || add_to_buffer(run->buffers, (NodeBase *)following, index, valid) < 0;
        Py_XDECREF(valid);
        if (failed)
            return -1;
    }
    int met;
    Py_ssize_t left = add_count(run->awaited, following, -1, &met);
    return PyErr_Occurred() || (left == 0 && push(run, (NodeBase *)following) < 0) ? -1 : 0;
}

static int pass_gradients(Run *run, NodeBase *node, PyObject *results)
{
    PyObject *edges = Py_NewRef(node->next_functions);
    PyObject *several = PySequence_Fast(results, "a node must return a sequence of gradients");
    int failed = !several;
    if (several && PySequence_Fast_GET_SIZE(several) != PyTuple_GET_SIZE(edges)) {
        PyErr_Format(PyExc_ValueError, "a node returned %zd gradients for %zd inputs", PySequence_Fast_GET_SIZE(several),
                     PyTuple_GET_SIZE(edges));
        failed = 1;
    }
    for (Py_ssize_t i = 0; !failed && i < PyTuple_GET_SIZE(edges); i++)
        failed = pass_gradient(run, node, PyTuple_GET_ITEM(edges, i), PySequence_Fast_GET_ITEM(several, i)) < 0;
    Py_XDECREF(several);
    Py_DECREF(edges);
    return failed ? -1 : 0;
}

/* Running a node */

static int holds_tensors(OperatorNode *node)
{
    PyObject *key, *value;
    Py_ssize_t position = 0;
    while (PyDict_Next(node->saved, &position, &key, &value))
        if (PyObject_TypeCheck(value, &SavedTensorBase_Type) || PyList_Check(value))
            return 1;
    return 0;
}

/* Free the saved tensors of a node. */
static int release_saved(NodeBase *node)
{
    if (PyObject_TypeCheck(node, &OperatorNode_Type)) {
        OperatorNode *own = (OperatorNode *)node;
        if (!own->saved || !PyDict_Check(own->saved) || !holds_tensors(own))
            return 0;
    }
    PyObject *done = PyObject_CallMethod((PyObject *)node, "release", NULL);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

static PyObject *apply(NodeBase *node, PyObject *grads)
{
    PyObject *tuple = PyList_AsTuple(grads);
    if (!tuple)
        return NULL;
    PyObject *results = PyObject_TypeCheck(node, &OperatorNode_Type)
                            ? operator_node_apply((PyObject *)node, tuple)
                            : PyObject_CallMethod((PyObject *)node, "apply", "(O)", tuple);
    Py_DECREF(tuple);
    return results;
}

/* Run a node: return the gradients of its inputs. */
static PyObject *results_of(Run *run, NodeBase *node, PyObject *grads)
{
    if (is_set(node->hooks))
        return PyObject_CallFunction(run->run_hooked, "OOi", node, grads, run->retain_graph);
    if ((PyObject *)Py_TYPE(node) == configuration.accumulate_type && accumulate_by_taking((AccumulateNode *)node, grads))
        return PyTuple_New(0);
    PyObject *results = apply(node, grads);
    if (results && !run->retain_graph && release_saved(node) < 0)
        Py_CLEAR(results);
    return results;
}

/* Remove and return the gradients that a node has received. */
static PyObject *take_buffer(Run *run, NodeBase *node)
{
    PyObject *grads = PyDict_GetItemWithError(run->buffers, (PyObject *)node);
    if (!grads)
        return PyErr_Occurred() ? NULL : list_of_none(PyList_GET_SIZE(node->output_info));
    Py_INCREF(grads);
    if (PyDict_DelItem(run->buffers, (PyObject *)node) < 0 || !PyList_Check(grads))
        Py_CLEAR(grads);
    return grads;
}

static int has_any_gradient(PyObject *grads)
{
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(grads); i++)
        if (PyList_GET_ITEM(grads, i) != Py_None)
            return 1;
    return 0;
}

/* Run one node, and pass its results on. */
static int step(Run *run, NodeBase *node)
{
    PyObject *grads = take_buffer(run, node);
    if (!grads)
        return -1;
    int runs = is_set(node->hooks) || has_any_gradient(grads); /* hooks are told of missing gradients, too */
    PyObject *results = runs ? results_of(run, node, grads) : list_of_none(PyTuple_GET_SIZE(node->next_functions));
    Py_DECREF(grads);
    int failed = !results || pass_gradients(run, node, results) < 0;
    Py_XDECREF(results);
    return failed ? -1 : 0;
}

/* Run all nodes, starting at the roots that await no gradient. */
static int run_all(Run *run, PyObject *roots)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(roots); i++) {
        PyObject *node = PyTuple_GET_ITEM(roots, i);
        int met;
        Py_ssize_t left = is_node(node) ? add_count(run->awaited, node, 0, &met) : -1;
        if (left < 0 || (left == 0 && push(run, (NodeBase *)node) < 0))
            return -1;
    }
    while (run->count) {
        NodeBase *node = pop(run);
        int failed = step(run, node) < 0;
        Py_DECREF((PyObject *)node);
        if (failed || PyErr_CheckSignals() < 0)
            return -1;
    }
    return 0;
}

static PyObject *run_tape(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *roots;
    Run run = {0};
    if (!PyArg_ParseTuple(arguments, "O!O!O!pOO:run_tape", &PyTuple_Type, &roots, &PyDict_Type, &run.awaited, &PyDict_Type,
                          &run.buffers, &run.retain_graph, &run.run_hooked, &run.validate))
        return NULL;
    int failed = run_all(&run, roots) < 0;
    while (run.count)
        Py_DECREF((PyObject *)run.heap[--run.count].node);
    PyMem_Free(run.heap);
    return failed ? NULL : Py_NewRef(Py_None);
}

PyMethodDef engine_methods[] = {
    {"count_edges", count_edges, METH_O,
     "count_edges(roots, /) -> dict[Node, int]\n\nHow many edges lead into each node that can be reached from `roots`, which\n"
     "must be different nodes."},
    {"run_tape", run_tape, METH_VARARGS,
     "run_tape(roots, awaited, buffers, retain_graph, run_hooked, validate, /) -> None\n\n"
     "Run all nodes in reverse order of their making, once `awaited[node]` edges have been dealt with, from gradients in\n"
     "`buffers[node]`. `run_hooked(node, grads, retain_graph)` runs a node that has hooks; `validate(grad, info, node)` gives a\n"
     "gradient the shape and dtype of what it belongs to."},
    {NULL, NULL, 0, NULL},
};
