/* Machine: runs MachineCode, with callbacks to Python for rare instructions. This file manages a run's frames, and the
   instructions that call functions. */
#include "machine_values.h"

#include <stddef.h>
#include <structmember.h>
#include <time.h>

enum { MAX_FRAMES = 10000 + 1 };          /* deeper recursion of scripted functions raises */
/* Back jumps between two reads of the clock. One read costs as much as one round of a short loop. */
enum { BACK_JUMPS_PER_LOOK = 64 };
/* Nanoseconds between releases of the GIL. A waiting thread requests the GIL after 5 ms without a release; more frequent
   releases would only wake it up, too late each time. */
static const int64_t SWITCH_INTERVAL = 12000000;

int64_t machine_nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Frames */

static int reserve_values(Run *run, Py_ssize_t count)
{
    if (count <= run->value_capacity)
        return 0;
    Py_ssize_t capacity = count > 2 * run->value_capacity ? count : 2 * run->value_capacity;
    PyObject **old = run->values == run->first_values ? NULL : run->values;
    PyObject **values = PyMem_Realloc(old, (size_t)capacity * sizeof *values);
    if (!values) {
        PyErr_NoMemory();
        return -1;
    }
    if (!old)
        memcpy(values, run->first_values, sizeof run->first_values);
    run->values = values;
    run->value_capacity = capacity;
    return 0;
}

static int reserve_frames(Run *run)
{
    if (run->frame_count < run->frame_capacity)
        return 0;
    Frame *old = run->frames == run->first_frames ? NULL : run->frames;
    Frame *frames = PyMem_Realloc(old, 2 * (size_t)run->frame_capacity * sizeof *frames);
    if (!frames) {
        PyErr_NoMemory();
        return -1;
    }
    if (!old)
        memcpy(frames, run->first_frames, sizeof run->first_frames);
    run->frames = frames;
    run->frame_capacity *= 2;
    return 0;
}

/* Check the numbers of arguments and results of a call; set a RuntimeError if they are wrong. */
static int check_call(const MachineCode *code, Py_ssize_t taken, Py_ssize_t given)
{
    if (code->input_count == taken && code->output_count == given)
        return 1;
    PyErr_Format(PyExc_RuntimeError, "a scripted function takes %zd values and gives %zd, but is called for %zd and %zd",
                 code->input_count, code->output_count, taken, given);
    return 0;
}

static void set_frame(Run *run, Frame *frame, MachineCode *code, Py_ssize_t base)
{
    *frame = (Frame){.code = code, .step = code->steps, .base = base, .top = base + code->input_count};
    memset(run->values + base + code->max_depth, 0, (size_t)code->register_count * sizeof *run->values);
}

/* Limit the depth of calls, and check for signals: recursion can be endless or interrupted, like loops. */
static int may_call(const Run *run)
{
    if (run->frame_count < MAX_FRAMES)
        return !run->frame_count || PyErr_CheckSignals() == 0;
    PyErr_SetString(PyExc_RecursionError, "scripted functions call one another too deeply");
    return 0;
}

int machine_push_frame(Run *run, MachineCode *code, Py_ssize_t top, Py_ssize_t taken, Py_ssize_t given)
{
    Frame *caller = run->frame_count ? &run->frames[run->frame_count - 1] : NULL;
    Py_ssize_t base = caller ? caller->base + caller->code->max_depth + caller->code->register_count : 0;
    if (!may_call(run) || !check_call(code, taken, given) || reserve_frames(run) < 0 ||
        reserve_values(run, base + code->max_depth + code->register_count) < 0) {
        Py_DECREF(code);
        return -1;
    }
    if (run->frame_count) {
        run->frames[run->frame_count - 1].top = top - taken;
        memcpy(run->values + base, run->values + top - taken, (size_t)taken * sizeof *run->values);
    }
    set_frame(run, &run->frames[run->frame_count++], code, base);
    return 0;
}

static void release_registers(Run *run, const Frame *frame)
{
    PyObject **registers = run->values + frame->base + frame->code->max_depth;
    for (Py_ssize_t i = 0; i < frame->code->register_count; i++)
        Py_CLEAR(registers[i]);
}

