/* Nodes of the tape, in C: the base of all nodes, and the node of an operator that has derivative formulas. */
#ifndef RUSHLIGHT_NODE_H
#define RUSHLIGHT_NODE_H

#include "tensor_impl.h"

typedef struct {
    PyObject_HEAD
    PyObject *next_functions; /* tuple of edges (node or None, output number) */
    PyObject *sequence_nr;    /* int, or inf for the nodes of leaves */
    PyObject *output_info;    /* list of (sizes, dtype, device) */
    PyObject *hooks;          /* NodeHooks or None */
} NodeBase;

typedef struct {
    NodeBase base;
    PyObject *recipe; /* a Recipe, which holds the formulas */
    PyObject *plan;   /* the recipe in the form that C reads (record.h), or NULL */
    PyObject *saved;  /* dict by name, or None once freed */
    PyObject *needs;  /* list of lists of bools: per formula and input, whether its gradient is needed */
    PyObject *wanted; /* list of bools: per formula, whether any of its gradients is needed */
} OperatorNode;

/* A saved tensor with its version at the time of saving. rushlight.autograd.saved_tensor derives from it. */
typedef struct {
    PyObject_HEAD
    PyObject *tensor;
    Py_ssize_t version;
    PyObject *output_nr; /* int if the tensor is an output of the node itself, else None */
    PyObject *unpack_hook; /* unpacks the tensor from the result of a pack hook, or None */
    PyObject *edge; /* if there is a hook: the edge for the tensor's gradient */
} SavedTensorBase;

/* Set the fields that every node has. Return -1 with an exception set. */
int node_initialise(NodeBase *node);

#endif
