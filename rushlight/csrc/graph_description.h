/* What a compiled graph takes and gives, and how large that is for the sizes of one call. */
#ifndef RUSHLIGHT_GRAPH_DESCRIPTION_H
#define RUSHLIGHT_GRAPH_DESCRIPTION_H

#include "guard_sizes.h"

/* An input: a tensor of a dtype, with these sizes and strides or, where they are open, of a rank; or an int, without a dtype. */
typedef struct {
    PyObject *dtype, *sizes, *strides;
    Py_ssize_t rank;
    int itemsize;
} Expected;

/* The kinds of results, as rushlight.inductor.launch numbers them: a view of memory made for it, an input as it is, an object that
   is the same at every call, a number, a view of an input or of such an object. */
enum OutputKind { MADE, INPUT, OBJECT, NUMBER, ALIAS, OUTPUT_KINDS };

/* `source` is the position of the memory or input, -1 for `object`. A number is an offset without sizes. */
typedef struct {
    enum OutputKind kind;
    Py_ssize_t source, rank;
    SizeProgram *sizes, *strides, offset;
    PyObject *dtype, *object, *operator; /* the last makes an alias: (tensor, sizes, strides, offset) -> tensor */
} Output;

typedef int64_t (*ArenaBytes)(const int64_t *);

/* Programs are over the numbers that are read off the inputs, and the symbols. */
typedef struct {
    Py_ssize_t input_count, tensor_count, made_count, output_count, number_count, symbol_count, condition_count;
    Expected *inputs;
    SizeProgram *made_bytes;
    Output *outputs;
    SizeNumber *numbers;
    SizeProgram *symbols; /* each may read those before it */
    SizeCondition *conditions;
    SizeProgram arena_bytes;
    ArenaBytes arena_bytes_for; /* of the symbols' values, or NULL */
    SizeProgram work; /* more than 0 of a run so long that other threads should have the interpreter meanwhile */
} GraphDescription;

/* From tuples, as the documentation of GraphLaunch lists them; -1 with an exception set. Zeroed before, cleared by the caller. */
int graph_description_set(GraphDescription *graph, PyObject *inputs, PyObject *made, PyObject *outputs, PyObject *symbols);
/* What a graph works in: a number of bytes, or the address of the function that gives it; and how long it works. */
int graph_description_set_work(GraphDescription *graph, PyObject *arena_bytes, PyObject *arena_bytes_for, PyObject *work);
void graph_description_clear(GraphDescription *graph);
int graph_description_traverse(const GraphDescription *graph, visitproc visit, void *arg);

/* Sizes, strides and offset of a result. */
typedef struct {
    PyObject *sizes, *strides;
    Py_ssize_t offset, numel;
} Layout;

/* What follows from one choice of numbers. Shared by calls under the interpreter lock, and never changed. */
typedef struct {
    Py_ssize_t references, layout_count, arena_bytes;
    int is_long;
    int64_t *values;     /* of numbers and symbols */
    Py_ssize_t *reaches; /* of each input: the bytes from its first element to the end of its last */
    Py_ssize_t *made_bytes;
    Layout *layouts; /* of results */
} GraphPlan;

/* For these numbers and inputs. NULL, perhaps without an exception set: where they do not fit the graph, or get too large. */
GraphPlan *graph_plan_make(const GraphDescription *graph, const int64_t *numbers, PyObject *const *inputs);
void graph_plan_release(GraphPlan *plan);
static inline GraphPlan *graph_plan_share(GraphPlan *plan)
{
    plan->references++;
    return plan;
}

#endif