int machine_replace_frame(Run *run, MachineCode *code, Py_ssize_t top, Py_ssize_t taken)
{
    Frame *frame = &run->frames[run->frame_count - 1];
    if (!check_call(code, taken, frame->code->output_count) ||
        reserve_values(run, frame->base + code->max_depth + code->register_count) < 0) {
        Py_DECREF(code);
        return -1;
    }
    release_registers(run, frame);
    PyObject **base = run->values + frame->base, **arguments = run->values + top - taken;
    for (PyObject **each = base; each < arguments; each++)
        Py_CLEAR(*each);
    memmove(base, arguments, (size_t)taken * sizeof *base);
    Py_DECREF(frame->code);
    set_frame(run, frame, code, frame->base);
    return 0;
}

void machine_pop_frame(Run *run)
{
    Frame *frame = &run->frames[run->frame_count - 1];
    release_registers(run, frame);
    Py_DECREF(frame->code);
    run->frame_count--;
}

int machine_back_jump(Run *run)
{
    if (PyErr_CheckSignals() < 0)
        return -1;
    if (++run->back_jumps % BACK_JUMPS_PER_LOOK)
        return 0;
    int64_t now = machine_nanoseconds();
    if (now - run->last_release > SWITCH_INTERVAL) {
        Py_BEGIN_ALLOW_THREADS
        Py_END_ALLOW_THREADS
        run->last_release = machine_nanoseconds();
    }
    if (!run->slow || now < run->deadline)
        return 0;
    PyObject *answer = PyObject_CallNoArgs(run->slow);
    int abandon = answer ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(answer);
    run->slow = NULL;
    return abandon;
}

/* Instructions */

static MachineCode *check_code(PyObject *found)
{
    if (found && !Py_IS_TYPE(found, &MachineCode_Type)) {
        PyErr_Format(PyExc_TypeError, "the code of a function is a MachineCode, got %.200s", Py_TYPE(found)->tp_name);
        Py_CLEAR(found);
    }
    return (MachineCode *)found;
}

MachineCode *machine_callee(const Machine *machine, Callee *callee)
{
    if (callee->code && callee->generation == machine_generation)
        return (MachineCode *)Py_NewRef(callee->code);
    unsigned long generation = machine_generation;
    MachineCode *found = check_code(PyObject_CallOneArg(machine->code_of, callee->function));
    if (found && found->is_final) {
        Py_XSETREF(callee->code, (MachineCode *)Py_NewRef(found));
        callee->generation = generation;
    }
    return found;
}

MachineCode *machine_method(const Machine *machine, PyObject *object, PyObject *name)
{
    return check_code(PyObject_CallFunctionObjArgs(machine->method_code, object, name, NULL));
}

/* Whether two values are the same object or equal ints. */
static int is_same_default(PyObject *value, PyObject *other)
{
    int64_t a, b;
    return value == other || (as_int(value, &a) && as_int(other, &b) && a == b);
}

/* Return the number of trailing arguments that equal their defaults and may be dropped; -1 to pass all arguments. */
static Py_ssize_t count_omitted_defaults(const Operation *operation, PyObject **arguments, Py_ssize_t count)
{
    if (!operation->plain)
        return -1;
    Py_ssize_t defaults = PyTuple_GET_SIZE(operation->defaults);
    for (Py_ssize_t i = 0; i < defaults; i++)
        if (!is_same_default(arguments[count - defaults + i], PyTuple_GET_ITEM(operation->defaults, i)))
            return -1;
    return defaults;
}

/* Replace an instruction's arguments on the stack by its results. Steal the sequence if there are several. */
static int push_results(const Step *step, PyObject ***top, PyObject *results)
{
    if ((!PyTuple_Check(results) && !PyList_Check(results)) || PySequence_Fast_GET_SIZE(results) != step->given) {
        PyErr_Format(PyExc_RuntimeError, "an operator should give %d results, but gave %.200R", (int)step->given, results);
        Py_DECREF(results);
        return -1;
    }
    for (int32_t i = 0; i < step->taken; i++)
        Py_XDECREF(*--*top);
    for (int32_t i = 0; i < step->given; i++)
        *(*top)++ = Py_NewRef(PySequence_Fast_GET_ITEM(results, i));
    Py_DECREF(results);
    return 0;
}

