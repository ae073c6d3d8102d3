/* The guards of a capture as a tree: how to reach each value from the frame's values, and the checks on it.

   A tree reads the frame's parameters, its globals and its closure, and says whether all guards hold. Guards without a native
   check are left to a Python function, which is called last. rushlight.dynamo.guard_tree writes the trees. */
#include "guards.h"

#include <stddef.h>

#include "guard_sizes.h"
#include "tensor_impl.h"

/* The ways to reach a node's value from its parent's value. The numbers are those of rushlight.dynamo.sources. */
enum Access {
    ACCESS_VALUE,     /* root: the frame's value of this number */
    ACCESS_HELD,      /* root: this object */
    ACCESS_ATTRIBUTE, /* getattr */
    ACCESS_OWN,       /* the __dict__ of an instance */
    ACCESS_ITEM,      /* a subscript; a dict's __missing__ is not called */
    ACCESS_TYPE,
    ACCESS_CELL,      /* the content of a cell */
    ACCESS_MEMBER,    /* the class attribute found along the MRO */
    ACCESS_KEY_AT,    /* the key of a dict at a position */
    ACCESS_CALL, /* the result of calling `key` with the parent's value */
    ACCESS_KINDS
};

/* Relations that several values must satisfy together. */
enum Relation { SAME_OBJECTS, DIFFERENT_OBJECTS, DIFFERENT_STORAGES, RELATION_KINDS };

typedef struct {
    int access;
    int is_weak;       /* whether `key` is a weak reference to the object */
    PyObject *key;     /* owned */
    Py_ssize_t number; /* the key as a number, for values and positions */
    Py_ssize_t end;    /* the first node after this one's descendants */
    Py_ssize_t slot;   /* the value's slot for relations; -1 for none */
    Py_ssize_t first_check, end_check;
} Node;

typedef struct {
    int kind;
    Py_ssize_t *slots, count;
} RelationCheck;

typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    Py_ssize_t value_count, node_count, check_count, relation_count, slot_count;
    Node *nodes;
    GuardCheck *checks;
    RelationCheck *relations;
    GuardSizes sizes;
    PyObject *rest; /* a callable that takes the frame's values, or NULL */
} GuardTree;

/* Functions that reach values. Dicts, tuples and lists are read directly, even if a subclass overrides their methods. The functions
   return new references, or NULL if there is no value, with or without an exception set. */

static PyObject *item_of(PyObject *values, PyObject *key)
{
    if (PyDict_Check(values))
        return Py_XNewRef(PyDict_GetItemWithError(values, key));
    if (!PyLong_CheckExact(key) || !(PyTuple_Check(values) || PyList_Check(values)))
        return PyObject_GetItem(values, key);
    Py_ssize_t count = PySequence_Fast_GET_SIZE(values), position = PyLong_AsSsize_t(key);
    if (position == -1 && PyErr_Occurred())
        return NULL;
    position += position < 0 ? count : 0;
    return position < 0 || position >= count ? NULL : Py_NewRef(PySequence_Fast_ITEMS(values)[position]);
}

static PyObject *key_at(PyObject *dict, Py_ssize_t wanted)
{
    PyObject *key, *value;
    Py_ssize_t position = 0, index = 0;
    while (PyDict_Check(dict) && PyDict_Next(dict, &position, &key, &value))
        if (index++ == wanted)
            return Py_NewRef(key);
    return NULL;
}

/* Return the value of a node, given its parent's value. */
static PyObject *reach_value(const Node *node, PyObject *parent)
{
    switch (node->access) {
    case ACCESS_ATTRIBUTE: return PyObject_GetAttr(parent, node->key);
    case ACCESS_OWN: return PyObject_GenericGetDict(parent, NULL);
    case ACCESS_ITEM: {
        PyObject *key = Py_XNewRef(resolve_weak(node->key, node->is_weak)), *item = key ? item_of(parent, key) : NULL;
        Py_XDECREF(key);
        return item;
    }
    case ACCESS_TYPE: return Py_NewRef(Py_TYPE(parent));
    case ACCESS_CELL: return PyCell_Check(parent) ? Py_XNewRef(PyCell_GET(parent)) : NULL;
    case ACCESS_MEMBER: return PyType_Check(parent) ? Py_XNewRef(_PyType_Lookup((PyTypeObject *)parent, node->key)) : NULL;
    case ACCESS_CALL: return PyObject_CallOneArg(node->key, parent);
    default: return key_at(parent, node->number);
    }
}

/* Checking */

