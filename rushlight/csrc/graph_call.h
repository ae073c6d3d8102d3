/* One call of a compiled graph: what it holds on to, in the order in which it is taken. */
#ifndef RUSHLIGHT_GRAPH_CALL_H
#define RUSHLIGHT_GRAPH_CALL_H

#include "graph_description.h"

enum { ON_STACK = 64 };

typedef struct {
    GraphPlan *plan; /* owned */
    void **pointers; /* what the entry is given: tensors, constants, results, arena, values of symbols */
    int64_t *numbers;
    PyObject **held; /* storages: of the inputs, then of what is made; owned */
    Py_ssize_t held_count;
    void *arena;
    size_t arena_capacity;
    void *few_pointers[ON_STACK];
    int64_t few_numbers[ON_STACK];
    PyObject *few_held[ON_STACK];
} GraphCall;

/* Room for a call; -1 with an exception set. To be released in any case. */
int graph_call_reserve(GraphCall *call, const GraphDescription *graph, Py_ssize_t constants);
void graph_call_release(GraphCall *call);
/* The plan for the sizes of the arguments: `*latest`, or a new one, which takes its place. 0 where there is none, perhaps with an
   exception set. */
int graph_call_plan(GraphCall *call, const GraphDescription *graph, GraphPlan **latest, PyObject *const *args);
/* Whether the tensors are as compiled for; their addresses. -1 with an exception set. */
int graph_call_inputs(GraphCall *call, const GraphDescription *graph, PyObject *const *args);
/* Constants, the memory for results and in between, the symbols' values. -1 with an exception set. */
int graph_call_memory(GraphCall *call, const GraphDescription *graph, void *const *constants, Py_ssize_t count);
/* After the run: the tuple of results, or NULL with an exception set. */
PyObject *graph_call_results(const GraphCall *call, const GraphDescription *graph, PyObject *const *args);

/* Calls what is no part of the user's program: the frame hook is off meanwhile. */
PyObject *call_unhooked(PyObject *function, PyObject *const *args, Py_ssize_t count, PyObject *names);

#endif