int machine_call_operator(const Operation *operation, const Step *step, PyObject ***top)
{
    PyObject **arguments = *top - step->taken;
    Py_ssize_t left_out = count_omitted_defaults(operation, arguments, step->taken);
    PyObject *result = left_out < 0 ? PyObject_Vectorcall(operation->function, arguments, step->taken, NULL)
                                    : PyObject_Vectorcall(operation->plain, arguments, step->taken - left_out, NULL);
    if (!result)
        return -1;
    if (step->given > 1)
        return push_results(step, top, result);
    for (int32_t i = 0; i < step->taken; i++)
        Py_XDECREF(*--*top);
    if (step->given)
        *(*top)++ = result;
    else
        Py_DECREF(result);
    return 0;
}

int machine_rarely(Run *run, const Frame *frame, const Step *step, PyObject ***top)
{
    PyObject *owner = frame->code->owner ? frame->code->owner : Py_None;
    PyObject *position = PyLong_FromSsize_t(step - frame->code->steps), *values = PyList_New(step->taken);
    if (!run->entered)
        run->entered = PyList_New(0);
    for (int32_t i = 0; values && i < step->taken; i++)
        PyList_SET_ITEM(values, i, Py_NewRef((*top)[i - step->taken]));
    PyObject *results = NULL;
    if (position && values && run->entered)
        results = PyObject_CallFunctionObjArgs(run->machine->rarely, owner, position, values, run->entered, NULL);
    Py_XDECREF(position);
    Py_XDECREF(values);
    return results ? push_results(step, top, results) : -1;
}

/* Return a new reference to an object's attribute mapping. */
static PyObject *slots_of(const Machine *machine, PyObject *object)
{
    if (PyObject_TypeCheck(object, machine->object_type)) {
        PyObject *slots = *(PyObject **)((char *)object + machine->slots_offset);
        if (slots)
            return Py_NewRef(slots);
    }
    return PyObject_GetAttrString(object, "slots");
}

PyObject *machine_get_attribute(const Machine *machine, PyObject *object, PyObject *name)
{
    PyObject *slots = slots_of(machine, object);
    if (!slots)
        return NULL;
    PyObject *value = PyDict_CheckExact(slots) ? Py_XNewRef(PyDict_GetItemWithError(slots, name)) : NULL;
    if (!value && !PyErr_Occurred())
        value = PyObject_GetItem(slots, name);
    Py_DECREF(slots);
    return value;
}

int machine_set_attribute(const Machine *machine, PyObject *object, PyObject *name, PyObject *value)
{
    PyObject *slots = slots_of(machine, object);
    if (!slots)
        return -1;
    int status = PyObject_SetItem(slots, name, value);
    Py_DECREF(slots);
    return status;
}

PyObject *machine_make_tuple(PyTypeObject *type, PyObject **items, Py_ssize_t count)
{
    PyObject *tuple = type == &PyTuple_Type ? PyTuple_New(count) : type->tp_alloc(type, count);
    for (Py_ssize_t i = 0; tuple && i < count; i++)
        PyTuple_SET_ITEM(tuple, i, items[i]);
    return tuple;
}

PyObject *machine_make_dict(PyObject **items, Py_ssize_t count)
{
    PyObject *dict = PyDict_New();
    for (Py_ssize_t i = 0; dict && i < count; i += 2)
        if (PyDict_SetItem(dict, items[i], items[i + 1]) < 0)
            Py_CLEAR(dict);
    return dict;
}

int machine_unpack(PyObject *value, Py_ssize_t count, PyObject **results)
{
    PyObject *items = PyTuple_Check(value) ? Py_NewRef(value) : PySequence_Fast(value, "a list or tuple is unpacked");
    if (!items)
        return -1;
    Py_ssize_t found = PySequence_Fast_GET_SIZE(items);
    if (found != count)
        PyErr_Format(PyExc_RuntimeError, "Expected %zd elements in a list but found %zd", count, found);
    for (Py_ssize_t i = 0; found == count && i < count; i++)
        results[i] = Py_NewRef(PySequence_Fast_GET_ITEM(items, i));
    Py_DECREF(items);
    return found == count ? 0 : -1;
}

