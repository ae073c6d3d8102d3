/* Recording a call on the tape: create a node with its edges and saved tensors, around the call of the kernels below autograd.

   rushlight.autograd.variable does the same in Python for rare cases: lists of tensors, dispatch modes, hooks. */
#include "record.h"

#include "accumulate.h"

static Py_ssize_t as_index(PyObject *object) { return PyLong_AsSsize_t(object); }

/* ---- checking a plan once, so that calls need not ---- */

static int is_tuple_of(PyObject *object, Py_ssize_t length)
{
    return PyTuple_Check(object) && (length < 0 || PyTuple_GET_SIZE(object) == length);
}

static int are_positions(PyObject *tuple, Py_ssize_t bound)
{
    if (!is_tuple_of(tuple, -1))
        return 0;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); i++)
        if (!PyLong_CheckExact(field(tuple, i)) || (size_t)as_index(field(tuple, i)) >= (size_t)bound)
            return 0;
    return 1;
}

static int are_entries(PyObject *tuple, Py_ssize_t length, Py_ssize_t bound)
{
    if (!is_tuple_of(tuple, -1))
        return 0;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); i++) {
        PyObject *entry = field(tuple, i);
        if (!is_tuple_of(entry, length) || !PyUnicode_Check(field(entry, 0)) || !PyLong_CheckExact(field(entry, 1)) ||
            (size_t)as_index(field(entry, 1)) >= (size_t)bound)
            return 0;
    }
    return 1;
}

static int is_formula(PyObject *formula, Py_ssize_t arguments)
{
    return is_tuple_of(formula, FORMULA_LENGTH) && are_positions(field(formula, FORMULA_POSITIONS), arguments) &&
           are_entries(field(formula, FORMULA_SAVED), 3, arguments) &&
           are_entries(field(formula, FORMULA_OUTPUTS), 2, MAX_ARGUMENTS) &&
           is_tuple_of(field(formula, FORMULA_SOURCES), -1) &&
           PyTuple_GET_SIZE(field(formula, FORMULA_SOURCES)) <= MAX_ARGUMENTS;
}

int is_plan(PyObject *plan)
{
    if (!is_tuple_of(plan, PLAN_LENGTH) || !is_tuple_of(field(plan, PLAN_NAMES), -1))
        return 0;
    Py_ssize_t count = PyTuple_GET_SIZE(field(plan, PLAN_NAMES));
    PyObject *formulas = field(plan, PLAN_FORMULAS), *type = field(plan, PLAN_NODE_TYPE);
    PyTypeObject *base = (PyTypeObject *)configuration.node_type;
    if (!base || !PyType_Check(type) || !PyType_IsSubtype((PyTypeObject *)type, base))
        return 0;
    if (count > MAX_ARGUMENTS || !is_tuple_of(field(plan, PLAN_DEFAULTS), count) || !is_tuple_of(formulas, -1) ||
        !are_positions(field(plan, PLAN_FIXED), count) || !are_positions(field(plan, PLAN_SKIPPED), MAX_ARGUMENTS))
        return 0;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(formulas); i++)
        if (!is_formula(field(formulas, i), count))
            return 0;
    return 1;
}

/* Arguments in schema order */

static int contains(PyObject *positions, Py_ssize_t wanted)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(positions); i++)
        if (as_index(field(positions, i)) == wanted)
            return 1;
    return 0;
}

static PyObject *named_argument(PyObject *name, PyObject *const *values, PyObject *names)
{
    for (Py_ssize_t i = 0; names && i < PyTuple_GET_SIZE(names); i++)
        if (field(names, i) == name || PyUnicode_Compare(field(names, i), name) == 0)
            return values[i];
    return NULL;
}

/* Fill `stack` with borrowed references to the arguments. Return 0 if they do not fit the schema without conversion. */
static int bind(PyObject *plan, PyObject *const *arguments, Py_ssize_t positional, PyObject *names, PyObject **stack)
{
    PyObject *known = field(plan, PLAN_NAMES);
    Py_ssize_t count = PyTuple_GET_SIZE(known), used = 0;
    if (positional > count)
        return 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *value = i < positional ? arguments[i] : named_argument(field(known, i), arguments + positional, names);
        used += i >= positional && value;
        stack[i] = value ? value : field(field(plan, PLAN_DEFAULTS), i);
        if (stack[i] == field(plan, PLAN_MISSING))
            return 0;
        if (PyLong_Check(stack[i]) && contains(field(plan, PLAN_FIXED), i))
            return 0;
    }
    return used == (names ? PyTuple_GET_SIZE(names) : 0);
}