static int node_holds(const GuardTree *tree, Py_ssize_t index, PyObject *value, PyObject **slots)
{
    const Node *node = &tree->nodes[index];
    int holds = 1;
    for (Py_ssize_t i = node->first_check; i < node->end_check && holds > 0; i++)
        holds = check_holds(&tree->checks[i], value);
    if (holds > 0 && node->slot >= 0)
        Py_XSETREF(slots[node->slot], Py_NewRef(value));
    for (Py_ssize_t child = index + 1; child < node->end && holds > 0; child = tree->nodes[child].end) {
        PyObject *reached = reach_value(&tree->nodes[child], value);
        holds = reached ? node_holds(tree, child, reached, slots) : PyErr_Occurred() ? -1 : 0;
        Py_XDECREF(reached);
    }
    return holds;
}

static int nodes_hold(const GuardTree *tree, PyObject *const *values, PyObject **slots)
{
    int holds = 1;
    for (Py_ssize_t root = 0; root < tree->node_count && holds > 0; root = tree->nodes[root].end) {
        const Node *node = &tree->nodes[root];
        PyObject *value = node->access == ACCESS_VALUE ? values[node->number] : resolve_weak(node->key, node->is_weak);
        Py_XINCREF(value);
        holds = value ? node_holds(tree, root, value, slots) : 0;
        Py_XDECREF(value);
    }
    return holds;
}

/* Return the address that a relation compares: that of the value, or of its storage. */
static void *identity_in(const RelationCheck *relation, PyObject *value)
{
    const TensorImpl *impl = relation->kind == DIFFERENT_STORAGES ? impl_of(value) : NULL;
    return impl ? (void *)impl->storage : (void *)value;
}

static int relation_holds(const RelationCheck *relation, PyObject **slots)
{
    for (Py_ssize_t i = 1; i < relation->count; i++) {
        void *one = identity_in(relation, slots[relation->slots[i]]);
        Py_ssize_t first = relation->kind == SAME_OBJECTS ? i - 1 : 0;
        for (Py_ssize_t k = first; k < i; k++)
            if ((one == identity_in(relation, slots[relation->slots[k]])) != (relation->kind == SAME_OBJECTS))
                return 0;
    }
    return 1;
}

static int native_holds(const GuardTree *tree, PyObject *const *values)
{
    enum { FEW = 32 };
    PyObject *few[FEW] = {NULL}, **slots = few;
    if (tree->slot_count > FEW && !(slots = PyMem_Calloc((size_t)tree->slot_count, sizeof *slots))) {
        PyErr_NoMemory();
        return -1;
    }
    int holds = nodes_hold(tree, values, slots);
    for (Py_ssize_t i = 0; i < tree->relation_count && holds > 0; i++)
        holds = relation_holds(&tree->relations[i], slots);
    if (holds > 0)
        holds = guard_sizes_hold(&tree->sizes, slots, values, tree->value_count);
    for (Py_ssize_t i = 0; i < tree->slot_count; i++)
        Py_XDECREF(slots[i]);
    if (slots != few)
        PyMem_Free(slots);
    return holds;
}

/* Call the Python function for the guards without a native check. */
static int rest_holds(const GuardTree *tree, PyObject *const *values)
{
    PyObject *answer = PyObject_Vectorcall(tree->rest, values, (size_t)tree->value_count, NULL);
    int holds = answer ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(answer);
    return holds;
}

int guard_tree_holds(PyObject *object, PyObject *const *values, Py_ssize_t count)
{
    GuardTree *tree = (GuardTree *)object;
    if (count != tree->value_count) {
        PyErr_Format(PyExc_TypeError, "these guards take %zd values, got %zd", tree->value_count, count);
        return -1;
    }
    int holds = native_holds(tree, values);
    if (holds > 0 && tree->rest)
        holds = rest_holds(tree, values);
    /* A guard that raises does not hold: the path to its value is gone. */
    if (holds < 0 && PyErr_ExceptionMatches(PyExc_Exception)) {
        PyErr_Clear();
        holds = 0;
    }
    return holds;
}

static PyObject *tree_call(PyObject *object, PyObject *const *values, size_t flags, PyObject *names)
{
    if (names && PyTuple_GET_SIZE(names))
        return PyErr_Format(PyExc_TypeError, "guards take values by position");
    Py_ssize_t count = PyVectorcall_NARGS(flags);
    if (count != ((GuardTree *)object)->value_count)
        return PyErr_Format(PyExc_TypeError, "these guards take %zd values, got %zd", ((GuardTree *)object)->value_count, count);
    int holds = guard_tree_holds(object, values, count);
    return holds < 0 ? NULL : PyBool_FromLong(holds);
}

