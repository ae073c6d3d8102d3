/* Postfix code of integers: see the header. */
#include "size_program.h"

enum { PUSH_CONSTANT, PUSH_NUMBER, ADD, MULTIPLY, FLOOR_DIVIDE, MODULO, INSTRUCTION_KINDS };
enum { STACK_DEPTH = 32 };

/* Floor division as in Python: the quotient rounds towards minus infinity, and the remainder has the divisor's sign. */
static int divide(int64_t dividend, int64_t divisor, int64_t *quotient, int64_t *rest)
{
    if (divisor == 0 || (divisor == -1 && dividend == INT64_MIN))
        return 0;
    *quotient = dividend / divisor;
    *rest = dividend % divisor;
    if (*rest && (*rest < 0) != (divisor < 0)) {
        *quotient -= 1;
        *rest += divisor;
    }
    return 1;
}

static int apply(int64_t instruction, int64_t *left, int64_t right)
{
    int64_t other;
    switch (instruction) {
    case ADD: return !__builtin_add_overflow(*left, right, left);
    case MULTIPLY: return !__builtin_mul_overflow(*left, right, left);
    case FLOOR_DIVIDE: return divide(*left, right, left, &other);
    default: return divide(*left, right, &other, left);
    }
}

int size_program_run(const SizeProgram *program, const int64_t *numbers, int64_t *result)
{
    int64_t stack[STACK_DEPTH], *top = stack - 1;
    const int64_t *code = program->code, *end = code + program->length;
    while (code < end) {
        int64_t instruction = *code++;
        if (instruction == PUSH_CONSTANT)
            *++top = *code++;
        else if (instruction == PUSH_NUMBER)
            *++top = numbers[*code++];
        else if (top--, !apply(instruction, top, top[1]))
            return 0;
    }
    *result = *top;
    return 1;
}

/* Whether the code stays within the stack and the numbers, and ends with one value on the stack. */
static int is_sound(const SizeProgram *program, Py_ssize_t number_count)
{
    Py_ssize_t depth = 0;
    for (Py_ssize_t i = 0; i < program->length; i++) {
        int64_t instruction = program->code[i];
        if (instruction == PUSH_CONSTANT || instruction == PUSH_NUMBER) {
            if (++i == program->length || ++depth > STACK_DEPTH)
                return 0;
            if (instruction == PUSH_NUMBER && (program->code[i] < 0 || program->code[i] >= number_count))
                return 0;
        } else if (instruction < 0 || instruction >= INSTRUCTION_KINDS || --depth < 1) {
            return 0;
        }
    }
    return depth == 1;
}

static int set_constant(SizeProgram *program, PyObject *number)
{
    program->length = 2;
    program->code = PyMem_Calloc(2, sizeof *program->code);
    if (!program->code) {
        PyErr_NoMemory();
        return -1;
    }
    program->code[0] = PUSH_CONSTANT;
    program->code[1] = PyLong_AsLongLong(number);
    return program->code[1] == -1 && PyErr_Occurred() ? -1 : 0;
}

int size_program_set(SizeProgram *program, PyObject *code, Py_ssize_t number_count)
{
    if (PyLong_Check(code))
        return set_constant(program, code);
    if (!PyTuple_Check(code)) {
        PyErr_Format(PyExc_TypeError, "code of sizes is an int or a tuple of ints, got %R", code);
        return -1;
    }
    program->length = PyTuple_GET_SIZE(code);
    program->code = PyMem_Calloc((size_t)program->length + 1, sizeof *program->code);
    if (!program->code) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < program->length; i++) {
        program->code[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(code, i));
        if (program->code[i] == -1 && PyErr_Occurred())
            return -1;
    }
    if (is_sound(program, number_count))
        return 0;
    PyErr_Format(PyExc_ValueError, "code of sizes over %zd numbers is wrong: %R", number_count, code);
    return -1;
}

void size_program_clear(SizeProgram *program)
{
    PyMem_Free(program->code);
    program->code = NULL;
    program->length = 0;
}