/* Edges */

static PyObject *make_edge(PyObject *node, Py_ssize_t output)
{
    PyObject *number = PyLong_FromSsize_t(output);
    PyObject *edge = number ? PyTuple_Pack(2, node, number) : NULL;
    Py_XDECREF(number);
    return edge;
}

/* Return the gradient edge of a value, by the same rules as rushlight.autograd.view_history.gradient_edge. */
PyObject *edge_of(PyObject *value)
{
    TensorImpl *impl = impl_of(value);
    if (!impl || (!autograd_of(impl) && !view_of(impl)))
        return Py_NewRef(configuration.no_edge);
    ViewMeta *view = view_of(impl);
    AutogradMeta *meta = autograd_of(impl);
    if (!view || view->version == version_value(impl)) {
        if (meta && is_set(meta->grad_fn))
            return make_edge(meta->grad_fn, meta->output_nr);
        if (!meta || !meta->requires_grad) /* a view made without recording may require grad because its base does */
            return Py_NewRef(configuration.no_edge);
        PyObject *node = meta->accumulator && PyWeakref_Check(meta->accumulator) ? dereference(meta->accumulator) : NULL;
        if (!node && !is_set(meta->hooks) && !(node = accumulator_of(value, meta)))
            return NULL;
        if (node) {
            PyObject *edge = make_edge(node, 0);
            Py_DECREF(node);
            return edge;
        }
    }
    PyObject *edge = PyObject_CallOneArg(configuration.gradient_edge, value);
    if (edge && !is_tuple_of(edge, 2)) {
        Py_DECREF(edge);
        PyErr_SetString(PyExc_TypeError, "gradient_edge must return a pair");
        return NULL;
    }
    return edge;
}

/* Append the edges of one formula's inputs to `edges`. Return a list of bools: which inputs need a gradient. */
static PyObject *edges_of_formula(PyObject *formula, PyObject **stack, PyObject *edges, int *wanted)
{
    PyObject *positions = field(formula, FORMULA_POSITIONS), *row = PyList_New(PyTuple_GET_SIZE(positions));
    *wanted = 0;
    for (Py_ssize_t i = 0; row && i < PyTuple_GET_SIZE(positions); i++) {
        PyObject *edge = edge_of(stack[as_index(field(positions, i))]);
        if (!edge || PyList_Append(edges, edge) < 0) {
            Py_XDECREF(edge);
            Py_CLEAR(row);
            break;
        }
        int leads = field(edge, 0) != Py_None;
        *wanted |= leads;
        PyList_SET_ITEM(row, i, PyBool_FromLong(leads));
        Py_DECREF(edge);
    }
    return row;
}

static int add_edges(OperatorNode *node, PyObject *plan, PyObject **stack, int *any)
{
    PyObject *formulas = field(plan, PLAN_FORMULAS), *edges = PyList_New(0);
    *any = 0;
    for (Py_ssize_t i = 0; edges && i < PyTuple_GET_SIZE(formulas); i++) {
        int wanted;
        PyObject *row = edges_of_formula(field(formulas, i), stack, edges, &wanted);
        if (!row) {
            Py_CLEAR(edges);
            break;
        }
        *any |= wanted;
        PyList_SET_ITEM(node->needs, i, row);
        PyList_SET_ITEM(node->wanted, i, PyBool_FromLong(wanted));
    }
    PyObject *tuple = edges ? PyList_AsTuple(edges) : NULL;
    Py_XDECREF(edges);
    if (!tuple)
        return -1;
    Py_SETREF(node->base.next_functions, tuple);
    return 0;
}

/* Create the node of a call, with its edges. */
static OperatorNode *make_node(PyObject *plan, PyObject **stack, int *any)
{
    PyTypeObject *type = (PyTypeObject *)field(plan, PLAN_NODE_TYPE);
    OperatorNode *node = (OperatorNode *)type->tp_alloc(type, 0);
    if (!node)
        return NULL;
    Py_ssize_t count = PyTuple_GET_SIZE(field(plan, PLAN_FORMULAS));
    node->recipe = Py_NewRef(field(plan, PLAN_RECIPE));
    node->plan = Py_NewRef(plan);
    node->saved = PyDict_New();
    node->needs = PyList_New(count);
    node->wanted = PyList_New(count);
    if (node_initialise(&node->base) < 0 || !node->saved || !node->needs || !node->wanted ||
        add_edges(node, plan, stack, any) < 0)
        Py_CLEAR(node);
    return node;
}