/* Run */

static void begin_run(Run *run, Machine *machine)
{
    run->machine = machine;
    run->values = run->first_values;
    run->value_capacity = FIRST_VALUES;
    run->frames = run->first_frames;
    run->frame_count = 0;
    run->frame_capacity = FIRST_FRAMES;
    run->entered = NULL;
    run->slow = NULL;
    run->back_jumps = 0;
    run->last_release = 0;
}

static void end_run(Run *run)
{
    while (run->frame_count) {
        const Frame *frame = &run->frames[run->frame_count - 1];
        for (PyObject **each = run->values + frame->base; each < run->values + frame->top; each++)
            Py_CLEAR(*each);
        machine_pop_frame(run);
    }
    Py_CLEAR(run->entered);
    if (run->values != run->first_values)
        PyMem_Free(run->values);
    if (run->frames != run->first_frames)
        PyMem_Free(run->frames);
}

/* Return the frames' positions as a list of (Code, position), outermost first. */
static PyObject *frame_positions(const Run *run)
{
    PyObject *found = PyList_New(run->frame_count);
    for (Py_ssize_t i = 0; found && i < run->frame_count; i++) {
        const Frame *frame = &run->frames[i];
        PyObject *owner = frame->code->owner ? frame->code->owner : Py_None;
        PyObject *place = Py_BuildValue("On", owner, frame->step - frame->code->steps);
        if (!place)
            Py_CLEAR(found);
        else
            PyList_SET_ITEM(found, i, place);
    }
    return found;
}

/* Pass the current exception to Python, which raises the final one. */
static PyObject *fail(Run *run)
{
    PyObject *type, *error, *traceback;
    PyErr_Fetch(&type, &error, &traceback);
    PyErr_NormalizeException(&type, &error, &traceback);
    if (traceback)
        PyException_SetTraceback(error, traceback);
    PyObject *frames = frame_positions(run), *entered = run->entered ? Py_NewRef(run->entered) : PyList_New(0);
    PyObject *failed = Py_NewRef(run->machine->failed), *result = NULL;
    end_run(run);
    if (frames && entered)
        result = PyObject_CallFunctionObjArgs(failed, error, frames, entered, NULL);
    if (result)
        PyErr_SetString(PyExc_SystemError, "the machine's callback for errors raised none");
    Py_XDECREF(result);
    Py_DECREF(failed);
    Py_XDECREF(frames);
    Py_XDECREF(entered);
    Py_XDECREF(type);
    Py_XDECREF(error);
    Py_XDECREF(traceback);
    return NULL;
}

static PyObject *take_results(Run *run, Py_ssize_t count)
{
    PyObject *results = PyList_New(count);
    for (Py_ssize_t i = 0; i < count; i++) {
        if (results)
            PyList_SET_ITEM(results, i, run->values[i]);
        else
            Py_DECREF(run->values[i]);
    }
    end_run(run);
    return results;
}

static PyObject *run_code(Machine *machine, MachineCode *code, PyObject *arguments, PyObject *slow, double seconds)
{
    Run run;
    begin_run(&run, machine);
    Py_ssize_t count = PySequence_Fast_GET_SIZE(arguments), outputs = code->output_count;
    if (reserve_values(&run, count) < 0 || machine_push_frame(&run, (MachineCode *)Py_NewRef(code), count, count, outputs) < 0) {
        end_run(&run);
        return NULL;
    }
    for (Py_ssize_t i = 0; i < count; i++)
        run.values[i] = Py_NewRef(PySequence_Fast_GET_ITEM(arguments, i));
    if (slow) {
        run.slow = slow;
        run.deadline = machine_nanoseconds() + (int64_t)(seconds * 1e9);
    }
    switch (machine_loop(&run)) {
    case RUN_DONE: return take_results(&run, outputs);
    case RUN_ABANDONED: end_run(&run); Py_RETURN_NONE;
    default: return fail(&run);
    }
}

