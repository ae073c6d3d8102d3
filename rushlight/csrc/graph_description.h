/* The inputs and results of a compiled graph, and the plan of their sizes for one call. */
#ifndef RUSHLIGHT_GRAPH_DESCRIPTION_H
#define RUSHLIGHT_GRAPH_DESCRIPTION_H

#include "guard_sizes.h"

/* An input. A tensor has a dtype, and either exact sizes and strides or, if these are dynamic, a rank. An int has no dtype. */
typedef struct {
    PyObject *dtype, *sizes, *strides;
    Py_ssize_t rank;
    int itemsize;
} Expected;

/* The kinds of results, numbered as in rushlight.inductor.launch: a view of memory made for it; an unchanged input; an
   object that is the same at every call; a number; an alias (a view of an input or of a fixed object). */
enum OutputKind { MADE, INPUT, OBJECT, NUMBER, ALIAS, OUTPUT_KINDS };

/* `source` is the position of the memory or input; -1 means `object`. A result of kind NUMBER uses only `offset`. */
typedef struct {
    enum OutputKind kind;
    Py_ssize_t source, rank;
    SizeProgram *sizes, *strides, offset;
    PyObject *dtype, *object, *operator; /* `operator` makes an alias: (tensor, sizes, strides, offset) -> tensor */
} Output;

typedef int64_t (*ArenaBytes)(const int64_t *);

/* All size programs read the numbers found in the inputs, and the symbols computed from them. */
typedef struct {
    Py_ssize_t input_count, tensor_count, made_count, output_count, number_count, symbol_count, condition_count;
    Expected *inputs;
    SizeProgram *made_bytes;
    Output *outputs;
    SizeNumber *numbers;
    SizeProgram *symbols; /* each may read the symbols before it */
    SizeCondition *conditions;
    SizeProgram arena_bytes;
    ArenaBytes arena_bytes_for; /* arena size as a function of the symbols' values, or NULL */
    SizeProgram work; /* positive if the run is long enough to release the GIL */
} GraphDescription;

/* Fill a description from tuples as documented at GraphLaunch; -1 with an exception set. The caller zeroes it before and
   clears it afterwards. */
int graph_description_set(GraphDescription *graph, PyObject *inputs, PyObject *made, PyObject *outputs, PyObject *symbols);
/* Set the size of the arena, in bytes or as the address of the function that computes it, and the program for the run's
   length. */
int graph_description_set_work(GraphDescription *graph, PyObject *arena_bytes, PyObject *arena_bytes_for, PyObject *work);
void graph_description_clear(GraphDescription *graph);
int graph_description_traverse(const GraphDescription *graph, visitproc visit, void *arg);

/* Sizes, strides and offset of a result. */
typedef struct {
    PyObject *sizes, *strides;
    Py_ssize_t offset, numel;
} Layout;

/* The sizes that follow from one set of numbers. Calls share a plan under the GIL; it is immutable. */
typedef struct {
    Py_ssize_t references, layout_count, arena_bytes;
    int is_long;
    int64_t *values;     /* numbers, then symbols */
    Py_ssize_t *reaches; /* bytes from each input's first element to the end of its last */
    Py_ssize_t *made_bytes;
    Layout *layouts; /* one for each result */
} GraphPlan;

/* Make the plan for these numbers and inputs. Return NULL if they do not fit the graph or if sizes are too large, perhaps
   without an exception set. */
GraphPlan *graph_plan_make(const GraphDescription *graph, const int64_t *numbers, PyObject *const *inputs);
void graph_plan_release(GraphPlan *plan);
static inline GraphPlan *graph_plan_share(GraphPlan *plan)
{
    plan->references++;
    return plan;
}

#endif
