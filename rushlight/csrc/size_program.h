/* Integer expressions of sizes as postfix code, in the format of rushlight.core.algebra.postfix. */
#ifndef RUSHLIGHT_SIZE_PROGRAM_H
#define RUSHLIGHT_SIZE_PROGRAM_H

#include "module.h"

#include <stdint.h>

typedef struct {
    int64_t *code;
    Py_ssize_t length;
} SizeProgram;

/* Compile a tuple of ints that may read `number_count` numbers, or an int as a constant; return -1 with an exception set. The
   program must have been cleared or zeroed. */
int size_program_set(SizeProgram *program, PyObject *code, Py_ssize_t number_count);
void size_program_clear(SizeProgram *program);
/* Compute the value. Return 0 if there is none: it does not fit into 64 bits, or a divisor is zero. */
int size_program_run(const SizeProgram *program, const int64_t *numbers, int64_t *result);

/* A relation of a value to zero. The numbers are those of rushlight.core.algebra.postfix. */
enum { RELATION_EQUAL, RELATION_DIFFERENT, RELATION_NOT_NEGATIVE, SIZE_RELATION_KINDS };

static inline int relation_to_zero(int kind, int64_t value)
{
    return kind == RELATION_EQUAL ? value == 0 : kind == RELATION_DIFFERENT ? value != 0 : value >= 0;
}

#endif