/* Construction */

static int is_tuple(PyObject *description)
{
    if (!PyTuple_Check(description))
        PyErr_Format(PyExc_TypeError, "a guard tree is described by tuples, got %R", description);
    return PyTuple_Check(description);
}

static int set_node(GuardTree *tree, Py_ssize_t index, PyObject *description, PyObject **checks)
{
    Node *node = &tree->nodes[index];
    PyObject *key;
    if (!is_tuple(description) || !PyArg_ParseTuple(description, "iOnnO!", &node->access, &key, &node->end, &node->slot, &PyTuple_Type, checks))
        return -1;
    int is_numbered = node->access == ACCESS_VALUE || node->access == ACCESS_KEY_AT;
    node->number = is_numbered && PyLong_Check(key) ? PyLong_AsSsize_t(key) : 0;
    if (node->number == -1 && PyErr_Occurred())
        return -1;
    int is_known = node->access >= 0 && node->access < ACCESS_KINDS && node->end > index && node->end <= tree->node_count &&
                   node->slot < tree->slot_count && (!is_numbered || PyLong_Check(key)) &&
                   (node->access != ACCESS_VALUE || (node->number >= 0 && node->number < tree->value_count)) &&
                   ((node->access != ACCESS_ATTRIBUTE && node->access != ACCESS_MEMBER) || PyUnicode_Check(key));
    if (!is_known) {
        PyErr_Format(PyExc_ValueError, "node %zd of a guard tree is wrong: %R", index, description);
        return -1;
    }
    node->is_weak = (node->access == ACCESS_HELD || node->access == ACCESS_ITEM) && PyWeakref_CheckRef(key);
    node->key = Py_NewRef(key);
    if (PyUnicode_CheckExact(key))
        PyUnicode_InternInPlace(&node->key);
    return 0;
}

/* Roots have no parent, other nodes have one, and each subtree ends within its parent's. */
static int is_nested(const GuardTree *tree, Py_ssize_t index, Py_ssize_t end, int is_root)
{
    while (index < end) {
        const Node *node = &tree->nodes[index];
        if ((node->access <= ACCESS_HELD) != is_root || node->end > end || !is_nested(tree, index + 1, node->end, 0))
            return 0;
        index = node->end;
    }
    return 1;
}

static int set_checks(GuardTree *tree, PyObject **checks)
{
    Py_ssize_t made = 0;
    for (Py_ssize_t i = 0; i < tree->node_count; i++) {
        tree->nodes[i].first_check = made;
        for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(checks[i]); k++, made++) {
            if (check_set(&tree->checks[made], PyTuple_GET_ITEM(checks[i], k)) < 0)
                return -1;
            tree->check_count = made + 1;
        }
        tree->nodes[i].end_check = made;
    }
    return 0;
}

static int set_nodes(GuardTree *tree, PyObject *list)
{
    Py_ssize_t count = PyTuple_GET_SIZE(list), total = 0;
    PyObject **checks = PyMem_Calloc((size_t)count + 1, sizeof *checks);
    tree->nodes = PyMem_Calloc((size_t)count + 1, sizeof *tree->nodes);
    int failed = !checks || !tree->nodes;
    tree->node_count = failed ? 0 : count;
    for (Py_ssize_t i = 0; i < count && !failed; i++) {
        failed = set_node(tree, i, PyTuple_GET_ITEM(list, i), &checks[i]) < 0;
        total += failed ? 0 : PyTuple_GET_SIZE(checks[i]);
    }
    if (!failed && !is_nested(tree, 0, count, 1)) {
        PyErr_SetString(PyExc_ValueError, "the nodes of a guard tree are not nested");
        failed = 1;
    }
    tree->checks = failed ? NULL : PyMem_Calloc((size_t)total + 1, sizeof *tree->checks);
    failed = failed || !tree->checks || set_checks(tree, checks) < 0;
    PyMem_Free(checks);
    if (failed && !PyErr_Occurred())
        PyErr_NoMemory();
    return failed ? -1 : 0;
}

static int is_filled(const GuardTree *tree, Py_ssize_t slot)
{
    for (Py_ssize_t i = 0; i < tree->node_count; i++)
        if (tree->nodes[i].slot == slot)
            return 1;
    return 0;
}

