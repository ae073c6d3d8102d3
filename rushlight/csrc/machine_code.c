/* MachineCode: the instructions of a TorchScript function in the form that the loop runs. It is made and verified once;
   afterwards only the cached code of its callees changes. */
#include "machine.h"

#include <stddef.h>
#include <string.h>
#include <structmember.h>

unsigned long machine_generation;

const FastOperator *machine_fast_operator(const char *name)
{
    static const FastOperator *const tables[] = {machine_number_operators, machine_math_operators, machine_string_operators,
                                                 machine_list_operators,   machine_dict_operators, machine_value_operators,
                                                 machine_tensor_operators};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        for (const FastOperator *each = tables[i]; each->name; each++)
            if (strcmp(each->name, name) == 0)
                return each;
    return NULL;
}

static int set_steps(MachineCode *self, PyObject *steps)
{
    Py_ssize_t count = PyTuple_GET_SIZE(steps);
    self->steps = PyMem_Calloc((size_t)count + 1, sizeof *self->steps);
    if (!self->steps) {
        PyErr_NoMemory();
        return -1;
    }
    self->step_count = count;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *numbers = PyTuple_GET_ITEM(steps, i);
        Step *step = &self->steps[i];
        if (!PyTuple_Check(numbers)) {
            PyErr_Format(PyExc_TypeError, "MachineCode: an instruction is a tuple of four ints, got %R", numbers);
            return -1;
        }
        if (!PyArg_ParseTuple(numbers, "iiii", &step->operation, &step->x, &step->taken, &step->given))
            return -1;
    }
    return 0;
}

/* Read an operator from (name, function, None or (plain function, defaults)). */
static int set_operation(Operation *operation, PyObject *given)
{
    const char *name;
    PyObject *function, *plain, *callable, *defaults;
    if (!PyTuple_Check(given)) {
        PyErr_Format(PyExc_TypeError, "MachineCode: an operator is a tuple, got %R", given);
        return -1;
    }
    if (!PyArg_ParseTuple(given, "sOO", &name, &function, &plain))
        return -1;
    operation->function = Py_NewRef(function);
    const FastOperator *fast = machine_fast_operator(name);
    operation->fast = fast ? fast->function : NULL;
    if (plain == Py_None)
        return 0;
    if (!PyTuple_Check(plain) || !PyArg_ParseTuple(plain, "OO!", &callable, &PyTuple_Type, &defaults)) {
        if (!PyErr_Occurred())
            PyErr_Format(PyExc_TypeError, "MachineCode: expected (function, defaults) or None, got %R", plain);
        return -1;
    }
    operation->plain = Py_NewRef(callable);
    operation->defaults = Py_NewRef(defaults);
    return 0;
}

static int set_operations(MachineCode *self, PyObject *operators)
{
    Py_ssize_t count = PyTuple_GET_SIZE(operators);
    self->operations = PyMem_Calloc((size_t)count + 1, sizeof *self->operations);
    if (!self->operations) {
        PyErr_NoMemory();
        return -1;
    }
    self->operation_count = count;
    for (Py_ssize_t i = 0; i < count; i++)
        if (set_operation(&self->operations[i], PyTuple_GET_ITEM(operators, i)) < 0)
            return -1;
    return 0;
}

static int set_callees(MachineCode *self, PyObject *functions)
{
    Py_ssize_t count = PyTuple_GET_SIZE(functions);
    self->callees = PyMem_Calloc((size_t)count + 1, sizeof *self->callees);
    if (!self->callees) {
        PyErr_NoMemory();
        return -1;
    }
    self->callee_count = count;
    for (Py_ssize_t i = 0; i < count; i++)
        self->callees[i].function = Py_NewRef(PyTuple_GET_ITEM(functions, i));
    return 0;
}

/* Drop the fast path of every node whose counts of arguments and results differ from those of the fast path. */
static void drop_unfit_fast_paths(MachineCode *self, PyObject *operators)
{
    for (Py_ssize_t i = 0; i < self->step_count; i++) {
        const Step *step = &self->steps[i];
        if (step->operation != MACHINE_OPN)
            continue;
        Operation *operation = &self->operations[step->x];
        PyObject *name = PyTuple_GET_ITEM(PyTuple_GET_ITEM(operators, step->x), 0);
        const FastOperator *fast = operation->fast ? machine_fast_operator(PyUnicode_AsUTF8(name)) : NULL;
        if (fast && ((fast->arity >= 0 && fast->arity != step->taken) || fast->results != step->given))
            operation->fast = NULL;
        if (operation->plain && PyTuple_GET_SIZE(operation->defaults) > step->taken)
            Py_CLEAR(operation->plain);
    }
}

/* Fuse STORE x with a following MOVE x: most results are loaded right after they are stored. The MOVE stays in place as a jump
   target. */
static void fuse(MachineCode *self)
{
    for (Py_ssize_t i = 0; i + 1 < self->step_count; i++)
        if (self->steps[i].operation == MACHINE_STORE && self->steps[i + 1].operation == MACHINE_MOVE &&
            self->steps[i].x == self->steps[i + 1].x)
            self->steps[i].operation = MACHINE_KEEP;
}

static int names_are_strings(PyObject *names)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); i++)
        if (!PyUnicode_CheckExact(PyTuple_GET_ITEM(names, i))) {
            PyErr_Format(PyExc_TypeError, "MachineCode: a name is a str, got %R", PyTuple_GET_ITEM(names, i));
            return 0;
        }
    return 1;
}

