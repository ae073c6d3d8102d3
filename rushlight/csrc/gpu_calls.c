/* PlannedCalls: a callable that runs calls with known arguments by their launch plans, and other calls by Python, which may add
   a plan. See rushlight.cuda.kernels and rushlight.inductor.triton.graph. */
#include "gpu_key.h"
#include "gpu_plan.h"

#include <stddef.h>
#include <string.h>
#include <structmember.h>

enum {
    BUCKETS = 64,
    RECENT = 256, /* calls without a plan that are remembered, so that those that come again get one */
    MAX_PLANS = 1024,
    MAX_VALUES = 1 << 16 /* arguments of kernels in all plans of a callable, some megabytes */
};

/* How a plan's results become the result of the call. */
typedef enum { AS_TUPLE, AS_SINGLE, AS_LIST, BY_FUNCTION } Structure;

/* The tensor of a number, which was made for a stream. */
typedef struct {
    uint64_t bits, stream;
    PyObject *tensor; /* owned */
} NumberTensor;

typedef struct Entry {
    Py_ssize_t references;
    struct Entry *next;
    uint64_t hash, *words;
    Py_ssize_t count, number_count;
    LaunchPlan *plan;      /* owned */
    PyObject *held, *draw; /* owned; `draw` makes the last input, or is NULL */
    PyObject *finish;      /* owned; NULL unless `structure` is BY_FUNCTION */
    Structure structure;
    NumberTensor *numbers;
} Entry;

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *slow;   /* owned: runs a call without a plan */
    PyObject *number; /* owned: (float, device index) -> tensor; None without opened numbers */
    char joins, apart, opens_numbers, is_repeated;
    uint64_t recent[RECENT]; /* hashes of calls without a plan */
    uint64_t generation;
    Py_ssize_t plan_count, value_count;
    Entry *latest; /* borrowed: the entry that was used last */
    Entry *buckets[BUCKETS];
} PlannedCalls;

static void release_entry(Entry *entry)
{
    if (--entry->references)
        return;
    Py_XDECREF((PyObject *)entry->plan);
    Py_XDECREF(entry->held);
    Py_XDECREF(entry->draw);
    Py_XDECREF(entry->finish);
    for (Py_ssize_t i = 0; i < entry->number_count; i++)
        Py_XDECREF(entry->numbers[i].tensor);
    PyMem_Free(entry->numbers);
    PyMem_Free(entry->words);
    PyMem_Free(entry);
}

static void forget(PlannedCalls *self)
{
    Entry *dropped[BUCKETS];
    memcpy(dropped, self->buckets, sizeof dropped);
    memset(self->buckets, 0, sizeof self->buckets);
    self->latest = NULL;
    self->plan_count = self->value_count = 0;
    self->generation = gpu_choice_generation;
    for (int i = 0; i < BUCKETS; i++)
        for (Entry *entry = dropped[i], *next; entry; entry = next) {
            next = entry->next;
            release_entry(entry);
        }
}

static int matches(const Entry *entry, const CallKey *key)
{
    return entry->count == key->count && memcmp(entry->words, key->words, (size_t)key->count * sizeof *key->words) == 0;
}

static Entry *find(PlannedCalls *self, const CallKey *key)
{
    if (self->generation != gpu_choice_generation)
        forget(self);
    if (self->latest && matches(self->latest, key))
        return self->latest;
    if (!self->plan_count)
        return NULL;
    uint64_t hash = key_hash(key);
    for (Entry *entry = self->buckets[hash % BUCKETS]; entry; entry = entry->next)
        if (entry->hash == hash && matches(entry, key))
            return self->latest = entry;
    return NULL;
}

/* Return the tensor of a number, as a new reference. */
static PyObject *tensor_of(const PlannedCalls *self, const LaunchPlan *plan, NumberTensor *kept, PyObject *value)
{
    uint64_t stream = plan_stream(plan), bits;
    double number = PyFloat_AS_DOUBLE(value);
    memcpy(&bits, &number, sizeof bits);
    int is_capturing = plan_is_capturing(plan, stream);
    if (is_capturing < 0)
        return NULL;
    if (!is_capturing && kept->tensor && kept->bits == bits && kept->stream == stream)
        return Py_NewRef(kept->tensor);
    PyObject *made = PyObject_CallFunction(self->number, "Oi", value, plan->index);
    if (made && !is_capturing) { /* a graph's numbers live in its own memory */
        kept->bits = bits;
        kept->stream = stream;
        Py_XSETREF(kept->tensor, Py_NewRef(made));
    }
    return made;
}

