/* ModuleSlotsBase: gives scripted code a module's parameters, buffers, submodules and attributes by name.

   The tables are those of rushlight.nn.Module. They are looked up in the module's __dict__ each time, since any of them may
   have been replaced. */
#include "module.h"

#include <stddef.h>
#include <structmember.h>

typedef struct {
    PyObject_HEAD
    PyObject *module; /* owned */
} ModuleSlots;

/* Return an entry of a table in an attribute dict, borrowed; NULL if there is none, perhaps with an exception set. */
static PyObject *in_table(PyObject *attributes, PyObject *table_name, PyObject *name)
{
    PyObject *table = PyDict_GetItemWithError(attributes, table_name);
    return table && PyDict_Check(table) ? PyDict_GetItemWithError(table, name) : NULL;
}

static PyObject *names[4]; /* owned: names of the three tables, and of the attribute with a scripted module's object */

static int intern_names(void)
{
    static const char *const texts[] = {"_parameters", "_buffers", "_modules", "_c"};
    for (int i = 0; i < 4; i++)
        if (!names[i] && !(names[i] = PyUnicode_InternFromString(texts[i])))
            return -1;
    return 0;
}

/* Return a new reference to the attribute; NULL if there is none, perhaps with an exception set. */
static PyObject *look_up(PyObject *attributes, PyObject *name)
{
    for (int i = 0; i < 2; i++) {
        PyObject *found = in_table(attributes, names[i], name);
        if (found || PyErr_Occurred())
            return Py_XNewRef(found);
    }
    PyObject *child = in_table(attributes, names[2], name);
    if (child && child != Py_None)
        return PyObject_GetAttr(child, names[3]);
    PyObject *found = PyErr_Occurred() ? NULL : PyDict_GetItemWithError(attributes, name);
    if (!found && !PyErr_Occurred())
        PyErr_SetObject(PyExc_KeyError, name);
    return Py_XNewRef(found);
}

/* Return a parameter, buffer, submodule or attribute by its name. */
static PyObject *slots_subscript(ModuleSlots *self, PyObject *name)
{
    PyObject *attributes = self->module ? PyObject_GenericGetDict(self->module, NULL) : NULL;
    if (!attributes) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_RuntimeError, "these slots have no module");
        return NULL;
    }
    PyObject *found = look_up(attributes, name);
    Py_DECREF(attributes);
    return found;
}

static PyObject *slots_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    static char *words[] = {"module", NULL};
    PyObject *module;
    if (intern_names() < 0 || !PyArg_ParseTupleAndKeywords(arguments, keywords, "O", words, &module))
        return NULL;
    ModuleSlots *self = (ModuleSlots *)type->tp_alloc(type, 0);
    if (self)
        self->module = Py_NewRef(module);
    return (PyObject *)self;
}

static int slots_traverse(ModuleSlots *self, visitproc visit, void *arg)
{
    Py_VISIT(self->module);
    return 0;
}

static int slots_clear(ModuleSlots *self)
{
    Py_CLEAR(self->module);
    return 0;
}

static void slots_dealloc(ModuleSlots *self)
{
    PyObject_GC_UnTrack(self);
    slots_clear(self);
    Py_TYPE(self)->tp_free(self);
}

static PyMemberDef members[] = {
    {"_module", T_OBJECT, offsetof(ModuleSlots, module), READONLY, "The module whose attributes these are."},
    {NULL, 0, 0, 0, NULL},
};

static PyMappingMethods mapping = {.mp_subscript = (binaryfunc)slots_subscript};

PyTypeObject ModuleSlotsBase_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "rushlight._C.ModuleSlotsBase",
    .tp_basicsize = sizeof(ModuleSlots),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "ModuleSlotsBase(module)\n\nReads a module's parameters, buffers, submodules' objects and attributes by name.",
    .tp_new = slots_new,
    .tp_dealloc = (destructor)slots_dealloc,
    .tp_traverse = (traverseproc)slots_traverse,
    .tp_clear = (inquiry)slots_clear,
    .tp_members = members,
    .tp_as_mapping = &mapping,
};
