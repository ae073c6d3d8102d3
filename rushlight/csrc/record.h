/* Recording: the work of the kernel at the Autograd key when an input requires grad. */
#ifndef RUSHLIGHT_RECORD_H
#define RUSHLIGHT_RECORD_H

#include "node.h"

/* A plan: the parts of an operator's Recipe that C needs, prepared by rushlight.autograd.operator_node as a tuple. */
enum {
    PLAN_RECIPE,   /* the Recipe itself */
    PLAN_NAMES,    /* tuple of argument names in schema order */
    PLAN_DEFAULTS, /* tuple of their defaults */
    PLAN_MISSING,  /* the default that marks a required argument */
    PLAN_FIXED, /* tuple of the positions of fixed-length lists, for which a single number may be passed */
    PLAN_FORMULAS, /* tuple of formulas */
    PLAN_SKIPPED, /* tuple of the numbers of outputs without a gradient */
    PLAN_NODE_TYPE, /* the operator's own subclass of OperatorBackward */
    PLAN_LENGTH
};
enum {
    FORMULA_FUNCTION,
    FORMULA_POSITIONS, /* tuple of positions of the inputs whose gradients it gives */
    FORMULA_SAVED,     /* tuple of (name, position, function or None): inputs to save, and the function to apply first */
    FORMULA_OUTPUTS,   /* tuple of (name, number): outputs to save */
    /* Tuple with the source of each parameter: "grad", "grads" and "needs" as 0, 1 and 2, otherwise the name in `saved`. */
    FORMULA_SOURCES,
    FORMULA_LENGTH
};

enum { MAX_ARGUMENTS = 32 }; /* operators with more arguments are recorded in Python */

static inline PyObject *field(PyObject *tuple, Py_ssize_t index) { return PyTuple_GET_ITEM(tuple, index); }

/* Whether a tuple has the form above, as far as C code relies on it. */
int is_plan(PyObject *plan);

/* Call `lower` on the arguments and record a node. Return NULL with an exception set after a failure, or Py_NotImplemented,
   with nothing done, if Python has to record the call. */
PyObject *record_call(PyObject *plan, PyObject *lower, PyObject *const *arguments, size_t flags, PyObject *names);

/* Return the edge along which a value's gradient flows, a new reference. */
PyObject *edge_of(PyObject *value);
/* Return a SavedTensor for a tensor with the current version of `impl`, a new reference. */
PyObject *saved_tensor(PyObject *tensor, const TensorImpl *impl, PyObject *output_nr);
/* Make a tensor an output of a node; return -1 with an exception set. */
int set_history(TensorImpl *impl, NodeBase *node, Py_ssize_t output);

/* Compute the gradients of a node's inputs: OperatorNode.apply. */
PyObject *operator_node_apply(PyObject *self, PyObject *grads);

#endif
