/* A snapshot of a compiled graph's constants: their addresses and derived data, and a check for whether they changed. */
#ifndef RUSHLIGHT_PREPARED_CONSTANTS_H
#define RUSHLIGHT_PREPARED_CONSTANTS_H

#include "module.h"

/* An immutable snapshot: a call keeps using the snapshot that it began with. */
typedef struct {
    PyObject_HEAD
    Py_ssize_t count, pointer_count;
    PyObject *tensors, *storages, *keep; /* two tuples of `count` objects, and the owner of the memory behind `pointers` */
    Py_ssize_t *versions;
    int *generations; /* one per storage */
    void **pointers;
} Prepared;

/* Make a snapshot. `state` holds (version, storage, generation) for each of `tensors`; `keep` owns the memory behind
   `pointers`. Return NULL with an exception set on failure. */
Prepared *prepared_make(PyObject *tensors, PyObject *state, PyObject *pointers, PyObject *keep);
/* Whether no constant was written to or moved since the snapshot. */
int prepared_is_current(const Prepared *prepared);

#endif