/* Saved tensors */

PyObject *saved_tensor(PyObject *tensor, const TensorImpl *impl, PyObject *output_nr)
{
    PyTypeObject *type = (PyTypeObject *)configuration.saved_type;
    SavedTensorBase *saved = (SavedTensorBase *)type->tp_alloc(type, 0);
    if (saved) {
        saved->tensor = Py_NewRef(tensor);
        saved->version = version_value(impl);
        saved->output_nr = Py_NewRef(output_nr);
    }
    return (PyObject *)saved;
}

static PyObject *saved_value(PyObject *value, PyObject *keep)
{
    if (keep != Py_None)
        return PyObject_CallOneArg(keep, value);
    const TensorImpl *impl = impl_of(value);
    if (impl && !impl->inference)
        return saved_tensor(value, impl, Py_None);
    return impl || PyList_Check(value) || PyTuple_Check(value) ? PyObject_CallOneArg(configuration.save, value)
                                                               : Py_NewRef(value);
}

/* Save the inputs that a formula needs. */
static int save_inputs(OperatorNode *node, PyObject *plan, PyObject **stack)
{
    PyObject *formulas = field(plan, PLAN_FORMULAS);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(formulas); i++) {
        PyObject *entries = field(field(formulas, i), FORMULA_SAVED);
        for (Py_ssize_t k = 0; PyList_GET_ITEM(node->wanted, i) == Py_True && k < PyTuple_GET_SIZE(entries); k++) {
            PyObject *entry = field(entries, k), *name = field(entry, 0);
            int known = PyDict_Contains(node->saved, name);
            PyObject *value = known ? NULL : saved_value(stack[as_index(field(entry, 1))], field(entry, 2));
            int failed = known < 0 || (!known && (!value || PyDict_SetItem(node->saved, name, value) < 0));
            Py_XDECREF(value);
            if (failed)
                return -1;
        }
    }
    return 0;
}

/* Save an output as an alias without history: otherwise the node and the output would reference each other. */
static PyObject *save_output_alias(PyObject *output, PyObject *output_nr)
{
    TensorImpl *impl = impl_of(output);
    if (!impl || impl->inference)
        return PyObject_CallFunctionObjArgs(configuration.save_output, output, output_nr, NULL);
    PyObject *alias = tensor_wrap_new(impl_alias(impl, impl->sizes, impl->strides, impl->storage_offset));
    PyObject *saved = alias ? saved_tensor(alias, impl, output_nr) : NULL;
    Py_XDECREF(alias);
    return saved;
}

/* Return an output by its number, borrowed; NULL if there is none. */
static PyObject *output_at(PyObject *result, Py_ssize_t index)
{
    if (!PyTuple_Check(result))
        return index == 0 ? result : NULL;
    return index < PyTuple_GET_SIZE(result) ? field(result, index) : NULL;
}

/* Save the outputs that a formula needs. */
static int save_outputs(OperatorNode *node, PyObject *plan, PyObject *result)
{
    PyObject *formulas = field(plan, PLAN_FORMULAS);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(formulas); i++) {
        PyObject *entries = field(field(formulas, i), FORMULA_OUTPUTS);
        for (Py_ssize_t k = 0; PyList_GET_ITEM(node->wanted, i) == Py_True && k < PyTuple_GET_SIZE(entries); k++) {
            PyObject *entry = field(entries, k), *output = output_at(result, as_index(field(entry, 1)));
            PyObject *value = output ? save_output_alias(output, field(entry, 1)) : NULL;
            if (!output)
                PyErr_SetString(PyExc_IndexError, "a derivative names an output that the operator does not have");
            int failed = !value || PyDict_SetItem(node->saved, field(entry, 0), value) < 0;
            Py_XDECREF(value);
            if (failed)
                return -1;
        }
    }
    return 0;
}

/* Outputs */

static int has_gradient(PyObject *dtype)
{
    DtypeCode code = dtype_code(dtype);
    if (code != OTHER_DTYPE)
        return code >= FLOAT16;
    for (int i = 0; i < 2; i++) {
        PyObject *answer = PyObject_GetAttrString(dtype, i ? "is_complex" : "is_floating_point");
        int yes = answer ? PyObject_IsTrue(answer) : 0;
        Py_XDECREF(answer);
        PyErr_Clear();
        if (yes > 0)
            return 1;
    }
    return 0;
}

