/* Recording: what the kernel at the Autograd key does where an input requires a gradient. */
#ifndef RUSHLIGHT_RECORD_H
#define RUSHLIGHT_RECORD_H

#include "node.h"

/* What C needs of an operator's Recipe, worked out by rushlight.autograd.operator_node as a tuple. */
enum {
    PLAN_RECIPE,   /* the Recipe itself */
    PLAN_NAMES,    /* tuple of argument names in schema order */
    PLAN_DEFAULTS, /* tuple of their defaults */
    PLAN_MISSING,  /* the default of arguments that have none */
    PLAN_FIXED,    /* tuple of positions of lists of fixed length, for which a number may stand */
    PLAN_FORMULAS, /* tuple of formulas */
    PLAN_SKIPPED,  /* tuple of numbers of outputs without a gradient */
    PLAN_LENGTH
};
enum {
    FORMULA_FUNCTION,
    FORMULA_POSITIONS, /* tuple of positions of the inputs whose gradients it gives */
    FORMULA_SAVED,     /* tuple of (name, position, function or None): inputs to keep, and how unless as they are */
    FORMULA_OUTPUTS,   /* tuple of (name, number): outputs to keep */
    FORMULA_SOURCES,   /* tuple, per parameter: "grad", "grads" and "needs" as 0, 1 and 2, else the name in `saved` */
    FORMULA_LENGTH
};

enum { MOST_ARGUMENTS = 32 }; /* of an operator that is recorded here */

static inline PyObject *field(PyObject *tuple, Py_ssize_t index) { return PyTuple_GET_ITEM(tuple, index); }

/* Whether a tuple has the form above, as far as C relies on it. */
int is_plan(PyObject *plan);

/* Runs `lower` on the arguments and records a node. NULL with an exception set after a failure; Py_NotImplemented, and
   nothing done, where Python has to do it. */
PyObject *record_call(PyObject *plan, PyObject *lower, PyObject *const *arguments, size_t flags, PyObject *names);

/* Where the gradient of a value flows: an edge, a new reference. */
PyObject *edge_of(PyObject *value);
/* A SavedTensor that keeps a tensor with the version that `impl` has now, however it came to be; a new reference. */
PyObject *saved_tensor(PyObject *tensor, const TensorImpl *impl, PyObject *output_nr);
/* Makes a tensor an output of a node; -1 with an exception set. */
int set_history(TensorImpl *impl, NodeBase *node, Py_ssize_t output);

/* OperatorNode.apply: the gradients of the inputs. */
PyObject *operator_node_apply(PyObject *self, PyObject *grads);

#endif
