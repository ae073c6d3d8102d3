/* The nodes that add gradients to leaves. */
#ifndef RUSHLIGHT_ACCUMULATE_H
#define RUSHLIGHT_ACCUMULATE_H

#include "node.h"

/* rushlight.autograd.node.AccumulateGrad derives from it. */
typedef struct {
    NodeBase base;
    PyObject *variable; /* the leaf, a Tensor */
} AccumulateNode;

/* The node that adds to a leaf's `.grad`, as a new reference. A leaf has at most one at a time; only graphs keep it alive. */
PyObject *accumulator_of(PyObject *tensor, AutogradMeta *meta);

/* Dereferences a weak reference: a new reference, or NULL (no exception set). */
PyObject *referent(PyObject *reference);

/* Makes the one gradient in the list `grads` the leaf's `.grad` without a copy. Returns 0 and changes nothing when the theft
   would be visible: somebody else holds the gradient, the leaf already has one, or hooks wait for it. */
int accumulate_by_taking(AccumulateNode *node, PyObject *grads);

#endif