static PyObject *run_tensors(Entry *entry, PyObject *const *tensors)
{
    PyObject *results;
    switch (entry->structure) {
    case AS_SINGLE: return plan_run_single(entry->plan, tensors);
    case AS_TUPLE: return plan_run(entry->plan, tensors);
    default: results = plan_run(entry->plan, tensors);
    }
    if (!results)
        return NULL;
    PyObject *made = PySequence_List(results);
    Py_DECREF(results);
    if (!made || entry->structure == AS_LIST)
        return made;
    PyObject *finished = PyObject_CallOneArg(entry->finish, made);
    Py_DECREF(made);
    return finished;
}

/* Replace the numbers among the leaves by tensors, append what `draw` makes, and run the plan. */
static PyObject *run_completed(const PlannedCalls *self, Entry *entry, const CallKey *key)
{
    Py_ssize_t count = key->leaf_count, made = 0, next_number = 0;
    PyObject **all = PyMem_New(PyObject *, (size_t)(count + 1) * 2), *result = NULL;
    PyObject **owned = all ? all + count + 1 : NULL;
    if (!all)
        return PyErr_NoMemory();
    memcpy(all, key->leaves, (size_t)count * sizeof *all);
    int failed = 0;
    for (Py_ssize_t i = 0; !failed && i < count; i++) {
        if (!PyFloat_CheckExact(all[i]))
            continue;
        all[i] = tensor_of(self, entry->plan, &entry->numbers[next_number++], all[i]);
        failed = !all[i];
        if (!failed)
            owned[made++] = all[i];
    }
    if (!failed && entry->draw) {
        all[count] = PyObject_CallNoArgs(entry->draw);
        failed = !all[count];
        if (!failed)
            owned[made++] = all[count];
    }
    if (!failed)
        result = run_tensors(entry, all);
    while (made)
        Py_DECREF(owned[--made]);
    PyMem_Free(all);
    return result;
}

/* Run a call by its entry, which another thread may drop meanwhile. */
static PyObject *run_entry(const PlannedCalls *self, Entry *entry, const CallKey *key)
{
    entry->references++;
    PyObject *result = entry->number_count || entry->draw ? run_completed(self, entry, key) : run_tensors(entry, key->leaves);
    release_entry(entry);
    return result;
}

/* Note a call without a plan, and whether there was one like it before. */
static void note_unplanned(PlannedCalls *self, const CallKey *key)
{
    uint64_t hash = key_hash(key), *place = &self->recent[hash % RECENT];
    self->is_repeated = *place == hash;
    *place = hash;
}

static PyObject *calls_call(PyObject *object, PyObject *const *arguments, size_t flags, PyObject *names)
{
    PlannedCalls *self = (PlannedCalls *)object;
    CallKey key;
    PyObject *result = NULL;
    key_begin(&key, self->joins, self->apart, NULL);
    int known = key_add_call(&key, arguments, PyVectorcall_NARGS(flags), names, self->opens_numbers);
    Entry *entry = known > 0 ? find(self, &key) : NULL;
    if (entry)
        result = run_entry(self, entry, &key);
    else if (known > 0)
        note_unplanned(self, &key);
    else
        self->is_repeated = 0;
    key_end(&key);
    if (entry || known < 0)
        return result;
    return PyObject_Vectorcall(self->slow, arguments, flags & ~PY_VECTORCALL_ARGUMENTS_OFFSET, names);
}

/* Adding plans */

static Py_ssize_t count_numbers(const CallKey *key)
{
    Py_ssize_t count = 0;
    for (Py_ssize_t i = 0; i < key->leaf_count; i++)
        count += PyFloat_CheckExact(key->leaves[i]);
    return count;
}

/* Whether the leaves are the plan's inputs. */
static int fits(const CallKey *key, const LaunchPlan *plan, PyObject *draw)
{
    for (Py_ssize_t i = 0; i < key->leaf_count; i++) {
        const TensorImpl *impl = impl_of(key->leaves[i]);
        if (impl && impl->device != plan->place)
            return 0;
    }
    return key->leaf_count + (draw != Py_None) == plan->input_count;
}

