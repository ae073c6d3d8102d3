/* The Python objects that C code needs: types, dtypes and functions that rushlight.core passes in when it is imported. */
#ifndef RUSHLIGHT_CONFIGURATION_H
#define RUSHLIGHT_CONFIGURATION_H

#include "module.h"

/* The element types that C code computes with, in the order of the names in configuration.c. */
typedef enum {
    BOOL, UINT8, INT8, INT16, INT32, INT64, FLOAT16, BFLOAT16, FLOAT32, FLOAT64, COMPLEX64, COMPLEX128, DTYPE_COUNT,
    OTHER_DTYPE = DTYPE_COUNT
} DtypeCode;

typedef struct {
    PyObject *tensor_type;      /* rushlight.Tensor, a subclass of TensorBase */
    PyObject *cpu;              /* device("cpu") */
    PyObject *storage_bytes;    /* StorageImpl -> numpy.ndarray */
    PyObject *ndarray;          /* numpy.ndarray */
    PyObject *numpy_name;       /* "numpy", the attribute of a dtype that holds its NumPy dtype */
    PyObject *make_array;       /* TensorImpl -> numpy.ndarray */
    PyObject *gradient_edge;    /* Tensor -> (Node | None, int) */
    PyObject *node_type;        /* OperatorBackward, a subclass of OperatorNode and the base of the operators' own types */
    PyObject *accumulate_type;  /* AccumulateGrad, a subclass of AccumulateNode */
    PyObject *save;             /* value -> what a node saves of it */
    PyObject *save_output;      /* (tensor, output number) -> what a node saves of its own output */
    PyObject *saved_type;       /* SavedTensor */
    PyObject *unpack;           /* (result of `save`, node) -> value */
    PyObject *set_history;      /* (TensorImpl, node, output number): makes a tensor an output of a node */
    PyObject *no_edge;          /* (None, 0) */
    PyObject *symbolic_type;    /* SymInt */
    PyObject *narrow_dtypes;    /* frozenset of the dtypes that are stored and cast but that few operators compute with */
    PyObject *fills_new;        /* True if new memory is to be filled */
    PyObject *out_of_memory;    /* OutOfMemoryError */
    PyObject *dtypes[DTYPE_COUNT];
    int itemsizes[DTYPE_COUNT];
} Configuration;

extern Configuration configuration;

/* The error for a request that the system refuses. It is also a MemoryError. */
static inline PyObject *out_of_memory_error(void)
{
    return configuration.out_of_memory ? configuration.out_of_memory : PyExc_MemoryError;
}

static inline DtypeCode dtype_code(PyObject *dtype)
{
    if (dtype == configuration.dtypes[FLOAT32])
        return FLOAT32;
    for (int code = 0; code < DTYPE_COUNT; code++)
        if (dtype == configuration.dtypes[code])
            return (DtypeCode)code;
    return OTHER_DTYPE;
}

#endif