int set_history(TensorImpl *impl, NodeBase *node, Py_ssize_t output)
{
    AutogradMeta *meta = autograd_of(impl);
    if (meta && meta->retains_grad) {
        PyObject *done = PyObject_CallFunction(configuration.set_history, "OOn", impl, node, output);
        Py_XDECREF(done);
        return done ? 0 : -1;
    }
    if (!meta) {
        if (!(meta = autograd_make()))
            return -1;
        Py_XSETREF(impl->autograd, (PyObject *)meta);
    }
    Py_XSETREF(meta->grad_fn, Py_NewRef((PyObject *)node));
    meta->output_nr = output;
    meta->requires_grad = 0;
    return 0;
}

/* Make an output of the recorded call an output of the node. */
static int attach_output(OperatorNode *node, PyObject *plan, PyObject *output, Py_ssize_t index)
{
    TensorImpl *impl = impl_of(output);
    PyObject *nothing = impl ? NULL : PyTuple_New(0);
    PyObject *info = impl ? PyTuple_Pack(3, impl->sizes, impl->dtype, impl->device)
                          : nothing ? PyTuple_Pack(3, nothing, Py_None, Py_None) : NULL;
    Py_XDECREF(nothing);
    int failed = !info || PyList_Append(node->base.output_info, info) < 0;
    Py_XDECREF(info);
    if (failed)
        return -1;
    if (impl && has_gradient(impl->dtype) && !contains(field(plan, PLAN_SKIPPED), index))
        return set_history(impl, &node->base, index);
    return 0;
}

static int attach_outputs(OperatorNode *node, PyObject *plan, PyObject *result)
{
    if (!PyTuple_Check(result))
        return attach_output(node, plan, result, 0);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(result); i++)
        if (attach_output(node, plan, field(result, i), i) < 0)
            return -1;
    return 0;
}

/* Call the kernels below autograd. */
static PyObject *call_below_autograd(PyObject *lower, PyObject *const *arguments, size_t flags, PyObject *names)
{
    ThreadRecord *record = thread_record();
    unsigned long exclude = record->exclude;
    record->exclude |= AUTOGRAD_BITS;
    PyObject *result = PyObject_Vectorcall(lower, arguments, flags, names);
    record->exclude = exclude;
    return result;
}

/* Whether all arguments are single tensors. Lists of tensors have one edge per element, and are recorded in Python. */
static int is_plain(PyObject *plan, PyObject **stack)
{
    PyObject *formulas = field(plan, PLAN_FORMULAS);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(formulas); i++) {
        PyObject *positions = field(field(formulas, i), FORMULA_POSITIONS);
        for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(positions); k++) {
            PyObject *value = stack[as_index(field(positions, k))];
            if (PyList_Check(value) || PyTuple_Check(value))
                return 0;
        }
    }
    return 1;
}

/* Whether a tensor subclass sees the operator: then the attributes of its instances have to be saved too. */
static int is_seen_by_class(PyObject *const *values, Py_ssize_t count)
{
    for (Py_ssize_t i = 0; i < count; i++) {
        const TensorImpl *impl = impl_of(values[i]);
        if (impl && impl->key_set & PYTHON_BIT)
            return 1;
    }
    return 0;
}

PyObject *record_call(PyObject *plan, PyObject *lower, PyObject *const *arguments, size_t flags, PyObject *names)
{
    PyObject *stack[MAX_ARGUMENTS];
    const ThreadRecord *record = thread_record();
    if (modes_active(record) || PyTuple_GET_SIZE(record->saved_tensor_hooks) || !configuration.saved_type ||
        !bind(plan, arguments, PyVectorcall_NARGS(flags), names, stack) || !is_plain(plan, stack) ||
        is_seen_by_class(stack, PyTuple_GET_SIZE(field(plan, PLAN_NAMES))))
        return Py_NewRef(Py_NotImplemented);
    int wanted;
    OperatorNode *node = make_node(plan, stack, &wanted);
    if (!node)
        return NULL;
    PyObject *result = NULL;
    if (!wanted)
        result = Py_NewRef(Py_NotImplemented);
    else if (save_inputs(node, plan, stack) == 0) {
        result = call_below_autograd(lower, arguments, flags, names);
        if (result && (attach_outputs(node, plan, result) < 0 || save_outputs(node, plan, result) < 0))
            Py_CLEAR(result);
    }
    Py_DECREF(node);
    return result;
}