/* Read how results are returned: "tuple", "single", "list", or a function of a list. */
static int set_structure(Entry *entry, PyObject *structure)
{
    static const char *const names[] = {"tuple", "single", "list"};
    for (int i = 0; PyUnicode_Check(structure) && i < 3; i++)
        if (PyUnicode_CompareWithASCIIString(structure, names[i]) == 0) {
            entry->structure = (Structure)i;
            return i == AS_SINGLE && entry->plan->output_count != 1 ? -1 : 0;
        }
    if (!PyCallable_Check(structure))
        return -1;
    entry->structure = BY_FUNCTION;
    entry->finish = Py_NewRef(structure);
    return 0;
}

static Entry *make_entry(const CallKey *key, LaunchPlan *plan, PyObject *held, PyObject *structure, PyObject *draw)
{
    Entry *made = PyMem_Calloc(1, sizeof *made);
    if (!made)
        return (Entry *)PyErr_NoMemory();
    made->references = 1;
    made->hash = key_hash(key);
    made->count = key->count;
    made->number_count = count_numbers(key);
    made->plan = (LaunchPlan *)Py_NewRef((PyObject *)plan);
    made->held = Py_NewRef(held);
    made->draw = draw == Py_None ? NULL : Py_NewRef(draw);
    made->words = PyMem_New(uint64_t, (size_t)key->count + 1);
    made->numbers = PyMem_Calloc((size_t)made->number_count + 1, sizeof *made->numbers);
    if (!made->words || !made->numbers)
        PyErr_NoMemory();
    else if (set_structure(made, structure) < 0)
        PyErr_Format(PyExc_ValueError, "PlannedCalls: expected 'single', 'tuple', 'list' or a function, got %R", structure);
    else {
        memcpy(made->words, key->words, (size_t)key->count * sizeof *key->words);
        return made;
    }
    if (!made->numbers)
        made->number_count = 0;
    release_entry(made);
    return NULL;
}

static int add_entry(PlannedCalls *self, const CallKey *key, LaunchPlan *plan, PyObject *held, PyObject *structure,
                     PyObject *draw)
{
    Entry *made = make_entry(key, plan, held, structure, draw);
    if (!made)
        return -1;
    if (self->plan_count >= MAX_PLANS || self->value_count >= MAX_VALUES || self->generation != gpu_choice_generation)
        forget(self);
    Entry **bucket = &self->buckets[made->hash % BUCKETS];
    made->next = *bucket;
    *bucket = self->latest = made;
    self->plan_count++;
    self->value_count += plan->value_count;
    return 0;
}

/* Make the key of a call from a tuple and a dict of arguments, as key_add_call does. */
static int key_of_packed(const PlannedCalls *self, CallKey *key, PyObject *positional, PyObject *named)
{
    Py_ssize_t count = PyTuple_GET_SIZE(positional), total = count + PyDict_GET_SIZE(named), place = 0;
    PyObject **all = PyMem_New(PyObject *, (size_t)total + 1), *names = PyTuple_New(total - count), *name, *value;
    int known = -1;
    if (!all || !names)
        PyErr_NoMemory();
    else {
        for (Py_ssize_t i = 0; i < count; i++)
            all[i] = PyTuple_GET_ITEM(positional, i);
        for (Py_ssize_t i = count; PyDict_Next(named, &place, &name, &value); i++) {
            PyTuple_SET_ITEM(names, i - count, Py_NewRef(name));
            all[i] = value;
        }
        known = key_add_call(key, all, count, names, self->opens_numbers);
    }
    PyMem_Free(all);
    Py_XDECREF(names);
    return known;
}

static PyObject *calls_remember(PlannedCalls *self, PyObject *arguments)
{
    PyObject *positional, *named, *plan, *structure, *draw;
    if (!PyArg_ParseTuple(arguments, "O!O!O!OO:remember", &PyTuple_Type, &positional, &PyDict_Type, &named, &LaunchPlan_Type,
                          &plan, &structure, &draw))
        return NULL;
    CallKey key;
    PyObject *held = PyList_New(0);
    if (!held)
        return NULL;
    key_begin(&key, self->joins, self->apart, held);
    int known = key_of_packed(self, &key, positional, named);
    if (known > 0)
        known = fits(&key, (LaunchPlan *)plan, draw) && (!count_numbers(&key) || PyCallable_Check(self->number));
    if (known > 0 && !find(self, &key) && add_entry(self, &key, (LaunchPlan *)plan, held, structure, draw) < 0)
        known = -1;
    key_end(&key);
    Py_DECREF(held);
    return known < 0 ? NULL : PyBool_FromLong(known);
}