static PyObject *code_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    static char *words[] = {"owner",       "steps",        "constants",      "operators", "functions", "names", "types",
                            "input_count", "output_count", "register_count", "is_final",  NULL};
    PyObject *owner, *steps, *constants, *operators, *functions, *names, *types;
    Py_ssize_t inputs, outputs, registers;
    int is_final;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "OO!O!O!O!O!O!nnnp", words, &owner, &PyTuple_Type, &steps, &PyTuple_Type,
                                     &constants, &PyTuple_Type, &operators, &PyTuple_Type, &functions, &PyTuple_Type, &names,
                                     &PyTuple_Type, &types, &inputs, &outputs, &registers, &is_final))
        return NULL;
    MachineCode *self = (MachineCode *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    self->owner = Py_NewRef(owner);
    self->constants = Py_NewRef(constants);
    self->names = Py_NewRef(names);
    self->types = Py_NewRef(types);
    self->input_count = inputs;
    self->output_count = outputs;
    self->register_count = registers;
    self->is_final = (char)is_final;
    if (!names_are_strings(names) || set_steps(self, steps) < 0 || set_operations(self, operators) < 0 ||
        set_callees(self, functions) < 0 || machine_verify(self) < 0) {
        Py_DECREF(self);
        return NULL;
    }
    drop_unfit_fast_paths(self, operators);
    fuse(self);
    return (PyObject *)self;
}

static int code_traverse(MachineCode *self, visitproc visit, void *arg)
{
    Py_VISIT(self->owner);
    Py_VISIT(self->constants);
    Py_VISIT(self->names);
    Py_VISIT(self->types);
    for (Py_ssize_t i = 0; i < self->operation_count; i++) {
        Py_VISIT(self->operations[i].function);
        Py_VISIT(self->operations[i].plain);
        Py_VISIT(self->operations[i].defaults);
    }
    for (Py_ssize_t i = 0; i < self->callee_count; i++) {
        Py_VISIT(self->callees[i].function);
        Py_VISIT(self->callees[i].code);
    }
    return 0;
}

/* Break reference cycles between functions that call one another. All other fields stay, so that code that is running remains
   complete. */
static int code_clear(MachineCode *self)
{
    for (Py_ssize_t i = 0; i < self->callee_count; i++)
        Py_CLEAR(self->callees[i].code);
    Py_CLEAR(self->owner);
    return 0;
}

static void code_dealloc(MachineCode *self)
{
    PyObject_GC_UnTrack(self);
    code_clear(self);
    Py_CLEAR(self->constants);
    Py_CLEAR(self->names);
    Py_CLEAR(self->types);
    for (Py_ssize_t i = 0; i < self->operation_count; i++) {
        Py_CLEAR(self->operations[i].function);
        Py_CLEAR(self->operations[i].plain);
        Py_CLEAR(self->operations[i].defaults);
    }
    for (Py_ssize_t i = 0; i < self->callee_count; i++)
        Py_CLEAR(self->callees[i].function);
    PyMem_Free(self->steps);
    PyMem_Free(self->operations);
    PyMem_Free(self->callees);
    Py_TYPE(self)->tp_free(self);
}

static PyMemberDef code_members[] = {
    {"owner", T_OBJECT, offsetof(MachineCode, owner), READONLY, "The Code that it was made of."},
    {"max_depth", T_PYSSIZET, offsetof(MachineCode, max_depth), READONLY, "How many values its stack holds at most."},
    {NULL, 0, 0, 0, NULL},
};

PyTypeObject MachineCode_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "rushlight._C.MachineCode",
    .tp_basicsize = sizeof(MachineCode),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "MachineCode(owner, steps, constants, operators, functions, names, types, input_count, output_count, register_count, "
              "is_final)\n\nInstructions of the TorchScript machine: tuples (operation, x, taken, given). ValueError for code that "
              "could not be run safely.",
    .tp_new = code_new,
    .tp_dealloc = (destructor)code_dealloc,
    .tp_traverse = (traverseproc)code_traverse,
    .tp_clear = (inquiry)code_clear,
    .tp_members = code_members,
};

static PyObject *operations(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    static const char *const names[] = {
#define NAME_OF(name) #name,
        MACHINE_OPERATIONS(NAME_OF)};
    PyObject *found = PyDict_New();
    for (int i = 0; found && i < MACHINE_OPERATION_COUNT; i++) {
        PyObject *number = PyLong_FromLong(i);
        if (!number || PyDict_SetItemString(found, names[i], number) < 0)
            Py_CLEAR(found);
        Py_XDECREF(number);
    }
    return found;
}

static PyObject *has_fast_path(PyObject *Py_UNUSED(module), PyObject *name)
{
    const char *text = PyUnicode_AsUTF8(name);
    return text ? PyBool_FromLong(machine_fast_operator(text) != NULL) : NULL;
}

static PyObject *forget_callees(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    machine_generation++;
    Py_RETURN_NONE;
}

PyMethodDef machine_methods[] = {
    {"machine_operations", operations, METH_NOARGS, "machine_operations() -> dict[str, int]\n\nThe numbers of the machine's operations."},
    {"machine_has_fast_path", has_fast_path, METH_O,
     "machine_has_fast_path(name: str, /) -> bool\n\nWhether an operator such as 'aten::add.int' runs in C for usual arguments."},
    {"machine_forget_callees", forget_callees, METH_NOARGS,
     "machine_forget_callees() -> None\n\nA function got another graph: calls look for the code of their callees anew."},
    {"machine_bind_exactly", (PyCFunction)(void (*)(void))machine_bind_exactly, METH_FASTCALL,
     "machine_bind_exactly(forms: tuple, values: tuple, /) -> list | None\n\nThe values as a function's arguments, lists and dicts "
     "copied; None where one is not just of its form."},
    {NULL, NULL, 0, NULL},
};