static int set_relation(GuardTree *tree, RelationCheck *relation, PyObject *description)
{
    PyObject *slots;
    if (!is_tuple(description) || !PyArg_ParseTuple(description, "iO!", &relation->kind, &PyTuple_Type, &slots))
        return -1;
    Py_ssize_t count = PyTuple_GET_SIZE(slots);
    relation->slots = PyMem_Calloc((size_t)count + 1, sizeof *relation->slots);
    if (!relation->slots) {
        PyErr_NoMemory();
        return -1;
    }
    relation->count = count;
    int fits = relation->kind >= 0 && relation->kind < RELATION_KINDS;
    for (Py_ssize_t i = 0; i < count && fits; i++) {
        relation->slots[i] = PyLong_AsSsize_t(PyTuple_GET_ITEM(slots, i));
        fits = relation->slots[i] >= 0 && is_filled(tree, relation->slots[i]);
    }
    if (!fits && !PyErr_Occurred())
        PyErr_Format(PyExc_ValueError, "a relation of guards is wrong: %R", description);
    return fits ? 0 : -1;
}

static int set_relations(GuardTree *tree, PyObject *list)
{
    Py_ssize_t count = PyTuple_GET_SIZE(list);
    tree->relations = PyMem_Calloc((size_t)count + 1, sizeof *tree->relations);
    if (!tree->relations) {
        PyErr_NoMemory();
        return -1;
    }
    tree->relation_count = count;
    for (Py_ssize_t i = 0; i < count; i++)
        if (set_relation(tree, &tree->relations[i], PyTuple_GET_ITEM(list, i)) < 0)
            return -1;
    return 0;
}

static PyObject *tree_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(names))
{
    PyObject *nodes, *relations, *rest, *sizes = Py_None;
    Py_ssize_t value_count, slot_count;
    if (!PyArg_ParseTuple(args, "nnO!O!O|O:GuardTree", &value_count, &slot_count, &PyTuple_Type, &nodes, &PyTuple_Type, &relations,
                          &rest, &sizes))
        return NULL;
    if (sizes != Py_None && !is_tuple(sizes))
        return NULL;
    GuardTree *self = (GuardTree *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    self->call = tree_call;
    self->value_count = value_count;
    self->slot_count = slot_count < 0 ? 0 : slot_count;
    self->rest = rest == Py_None ? NULL : Py_NewRef(rest);
    if (set_nodes(self, nodes) < 0 || set_relations(self, relations) < 0 ||
        (sizes != Py_None && guard_sizes_set(&self->sizes, sizes, self->slot_count) < 0))
        Py_CLEAR(self);
    return (PyObject *)self;
}

static int tree_traverse(GuardTree *self, visitproc visit, void *arg)
{
    for (Py_ssize_t i = 0; i < self->node_count; i++)
        Py_VISIT(self->nodes[i].key);
    for (Py_ssize_t i = 0; i < self->check_count; i++)
        Py_VISIT(self->checks[i].expected);
    Py_VISIT(self->sizes.exact);
    Py_VISIT(self->rest);
    return 0;
}

static int tree_clear(GuardTree *self)
{
    for (Py_ssize_t i = 0; i < self->node_count; i++)
        Py_CLEAR(self->nodes[i].key);
    for (Py_ssize_t i = 0; i < self->check_count; i++)
        Py_CLEAR(self->checks[i].expected);
    Py_CLEAR(self->rest);
    guard_sizes_clear(&self->sizes);
    self->value_count = -1; /* so that it never holds again */
    return 0;
}

static void tree_dealloc(GuardTree *self)
{
    PyObject_GC_UnTrack(self);
    tree_clear(self);
    for (Py_ssize_t i = 0; i < self->relation_count; i++)
        PyMem_Free(self->relations[i].slots);
    PyMem_Free(self->relations);
    PyMem_Free(self->checks);
    PyMem_Free(self->nodes);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

PyTypeObject GuardTree_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "rushlight._C.GuardTree",
    .tp_doc = "GuardTree(value_count, slot_count, nodes, relations, rest, sizes=None, /)\n\nGuards of a frame; called with its values, it tells\n"
              "whether all hold. `nodes` are tuples (access, key, end, slot, checks), parents before their children; `checks` are\n"
              "tuples (kind, expected), `relations` tuples (kind, slots). `rest` is None or a function of the same values.\n"
              "`sizes` is None or (numbers, conditions, exact): tuples (kind, slot, dim), tuples (kind, code over them), and a\n"
              "function of the frame's values that says the same where numbers do not fit 64 bits.",
    .tp_basicsize = sizeof(GuardTree),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(GuardTree, call),
    .tp_call = PyVectorcall_Call,
    .tp_new = tree_new,
    .tp_dealloc = (destructor)tree_dealloc,
    .tp_traverse = (traverseproc)tree_traverse,
    .tp_clear = (inquiry)tree_clear,
};
