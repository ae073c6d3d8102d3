/* One call of a compiled graph: its resources, in the order in which they are acquired. */
#ifndef RUSHLIGHT_GRAPH_CALL_H
#define RUSHLIGHT_GRAPH_CALL_H

#include "graph_description.h"

enum { ON_STACK = 64 };

typedef struct {
    GraphPlan *plan; /* owned */
    void **pointers; /* the entry's arguments: tensors, constants, results, arena, values of symbols */
    int64_t *numbers;
    PyObject **held; /* storages of the inputs and then of the results; owned */
    Py_ssize_t held_count;
    void *arena;
    size_t arena_capacity;
    void *few_pointers[ON_STACK];
    int64_t few_numbers[ON_STACK];
    PyObject *few_held[ON_STACK];
} GraphCall;

/* Allocate the arrays of a call; -1 with an exception set. The caller releases it in any case. */
int graph_call_reserve(GraphCall *call, const GraphDescription *graph, Py_ssize_t constants);
void graph_call_release(GraphCall *call);
/* Set the plan for the arguments' sizes: `*latest`, or a new one that replaces it. 0 if there is none, perhaps with an
   exception set. */
int graph_call_plan(GraphCall *call, const GraphDescription *graph, GraphPlan **latest, PyObject *const *args);
/* Whether the tensors are as compiled for; reads their addresses. -1 with an exception set. */
int graph_call_inputs(GraphCall *call, const GraphDescription *graph, PyObject *const *args);
/* Set the addresses of the constants, the results and the arena, and the symbols' values. -1 with an exception set. */
int graph_call_memory(GraphCall *call, const GraphDescription *graph, void *const *constants, Py_ssize_t count);
/* After the run: a tuple of results, or NULL with an exception set. */
PyObject *graph_call_results(const GraphCall *call, const GraphDescription *graph, PyObject *const *args);

/* Call a function that is not part of the user's program: the frame hook is off meanwhile. */
PyObject *call_unhooked(PyObject *function, PyObject *const *args, Py_ssize_t count, PyObject *names);

#endif
