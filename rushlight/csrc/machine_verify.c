/* The verifier of machine code. It checks that every operand is in range, and that each instruction has one stack depth, never
   negative, whichever jump leads to it. Code that passes cannot access memory outside its own, whatever the values are. */
#include "machine.h"

enum { MAX_COUNT = 1 << 20 }; /* maximum number of registers, and of values on a frame's stack; sums of these cannot overflow */

/* The values that an instruction needs on the stack, and its change of depth when it falls through and when it jumps. */
typedef struct {
    int64_t needed, change, change_of_jump;
    int falls_through, jumps;
} Effect;

/* Return the effect of an instruction on the stack. */
static Effect effect_of(const MachineCode *code, const Step *step)
{
    int64_t taken = step->taken, given = step->given;
    switch (step->operation) {
    case MACHINE_LOAD:
    case MACHINE_MOVE:
    case MACHINE_LOADC: return (Effect){0, 1, 0, 1, 0};
    case MACHINE_STORE:
    case MACHINE_DROP: return (Effect){1, -1, 0, 1, 0};
    case MACHINE_JF: return (Effect){1, -1, -1, 1, 1};
    case MACHINE_JMP: return (Effect){0, 0, 0, 0, 1};
    case MACHINE_LOOP: return (Effect){taken, 0, -3, 1, 1};
    case MACHINE_RET: return (Effect){code->output_count, 0, 0, 0, 0};
    case MACHINE_TAIL_CALL: return (Effect){taken, 0, 0, 0, 0};
    default: return (Effect){taken, given - taken, 0, 1, 0};
    }
}

static int is_index(int64_t number, Py_ssize_t count) { return number >= 0 && number < count; }

static int is_class_tuple(PyObject *value)
{
    int sound = PyTuple_Check(value);
    for (Py_ssize_t i = 0; sound && i < PyTuple_GET_SIZE(value); i++)
        sound = PyType_Check(PyTuple_GET_ITEM(value, i));
    return sound;
}

/* Whether a value is a subclass of tuple whose instances have the layout of tuples. */
static int is_tuple_class(PyObject *value)
{
    return PyType_Check(value) && PyType_IsSubtype((PyTypeObject *)value, &PyTuple_Type) &&
           ((PyTypeObject *)value)->tp_itemsize == PyTuple_Type.tp_itemsize;
}

static PyObject *type_at(const MachineCode *code, int32_t x)
{
    return is_index(x, PyTuple_GET_SIZE(code->types)) ? PyTuple_GET_ITEM(code->types, x) : NULL;
}

/* Whether an operation takes and gives these numbers of values; -1 matches any number. */
static int fits(const Step *step, int64_t taken, int64_t given)
{
    return (taken < 0 || step->taken == taken) && (given < 0 || step->given == given);
}

/* Whether an instruction's operands are in range and of the right kind. */
static int operands_are_sound(const MachineCode *code, const Step *step)
{
    PyObject *type;
    switch (step->operation) {
    case MACHINE_LOAD:
    case MACHINE_MOVE:
    case MACHINE_STORE: return is_index(step->x, code->register_count);
    case MACHINE_LOADC: return is_index(step->x, PyTuple_GET_SIZE(code->constants));
    case MACHINE_OPN: return is_index(step->x, code->operation_count);
    case MACHINE_CALL:
    case MACHINE_TAIL_CALL: return is_index(step->x, code->callee_count);
    case MACHINE_INTERFACE_CALL: return step->taken > 0 && is_index(step->x, PyTuple_GET_SIZE(code->names));
    case MACHINE_GET_ATTR: return fits(step, 1, 1) && is_index(step->x, PyTuple_GET_SIZE(code->names));
    case MACHINE_SET_ATTR: return fits(step, 2, 0) && is_index(step->x, PyTuple_GET_SIZE(code->names));
    case MACHINE_LIST_CONSTRUCT:
    case MACHINE_TUPLE_CONSTRUCT: return fits(step, -1, 1);
    case MACHINE_DICT_CONSTRUCT: return step->taken % 2 == 0 && fits(step, -1, 1);
    case MACHINE_LIST_UNPACK: return fits(step, 1, -1);
    case MACHINE_NAMED_TUPLE_CONSTRUCT: return fits(step, -1, 1) && (type = type_at(code, step->x)) && is_tuple_class(type);
    case MACHINE_ISINSTANCE: return fits(step, 1, 1) && (type = type_at(code, step->x)) && is_class_tuple(type);
    case MACHINE_JF: return step->x > 0; /* only JMP may jump back, because it lets signals and other threads run */
    case MACHINE_LOOP: return step->x > 0 && step->taken >= 3;
    default: return 1;
    }
}

