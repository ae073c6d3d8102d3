/* The loop that runs MachineCode. Calls push frames onto the run's own stack, so deep recursion of scripted code does not use
   the C stack. The verifier has ensured that operands are in range and that the stack is large enough. */
#include "machine_values.h"

static inline PyObject *or_none(PyObject *value) { return value ? value : Py_None; }

/* Return 1, 0, or -1 with an exception set. */
static inline int is_true(PyObject *value)
{
    return value == Py_True ? 1 : value == Py_False ? 0 : PyObject_IsTrue(value);
}

/* Start the next round of a loop, if there is one. The stack holds the count, its limit, the condition and the carried values;
   the next round needs the next count, the limit, this round's count and the carried values. */
static int next_round(PyObject **values)
{
    int64_t count, limit;
    if (!as_int(values[0], &count) || !as_int(values[1], &limit)) {
        PyErr_Format(PyExc_TypeError, "a loop counts by ints, got %.100s and %.100s", Py_TYPE(values[0])->tp_name,
                     Py_TYPE(values[1])->tp_name);
        return -1;
    }
    int more = count < limit ? is_true(values[2]) : 0;
    if (more <= 0)
        return more;
    PyObject *next = PyLong_FromLongLong(count + 1);
    if (!next)
        return -1;
    Py_SETREF(values[2], values[0]);
    values[0] = next;
    return 1;
}

/* Move the carried values down, over the loop's count, limit and condition. */
static PyObject **end_loop(PyObject **values, PyObject **top)
{
    for (int i = 0; i < 3; i++)
        Py_DECREF(values[i]);
    for (PyObject **each = values + 3; each < top; each++)
        each[-3] = each[0];
    return top - 3;
}

static PyObject *make_list(PyObject **items, Py_ssize_t count)
{
    PyObject *list = PyList_New(count);
    for (Py_ssize_t i = 0; list && i < count; i++)
        PyList_SET_ITEM(list, i, items[i]);
    return list;
}

static PyObject *is_instance(PyObject *value, PyObject *types)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(types); i++)
        if (Py_TYPE(value) == (PyTypeObject *)PyTuple_GET_ITEM(types, i))
            Py_RETURN_TRUE;
    Py_RETURN_FALSE;
}

static inline PyObject **release(PyObject **from, PyObject **top)
{
    while (top > from) {
        top--;
        Py_XDECREF(*top);
    }
    return top;
}

/* Reload the local variables from the innermost frame, after the frame or the array of values changed. */
#define LOAD_FRAME()                                                                                                     \
    (frame = &run->frames[run->frame_count - 1], code = frame->code, registers = run->values + frame->base + code->max_depth)
#define NEXT() { step++; continue; }
#define PUSH_RESULT(expression)                                                                                          \
    {                                                                                                                    \
        PyObject *made = (expression);                                                                                   \
        if (!made)                                                                                                       \
            goto failed;                                                                                                 \
        top = release(top - step->taken, top);                                                                           \
        *top++ = made;                                                                                                   \
        NEXT();                                                                                                          \
    }
#define PUSH_CONTAINER(expression) /* `expression` steals its items */                                                   \
    {                                                                                                                    \
        PyObject *made = (expression);                                                                                   \
        if (!made)                                                                                                       \
            goto failed;                                                                                                 \
        top -= step->taken;                                                                                              \
        *top++ = made;                                                                                                   \
        NEXT();                                                                                                          \
    }

