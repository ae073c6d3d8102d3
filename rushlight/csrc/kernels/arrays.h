/* NumPy arrays as operands of the engine: declarations that the files of the Python module share. */
#ifndef RUSHLIGHT_ARRAYS_H
#define RUSHLIGHT_ARRAYS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL rushlight_numpy
#ifndef RUSHLIGHT_IMPORTS_NUMPY
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>

#include "engine.h"

/* Work on fewer elements keeps the GIL: releasing it would cost more. */
constexpr int64_t MIN_UNLOCKED_WORK = 8192;

/* The element type of an array, or -1 if the kernels do not support the array (complex, byte-swapped, unaligned). */
int array_dtype(PyArrayObject* array);
void set_bfloat16_number(int number);

/* Whether the kernels may read `object`, an array (or write to it, if `written`); *dtype receives its type. */
bool is_operand(PyObject* object, bool written, int* dtype);
/* Whether `object` is a row-major array of this type that the kernels may read or write. */
bool is_plain(PyObject* object, bool written, int dtype);

/* The byte range that an array covers: [first, last). */
void byte_range(PyArrayObject* array, const char** first, const char** last);
bool overlaps(PyArrayObject* a, PyArrayObject* b);
// Whether two arrays have the same address, sizes and strides.
bool same_layout(PyArrayObject* a, PyArrayObject* b);

/* Run `work`; release the GIL if `count` elements make that worthwhile. */
template <class F> inline int without_gil(int64_t count, const F& work) {
  if (count < MIN_UNLOCKED_WORK) return work();
  int done;
  Py_BEGIN_ALLOW_THREADS
  done = work();
  Py_END_ALLOW_THREADS
  return done;
}

/* Return False, or NULL if an exception is set: the result of a function that does not accept its arguments. */
inline PyObject* refuse() { return PyErr_Occurred() ? nullptr : PyBool_FromLong(0); }

/* Check the argument count. If it is wrong, set a TypeError and return true. */
inline bool wrong_count(const char* name, Py_ssize_t given, Py_ssize_t wanted) {
  if (given == wanted) return false;
  PyErr_Format(PyExc_TypeError, "%s: expected %zd arguments, got %zd", name, wanted, given);
  return true;
}

inline PyArrayObject* array_of(PyObject* object) { return (PyArrayObject*)object; }

/* Whether `out` shares memory with any of the other arguments that are arrays. */
inline bool any_overlap(PyObject* out, PyObject* const* others, int count) {
  for (int i = 0; i < count; ++i)
    if (PyArray_Check(others[i]) && overlaps(array_of(out), array_of(others[i]))) return true;
  return false;
}

/* Read an integer argument. If it is not an integer, return false with an exception set. */
bool read_integer(PyObject* object, int64_t* value);

extern PyMethodDef pointwise_methods[], product_methods[], recurrent_methods[], reduction_methods[], row_methods[], convolution_methods[],
    sorting_methods[], indexing_methods[], image_methods[], attention_methods[],
    loss_methods[], region_methods[], special_methods[], block_methods[], byte_methods[];

#endif
