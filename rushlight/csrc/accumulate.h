/* The nodes of leaves. */
#ifndef RUSHLIGHT_ACCUMULATE_H
#define RUSHLIGHT_ACCUMULATE_H

#include "node.h"

/* rushlight.autograd.node.AccumulateGrad derives from it. */
typedef struct {
    NodeBase base;
    PyObject *variable; /* the leaf, a Tensor */
} AccumulateNode;

/* The node that adds to the `.grad` of a leaf, a new reference: one at a time per leaf, held by graphs alone. */
PyObject *accumulator_of(PyObject *tensor, AutogradMeta *meta);

/* What a weak reference leads to, as a new reference, or NULL (no exception set). */
PyObject *referent(PyObject *reference);

/* Makes the one gradient in the list `grads` the leaf's `.grad` without a copy. 0, and nothing done, where that would be
   seen: somebody else holds the gradient, there is one already, hooks wait for it. */
int accumulate_by_taking(AccumulateNode *node, PyObject *grads);

#endif