static int refuse(const MachineCode *code, Py_ssize_t position, const char *reason)
{
    const Step *step = &code->steps[position];
    PyErr_Format(PyExc_ValueError, "machine code is wrong at %zd (operation %d, x %d, takes %d, gives %d): %s", position,
                 (int)step->operation, (int)step->x, (int)step->taken, (int)step->given, reason);
    return -1;
}

static int check_operands(const MachineCode *code)
{
    for (Py_ssize_t i = 0; i < code->step_count; i++) {
        const Step *step = &code->steps[i];
        if (!is_index(step->operation, MACHINE_OPERATION_COUNT))
            return refuse(code, i, "there is no such operation");
        if (step->taken < 0 || step->given < 0 || step->taken > MAX_COUNT || step->given > MAX_COUNT)
            return refuse(code, i, "it takes or gives too many values");
        if (!operands_are_sound(code, step))
            return refuse(code, i, "an operand is out of range");
    }
    return 0;
}

typedef struct {
    MachineCode *code;
    int64_t *depths;     /* stack depth before each instruction; -1 if not known yet */
    Py_ssize_t *pending; /* instructions whose depth is known and whose successors' depths are not */
    Py_ssize_t pending_count;
} Search;

/* Record that the stack has this depth before the instruction at `to`; fail if another depth was recorded. */
static int record_depth(Search *search, Py_ssize_t from, int64_t to, int64_t depth)
{
    if (!is_index(to, search->code->step_count))
        return refuse(search->code, from, "the code ends or jumps elsewhere behind it");
    if (depth > MAX_COUNT)
        return refuse(search->code, from, "the stack is too deep");
    if (search->depths[to] >= 0)
        return search->depths[to] == depth ? 0 : refuse(search->code, to, "the stack has several depths");
    search->depths[to] = depth;
    search->pending[search->pending_count++] = to;
    if (depth > search->code->max_depth)
        search->code->max_depth = (Py_ssize_t)depth;
    return 0;
}

/* Check that an instruction has enough values on the stack, and record the depth at its successors. */
static int follow_step(Search *search, Py_ssize_t position)
{
    const Step *step = &search->code->steps[position];
    Effect effect = effect_of(search->code, step);
    int64_t depth = search->depths[position];
    if (depth < effect.needed)
        return refuse(search->code, position, "the stack has too few values");
    if (step->operation == MACHINE_RET && depth != search->code->output_count)
        return refuse(search->code, position, "the stack does not hold just the results");
    if (effect.falls_through && record_depth(search, position, position + 1, depth + effect.change) < 0)
        return -1;
    if (effect.jumps && record_depth(search, position, (int64_t)position + step->x, depth + effect.change_of_jump) < 0)
        return -1;
    return 0;
}

static int search_depths(Search *search)
{
    if (record_depth(search, 0, 0, search->code->input_count) < 0)
        return -1;
    while (search->pending_count)
        if (follow_step(search, search->pending[--search->pending_count]) < 0)
            return -1;
    return 0;
}

int machine_verify(MachineCode *code)
{
    if (!code->step_count || !is_index(code->input_count, MAX_COUNT) || !is_index(code->output_count, MAX_COUNT) ||
        !is_index(code->register_count, MAX_COUNT)) {
        PyErr_SetString(PyExc_ValueError, "machine code is empty, or has too many inputs, outputs or registers");
        return -1;
    }
    if (check_operands(code) < 0)
        return -1;
    Search search = {.code = code};
    search.depths = PyMem_Calloc((size_t)code->step_count, sizeof *search.depths);
    search.pending = PyMem_Calloc((size_t)code->step_count, sizeof *search.pending);
    int status = -1;
    if (!search.depths || !search.pending) {
        PyErr_NoMemory();
    } else {
        for (Py_ssize_t i = 0; i < code->step_count; i++)
            search.depths[i] = -1;
        status = search_depths(&search);
    }
    PyMem_Free(search.depths);
    PyMem_Free(search.pending);
    return status;
}
