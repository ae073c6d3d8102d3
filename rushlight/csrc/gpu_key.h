/* Keys of launch plans: what a call's arguments must have in common to run by the same plan, as 64-bit words. */
#ifndef RUSHLIGHT_GPU_KEY_H
#define RUSHLIGHT_GPU_KEY_H

#include "tensor_impl.h"

#include <stdint.h>

enum { WORDS_ON_STACK = 256, LEAVES_ON_STACK = 32 };

typedef struct {
    uint64_t few_words[WORDS_ON_STACK], *words;
    Py_ssize_t count, capacity;
    /* The tensors in order, borrowed, and the numbers that become tensors, borrowed floats. */
    PyObject *few_leaves[LEAVES_ON_STACK], **leaves;
    Py_ssize_t leaf_count, leaf_capacity;
    PyObject *held; /* a list that keeps objects whose addresses are in the key; NULL: they are not kept */
    int joins;      /* whether a tensor that is passed twice is one leaf */
    int apart;      /* whether tensors that share memory make a call one without plans */
    int opens;      /* whether floats among the outermost arguments are leaves */
} CallKey;

/* Begin a key; `held` is borrowed. */
void key_begin(CallKey *key, int joins, int apart, PyObject *held);
/* Add the arguments of a call. 1: done; 0: such calls have no plans; -1: an exception is set. `opens_numbers` tells whether
   floats become tensors where a floating-point tensor with dimensions is among the positional arguments. */
int key_add_call(CallKey *key, PyObject *const *arguments, Py_ssize_t positional, PyObject *names, int opens_numbers);
void key_end(CallKey *key);
uint64_t key_hash(const CallKey *key);

#endif