static PyObject *calls_find(PlannedCalls *self, PyObject *const *arguments, Py_ssize_t count)
{
    CallKey key;
    key_begin(&key, self->joins, self->apart, NULL);
    int known = key_add_call(&key, arguments, count, NULL, self->opens_numbers);
    Entry *entry = known > 0 ? find(self, &key) : NULL;
    key_end(&key);
    return known < 0 ? NULL : Py_NewRef(entry ? (PyObject *)entry->plan : Py_None);
}

static PyObject *calls_forget(PlannedCalls *self, PyObject *Py_UNUSED(ignored))
{
    forget(self);
    Py_RETURN_NONE;
}

static PyObject *calls_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"slow", "joins", "number", "apart", NULL};
    PyObject *slow, *number = Py_None;
    int joins, apart = 0;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "Op|Op:PlannedCalls", names, &slow, &joins, &number, &apart))
        return NULL;
    if (!PyCallable_Check(slow) || (number != Py_None && !PyCallable_Check(number)))
        return PyErr_Format(PyExc_TypeError, "PlannedCalls: expected callables, got %R and %R", slow, number);
    PlannedCalls *self = (PlannedCalls *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    self->vectorcall = calls_call;
    self->slow = Py_NewRef(slow);
    self->number = Py_NewRef(number);
    self->joins = (char)joins;
    self->apart = (char)apart;
    self->generation = gpu_choice_generation;
    return (PyObject *)self;
}

static int calls_traverse(PlannedCalls *self, visitproc visit, void *arg)
{
    Py_VISIT(self->slow);
    Py_VISIT(self->number);
    for (int i = 0; i < BUCKETS; i++)
        for (Entry *entry = self->buckets[i]; entry; entry = entry->next)
            if (entry->references == 1) {
                Py_VISIT(entry->plan);
                Py_VISIT(entry->draw);
                Py_VISIT(entry->finish);
            }
    return 0;
}

static int calls_clear(PlannedCalls *self)
{
    forget(self);
    Py_XSETREF(self->slow, Py_NewRef(Py_None)); /* a call then raises an error instead of crashing */
    return 0;
}

static void calls_dealloc(PlannedCalls *self)
{
    PyObject_GC_UnTrack(self);
    forget(self);
    Py_XDECREF(self->slow);
    Py_XDECREF(self->number);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyMemberDef calls_members[] = {
    {"slow", T_OBJECT_EX, offsetof(PlannedCalls, slow), READONLY, "What runs a call without a plan."},
    {"opens_numbers", T_BOOL, offsetof(PlannedCalls, opens_numbers), 0,
     "Whether a float argument is an input of plans, by `number`, where a floating-point tensor with dimensions is passed, too."},
    {"is_repeated", T_BOOL, offsetof(PlannedCalls, is_repeated), READONLY,
     "Whether the last call without a plan was like one before: a plan is worth making for those that come again."},
    {"plan_count", T_PYSSIZET, offsetof(PlannedCalls, plan_count), READONLY, "How many plans there are."},
    {NULL, 0, 0, 0, NULL},
};

static PyMethodDef calls_methods[] = {
    {"remember", (PyCFunction)calls_remember, METH_VARARGS,
     "remember(args: tuple, kwargs: dict, plan, structure, draw, /) -> bool\n\nUse a plan for calls like this one. Results are returned\n"
     "as a 'tuple', a 'list', a 'single' one, or as `structure(list)`; `draw()` makes a last input, unless it is None. Return False\n"
     "if such calls have no plans."},
    {"find", (PyCFunction)(void (*)(void))calls_find, METH_FASTCALL, "find(*args)\n\nThe plan for a call, or None."},
    {"forget", (PyCFunction)calls_forget, METH_NOARGS, "forget()\n\nDrop all plans."},
    {NULL, NULL, 0, NULL},
};

PyTypeObject PlannedCalls_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "rushlight._C.PlannedCalls",
    .tp_basicsize = sizeof(PlannedCalls),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_doc = "PlannedCalls(slow, joins, number=None, apart=False)\n--\n\n"
              "Calls `slow`, or the launch plan that it has remembered for such arguments. Inputs of plans are the tensors among the\n"
              "arguments in order; with `joins`, a tensor that is passed twice is one input, and with `apart` calls have no plans whose\n"
              "tensors share memory. `number(value, index)` makes a tensor of a float on a device.",
    .tp_new = calls_new,
    .tp_dealloc = (destructor)calls_dealloc,
    .tp_traverse = (traverseproc)calls_traverse,
    .tp_clear = (inquiry)calls_clear,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(PlannedCalls, vectorcall),
    .tp_members = calls_members,
    .tp_methods = calls_methods,
};
