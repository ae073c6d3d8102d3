/* The machine behind TorchScript's interpreter: compact code, a verifier that checks the code, and a loop that runs it.

   rushlight/jit/runtime/assembly.py creates the code, interpreter.py provides the callbacks. Values are Python objects. */
#ifndef RUSHLIGHT_MACHINE_H
#define RUSHLIGHT_MACHINE_H

#include "module.h"

#include <stdint.h>

/* The operations. rushlight/jit/runtime/code.py documents them. RARE stands for all instructions that Python executes. */
#define MACHINE_OPERATIONS(X)                                                                                            \
    X(LOAD) X(MOVE) X(LOADC) X(STORE) X(DROP) X(JF) X(JMP) X(LOOP) X(OPN) X(RET) X(CALL) X(INTERFACE_CALL) X(TAIL_CALL)   \
    X(GET_ATTR) X(SET_ATTR) X(LIST_CONSTRUCT) X(TUPLE_CONSTRUCT) X(NAMED_TUPLE_CONSTRUCT) X(DICT_CONSTRUCT)              \
    X(LIST_UNPACK) X(ISINSTANCE) X(RARE)
#define MACHINE_ENUMERATOR(name) MACHINE_##name,
enum {
    MACHINE_OPERATIONS(MACHINE_ENUMERATOR) MACHINE_OPERATION_COUNT,
    /* STORE x fused with the MOVE x after it. The machine creates it from verified code; it is never part of the input. */
    MACHINE_KEEP = MACHINE_OPERATION_COUNT
};

/* An instruction. For operations whose counts vary, `taken` values are popped and `given` values pushed. */
typedef struct {
    int32_t operation, x, taken, given;
} Step;

/* A fast path borrows its arguments and returns a new reference to the operator's result, if it has one. It may steal an
   argument by replacing it with NULL. */
typedef enum { FAST_FAILED = -1, FAST_UNUSUAL, FAST_DONE } FastStatus; /* UNUSUAL: the operator's Python function decides */
typedef FastStatus (*FastFunction)(PyObject **arguments, Py_ssize_t count, PyObject **result);

typedef struct {
    const char *name; /* "aten::add.int" */
    int arity;        /* -1 for any number */
    int results;      /* 0 or 1 */
    FastFunction function;
} FastOperator;

extern const FastOperator machine_number_operators[], machine_math_operators[], machine_string_operators[],
    machine_list_operators[], machine_dict_operators[], machine_value_operators[], machine_tensor_operators[];

typedef struct {
    PyObject *function; /* owned */
    FastFunction fast;  /* NULL if there is none */
    PyObject *plain; /* owned: called without the trailing arguments if those equal `defaults`; or NULL */
    PyObject *defaults; /* owned tuple, or NULL */
} Operation;

typedef struct MachineCode MachineCode;

typedef struct {
    PyObject *function;       /* owned */
    MachineCode *code; /* owned, or NULL: the code at the last call, if that code was final */
    unsigned long generation; /* machine_generation when `code` was cached */
} Callee;

struct MachineCode {
    PyObject_HEAD
    PyObject *owner; /* owned: the Code object that this was made from. The tuples are owned too */
    PyObject *constants; /* tuple */
    PyObject *names;     /* tuple of str */
    PyObject *types;     /* tuple of classes, and of tuples of classes */
    Step *steps;
    Operation *operations;
    Callee *callees;
    Py_ssize_t step_count, operation_count, callee_count;
    Py_ssize_t input_count, output_count, register_count;
    Py_ssize_t max_depth; /* maximum stack depth, computed by the verifier */
    char is_final;        /* the function keeps this code until the generation changes */
};

/* Incremented whenever a function gets a new graph: cached code from before may be out of date. */
extern unsigned long machine_generation;

extern PyTypeObject MachineCode_Type;

/* Verify the code and set max_depth. Return -1 with a ValueError set if the loop could not run the code safely. */
int machine_verify(MachineCode *code);

/* Return the fast path of an operator by its name; NULL if there is none. */
const FastOperator *machine_fast_operator(const char *name);

typedef struct {
    PyObject_HEAD
    PyObject *code_of;         /* owned, like all callbacks: function -> MachineCode */
    PyObject *method_code;     /* (object, name of a method) -> MachineCode */
    PyObject *rarely;          /* (Code, position, values, entered contexts) -> results */
    PyObject *failed;          /* (error, [(Code, position), ...], entered contexts) raises */
    PyTypeObject *object_type; /* owned: ScriptObject, */
    Py_ssize_t slots_offset;   /* the offset of its attribute mapping */
} Machine;

typedef struct {
    MachineCode *code; /* owned */
    const Step *step;  /* the current instruction; in outer frames, the call */
    Py_ssize_t base;   /* the start of its stack among the values; its registers follow `max_depth` values later */
    Py_ssize_t top;    /* the end of its stack; not up to date while the frame runs */
} Frame;

enum { FIRST_VALUES = 96, FIRST_FRAMES = 8 };

typedef struct {
    Machine *machine;
    PyObject **values; /* owned references below each frame's top; NULL marks an empty register */
    Py_ssize_t value_capacity;
    Frame *frames;
    Py_ssize_t frame_count, frame_capacity;
    PyObject *entered; /* owned list of contexts, or NULL */
    PyObject *slow;    /* borrowed: called after `deadline` to ask whether to abandon the run; or NULL */
    int64_t deadline, last_release;
    unsigned back_jumps;
    PyObject *first_values[FIRST_VALUES];
    Frame first_frames[FIRST_FRAMES];
} Run;

typedef enum { RUN_FAILED = -1, RUN_DONE, RUN_ABANDONED } RunStatus;

/* Run until the first frame ends; its results are then the first values. */
RunStatus machine_loop(Run *run);
/* Push a frame whose arguments are the last values below `top`. Move these values and steal the code. Return -1 with an
   exception set. */
int machine_push_frame(Run *run, MachineCode *code, Py_ssize_t top, Py_ssize_t taken, Py_ssize_t given);
int machine_replace_frame(Run *run, MachineCode *code, Py_ssize_t top, Py_ssize_t taken);
void machine_pop_frame(Run *run);
/* Let signals and other threads run. Return 1 to abandon the run, or -1 if an exception is set. */
int machine_back_jump(Run *run);
int64_t machine_nanoseconds(void);

/* Instructions that are complex enough for a function of their own. On failure they leave their arguments on the stack. */
int machine_call_operator(const Operation *operation, const Step *step, PyObject ***top);
int machine_rarely(Run *run, const Frame *frame, const Step *step, PyObject ***top);
PyObject *machine_get_attribute(const Machine *machine, PyObject *object, PyObject *name);
int machine_set_attribute(const Machine *machine, PyObject *object, PyObject *name, PyObject *value);
PyObject *machine_make_tuple(PyTypeObject *type, PyObject **items, Py_ssize_t count);
PyObject *machine_make_dict(PyObject **items, Py_ssize_t count);
int machine_unpack(PyObject *value, Py_ssize_t count, PyObject **results);
/* Return a new reference to the code of the callee of a CALL or an INTERFACE_CALL. */
MachineCode *machine_callee(const Machine *machine, Callee *callee);
MachineCode *machine_method(const Machine *machine, PyObject *object, PyObject *name);

/* machine_bind_exactly(forms, values) -> list | None: the arguments if none needs conversion, else None. */
PyObject *machine_bind_exactly(PyObject *module, PyObject *const *arguments, Py_ssize_t count);

#endif