RunStatus machine_loop(Run *run)
{
    Frame *frame;
    MachineCode *code, *called;
    PyObject **registers;
    LOAD_FRAME();
    const Step *step = code->steps;
    PyObject **top = run->values + frame->base + code->input_count;
    for (;;) {
        switch (step->operation) {
        case MACHINE_LOAD:
            *top++ = Py_NewRef(or_none(registers[step->x]));
            NEXT();
        case MACHINE_MOVE: {
            PyObject *value = registers[step->x];
            registers[step->x] = NULL;
            *top++ = value ? value : Py_NewRef(Py_None);
            NEXT();
        }
        case MACHINE_LOADC:
            *top++ = Py_NewRef(PyTuple_GET_ITEM(code->constants, step->x));
            NEXT();
        case MACHINE_STORE: {
            PyObject *before = registers[step->x];
            registers[step->x] = *--top;
            Py_XDECREF(before);
            NEXT();
        }
        case MACHINE_KEEP: {
            PyObject *before = registers[step->x];
            registers[step->x] = NULL;
            Py_XDECREF(before);
            step += 2;
            continue;
        }
        case MACHINE_DROP:
            top--;
            Py_DECREF(*top);
            NEXT();
        case MACHINE_OPN: {
            const Operation *operation = &code->operations[step->x];
            PyObject **arguments = top - step->taken, *result = NULL;
            FastStatus status = operation->fast ? operation->fast(arguments, step->taken, &result) : FAST_UNUSUAL;
            if (status == FAST_DONE) {
                top = release(arguments, top);
                if (step->given)
                    *top++ = result;
                NEXT();
            }
            if (status == FAST_FAILED || machine_call_operator(operation, step, &top) < 0)
                goto failed;
            NEXT();
        }
        case MACHINE_JF: {
            int truth = is_true(top[-1]);
            if (truth < 0)
                goto failed;
            top--;
            Py_DECREF(*top);
            step += truth ? 1 : step->x;
            continue;
        }
        case MACHINE_JMP:
            if (step->x <= 0) {
                int turn = machine_back_jump(run);
                if (turn < 0)
                    goto failed;
                if (turn > 0)
                    goto abandoned;
            }
            step += step->x;
            continue;
        case MACHINE_LOOP: {
            PyObject **values = top - step->taken;
            int more = next_round(values);
            if (more < 0)
                goto failed;
            if (more)
                NEXT();
            top = end_loop(values, top);
            step += step->x;
            continue;
        }
        case MACHINE_CALL:
            called = machine_callee(run->machine, &code->callees[step->x]);
            goto call;
        case MACHINE_INTERFACE_CALL:
            called = machine_method(run->machine, top[-step->taken], PyTuple_GET_ITEM(code->names, step->x));
        call:
            if (!called)
                goto failed;
            frame->step = step;
            if (machine_push_frame(run, called, top - run->values, step->taken, step->given) < 0)
                goto failed;
            LOAD_FRAME();
            top = run->values + frame->base + code->input_count;
            step = code->steps;
            continue;
        case MACHINE_TAIL_CALL:
            called = machine_callee(run->machine, &code->callees[step->x]);
            frame->step = step;
            if (!called || machine_replace_frame(run, called, top - run->values, step->taken) < 0)
                goto failed;
            LOAD_FRAME();
            top = run->values + frame->base + code->input_count;
            step = code->steps;
            continue;
        case MACHINE_RET: {
            PyObject **results = run->values + frame->base;
            machine_pop_frame(run);
            if (!run->frame_count)
                return RUN_DONE;
            LOAD_FRAME();
            step = frame->step + 1;
            top = run->values + frame->top;
            for (int32_t i = 0; i < frame->step->given; i++)
                *top++ = results[i];
            continue;
        }
        case MACHINE_GET_ATTR:
            PUSH_RESULT(machine_get_attribute(run->machine, top[-1], PyTuple_GET_ITEM(code->names, step->x)));
        case MACHINE_SET_ATTR:
            if (machine_set_attribute(run->machine, top[-2], PyTuple_GET_ITEM(code->names, step->x), top[-1]) < 0)
                goto failed;
            top = release(top - 2, top);
            NEXT();
        case MACHINE_LIST_CONSTRUCT:
            PUSH_CONTAINER(make_list(top - step->taken, step->taken));
        case MACHINE_TUPLE_CONSTRUCT:
            PUSH_CONTAINER(machine_make_tuple(&PyTuple_Type, top - step->taken, step->taken));
        case MACHINE_NAMED_TUPLE_CONSTRUCT:
            PUSH_CONTAINER(machine_make_tuple((PyTypeObject *)PyTuple_GET_ITEM(code->types, step->x), top - step->taken, step->taken));
        case MACHINE_DICT_CONSTRUCT:
            PUSH_RESULT(machine_make_dict(top - step->taken, step->taken));
        case MACHINE_ISINSTANCE:
            PUSH_RESULT(is_instance(top[-1], PyTuple_GET_ITEM(code->types, step->x)));
        case MACHINE_LIST_UNPACK: {
            PyObject *value = top[-1];
            if (machine_unpack(value, step->given, top - 1) < 0)
                goto failed;
            Py_DECREF(value);
            top += step->given - 1;
            NEXT();
        }
        default: /* RARE */
            if (machine_rarely(run, frame, step, &top) < 0)
                goto failed;
            NEXT();
        }
    }
failed:
    frame = &run->frames[run->frame_count - 1];
    frame->step = step;
    frame->top = top - run->values;
    return RUN_FAILED;
abandoned:
    frame->step = step;
    frame->top = top - run->values;
    return RUN_ABANDONED;
}
