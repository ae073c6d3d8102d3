/* The constants of a compiled graph at one time: their addresses and what was made of them, and how to tell whether they changed. */
#ifndef RUSHLIGHT_PREPARED_CONSTANTS_H
#define RUSHLIGHT_PREPARED_CONSTANTS_H

#include "module.h"

/* Constants as calls see them, replaced as a whole: a call holds on to the one that it began with. */
typedef struct {
    PyObject_HEAD
    Py_ssize_t count, pointer_count;
    PyObject *tensors, *storages, *keep; /* tuples of `count`, and what holds the memory behind the pointers */
    Py_ssize_t *versions;
    int *generations; /* of the storages */
    void **pointers;
} Prepared;

/* `state` holds (version, storage, generation) for each of `tensors`, `keep` the memory behind `pointers`. NULL with an exception
   set. */
Prepared *prepared_make(PyObject *tensors, PyObject *state, PyObject *pointers, PyObject *keep);
/* Whether no constant was written to or given other memory since. */
int prepared_is_current(const Prepared *prepared);

#endif