static PyObject *machine_run(Machine *self, PyObject *const *arguments, Py_ssize_t count)
{
    if (count != 2 && count != 4)
        return PyErr_Format(PyExc_TypeError, "run() takes code and arguments, and also a callback and seconds, or neither");
    if (!Py_IS_TYPE(arguments[0], &MachineCode_Type) || (!PyList_Check(arguments[1]) && !PyTuple_Check(arguments[1])))
        return PyErr_Format(PyExc_TypeError, "run() takes a MachineCode and a list or tuple, got %.100s and %.100s",
                            Py_TYPE(arguments[0])->tp_name, Py_TYPE(arguments[1])->tp_name);
    double seconds = count == 4 ? PyFloat_AsDouble(arguments[3]) : 0;
    if (seconds == -1 && PyErr_Occurred())
        return NULL;
    PyObject *slow = count == 4 && seconds >= 0 && seconds < 1e9 ? arguments[2] : NULL;
    if (Py_EnterRecursiveCall(" in scripted code"))
        return NULL;
    PyObject *result = run_code(self, (MachineCode *)arguments[0], arguments[1], slow, seconds);
    Py_LeaveRecursiveCall();
    return result;
}

/* The type */

static int find_slots(Machine *self)
{
    PyObject *member = PyObject_GetAttrString((PyObject *)self->object_type, "slots");
    if (!member)
        return -1;
    int found = Py_IS_TYPE(member, &PyMemberDescr_Type);
    if (found)
        self->slots_offset = ((PyMemberDescrObject *)member)->d_member->offset;
    else
        PyErr_SetString(PyExc_TypeError, "Machine: the class of objects needs `slots` among its __slots__");
    Py_DECREF(member);
    return found ? 0 : -1;
}

static PyObject *machine_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    static char *words[] = {"code_of", "method_code", "rarely", "failed", "object_type", NULL};
    PyObject *code_of, *method_code, *rarely, *failed, *object_type;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "OOOOO!", words, &code_of, &method_code, &rarely, &failed, &PyType_Type,
                                     &object_type))
        return NULL;
    Machine *self = (Machine *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    self->code_of = Py_NewRef(code_of);
    self->method_code = Py_NewRef(method_code);
    self->rarely = Py_NewRef(rarely);
    self->failed = Py_NewRef(failed);
    self->object_type = (PyTypeObject *)Py_NewRef(object_type);
    if (find_slots(self) < 0)
        Py_CLEAR(self);
    return (PyObject *)self;
}

static int machine_traverse(Machine *self, visitproc visit, void *arg)
{
    Py_VISIT(self->code_of);
    Py_VISIT(self->method_code);
    Py_VISIT(self->rarely);
    Py_VISIT(self->failed);
    Py_VISIT(self->object_type);
    return 0;
}

static void machine_dealloc(Machine *self)
{
    PyObject_GC_UnTrack(self);
    Py_CLEAR(self->code_of);
    Py_CLEAR(self->method_code);
    Py_CLEAR(self->rarely);
    Py_CLEAR(self->failed);
    Py_CLEAR(self->object_type);
    Py_TYPE(self)->tp_free(self);
}

static PyMethodDef methods[] = {
    {"run", (PyCFunction)(void (*)(void))machine_run, METH_FASTCALL,
     "run(code, arguments, slow=None, seconds=0.0, /) -> list | None\n\nThe results. Where a loop takes more than these seconds, "
     "slow() is called once; if it gives True, the run is abandoned and the result is None."},
    {NULL, NULL, 0, NULL},
};

PyTypeObject Machine_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "rushlight._C.Machine",
    .tp_basicsize = sizeof(Machine),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "Machine(code_of, method_code, rarely, failed, object_type)\n\nRuns MachineCode; the callbacks do what is rare.",
    .tp_new = machine_new,
    .tp_dealloc = (destructor)machine_dealloc,
    .tp_traverse = (traverseproc)machine_traverse,
    .tp_methods = methods,
};
