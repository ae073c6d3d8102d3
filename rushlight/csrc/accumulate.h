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

/* Dereference a weak reference: return a new reference, or NULL with no exception set if the object is gone. */
PyObject *dereference(PyObject *reference);

/* Make the single gradient in the list `grads` the leaf's `.grad` without a copy. Return 0 and change nothing if that would be
   visible: something else references the gradient, the leaf already has one, or hooks are registered. */
int accumulate_by_taking(AccumulateNode *node, PyObject *grads);

#endif
